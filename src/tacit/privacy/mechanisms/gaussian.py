"""Gaussian noise, its twin on a grid, and its calibration."""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from tacit.checks import Count, Rule, Share, require
from tacit.compiled import kernel
from tacit.generator import inverse_normal
from tacit.privacy.exact import secure_gaussian
from tacit.privacy.mechanisms.base import Channel, VectorNoise, channel_of
from tacit.privacy.mechanisms.release import Array, Release, require_noise
from tacit.tapes import NOISE, SECURE, Tape, noise_uniform, released

__all__ = [
    "DiscreteGaussianRelease",
    "Gaussian",
    "GaussianRelease",
    "gaussian_delta",
    "gaussian_scale",
    "gaussian_steps",
    "normal_noise",
    "release_gaussian",
    "standard_normal",
]

_LEAST = 2.0**-54


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

    name: ClassVar[str] = "gaussian"
    summary: ClassVar[str] = "Gaussian noise on a vector of a known L2 sensitivity"
    length: ClassVar[float] = 2.0

    delta: Share
    norm: Annotated[str, Rule("== 'l2' (Gaussian noise needs it)", lambda v: v == "l2")] = "l2"
    dimension: Count = 1

    @property
    def insecure_because(self) -> str:
        """Rounding several coordinates to a grid moves them apart in L2."""
        if self.dimension > 1:
            return "it has several coordinates"
        wide = gaussian_steps(self.sensitivity, self.scale)[2] >= 2**28
        return "its standard deviation is more than 2^28 steps of its grid" if wide else ""

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
        self.require_secure()
        _, steps, sigma = gaussian_steps(self.sensitivity, self.scale)
        return DiscreteGaussianRelease(steps=int(steps), sigma=int(sigma))

    @property
    def variance(self) -> float:
        """The scale squared."""
        return self.scale**2

    def channel(self, low: float = 0.0, high: float = 1.0) -> Channel:
        """Return the channel: the number plus noise."""
        self._number_only()
        width = self._width(low, high)
        scale = gaussian_scale(self.epsilon, self.delta, width)
        return channel_of(send_gaussian, 0.0, 1.0, low, high, width, scale)

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run(tape, values, self.sensitivity, self.scale, out)


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


@kernel
def standard_normal(tape: Any, t: Any, index: Any, purpose: Any) -> Any:
    """Return a standard normal variable; 0 at u = 1/2. NaN on a secure tape: use a release."""
    if tape.kind == SECURE:
        return np.nan
    u = noise_uniform(tape, t, index, purpose)
    return inverse_normal(min(max(u, _LEAST), 1.0 - 2.0 * _LEAST))


@kernel
def gaussian_steps(sensitivity: Any, sigma: Any) -> Any:
    """Return the grid of secure Gaussian noise: step, sensitivity and sigma in whole steps."""
    grid = math.ldexp(1.0, math.frexp(min(sigma * 2.0**-5, sensitivity))[1] - 11)
    # No finer than integers can count; a coarser grid only makes the noise larger.
    while sigma >= grid * 2.0**27 and grid < sensitivity:
        grid *= 2.0
    steps = math.floor(sensitivity / grid) + 1
    return grid, steps, math.floor(steps * (sigma / sensitivity)) + 1


@kernel
def normal_noise(tape: Any, t: Any, index: Any, purpose: Any, sensitivity: Any, sigma: Any) -> Any:
    """Return the noise of one Gaussian release, a multiple of the grid on a secure tape."""
    if tape.kind == SECURE:
        grid, _, steps = gaussian_steps(sensitivity, sigma)
        return grid * secure_gaussian(tape, t, index, purpose, steps)
    return sigma * standard_normal(tape, t, index, purpose)


@kernel
def release_gaussian(
    tape: Any, t: Any, index: Any, purpose: Any, value: Any, sensitivity: Any, sigma: Any
) -> Any:
    """Release `value` plus Gaussian noise of standard deviation `sigma`.

    The sensitivity does not change the noise; a secure tape needs it to round the right way.
    """
    noise = normal_noise(tape, t, index, purpose, sensitivity, sigma)
    if tape.kind == SECURE:
        grid = gaussian_steps(sensitivity, sigma)[0]
        value = grid * np.rint(value / grid)
    return released(tape, value + noise)


@kernel
def send_gaussian(numbers: Any, tape: Any, t: Any, index: Any, purpose: Any, value: Any) -> Any:
    """Send a number through the channel."""
    clipped = min(max(value, numbers[2]), numbers[3])
    return release_gaussian(tape, t, index, purpose, clipped, numbers[4], numbers[5])


@kernel
def _run(tape: Any, values: Any, sensitivity: Any, sigma: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        for c in range(values.size):
            out[i, c] = release_gaussian(tape, i, c, NOISE, values[c], sensitivity, sigma)
