"""True claims stand: of many audits at alpha = 0.05 no more are refuted than bad luck explains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from scipy.stats import binom

from battery.cases import fields_of
from battery.small_games import private_cases, small_game
from tacit.arms import KLUCBCF, Bernoulli
from tacit.core.kernels import INTERPRETED
from tacit.core.registry import policies
from tacit.privacy import Gaussian, Laplace, Piecewise, RandomizedResponse, UnaryEncoding, audit
from tacit.simulation.audits import audit_policy

pytestmark = pytest.mark.skipif(
    INTERPRETED, reason="thousands of games; compiled and interpreted are compared elsewhere"
)
ALPHA = 0.05
RUNS = 1_000
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
Claim = Callable[[int, float], bool]
"""``claim(seed, share)``: whether one audit refutes a `share` of the epsilon that is claimed."""


def of_mechanism(mechanism: Any, left: Any, right: Any, delta: float) -> Claim:
    def refuted(seed: int, share: float) -> bool:
        terms = {"epsilon": share, "delta": delta, "runs": RUNS, "alpha": ALPHA, "seed": seed}
        return audit(mechanism.run, left, right, low_bits=False, **terms).refuted

    return refuted


def of_policy(seed: int, share: float) -> bool:
    terms = {"epsilon": share, "runs": RUNS, "alpha": ALPHA, "seed": seed}
    found = audit_policy(POLICY, ENVIRONMENT, horizon=3, neighbours=PAIRS, **terms)
    return found.result.refuted


def of_game(game: Any, pairs: Any, seed: int, share: float) -> bool:
    terms = {"runs": RUNS, "alpha": ALPHA, "seed": seed}
    return game.audited(pairs, share=share, **terms).result.refuted


def of_the_registry() -> list[Claim]:
    games = [small_game(case) for case in private_cases()]
    return [partial(of_game, game, game.pairs(2)) for game in games]


FEW: list[Claim] = [*(of_mechanism(*each) for each in MECHANISMS), of_policy]


def alarms(claims: Sequence[Claim], audits: int, share: float = 1.0) -> int:
    """Return how many of so many audits refute their claim; claims take turns."""
    return sum(claims[seed % len(claims)](seed, share) for seed in range(audits))


def test_of_sixty_true_claims_few_are_refuted_and_of_false_ones_many():
    """An honest audit exceeds the limit once in a million; claims of half the epsilon do at once."""
    limit = binom.isf(1e-6, 60, ALPHA)
    assert alarms(FEW, 60) <= limit
    assert alarms(FEW, 60, share=0.5) > limit


def test_every_policy_with_an_epsilon_is_among_those_that_are_audited():
    audited = {case.kind.name for case in private_cases()}
    assert audited == {name for name, kind in policies().items() if "epsilon" in fields_of(kind)}


@pytest.mark.soak
def test_of_a_thousand_true_claims_at_most_65_are_refuted():
    """More come three times in two hundred at a level of exactly 0.05; Clopper-Pearson stays below it."""
    claims = [*FEW, *of_the_registry()]
    assert alarms(claims, 1_000) <= 65
    assert alarms(claims, len(claims), share=0.5) > binom.isf(1e-6, len(claims), ALPHA)
