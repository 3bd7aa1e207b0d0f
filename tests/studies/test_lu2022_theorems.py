"""Theorems 2 and 3 of paper 002: the bound as its proof adds it up, and a verdict that can fail."""

from __future__ import annotations

import math

import pytest

from tacit_studies.lu2022.theorems import THEOREMS, measure_in_cliques, regret_bound


@pytest.mark.parametrize("gap", [0.05, 0.1, 0.2, 0.4])
def test_the_bound_is_above_the_sum_of_the_phases(gap):
    """The proof adds up phases of Algorithm 1 that may be needed; (4) rounds that sum up."""
    K, alpha, epsilon, delta = 10, 4, 0.3, 1e-5
    last = math.ceil(math.log2(1 / gap))
    phases = sum(
        max(
            2 ** (5 + 2 * tau) * math.log(8 * K * tau**2 / delta),
            2 ** (3 + tau) / epsilon * math.log(4 * K * tau**2 / delta),
        )
        for tau in range(1, last + 1)
    )
    assert alpha * phases <= regret_bound(K, alpha, gap, epsilon, delta) <= 40 * alpha * phases


def outcomes(growth=math.log, size=lambda a: a, over=0.0):
    found = {f"T/{10**k}": [100 * growth(10**k) + d for d in (-1, 1)] for k in range(4, 8)}
    found |= {f"alpha/{a}": [500 * size(a) + d for d in (-1, 1)] for a in (1, 3, 12)}
    return found | {f"paper/{i}": [(5_000.0 + over, 400_000.0)] * 3 for i in range(9)}


def test_the_theorems_are_judged_by_bound_logarithm_and_independence():
    assert THEOREMS.judge(outcomes(), True).verdict == "reproduced"
    for broken in (
        outcomes(growth=lambda T: T**0.1),
        outcomes(size=lambda a: a**1.5),
        outcomes(over=1e6),
    ):
        assert THEOREMS.judge(broken, True).verdict == "partly"
    assert "27 of 27" in THEOREMS.judge(outcomes(), True).because
    assert "0 of 27" in THEOREMS.judge(outcomes(over=1e6), True).because


def test_more_cliques_cost_more():
    assert max(measure_in_cliques(1, 20_000, 2)) < min(measure_in_cliques(3, 20_000, 2))
