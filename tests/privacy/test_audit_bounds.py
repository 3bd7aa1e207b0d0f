"""The bounds behind the audit, against exact binomial tails and the published one-run formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from tacit.privacy.auditing import (
    clopper_pearson,
    epsilon_lower_bound,
    one_run_epsilon,
    one_run_p_value,
)
from tacit.privacy.auditing.bounds import _REMEMBERED


@pytest.mark.parametrize("runs", [1, 7, 200])
@pytest.mark.parametrize("failure_prob", [0.2, 0.025, 1e-4])
def test_clopper_pearson_solves_the_binomial_tails(runs, failure_prob):
    hits = np.arange(runs + 1)
    low, high = clopper_pearson(hits, runs, failure_prob)
    assert low[0] == 0.0
    assert high[-1] == 1.0
    np.testing.assert_allclose(binom.sf(hits[1:] - 1, runs, low[1:]), failure_prob, rtol=1e-8)
    np.testing.assert_allclose(binom.cdf(hits[:-1], runs, high[:-1]), failure_prob, rtol=1e-8)


@pytest.mark.parametrize("p", [0.01, 0.3, 0.9])
def test_clopper_pearson_covers_exactly_enough(p):
    runs, failure_prob = 60, 0.05
    hits = np.arange(runs + 1)
    low, high = clopper_pearson(hits, runs, failure_prob)
    mass = binom.pmf(hits, runs, p)
    assert mass[low > p].sum() <= failure_prob
    assert mass[high < p].sum() <= failure_prob


def test_the_bound_fails_with_probability_at_most_alpha():
    """Exact sum over both counts, on the extreme points of the (1, 0.05)-private region."""
    runs, alpha, epsilon, delta = 50, 0.1, 1.0, 0.05
    for q in (0.001, 0.05, 0.3):
        p = math.exp(epsilon) * q + delta
        k = np.arange(runs + 1)
        bounds = epsilon_lower_bound(k[:, None], k[None, :], runs, delta=delta, alpha=alpha)
        mass = binom.pmf(k, runs, p)[:, None] * binom.pmf(k, runs, q)[None, :]
        assert mass[bounds > epsilon].sum() <= alpha
        assert mass[bounds > 0.2 * epsilon].sum() > mass[bounds > epsilon].sum()


@pytest.mark.parametrize("runs", [9, _REMEMBERED, _REMEMBERED + 1])
def test_bounds_that_are_remembered_are_those_of_clopper_and_pearson(runs):
    likely, unlikely = np.array([runs, 5, 0, 5]), np.array([0, 3, runs, 1])
    (low, _), (_, high) = (clopper_pearson(k, runs, 0.05) for k in (likely, unlikely))
    with np.errstate(divide="ignore"):
        expected = np.maximum(np.log(low) - np.log(high), 0.0)
    for some in (slice(1), slice(None), slice(None)):  # the last from memory alone
        found = epsilon_lower_bound(likely[some], unlikely[some], runs, delta=0.0, alpha=0.1)
        assert found.tolist() == expected[some].tolist()
    assert float(epsilon_lower_bound(5, 3, runs, delta=0.0, alpha=0.1)) == expected[1]


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3])
def test_one_run_p_value_is_the_published_formula(delta):
    for m, r, v, epsilon in [(100, 100, 80, 0.5), (1000, 200, 190, 2.0), (50, 10, 0, 1.0)]:
        q = 1 / (1 + math.exp(-epsilon))
        mass = binom.pmf(np.arange(r + 1), r, q)
        tail = sum(mass[i] for i in range(v, r + 1))
        worst = max(
            (sum(mass[v - j] for j in range(1, i + 1)) / i for i in range(1, v + 1)), default=0.0
        )
        expected = min(1.0, tail + 2 * m * delta * worst)
        found = one_run_p_value(m, r, v, epsilon=epsilon, delta=delta)
        assert found == pytest.approx(expected, rel=1e-9)


def test_one_run_epsilon_is_where_the_p_value_crosses_alpha():
    bound = one_run_epsilon(1000, 1000, 900, delta=0.0, alpha=0.05)
    assert one_run_p_value(1000, 1000, 900, epsilon=bound, delta=0.0) <= 0.05
    assert one_run_p_value(1000, 1000, 900, epsilon=bound + 1e-6, delta=0.0) > 0.05
    assert bound < math.log(9)
    assert one_run_epsilon(1000, 1000, 900, delta=1e-5, alpha=0.05) < bound
    assert one_run_epsilon(1000, 1000, 500, delta=0.0, alpha=0.05) == 0.0
    # all right out of m: p^m <= alpha means e^eps / (1 + e^eps) <= alpha^(1/m)
    exact = math.log(0.05 ** (1 / 1000) / (1 - 0.05 ** (1 / 1000)))
    assert one_run_epsilon(1000, 1000, 1000, delta=0.0, alpha=0.05) == pytest.approx(exact)
