"""Composition agrees with closed forms, is never below them, and knows dp-accounting's miscount."""

from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import pld_privacy_accountant, privacy_loss_distribution

from oracles.privacy import response_delta, response_epsilon
from tacit.privacy import (
    ApproximateRelease,
    BallRelease,
    BoundedNoiseRelease,
    DiscreteGaussianRelease,
    DiscreteLaplaceRelease,
    GaussianRelease,
    L2CalibratedLaplaceRelease,
    LaplaceRelease,
    PiecewiseRelease,
    PureRelease,
    RandomizedResponseRelease,
    UnaryRelease,
    composed_delta,
    composed_epsilon,
    gaussian_scale,
    least_private,
    loss_distribution,
)
from tacit.privacy.mechanisms.gaussian import gaussian_delta

DELTA = 1e-6


@pytest.mark.parametrize(("epsilon", "n"), [(1.0, 2), (0.1, 500), (1.0, 100), (0.5, 20_000)])
def test_repeated_randomized_response_is_a_binomial(epsilon: float, n: int) -> None:
    exact = response_epsilon(epsilon, n, DELTA)
    accounted = composed_epsilon([(RandomizedResponseRelease.symmetric(epsilon), n)], DELTA)
    assert exact * (1 - 1e-9) <= accounted <= exact * (1 + 1e-5)


def test_dp_accounting_still_ignores_the_count_of_randomized_response() -> None:
    """When this fails the library was mended, and `loss_distribution` may use its accountant."""
    event = dp_accounting.RandomizedResponseDpEvent(2 / (1 + math.e), 2)
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    once, many = (
        pld_privacy_accountant.PLDAccountant(relation).compose(event, n).get_epsilon(DELTA)
        for n in (1, 100)
    )
    assert once == many == pytest.approx(1.0, abs=1e-3)
    ours = composed_epsilon([(RandomizedResponseRelease.symmetric(1.0), 100)], DELTA)
    assert ours > 50 * once


@pytest.mark.parametrize(("ratio", "n"), [(1.0, 10), (0.05, 400), (0.01, 10_000)])
def test_repeated_gaussian_is_one_gaussian(ratio: float, n: int) -> None:
    accounted = composed_epsilon([(GaussianRelease(scale=1 / ratio), n)], DELTA)
    at_exact = gaussian_delta(ratio * math.sqrt(n), accounted)
    assert at_exact <= DELTA * (1 + 1e-6)
    assert gaussian_delta(ratio * math.sqrt(n), accounted * (1 - 2e-3)) > DELTA


@pytest.mark.parametrize(("scale", "n"), [(1.0, 10), (10.0, 1_000)])
def test_repeated_laplace_agrees_with_dp_accounting(scale: float, n: int) -> None:
    theirs = privacy_loss_distribution.from_laplace_mechanism(
        scale, value_discretization_interval=1e-3 / scale
    ).self_compose(n)
    ours = composed_epsilon([(LaplaceRelease(scale=scale), n)], DELTA)
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(DELTA), rel=1e-3)


@pytest.mark.parametrize(
    ("release", "n", "expected"),
    [
        (RandomizedResponseRelease.symmetric(1.0), 100, 83.53),
        (UnaryRelease.symmetric(1.0), 100, 55.05),
        (UnaryRelease.symmetric(1.0), 1_000, 346.00),
        (UnaryRelease.symmetric(1.0), 10_000, 2773.17),
        (LaplaceRelease(scale=10.0), 2 * 500, 18.95),
    ],
)
def test_budgets_of_the_papers(release: object, n: int, expected: float) -> None:
    assert composed_epsilon([(release, n)], DELTA) == pytest.approx(expected, abs=0.02)  # type: ignore[list-item]


def test_pure_composition_adds() -> None:
    parts = [(LaplaceRelease(scale=10.0), 500), (PureRelease(level=1.0), 3)]
    assert composed_epsilon(parts) == pytest.approx(53.0)
    assert composed_epsilon(parts, DELTA) < 53.0
    assert composed_delta(parts, 53.0 + 1e-9) == 0.0


def test_different_releases_compose_like_their_sum() -> None:
    """Two Gaussians and a bit, against the Gaussian sum and the bit integrated by hand."""
    a, b, bit = 0.3, 0.4, RandomizedResponseRelease.symmetric(0.7)
    together = [(GaussianRelease(scale=1 / a), 1), (GaussianRelease(scale=1 / b), 1), (bit, 1)]
    ratio = math.hypot(a, b)

    def signed(e: float) -> float:
        return (
            gaussian_delta(ratio, e)
            if e >= 0
            else 1 - math.exp(e) * (1 - gaussian_delta(ratio, -e))
        )

    for epsilon in (0.1, 0.5, 1.5):
        keep = bit.keep_one
        exact = keep * signed(epsilon - 0.7) + (1 - keep) * signed(epsilon + 0.7)
        assert exact <= composed_delta(together, epsilon) + 1e-12
        assert composed_delta(together, epsilon) == pytest.approx(exact, rel=5e-3)


def test_one_release_is_exact() -> None:
    release = LaplaceRelease(scale=1.0)
    epsilon = composed_epsilon([(release, 1)], 0.01)
    assert release.delta(epsilon) == pytest.approx(0.01, rel=1e-9)
    assert composed_delta([(release, 1)], 0.3) == pytest.approx(1 - math.exp(-0.35))


def test_an_l1_shift_is_worst_in_one_coordinate() -> None:
    """Vector Laplace releases count as scalar ones; no way to spread the shift may be worse."""
    whole = LaplaceRelease(sensitivity=1.0, scale=0.5)
    for split in ((0.5, 0.5), (0.9, 0.1), (0.25,) * 4, (0.02,) * 50):
        parts = [(LaplaceRelease(sensitivity=s, scale=0.5), 1) for s in split]
        for epsilon in (0.0, 0.3, 1.0, 1.9):
            assert composed_delta(parts, epsilon) <= whole.delta(epsilon) + 1e-4 * epsilon


def test_l2_calibrated_laplace_is_far_from_its_claim() -> None:
    worst = L2CalibratedLaplaceRelease(scale=0.5, dimension=2500)
    assert worst.epsilon == pytest.approx(100.0)
    dense = L2CalibratedLaplaceRelease(scale=7.0, dimension=2500, shift=(0.02,) * 2500)
    assert dense.epsilon == pytest.approx(50 / 7)
    tree = composed_epsilon([(dense, 14)], DELTA)
    assert 2.3 < tree < 2.5
    gaussian = composed_epsilon([(GaussianRelease(scale=7.0), 14)], DELTA)
    assert tree == pytest.approx(gaussian, rel=0.2)


def test_ball_noise_in_high_dimension_composes_like_gaussian_noise() -> None:
    """In R^2500 the loss has standard deviation about 2/50, so 14 nodes cost far less than 28."""
    ball = BallRelease(scale=0.5, dimension=2500)
    assert composed_epsilon([(ball, 14)]) == pytest.approx(28.0)
    gaussian = composed_epsilon([(GaussianRelease(scale=25.0), 14)], DELTA)
    assert composed_epsilon([(ball, 14)], DELTA) == pytest.approx(gaussian, rel=0.05)


def test_bounded_noise_never_falls_below_its_atom() -> None:
    release = BoundedNoiseRelease(scale=10.0, bound=10 * math.log(400))
    assert composed_epsilon([(release, 500)], 0.5) == math.inf
    read_off = 1 - (1 - math.exp(-math.log(400)) * (1 + math.expm1(0.1) / 2)) ** 500
    assert read_off == pytest.approx(0.73, abs=0.005)
    assert composed_delta([(release, 500)], 60.0) == pytest.approx(read_off, rel=1e-3)


def test_certain_failures_add_up() -> None:
    release = ApproximateRelease(level=1.0, failure=1e-3)
    assert composed_delta([(release, 2)], 2.0 + 1e-6) == pytest.approx(
        1 - (1 - 1e-3) ** 2, rel=1e-6
    )
    assert composed_epsilon([(ApproximateRelease(level=0.0, failure=1.0), 1)], 0.5) == math.inf


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 20.0])
def test_gaussian_calibration_against_high_precision(epsilon: float, delta: float) -> None:
    mpmath = pytest.importorskip("mpmath")
    sigma = gaussian_scale(epsilon, delta)

    def exact(s: float) -> float:
        with mpmath.workdps(60):
            r, e = 1 / mpmath.mpf(s), mpmath.mpf(epsilon)
            value = mpmath.ncdf(r / 2 - e / r) - mpmath.exp(e) * mpmath.ncdf(-r / 2 - e / r)
            return float(value)

    assert exact(sigma) <= delta * (1 + 1e-8)
    assert exact(sigma * (1 - 1e-7)) > delta


def directed_delta(pairs: list[tuple[np.ndarray, np.ndarray]], epsilon: float) -> float:
    """Return the delta of independent answers, each with its own pair, by listing all of them."""
    left, right = np.ones(1), np.ones(1)
    for p, q in pairs:
        left, right = np.outer(left, p).ravel(), np.outer(right, q).ravel()
    return float(np.maximum(0.0, left - math.exp(epsilon) * right).sum())


def test_asymmetric_response_counts_every_mixture_of_directions() -> None:
    """One answer may turn 0 into 1 and the next 1 into 0: that is worse than twice the same."""
    release = RandomizedResponseRelease(keep_one=0.5, keep_zero=0.9)
    assert release.epsilon == pytest.approx(math.log(5))
    assert composed_epsilon([(release, 3)]) == pytest.approx(3 * math.log(5))
    forth = 0.5 - math.exp(0.2) * 0.1
    back = 0.9 - math.exp(0.2) * 0.5
    assert release.delta(0.2) == pytest.approx(max(forth, back))
    one, zero = np.array([0.5, 0.5]), np.array([0.1, 0.9])
    beyond = 0.0
    for n in (2, 3):
        for epsilon in (0.2, 0.8, 1.0, 1.5, 2.5):
            mixed = max(
                directed_delta([(one, zero)] * k + [(zero, one)] * (n - k), epsilon)
                for k in range(n + 1)
            )
            same = max(directed_delta([pair] * n, epsilon) for pair in ((one, zero), (zero, one)))
            beyond = max(beyond, mixed - same)
            assert composed_delta([(release, n)], epsilon) >= mixed - 1e-12
    assert beyond > 0.08  # what composing one direction alone would have missed


@pytest.mark.parametrize(
    "release",
    [
        RandomizedResponseRelease.symmetric(1.0),
        LaplaceRelease(scale=10.0),
        UnaryRelease.optimised(0.5),
        PiecewiseRelease(level=0.5, likely=0.56),
        BallRelease(scale=1.0, dimension=10),
        DiscreteLaplaceRelease(steps=7, scale=20),
        DiscreteGaussianRelease(steps=10, sigma=100.0),
    ],
    ids=lambda release: release.mechanism,
)
def test_composition_agrees_with_dp_accounting(release: object) -> None:
    parts = [(release, 300)]
    theirs = loss_distribution(parts)  # type: ignore[arg-type]
    epsilon = composed_epsilon(parts, DELTA)  # type: ignore[arg-type]
    assert epsilon == pytest.approx(theirs.get_epsilon_for_delta(DELTA), rel=1e-4)
    assert composed_delta(parts, 1.0) == pytest.approx(  # type: ignore[arg-type]
        theirs.get_delta_for_epsilon(1.0), rel=1e-3
    )


@pytest.mark.parametrize(
    ("release", "mean"),
    [
        (RandomizedResponseRelease.symmetric(1.0), math.tanh(0.5)),
        (LaplaceRelease(scale=10.0), 0.1 + math.expm1(-0.1)),
    ],
    ids=["randomized response", "Laplace"],
)
def test_any_count_is_bounded_and_never_falls(release: object, mean: float) -> None:
    """Up to 10^15: above the mean of the total loss, and close to it when there are many."""
    counts = [10**k for k in range(1, 16)]
    found = [composed_epsilon([(release, n)], DELTA) for n in counts]  # type: ignore[list-item]
    assert found == sorted(found)
    for n, epsilon in zip(counts, found, strict=True):
        assert epsilon > n * mean
    assert found[-1] == pytest.approx(10**15 * mean, rel=1e-3)


def test_gaussian_releases_are_one_at_any_count() -> None:
    one = GaussianRelease(scale=100.0)
    assert composed_epsilon([(one, 10**12)], DELTA) == pytest.approx(
        composed_epsilon([(GaussianRelease(sensitivity=10.0**6, scale=100.0), 1)], DELTA)
    )


def test_one_release_that_may_be_any_of_several_costs_what_the_worst_costs() -> None:
    """Of each the epsilon where its own curve falls to delta; a curve may end above it."""
    kinds = [
        RandomizedResponseRelease.symmetric(1.2),
        RandomizedResponseRelease(keep_zero=0.999, keep_one=0.0027186),
        LaplaceRelease(scale=0.4),
        GaussianRelease(scale=4.0),
    ]
    for delta in (1e-12, DELTA, 1e-3, 0.05, 0.4):
        each = [composed_epsilon([(release, 1)], delta) for release in kinds]
        for release, epsilon in zip(kinds, each, strict=True):
            assert release.delta(epsilon) <= delta
            assert epsilon == 0 or release.delta(epsilon * (1 - 1e-9)) > delta
        assert composed_epsilon([(least_private(kinds), 1)], delta) == max(each)


def test_response_delta_curve() -> None:
    distribution = loss_distribution([(RandomizedResponseRelease.symmetric(0.5), 30)])
    for epsilon in np.linspace(0, 14, 15):
        exact = response_delta(0.5, 30, float(epsilon))
        assert distribution.get_delta_for_epsilon(float(epsilon)) == pytest.approx(exact, abs=1e-6)


def test_a_bit_that_is_never_flipped_protects_nothing() -> None:
    release = RandomizedResponseRelease(keep_one=1.0, keep_zero=1.0)
    assert composed_epsilon([(release, 3)]) == math.inf
    assert composed_epsilon([(release, 3)], DELTA) == math.inf
    half = RandomizedResponseRelease(keep_one=1.0, keep_zero=0.5)
    assert half.epsilon == math.inf
    assert half.delta(5.0) == pytest.approx(0.5)
    assert composed_delta([(half, 2)], 50.0) == pytest.approx(0.75)


def test_releases_that_hide_nothing_are_bounded_and_not_an_error():
    """As of a person with 10^15 rewards in one sum: exp of a step of the grid is beyond a float."""
    release = LaplaceRelease(scale=1e-13)
    assert composed_epsilon([(release, 50)], 1e-6) == 50 * release.epsilon
    assert composed_delta([(release, 50)], 1.0) == 1.0
