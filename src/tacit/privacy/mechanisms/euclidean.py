"""Noise calibrated to an L2 sensitivity: Gaussian, and of a density that falls with the length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit.checks import require
from tacit.compiled import kernel
from tacit.privacy.mechanisms.base import Array, VectorNoise
from tacit.privacy.releases import (
    BallRelease,
    DiscreteGaussianRelease,
    GaussianRelease,
    gaussian_scale,
)
from tacit.privacy.samplers import gaussian_steps, release_ball, release_gaussian
from tacit.tapes import NOISE, Tape

__all__ = ["Gaussian", "L2Ball"]


@dataclass(frozen=True, kw_only=True)
class Gaussian(VectorNoise):
    """Gaussian noise on a vector, calibrated analytically to an L2 sensitivity.

    Guarantee: (epsilon, delta) with the least standard deviation (Balle and Wang 2018). The secure
    form is for one coordinate.

    Examples
    --------
    >>> round(Gaussian(epsilon=2.0, delta=1e-6).scale, 3)
    2.23
    """

    delta: float
    norm: str = "l2"
    dimension: int = 1

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l2' (Gaussian noise needs it)", self.norm == "l2", self.norm)
        super().__post_init__()
        require(self, "delta", "in (0, 1)", 0 < self.delta < 1, self.delta)

    @property
    def secure(self) -> bool:
        """Only in one dimension: rounding several coordinates to a grid moves them apart in L2."""
        return self.dimension == 1

    @property
    def scale(self) -> float:
        """The standard deviation."""
        return gaussian_scale(self.epsilon, self.delta, self.sensitivity)

    @property
    def release(self) -> GaussianRelease:
        """Gaussian noise as a record."""
        return GaussianRelease(sensitivity=self.sensitivity, scale=self.scale, norm=self.norm)

    @property
    def secure_release(self) -> DiscreteGaussianRelease:
        """Discrete Gaussian noise on the grid the sampler chooses."""
        require(self, "dimension", "== 1 to run securely", self.dimension == 1, self.dimension)
        _, steps, sigma = gaussian_steps(self.sensitivity, self.scale)
        return DiscreteGaussianRelease(steps=int(steps), sigma=int(sigma))

    @property
    def variance(self) -> float:
        """The scale squared."""
        return self.scale**2

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run_gaussian(tape, values, self.sensitivity, self.scale, out)


@dataclass(frozen=True, kw_only=True)
class L2Ball(VectorNoise):
    """Noise of density proportional to exp(-|z| epsilon / sensitivity) on a vector.

    Guarantee: pure epsilon for vectors that differ by at most `sensitivity` in L2.
    """

    @property
    def secure(self) -> bool:
        """False: no exact sampler on a grid is known."""
        return False

    @property
    def release(self) -> BallRelease:
        """The noise as a record."""
        return BallRelease(sensitivity=self.sensitivity, scale=self.scale, dimension=self.dimension)

    @property
    def variance(self) -> float:
        """(d + 1) times the scale squared."""
        return (self.dimension + 1) * self.scale**2

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run_ball(tape, values, self.scale, out)


@kernel
def _run_gaussian(tape: Any, values: Any, sensitivity: Any, sigma: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        for c in range(values.size):
            out[i, c] = release_gaussian(tape, i, c, NOISE, values[c], sensitivity, sigma)


@kernel
def _run_ball(tape: Any, values: Any, scale: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        release_ball(tape, i, 0, NOISE, values, scale, out[i])
