"""Laplace noise with an L2 sensitivity: two ends around the truth, and the lemmas between them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from oracles.privacy import gaussian_hockey_stick, laplace_and_gaussian_delta
from tacit.privacy import (
    BinaryTree,
    GaussianRelease,
    L2CalibratedLaplaceRelease,
    LaplaceRelease,
    composed_delta,
    composed_epsilon,
)
from tacit.privacy.mechanisms.gaussian import gaussian_delta
from tacit.privacy.mechanisms.l2_laplace import (
    _ORDERS,
    _exact_delta,
    _renyi,
    _renyi_delta,
    _smoothing,
)
from tiers import tiered

DELTA = 1e-6
EPSILONS = (0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0)


def worst_gap(a: float, variance: float, more: float) -> float:
    """Return by how much one Laplace coordinate beside G(variance) exceeds G(variance + more)."""
    return max(
        laplace_and_gaussian_delta(a, variance, e) - gaussian_hockey_stick(variance + more, e)
        for e in (*EPSILONS, a / 2, a)
    )


@pytest.mark.parametrize("a", [0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 8 / math.pi])
def test_one_coordinate_is_below_a_gaussian_of_variance_half_pi(a: float) -> None:
    assert worst_gap(a, 0.0, math.pi / 2 * a * a) <= 1e-12


def test_a_smaller_variance_would_not_do() -> None:
    assert worst_gap(0.01, 0.0, 1.55 * 0.01**2) > 1e-5


@pytest.mark.parametrize("a", [0.001, 0.01, 0.1, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("factor", [1.0, 1.3, 3.0, 30.0])
def test_beside_enough_noise_a_coordinate_is_below_its_gaussian(a: float, factor: float) -> None:
    assert worst_gap(a, factor * _smoothing(a), a * a) <= 1e-13


@pytest.mark.parametrize(("a", "share"), [(0.01, 0.4), (0.1, 0.4), (0.3, 0.2)])
def test_beside_too_little_noise_it_is_not(a: float, share: float) -> None:
    assert worst_gap(a, share * a, a * a) > 1e-7


def test_the_divergence_is_concave_in_the_square_of_the_change() -> None:
    squares = np.linspace(0, 9, 400)
    curve = np.array([_renyi(math.sqrt(u)) for u in squares])
    assert np.all(np.diff(curve, 2, axis=0) <= 1e-12)
    order = int(np.argmin(np.abs(_ORDERS - 3)))
    x = np.linspace(-40, 40, 2_000_001)
    p, q = np.exp(-np.abs(x)) / 2, np.exp(-np.abs(x - 0.7)) / 2
    integral = np.trapezoid(p ** _ORDERS[order] * q ** (1 - _ORDERS[order]), x)
    assert _renyi(0.7)[order] == pytest.approx(math.log(integral) / (_ORDERS[order] - 1), rel=1e-6)


def test_the_conversion_holds_for_gaussian_noise_and_is_not_far() -> None:
    for mu, epsilon in ((0.5, 1.0), (1.0, 4.0), (3.0, 20.0)):
        exact = gaussian_delta(mu, epsilon)
        bound = float(_renyi_delta(_ORDERS * mu * mu / 2, epsilon))
        assert exact <= bound <= 10 * exact


@pytest.mark.parametrize("m", [2, 5, 100])
@pytest.mark.parametrize("nodes", [1, 14])
def test_the_exact_delta_agrees_with_composition(m: int, nodes: int) -> None:
    """The accountant rounds up and the integral down; they meet within the grid."""
    a = 0.3 / math.sqrt(m)
    for epsilon in EPSILONS:
        above = composed_delta([(LaplaceRelease(sensitivity=a, scale=1.0), nodes * m)], epsilon)
        below = _exact_delta({a: nodes * m}, epsilon)
        assert below <= above * (1 + 1e-9) + 1e-15
        assert below >= above * (1 - 2e-3) - 1e-12


def test_of_one_coordinate_and_of_one_dimension_the_loss_is_that_of_laplace_noise() -> None:
    scalar = LaplaceRelease(scale=2.0)
    release = L2CalibratedLaplaceRelease(scale=2.0, dimension=1)
    for epsilon in (0.0, 0.2, 0.4):
        assert release.attained_delta(epsilon) == pytest.approx(scalar.delta(epsilon))
        assert release.delta(epsilon) == pytest.approx(scalar.delta(epsilon), rel=1e-3)
    assert release.epsilon == scalar.epsilon


EPSILONS = (0.0, 0.2, 1.0, 4.0)
SETTINGS = [(0.217, 2500, 14), (0.143, 2500, 14), (0.434, 100, 14), (0.2, 10, 1), (1.5, 40, 3)]


@pytest.mark.parametrize(
    ("length", "dimension", "nodes"), tiered(SETTINGS, lambda each: each[1] == 10)
)
def test_no_direction_exceeds_the_upper_end(length: float, dimension: int, nodes: int) -> None:
    """Equal coordinates, two sizes, decaying and random ones."""
    rng = np.random.default_rng(7)
    n = min(dimension, 20)
    directions = [np.ones(m) for m in (1, 2, n)]
    directions += [np.append(np.full(n - 1, s), 1.0) for s in (0.03, 0.3)]
    directions += [1 / np.arange(1, n + 1), rng.exponential(size=n), rng.normal(size=n) ** 4]
    upper = L2CalibratedLaplaceRelease(
        sensitivity=length, scale=1.0, dimension=dimension, nodes=nodes
    )
    loose = dataclasses.replace(upper, alike=False)
    stated = {epsilon: (upper.delta(epsilon), loose.delta(epsilon)) for epsilon in EPSILONS}
    tightest = math.inf
    for direction in directions:
        change = length * direction / np.linalg.norm(direction)
        parts = {float(round(abs(a), 12)): nodes for a in change if abs(a) > 1e-12}
        parts = {a: nodes * int(np.sum(np.round(np.abs(change), 12) == a)) for a in parts}
        for epsilon, (least, most) in stated.items():
            needed = _exact_delta(parts, epsilon)
            assert needed <= least <= most
            if needed > 1e-9:
                tightest = min(tightest, least / needed)
    assert tightest < 1.5


@pytest.mark.parametrize(("length", "dimension", "nodes"), SETTINGS)
def test_the_two_ends_bracket_the_truth_closely(length: float, dimension: int, nodes: int) -> None:
    release = L2CalibratedLaplaceRelease(
        sensitivity=length, scale=1.0, dimension=dimension, nodes=nodes
    )
    low, high = release.bracket(DELTA)
    assert low < high < 1.08 * low
    assert high <= release.epsilon
    assert release.attained_delta(low * (1 - 1e-4)) > DELTA >= release.delta(high)
    for epsilon in EPSILONS:
        assert release.attained_delta(epsilon) <= release.delta(epsilon)


@pytest.mark.parametrize(
    ("divisor", "low", "high", "pure"),
    [(math.log(10_000), 3.8607, 3.9678, 152.0), (14, 2.4245, 2.5241, 100.0)],
)
def test_the_published_tree(divisor: float, low: float, high: float, pure: float) -> None:
    """Paper 004 at epsilon 2: 10,000 rounds, 100 users, 25 features, either logarithm."""
    release = L2CalibratedLaplaceRelease(scale=divisor / 2, dimension=2500, nodes=14)
    assert release.epsilon == pytest.approx(pure, abs=0.01)
    assert release.bracket(DELTA) == pytest.approx((low, high), abs=2e-4)
    assert composed_epsilon([(release, 1)], DELTA) == pytest.approx(high, abs=2e-4)
    assert composed_epsilon([(release, 1)]) == release.epsilon


def test_the_worst_direction_depends_on_epsilon() -> None:
    def at(m: int, epsilon: float) -> float:
        return _exact_delta({0.3 / math.sqrt(m): m}, epsilon)

    assert at(1, 0.0) > at(100, 0.0)
    assert at(100, 0.5) > at(1, 0.5)


def test_a_tree_is_one_release_of_all_its_nodes() -> None:
    tree = BinaryTree(horizon=10_000, epsilon=2.0, noise="l2_laplace", norm="l2", dimension=2500)
    ((release, count),) = tree.releases
    assert count == 1
    assert release == L2CalibratedLaplaceRelease(scale=7.0, dimension=2500, nodes=14)


def test_in_company_the_dominating_gaussian_counts() -> None:
    """With another release, the sum of squares and what smoothing costs; never below the truth."""
    release = L2CalibratedLaplaceRelease(scale=7.0, dimension=2500, nodes=14)
    together = [(release, 1), (GaussianRelease(scale=5.0), 1)]
    dense = [(LaplaceRelease(sensitivity=1 / 50, scale=7.0), 14 * 2500), together[1]]
    need, enough = composed_epsilon(dense, DELTA), composed_epsilon(together, DELTA)
    assert need < enough < 1.1 * need
    twice = composed_epsilon([(release, 2)], DELTA)
    whole = composed_epsilon([(dataclasses.replace(release, nodes=28), 1)], DELTA)
    assert whole < twice < 1.2 * whole


def test_changes_that_may_answer_to_earlier_nodes_get_the_weaker_bound() -> None:
    release = L2CalibratedLaplaceRelease(scale=7.0, dimension=2500, nodes=14)
    assert release.group(1) == release
    group = release.group(3)
    assert not group.alike
    assert group.sensitivity == 3.0
    assert group.epsilon == pytest.approx(3 * release.epsilon)
    settled = dataclasses.replace(group, alike=True)
    assert settled.delta(8.0) < group.delta(8.0) < 10 * settled.delta(8.0)


def test_a_very_long_change_has_two_ends_too() -> None:
    release = L2CalibratedLaplaceRelease(sensitivity=30.0, scale=1.0, dimension=2500, nodes=14)
    low, high = release.bracket(DELTA)
    assert low < high < 1.02 * low < release.epsilon
    assert release.attained_delta(0.0) == pytest.approx(1.0)
    assert release.delta(0.0) == pytest.approx(1.0)


def test_bad_questions_are_refused() -> None:
    release = L2CalibratedLaplaceRelease(scale=1.0, dimension=4)
    with pytest.raises(ValueError, match="expected delta in"):
        release.bracket(0.0)
    with pytest.raises(ValueError, match="expected epsilon >= 0"):
        release.attained_delta(-1.0)
    with pytest.raises(ValueError, match="expected nodes >= 1"):
        dataclasses.replace(release, nodes=0)
