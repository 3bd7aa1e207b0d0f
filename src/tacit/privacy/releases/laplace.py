"""Laplace noise, and its twin on a grid."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from tacit.checks import require
from tacit.privacy.releases.base import Array, Release, require_noise

__all__ = ["DiscreteLaplaceRelease", "LaplaceRelease", "laplace_cdf", "laplace_delta"]


@dataclass(frozen=True, kw_only=True)
class LaplaceRelease(Release):
    """Independent Laplace noise on every coordinate, calibrated to an L1 sensitivity.

    Parameters
    ----------
    sensitivity : float
        The largest L1 distance between the true values of two neighbours.
    scale : float
        The scale of the noise; epsilon is ``sensitivity / scale``.
    norm : str
        Must be ``"l1"``: independent Laplace noise is not calibrated by any other.

    Examples
    --------
    >>> release = LaplaceRelease(sensitivity=1.0, scale=2.0)
    >>> release.epsilon
    0.5
    >>> LaplaceRelease(sensitivity=1.0, scale=2.0, norm="l2")
    Traceback (most recent call last):
    ValueError: LaplaceRelease: expected norm == 'l1' (Laplace noise needs it), got 'l2'
    """

    mechanism: ClassVar[str] = "Laplace"
    sensitivity: float = 1.0
    scale: float
    norm: str = "l1"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l1' (Laplace noise needs it)", self.norm == "l1", self.norm)
        require_noise(self, self.sensitivity, self.scale)

    @property
    def epsilon(self) -> float:
        """The sensitivity in units of the scale."""
        return self.sensitivity / self.scale

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        delta = laplace_delta(self.epsilon, epsilon)
        return delta, delta

    def grouped(self, records: int) -> LaplaceRelease:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(self, sensitivity=records * self.sensitivity)


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplaceRelease(Release):
    """Discrete Laplace noise on a grid: the secure twin of `LaplaceRelease`.

    Parameters
    ----------
    steps : int
        The L1 sensitivity in grid steps, rounded up.
    scale : int
        The scale of the noise in grid steps; epsilon is ``steps / scale``.
    norm : str
        Must be ``"l1"``.
    """

    mechanism: ClassVar[str] = "discrete Laplace"
    steps: int
    scale: int
    norm: str = "l1"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l1' (Laplace noise needs it)", self.norm == "l1", self.norm)
        require(self, "steps", ">= 0", self.steps >= 0, self.steps)
        require(self, "scale", "> 0", self.scale > 0, self.scale)

    @property
    def epsilon(self) -> float:
        """The sensitivity in units of the scale."""
        return self.steps / self.scale

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        # The loss of x exceeds epsilon below (steps - epsilon scale) / 2.
        last = np.ceil((self.steps - np.minimum(epsilon, self.epsilon) * self.scale) / 2) - 1
        here, there = self._cdf(last), self._cdf(last - self.steps)
        grown = np.exp(np.minimum(epsilon, self.epsilon)) * there
        delta = np.where(epsilon < self.epsilon, np.maximum(0.0, here - grown), 0.0)
        return delta, delta

    def _cdf(self, x: Array) -> Array:
        tail = np.exp(-(np.abs(x) + np.where(x < 0, 0.0, 1.0)) / self.scale)
        tail = tail / (1 + math.exp(-1 / self.scale))
        cdf: Array = np.where(x < 0, tail, 1 - tail)
        return cdf

    def grouped(self, records: int) -> DiscreteLaplaceRelease:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(self, steps=records * self.steps)


def laplace_delta(level: float, epsilon: Array) -> Array:
    """Return the exact delta of Laplace noise at each epsilon; `level` is its pure epsilon."""
    return -np.expm1(np.minimum(epsilon - level, 0.0) / 2)


def laplace_cdf(x: ArrayLike) -> Array:
    """Return the distribution function of the Laplace distribution of scale 1."""
    x = np.asarray(x, dtype=np.float64)
    half = np.exp(-np.abs(x)) / 2
    cdf: Array = np.where(x < 0, half, 1 - half)
    return cdf
