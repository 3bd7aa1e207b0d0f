"""Gaussian noise, its twin on a grid, and its calibration."""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.checks import require
from tacit.privacy.releases.base import Array, Release, require_noise

__all__ = ["DiscreteGaussianRelease", "GaussianRelease", "gaussian_delta", "gaussian_scale"]


@dataclass(frozen=True, kw_only=True)
class GaussianRelease(Release):
    """Independent Gaussian noise on every coordinate, calibrated to an L2 sensitivity.

    Parameters
    ----------
    sensitivity : float
        The largest L2 distance between the true values of two neighbours.
    scale : float
        The standard deviation of the noise.
    norm : str
        Must be ``"l2"``.

    References
    ----------
    Balle and Wang, Improving the Gaussian mechanism for differential privacy, ICML 2018, Theorem 8.
    """

    mechanism: ClassVar[str] = "Gaussian"
    sensitivity: float = 1.0
    scale: float
    norm: str = "l2"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l2' (Gaussian noise needs it)", self.norm == "l2", self.norm)
        require_noise(self, self.sensitivity, self.scale)

    @property
    def epsilon(self) -> float:
        """Infinite: Gaussian noise has no pure guarantee."""
        return math.inf if self.sensitivity > 0 else 0.0

    @property
    def spread(self) -> float:
        """The sensitivity in units of the standard deviation."""
        return self.sensitivity / self.scale

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        delta = np.array([gaussian_delta(self.spread, float(e)) for e in epsilon])
        return delta, delta

    def _largest_loss(self) -> float:
        # Beyond 9 standard deviations lies a mass below 1e-18, which is counted as a certain loss.
        return self.spread**2 / 2 + 9 * self.spread

    def grouped(self, records: int) -> GaussianRelease:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(self, sensitivity=records * self.sensitivity)


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianRelease(Release):
    """Discrete Gaussian noise on a grid: the secure twin of `GaussianRelease`.

    Parameters
    ----------
    steps : int
        The sensitivity in grid steps, rounded up.
    sigma : float
        The parameter sigma of the noise in grid steps.
    norm : str
        Must be ``"l2"``; the loss of one coordinate is exact.
    """

    mechanism: ClassVar[str] = "discrete Gaussian"
    steps: int
    sigma: float
    norm: str = "l2"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l2'", self.norm == "l2", self.norm)
        require(self, "steps", ">= 0", self.steps >= 0, self.steps)
        require(self, "sigma", "> 0 and finite", 0 < self.sigma < math.inf, self.sigma)

    @property
    def epsilon(self) -> float:
        """Infinite: Gaussian noise has no pure guarantee."""
        return math.inf if self.steps > 0 else 0.0

    @property
    def spread(self) -> float:
        """The sensitivity in units of sigma."""
        return self.steps / self.sigma

    def _largest_loss(self) -> float:
        return self.spread**2 / 2 + 9 * self.spread

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        if self.steps == 0:
            return np.zeros_like(epsilon), np.zeros_like(epsilon)
        # P(x >= k) - e^epsilon P(x >= k + steps) with k the first point whose loss exceeds epsilon.
        reach = math.ceil(12 * self.sigma) + self.steps + 2
        tail = _discrete_gaussian_tail(self.sigma, reach)
        # The loss of x against x + steps is (2 steps x + steps^2) / (2 sigma^2).
        first = np.floor(epsilon * self.sigma**2 / self.steps - self.steps / 2) + 1
        index = np.clip(first + reach, 0, tail.size - 1).astype(np.int64)
        other = np.clip(first + self.steps + reach, 0, tail.size - 1).astype(np.int64)
        delta = np.maximum(0.0, tail[index] - np.exp(np.minimum(epsilon, 700.0)) * tail[other])
        return delta, delta

    def grouped(self, records: int) -> DiscreteGaussianRelease:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(self, steps=records * self.steps)


def gaussian_delta(ratio: float, epsilon: float) -> float:
    """Return the exact delta of Gaussian noise (Balle and Wang 2018, Theorem 8).

    Parameters
    ----------
    ratio : float
        Sensitivity divided by standard deviation.
    epsilon : float
        The epsilon, at least 0.
    """
    if ratio == 0:
        return 0.0
    a, b = epsilon / ratio - ratio / 2, epsilon / ratio + ratio / 2
    # e^epsilon Phi(-b) = e^(-a^2/2) erfcx(b / sqrt 2) / 2, which cannot overflow.
    second = math.exp(-a * a / 2) * _erfcx(b / math.sqrt(2)) / 2
    return max(0.0, math.erfc(a / math.sqrt(2)) / 2 - second)


def gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the smallest standard deviation that is (epsilon, delta)-private, to 1e-12.

    Examples
    --------
    >>> round(gaussian_scale(1.0, 1e-5), 4)
    3.7306
    """
    require("gaussian_scale", "epsilon", "> 0", epsilon > 0, epsilon)
    require("gaussian_scale", "delta", "in (0, 1)", 0 < delta < 1, delta)
    low, high = 1e-12, 1.0
    while gaussian_delta(high, epsilon) <= delta:
        low, high = high, 2 * high
    for _ in range(200):
        middle = math.sqrt(low * high)
        if middle in (low, high):
            break
        if gaussian_delta(middle, epsilon) <= delta:
            low = middle
        else:
            high = middle
    return sensitivity / low


def _erfcx(x: float) -> float:
    if x < 25:
        return math.exp(x * x) * math.erfc(x)
    y = 1 / (2 * x * x)
    return (1 - y * (1 - 3 * y * (1 - 5 * y * (1 - 7 * y)))) / (x * math.sqrt(math.pi))


@functools.lru_cache(maxsize=4)
def _discrete_gaussian_tail(sigma: float, reach: int) -> Array:
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    tail: Array = np.append(np.cumsum(weights[::-1])[::-1], 0.0) / weights.sum()
    return tail
