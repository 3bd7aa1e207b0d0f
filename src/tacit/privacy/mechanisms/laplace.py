"""Laplace noise: sound, clamped, and the two ways in which papers get it wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tacit.checks import require
from tacit.compiled import kernel
from tacit.privacy.mechanisms.base import AdditiveNoise, Array, VectorNoise
from tacit.privacy.releases import (
    BoundedNoiseRelease,
    DiscreteLaplaceRelease,
    L2CalibratedLaplaceRelease,
    LaplaceRelease,
)
from tacit.privacy.samplers import (
    laplace_steps,
    release_bounded,
    release_clamped,
    release_laplace_vector,
)
from tacit.tapes import NOISE, Tape

__all__ = ["BoundedNoise", "ClampedLaplace", "L2CalibratedLaplace", "Laplace"]


@dataclass(frozen=True, kw_only=True)
class Laplace(VectorNoise):
    """Independent Laplace noise on each coordinate, calibrated to an L1 sensitivity.

    Guarantee: pure epsilon for vectors that differ by at most `sensitivity` in L1.

    Examples
    --------
    >>> Laplace(epsilon=0.5).release.scale
    2.0
    >>> Laplace(epsilon=0.5, norm="l2")
    Traceback (most recent call last):
    ValueError: Laplace: expected norm == 'l1' (Laplace noise needs it), got 'l2'
    """

    norm: str = "l1"
    dimension: int = 1

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l1' (Laplace noise needs it)", self.norm == "l1", self.norm)
        super().__post_init__()

    @property
    def release(self) -> LaplaceRelease:
        """Laplace noise of scale sensitivity / epsilon."""
        return LaplaceRelease(sensitivity=self.sensitivity, scale=self.scale, norm=self.norm)

    @property
    def secure_release(self) -> DiscreteLaplaceRelease:
        """Discrete Laplace noise on the grid the sampler chooses."""
        _, steps, scale = laplace_steps(self.sensitivity, self.epsilon, self.dimension)
        return DiscreteLaplaceRelease(steps=int(steps), scale=int(scale))

    @property
    def variance(self) -> float:
        """Twice the scale squared."""
        return 2 * self.scale**2

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run_laplace(tape, values, self.sensitivity, self.epsilon, out)


@dataclass(frozen=True, kw_only=True)
class ClampedLaplace(AdditiveNoise):
    """Laplace noise on a number, clamped to [low, high] afterwards, which costs nothing.

    Guarantee: pure epsilon. `variance` is that before clamping, an upper bound.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "high", f"> low = {self.low:g}", self.high > self.low, self.high)

    @property
    def release(self) -> LaplaceRelease:
        """That of the noise before clamping."""
        return LaplaceRelease(sensitivity=self.sensitivity, scale=self.scale)

    @property
    def secure_release(self) -> DiscreteLaplaceRelease:
        """Discrete Laplace noise on the grid the sampler chooses."""
        return Laplace(epsilon=self.epsilon, sensitivity=self.sensitivity).secure_release

    @property
    def variance(self) -> float:
        """Twice the scale squared."""
        return 2 * self.scale**2

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run_clamped(tape, values[0], self.sensitivity, self.epsilon, self.low, self.high, out)


@dataclass(frozen=True, kw_only=True)
class BoundedNoise(AdditiveNoise):
    """The noise of paper 000: Laplace, but beyond the bound it is the constant bound / 2.

    Guarantee: none that is pure; `release` has the exact delta. Kept to reproduce and refute it.
    """

    bound: float

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "bound", "> 0", self.bound > 0, self.bound)

    @property
    def release(self) -> BoundedNoiseRelease:
        """The bounded noise as a record."""
        return BoundedNoiseRelease(sensitivity=self.sensitivity, scale=self.scale, bound=self.bound)

    @property
    def variance(self) -> float:
        """Of the noise around its own mean, which is not zero."""
        scale = self.scale
        b = self.bound / scale
        inside = scale**2 * (2 - math.exp(-b) * (b * b + 2 * b + 2))
        constant, mass = self.bound / 2, math.exp(-b)
        return inside + mass * constant**2 - (mass * constant) ** 2

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run_bounded(tape, values[0], self.sensitivity, self.epsilon, self.bound, out)


@dataclass(frozen=True, kw_only=True)
class L2CalibratedLaplace(VectorNoise):
    """What paper 004 publishes: Laplace noise on a vector, its scale set by the L2 sensitivity.

    Guarantee: not `epsilon` but up to sqrt(dimension) times it; `release` says how much. Kept to
    reproduce and refute it.
    """

    @property
    def secure(self) -> bool:
        """False: what does not keep its epsilon is not offered securely."""
        return False

    @property
    def release(self) -> L2CalibratedLaplaceRelease:
        """The noise as a record, whose true epsilon is larger than the one asked for."""
        return L2CalibratedLaplaceRelease(
            sensitivity=self.sensitivity, scale=self.scale, dimension=self.dimension
        )

    @property
    def variance(self) -> float:
        """Twice the scale squared."""
        return 2 * self.scale**2

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run_laplace(tape, values, self.sensitivity, self.epsilon, out)


@kernel
def _run_laplace(tape: Any, values: Any, sensitivity: Any, epsilon: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        release_laplace_vector(tape, i, 0, NOISE, values, sensitivity, epsilon, out[i])


@kernel
def _run_clamped(
    tape: Any, value: Any, sensitivity: Any, epsilon: Any, low: Any, high: Any, out: Any
) -> None:
    for i in range(out.shape[0]):
        out[i, 0] = release_clamped(tape, i, 0, NOISE, value, sensitivity, epsilon, low, high)


@kernel
def _run_bounded(
    tape: Any, value: Any, sensitivity: Any, epsilon: Any, bound: Any, out: Any
) -> None:
    for i in range(out.shape[0]):
        out[i, 0] = release_bounded(tape, i, 0, NOISE, value, sensitivity, epsilon, bound)
