"""Discrete Gaussian noise on vectors: its accounting from below, from opendp, and its law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tacit.compiled import INTERPRETED
from tacit.privacy import Gaussian
from tacit.privacy.mechanisms.discrete_gaussian import (
    DiscreteGaussian,
    DiscreteGaussianVectorRelease,
    concentrated_delta,
    concentrated_level,
)


def masses(sigma: int, shift: int) -> np.ndarray:
    x = np.arange(-60, 61)
    weights = np.exp(-((x - shift) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


@pytest.mark.parametrize("shift", [(2, 0), (1, 1), (2, 1), (3, 2)])
def test_no_direction_costs_more_than_declared(shift: tuple[int, int]) -> None:
    """Two coordinates by enumeration: delta, and the Renyi divergence at several orders."""
    sigma = 4
    p = np.outer(masses(sigma, 0), masses(sigma, 0))
    q = np.outer(masses(sigma, shift[0]), masses(sigma, shift[1]))
    release = DiscreteGaussianVectorRelease(steps=math.hypot(*shift), sigma=sigma)
    for epsilon in (0.0, 0.2, 0.7, 1.5):
        exact = np.maximum(0, p - math.exp(epsilon) * q).sum()
        assert exact <= release.delta(epsilon) + 1e-12
    for order in (1.5, 2.0, 8.0):
        log = order * np.log(p) + (1 - order) * np.log(q)
        divergence = float(np.logaddexp.reduce(log.ravel())) / (order - 1)
        assert divergence <= order * release.concentrated * (1 + 1e-9)
        # At whole shifts this is what the divergence is, so a smaller level would not hold.
        assert divergence > order * release.concentrated * (1 - 1e-3)


@pytest.mark.parametrize(("rho", "delta"), [(0.05, 1e-6), (0.5, 1e-9), (0.001, 1e-5)])
def test_the_conversion_is_that_of_opendp(rho: float, delta: float) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    noise = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=1 / math.sqrt(2 * rho)))
    theirs = noise.map(1.0).epsilon(delta)
    assert concentrated_delta(rho, theirs) == pytest.approx(delta, rel=2e-2)
    assert concentrated_level(theirs, delta) == pytest.approx(rho, rel=1e-2)


@pytest.mark.parametrize("dimension", [1, 3, 1000])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.05, 1e-6), (8.0, 1e-9)])
def test_noise_keeps_its_word_and_is_hardly_larger(
    epsilon: float, delta: float, dimension: int
) -> None:
    mechanism = DiscreteGaussian(epsilon=epsilon, delta=delta, sensitivity=0.3, dimension=dimension)
    assert mechanism.secure
    assert mechanism.secure_release.delta(epsilon) <= delta
    step, steps, sigma = mechanism.grid
    # Rounding moves each of d coordinates by less than a step against its neighbour.
    assert steps >= 0.3 / step + math.sqrt(dimension) - 1e-6
    assert sigma < 2**27
    plain = Gaussian(epsilon=epsilon, delta=delta, sensitivity=0.3).scale
    assert plain < mechanism.scale < 1.3 * plain


def test_rounding_stays_within_the_declared_steps() -> None:
    mechanism = DiscreteGaussian(epsilon=1.0, delta=1e-6, dimension=40)
    step, steps, _ = mechanism.grid
    rng = np.random.default_rng(1)
    for _ in range(200):
        left = rng.normal(size=40)
        change = rng.normal(size=40)
        right = left + change / np.linalg.norm(change)
        apart = np.linalg.norm(np.rint(left / step) - np.rint(right / step))
        assert apart <= steps


@pytest.mark.parametrize("seed", [2, None])
def test_noise_has_its_law_on_its_grid(seed: int | None) -> None:
    """Kolmogorov distance at a false alarm of 1e-6; a scale 10% wrong is found."""
    mechanism = DiscreteGaussian(epsilon=1.0, delta=1e-6, dimension=2)
    runs = 100 if INTERPRETED else 20_000
    y = mechanism.run([0.25, -3.0], runs, seed)
    step = mechanism.grid.step
    np.testing.assert_array_equal(y, step * np.rint(y / step))
    bound = math.sqrt(math.log(2e6) / (2 * runs)) + 1 / runs
    for column, centre in zip(y.T, (0.25, -3.0), strict=True):
        found = stats.kstest(column, stats.norm(centre, mechanism.scale).cdf).statistic
        assert found < bound
        if not INTERPRETED:
            wrong = stats.kstest(column, stats.norm(centre, 1.1 * mechanism.scale).cdf).statistic
            assert wrong > bound
    assert abs(np.corrcoef(y.T)[0, 1]) < 5 / math.sqrt(runs)


def test_noise_too_wide_for_integers_is_refused() -> None:
    mechanism = DiscreteGaussian(epsilon=1e-9, delta=1e-9)
    assert not mechanism.secure
    with pytest.raises(ValueError, match="because its noise is too wide for a grid of 64 steps"):
        mechanism.run(0.0)
