"""Mechanisms: frozen descriptions that know their release, their variance and how to run.

Each names what it was calibrated to. ``run(value, n, seed)`` releases the same value n times, in
compiled code, which is what an audit asks for; without a seed it does so securely.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.compiled import kernel
from tacit.policy import require
from tacit.privacy.releases import (
    BallRelease,
    BoundedNoiseRelease,
    DiscreteGaussianRelease,
    DiscreteLaplaceRelease,
    GaussianRelease,
    L2CalibratedLaplaceRelease,
    LaplaceRelease,
    PiecewiseRelease,
    RandomizedResponseRelease,
    Release,
    UnaryRelease,
    gaussian_scale,
)
from tacit.privacy.samplers import (
    gaussian_steps,
    laplace_steps,
    release_ball,
    release_bit,
    release_bounded,
    release_clamped,
    release_gaussian,
    release_laplace_vector,
    release_piecewise,
)
from tacit.tapes import Tape, secure_tape, seeded_tape

__all__ = [
    "BoundedNoise",
    "ClampedLaplace",
    "Gaussian",
    "L2Ball",
    "L2CalibratedLaplace",
    "Laplace",
    "Mechanism",
    "Piecewise",
    "RandomizedResponse",
    "UnaryEncoding",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """Something that turns a true value into a released one."""

    @property
    def secure(self) -> bool:
        """Whether it can run on a secure tape."""
        return True

    @property
    @abstractmethod
    def release(self) -> Release:
        """What one use releases, for real-valued noise."""

    @property
    def secure_release(self) -> Release:
        """What one use releases on a secure tape; its epsilon is at most that of `release`."""
        require(self, "secure", "True", self.secure, self.secure)
        return self.release

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance of (an unbiased estimate from) one released coordinate, at the worst value."""

    @abstractmethod
    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        """Release `values` once for each row of `out`."""

    def _check(self, values: Array) -> None:
        require(self, "value", "a number", values.size == 1, values.size)

    def run(self, value: ArrayLike, n: int, seed: int | None = 0) -> Array:
        """Release `value` n times, independently.

        Parameters
        ----------
        value : float or array of shape (d,)
            The true value.
        n : int
            How often.
        seed : int or None
            Seeds floating-point noise; None draws exact noise from the operating system.

        Returns
        -------
        array of shape (n, d)
        """
        values = np.atleast_1d(np.asarray(value, dtype=np.float64))
        self._check(values)
        require(self, "n", ">= 1", n >= 1, n)
        require(self, "seed", "an integer (no secure sampler is known)",
                self.secure or seed is not None, seed)  # fmt: skip
        tape = secure_tape() if seed is None else seeded_tape(seed)
        out = np.empty((n, values.size))
        self._fill(tape, values, out)
        return out


@dataclass(frozen=True, kw_only=True)
class Laplace(Mechanism):
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

    epsilon: float
    sensitivity: float = 1.0
    norm: str = "l1"
    dimension: int = 1

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l1' (Laplace noise needs it)", self.norm == "l1", self.norm)
        _require_calibration(self, self.epsilon, self.sensitivity)
        require(self, "dimension", ">= 1", self.dimension >= 1, self.dimension)

    @property
    def release(self) -> LaplaceRelease:
        """Laplace noise of scale sensitivity / epsilon."""
        return LaplaceRelease(
            sensitivity=self.sensitivity, scale=self.sensitivity / self.epsilon, norm=self.norm
        )

    @property
    def secure_release(self) -> DiscreteLaplaceRelease:
        """Discrete Laplace noise on the grid the sampler chooses."""
        _, steps, scale = laplace_steps(self.sensitivity, self.epsilon, self.dimension)
        return DiscreteLaplaceRelease(steps=int(steps), scale=int(scale))

    @property
    def variance(self) -> float:
        """Twice the scale squared."""
        return 2 * (self.sensitivity / self.epsilon) ** 2

    def _check(self, values: Array) -> None:
        rule = f"of {self.dimension} coordinates"
        require(self, "value", rule, values.size == self.dimension, values.size)

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run_laplace(tape, values, self.sensitivity, self.epsilon, out)


@dataclass(frozen=True, kw_only=True)
class ClampedLaplace(Mechanism):
    """Laplace noise on a number, clamped to [low, high] afterwards, which costs nothing.

    Guarantee: pure epsilon. `variance` is that before clamping, an upper bound.
    """

    epsilon: float
    sensitivity: float = 1.0
    low: float
    high: float

    def __post_init__(self) -> None:
        _require_calibration(self, self.epsilon, self.sensitivity)
        require(self, "high", f"> low = {self.low:g}", self.high > self.low, self.high)

    @property
    def release(self) -> LaplaceRelease:
        """That of the noise before clamping."""
        return LaplaceRelease(sensitivity=self.sensitivity, scale=self.sensitivity / self.epsilon)

    @property
    def secure_release(self) -> DiscreteLaplaceRelease:
        """Discrete Laplace noise on the grid the sampler chooses."""
        return Laplace(epsilon=self.epsilon, sensitivity=self.sensitivity).secure_release

    @property
    def variance(self) -> float:
        """Twice the scale squared."""
        return 2 * (self.sensitivity / self.epsilon) ** 2

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run_clamped(tape, values[0], self.sensitivity, self.epsilon, self.low, self.high, out)


@dataclass(frozen=True, kw_only=True)
class BoundedNoise(Mechanism):
    """The noise of paper 000: Laplace, but beyond the bound it is the constant bound / 2.

    Guarantee: none that is pure; `release` has the exact delta. Kept to reproduce and refute it.
    """

    epsilon: float
    sensitivity: float = 1.0
    bound: float

    def __post_init__(self) -> None:
        _require_calibration(self, self.epsilon, self.sensitivity)
        require(self, "bound", "> 0", self.bound > 0, self.bound)

    @property
    def release(self) -> BoundedNoiseRelease:
        """The bounded noise as a record."""
        return BoundedNoiseRelease(
            sensitivity=self.sensitivity, scale=self.sensitivity / self.epsilon, bound=self.bound
        )

    @property
    def variance(self) -> float:
        """Of the noise around its own mean, which is not zero."""
        scale = self.sensitivity / self.epsilon
        b = self.bound / scale
        inside = scale**2 * (2 - math.exp(-b) * (b * b + 2 * b + 2))
        constant, mass = self.bound / 2, math.exp(-b)
        return inside + mass * constant**2 - (mass * constant) ** 2

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run_bounded(tape, values[0], self.sensitivity, self.epsilon, self.bound, out)


@dataclass(frozen=True, kw_only=True)
class Gaussian(Mechanism):
    """Gaussian noise on a vector, calibrated analytically to an L2 sensitivity.

    Guarantee: (epsilon, delta) with the least standard deviation (Balle and Wang 2018). The secure
    form is for one coordinate.

    Examples
    --------
    >>> round(Gaussian(epsilon=2.0, delta=1e-6).scale, 3)
    2.23
    """

    epsilon: float
    delta: float
    sensitivity: float = 1.0
    norm: str = "l2"
    dimension: int = 1

    def __post_init__(self) -> None:
        require(self, "norm", "== 'l2' (Gaussian noise needs it)", self.norm == "l2", self.norm)
        _require_calibration(self, self.epsilon, self.sensitivity)
        require(self, "delta", "in (0, 1)", 0 < self.delta < 1, self.delta)
        require(self, "dimension", ">= 1", self.dimension >= 1, self.dimension)

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

    def _check(self, values: Array) -> None:
        rule = f"of {self.dimension} coordinates"
        require(self, "value", rule, values.size == self.dimension, values.size)

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run_gaussian(tape, values, self.sensitivity, self.scale, out)


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Mechanism):
    """A bit, flipped with probability 1 / (e^epsilon + 1).

    Guarantee: pure epsilon, without a trusted server. `variance` is of the debiased bit.
    """

    epsilon: float

    def __post_init__(self) -> None:
        _require_calibration(self, self.epsilon, 1.0)

    @property
    def release(self) -> RandomizedResponseRelease:
        """Symmetric randomized response as a record."""
        return RandomizedResponseRelease.symmetric(self.epsilon)

    @property
    def variance(self) -> float:
        """e^epsilon / (e^epsilon - 1)^2."""
        return math.exp(-self.epsilon) / math.expm1(-self.epsilon) ** 2

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run_bits(tape, values, self.release.keep_one, self.release.keep_zero, out)


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(Mechanism):
    """One of several options (or none) as a one-hot vector of independently flipped bits.

    Guarantee: pure epsilon for one option against another, half of it for the symmetric form
    against none. `variance` is of the debiased cold bit.
    """

    epsilon: float
    options: int
    optimised: bool = False

    def __post_init__(self) -> None:
        _require_calibration(self, self.epsilon, 1.0)
        require(self, "options", ">= 1", self.options >= 1, self.options)

    @property
    def release(self) -> UnaryRelease:
        """The encoding as a record."""
        make = UnaryRelease.optimised if self.optimised else UnaryRelease.symmetric
        return make(self.epsilon)

    @property
    def variance(self) -> float:
        """That is q (1 - q) / (p - q)^2 for p = P(1 | hot) and q = P(1 | cold)."""
        p, q = self.release.keep_one, 1 - self.release.keep_zero
        return q * (1 - q) / (p - q) ** 2

    def _check(self, values: Array) -> None:
        require(self, "value", f"{self.options} bits", values.size == self.options, values.size)

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run_bits(tape, values, self.release.keep_one, self.release.keep_zero, out)


@dataclass(frozen=True, kw_only=True)
class Piecewise(Mechanism):
    """A number in [-1, 1] by the piecewise mechanism: unbiased, one number, pure epsilon.

    References
    ----------
    Wang et al., Collecting and analyzing multidimensional data with local differential privacy,
    ICDE 2019, Algorithm 2.
    """

    epsilon: float

    def __post_init__(self) -> None:
        _require_calibration(self, self.epsilon, 1.0)

    @property
    def release(self) -> PiecewiseRelease:
        """The mechanism as a record."""
        return PiecewiseRelease(level=self.epsilon)

    @property
    def variance(self) -> float:
        """At the ends of the range, where it is largest."""
        return self.variance_at(1.0)

    def variance_at(self, value: float) -> float:
        """Return the variance at a true value."""
        h = math.exp(self.epsilon / 2)
        return value**2 / (h - 1) + (h + 3) / (3 * (h - 1) ** 2)

    def _check(self, values: Array) -> None:
        inside = values.size == 1 and abs(values[0]) <= 1
        require(self, "value", "a number in [-1, 1]", inside, values.tolist())

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run_piecewise(tape, values[0], self.epsilon, out)


@dataclass(frozen=True, kw_only=True)
class L2Ball(Mechanism):
    """Noise of density proportional to exp(-|z| epsilon / sensitivity) on a vector.

    Guarantee: pure epsilon for vectors that differ by at most `sensitivity` in L2.
    """

    epsilon: float
    sensitivity: float = 1.0
    dimension: int

    def __post_init__(self) -> None:
        _require_calibration(self, self.epsilon, self.sensitivity)
        require(self, "dimension", ">= 1", self.dimension >= 1, self.dimension)

    @property
    def secure(self) -> bool:
        """False: no exact sampler on a grid is known."""
        return False

    @property
    def release(self) -> BallRelease:
        """The noise as a record."""
        scale = self.sensitivity / self.epsilon
        return BallRelease(sensitivity=self.sensitivity, scale=scale, dimension=self.dimension)

    @property
    def variance(self) -> float:
        """(d + 1) times the scale squared."""
        return (self.dimension + 1) * (self.sensitivity / self.epsilon) ** 2

    def _check(self, values: Array) -> None:
        rule = f"of {self.dimension} coordinates"
        require(self, "value", rule, values.size == self.dimension, values.size)

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run_ball(tape, values, self.sensitivity / self.epsilon, out)


@dataclass(frozen=True, kw_only=True)
class L2CalibratedLaplace(Mechanism):
    """What paper 004 publishes: Laplace noise on a vector, its scale set by the L2 sensitivity.

    Guarantee: not `epsilon` but up to sqrt(dimension) times it; `release` says how much. Kept to
    reproduce and refute it.
    """

    epsilon: float
    sensitivity: float = 1.0
    dimension: int

    def __post_init__(self) -> None:
        _require_calibration(self, self.epsilon, self.sensitivity)
        require(self, "dimension", ">= 1", self.dimension >= 1, self.dimension)

    @property
    def secure(self) -> bool:
        """False: what does not keep its epsilon is not offered securely."""
        return False

    @property
    def release(self) -> L2CalibratedLaplaceRelease:
        """The noise as a record, whose true epsilon is larger than the one asked for."""
        scale = self.sensitivity / self.epsilon
        return L2CalibratedLaplaceRelease(
            sensitivity=self.sensitivity, scale=scale, dimension=self.dimension
        )

    @property
    def variance(self) -> float:
        """Twice the scale squared."""
        return 2 * (self.sensitivity / self.epsilon) ** 2

    def _check(self, values: Array) -> None:
        rule = f"of {self.dimension} coordinates"
        require(self, "value", rule, values.size == self.dimension, values.size)

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run_laplace(tape, values, self.sensitivity, self.epsilon, out)


def _require_calibration(owner: Mechanism, epsilon: float, sensitivity: float) -> None:
    require(owner, "epsilon", "> 0 and finite", 0 < epsilon < math.inf, epsilon)
    require(owner, "sensitivity", "> 0 and finite", 0 < sensitivity < math.inf, sensitivity)


@kernel
def _run_laplace(tape: Any, values: Any, sensitivity: Any, epsilon: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        release_laplace_vector(tape, i, 0, values, sensitivity, epsilon, out[i])


@kernel
def _run_clamped(
    tape: Any, value: Any, sensitivity: Any, epsilon: Any, low: Any, high: Any, out: Any
) -> None:
    for i in range(out.shape[0]):
        out[i, 0] = release_clamped(tape, i, 0, value, sensitivity, epsilon, low, high)


@kernel
def _run_bounded(
    tape: Any, value: Any, sensitivity: Any, epsilon: Any, bound: Any, out: Any
) -> None:
    for i in range(out.shape[0]):
        out[i, 0] = release_bounded(tape, i, 0, value, sensitivity, epsilon, bound)


@kernel
def _run_gaussian(tape: Any, values: Any, sensitivity: Any, sigma: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        for c in range(values.size):
            out[i, c] = release_gaussian(tape, i, c, values[c], sensitivity, sigma)


@kernel
def _run_bits(tape: Any, values: Any, keep_one: Any, keep_zero: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        for c in range(values.size):
            out[i, c] = release_bit(tape, i, c, values[c] != 0, keep_one, keep_zero)


@kernel
def _run_piecewise(tape: Any, value: Any, epsilon: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i, 0] = release_piecewise(tape, i, 0, value, epsilon)


@kernel
def _run_ball(tape: Any, values: Any, scale: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        release_ball(tape, i, 0, values, scale, out[i])
