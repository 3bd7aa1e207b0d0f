"""Discrete Gaussian noise: its accounting against convolved probabilities, its grid and its law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from oracles.privacy import discrete_gaussian_delta
from tacit.core.kernels import INTERPRETED
from tacit.privacy import (
    DiscreteGaussianRelease,
    Gaussian,
    GaussianMoments,
    Laplace,
    SquareRootToeplitz,
)
from tacit.privacy.mechanisms.gaussian import gaussian_delta, gaussian_steps

EPSILONS = (0.0, 0.2, 0.7, 1.5)


@pytest.mark.parametrize(
    ("shift", "sigma"),
    [
        ((3,), 3),
        ((2, 0), 4),
        ((1, 1), 4),
        ((3, 2), 4),
        ((17, 5, -3), 20),
        ((9, -4) * 3, 30),
        ((1,) * 40, 6),
        ((100,), 150),
    ],
)
def test_no_direction_costs_more_than_declared(shift: tuple[int, ...], sigma: int) -> None:
    """The exact delta, by convolution; noise of half the size is refuted."""
    release = DiscreteGaussianRelease(steps=math.hypot(*shift), sigma=sigma)
    for epsilon in EPSILONS:
        exact = discrete_gaussian_delta(shift, sigma, epsilon)
        assert exact <= release.delta(epsilon) + 1e-13
        assert discrete_gaussian_delta(shift, sigma / 2, epsilon) > release.delta(epsilon)
    if sigma >= 20 and math.hypot(*shift) > 15:
        # And not by much: 4 of the variance, and the steps of the loss.
        assert exact > 0.9 * release.delta(epsilon)


def test_a_change_in_the_light_of_the_first_coordinate_is_covered() -> None:
    """Two coordinates: the first moves by 2 steps, the second by 1 to either side or not at all."""
    sigma, x = 4, np.arange(-60, 61)
    p = np.exp(-(x**2) / (2 * sigma**2))
    p /= p.sum()
    first = np.roll(p, 2)
    release = DiscreteGaussianRelease(steps=math.sqrt(5.0), sigma=sigma)
    for epsilon in EPSILONS:
        exact = 0.0
        for i in range(len(x)):
            second = np.roll(p, int(np.sign(x[i] - 1)))
            exact += np.maximum(0.0, p[i] * p - math.exp(epsilon) * first[i] * second).sum()
        assert exact <= release.delta(epsilon)


@pytest.mark.parametrize("dimension", [1, 3, 1000])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.05, 1e-6), (8.0, 1e-9)])
def test_noise_keeps_its_word_and_is_hardly_larger(
    epsilon: float, delta: float, dimension: int
) -> None:
    mechanism = Gaussian(epsilon=epsilon, delta=delta, sensitivity=0.3, dimension=dimension)
    assert mechanism.secure
    assert mechanism.secure_release.delta(epsilon) <= delta
    step, steps, sigma = gaussian_steps(0.3, mechanism.scale, dimension)
    # Rounding moves each of d coordinates by less than a step against its neighbour.
    assert steps >= 0.3 / step + math.sqrt(dimension)
    assert sigma < 2**28
    assert mechanism.scale <= step * sigma < 1.01 * mechanism.scale


def test_rounding_stays_within_the_declared_steps() -> None:
    mechanism = Gaussian(epsilon=1.0, delta=1e-6, dimension=40)
    step, steps, _ = gaussian_steps(1.0, mechanism.scale, 40)
    rng = np.random.default_rng(1)
    for _ in range(200):
        left = step * (rng.integers(-9, 9, 40) + 0.5)
        change = rng.normal(size=40)
        right = left + change / np.linalg.norm(change)
        apart = np.linalg.norm(np.rint(left / step) - np.rint(right / step))
        assert apart <= steps


def test_secure_noise_has_its_law_on_its_grid() -> None:
    """Kolmogorov distance at a false alarm of 1e-6; a scale 10% wrong is found."""
    mechanism = Gaussian(epsilon=1.0, delta=1e-6, dimension=2)
    runs = 100 if INTERPRETED else 20_000
    y = mechanism.run([0.25, -3.0], runs)
    step, _, sigma = gaussian_steps(1.0, mechanism.scale, 2)
    np.testing.assert_array_equal(y, step * np.rint(y / step))
    bound = math.sqrt(math.log(2e6) / (2 * runs)) + 1 / runs
    for column, centre in zip(y.T, (0.25, -3.0), strict=True):
        assert stats.kstest(column, stats.norm(centre, step * sigma).cdf).statistic < bound
        if not INTERPRETED:
            wrong = stats.norm(centre, 1.1 * step * sigma).cdf
            assert stats.kstest(column, wrong).statistic > bound
    assert abs(np.corrcoef(y.T)[0, 1]) < 5 / math.sqrt(runs)


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 1e-3, 1.0, 30.0])
@pytest.mark.parametrize("ratio", [1e-12, 1e-10, 3e-11, 1e-6, 0.1, 3.0])
def test_the_delta_of_gaussian_noise_is_never_below_the_exact_one(
    ratio: float, epsilon: float
) -> None:
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        r, e = mpmath.mpf(ratio), mpmath.mpf(epsilon)
        below = [mpmath.erfc((e / r + sign * r / 2) / mpmath.sqrt(2)) / 2 for sign in (-1, 1)]
        exact = below[0] - mpmath.exp(e) * below[1]
        found = mpmath.mpf(gaussian_delta(ratio, epsilon))
        assert found >= exact * (exact > mpmath.mpf(10) ** -300)
        if ratio >= 1e-6 and exact > mpmath.mpf(10) ** -300:
            assert found <= exact * (1 + mpmath.mpf(10) ** -6)


@pytest.mark.parametrize("sensitivity", [5e-324, 1e-101, 1e101, 1e308])
def test_a_sensitivity_without_noise_that_is_a_number_is_refused(sensitivity: float) -> None:
    """A grid of 0 would be refined for ever, and noise of an infinite scale is none."""
    given = {"epsilon": 1e-9, "delta": 1e-6}
    rule = "between 1e-100 and 1e100"
    with pytest.raises(ValueError, match=f"Gaussian: expected sensitivity {rule}"):
        Gaussian(sensitivity=sensitivity, **given)
    with pytest.raises(ValueError, match=f"GaussianMoments: expected largest {rule}"):
        GaussianMoments(dimension=2, largest=sensitivity, **given)
    with pytest.raises(ValueError, match=f"SquareRootToeplitz: expected sensitivity {rule}"):
        SquareRootToeplitz(horizon=4, sensitivity=sensitivity, **given)
    with pytest.raises(ValueError, match="expected high from 1e-100 to 1e100 above low"):
        Laplace(epsilon=1.0).channel(0.0, sensitivity)
    for end in (1e-100, 1e100):
        assert np.isfinite(Gaussian(epsilon=1.0, delta=1e-6, sensitivity=end).run(end)).all()
