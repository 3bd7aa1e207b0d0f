"""True claims stand: of many audits at alpha = 0.05 no more are refuted than bad luck explains."""

from __future__ import annotations

import pytest
from scipy.stats import binom

from tacit.arms import KLUCBCF, Bernoulli
from tacit.compiled import INTERPRETED
from tacit.privacy import audit
from tacit.privacy.mechanisms import Gaussian, Laplace, Piecewise, RandomizedResponse, UnaryEncoding
from tacit.simulation.audits import audit_policy

pytestmark = pytest.mark.skipif(
    INTERPRETED, reason="thousands of games; compiled and interpreted are compared elsewhere"
)
ALPHA = 0.05
ENVIRONMENT = Bernoulli(means=(0.3, 0.7))
POLICY = KLUCBCF(n_arms=2, epsilon=1.0)
PAIRS = ENVIRONMENT.neighbours("reward", 3, limit=2)
ONE, OTHER = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
# Each costs exactly what is claimed on its pair: the hardest true claim there is.
MECHANISMS = (
    (RandomizedResponse(epsilon=1.0), 0.0, 1.0, 0.0),
    (Laplace(epsilon=1.0), 0.0, 1.0, 0.0),
    (Piecewise(epsilon=1.0), -1.0, 1.0, 0.0),
    (UnaryEncoding(epsilon=1.0, options=3), ONE, OTHER, 0.0),
    (Gaussian(epsilon=1.0, delta=0.05), 0.0, 1.0, 0.05),
)


def refuted(seed: int, share: float) -> bool:
    """Audit one of six things that cost epsilon 1 against the claim of a `share` of it."""
    kind = seed % (len(MECHANISMS) + 1)
    terms = {"epsilon": share, "runs": 1_000, "alpha": ALPHA, "seed": seed}
    if kind == len(MECHANISMS):
        found = audit_policy(POLICY, ENVIRONMENT, horizon=3, neighbours=PAIRS, **terms)
        return found.result.refuted
    mechanism, left, right, delta = MECHANISMS[kind]
    return audit(mechanism.run, left, right, delta=delta, low_bits=False, **terms).refuted


def alarms(audits: int, share: float = 1.0) -> int:
    return sum(refuted(seed, share) for seed in range(audits))


def test_of_sixty_true_claims_few_are_refuted_and_of_false_ones_many():
    """An honest audit exceeds the limit once in a million; claims of half the epsilon do at once."""
    limit = binom.isf(1e-6, 60, ALPHA)
    assert alarms(60) <= limit
    assert alarms(60, share=0.5) > limit


@pytest.mark.soak
def test_of_a_thousand_true_claims_at_most_65_are_refuted():
    """More come three times in two hundred at a level of exactly 0.05; Clopper-Pearson stays below it."""
    assert alarms(1_000) <= 65
