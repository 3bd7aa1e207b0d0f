"""Gaussian noise, its twin in whole steps, and their calibration."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from tacit.core.constraints import Constraint, Count, NonNegative, Share, require
from tacit.core.generator import inverse_normal
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, SECURE, Tape, noise_uniform, released
from tacit.privacy.exact import secure_gaussian
from tacit.privacy.mechanisms.base import Channel, VectorNoise, make_channel
from tacit.privacy.releases import L2, Array, NoiseRelease, Release

OnlyL2 = Annotated[str, Constraint("== 'l2' (Gaussian noise needs it)", lambda v: v == "l2")]
_LEAST = 2.0**-54
_ROUNDING = 4.0
"""Variance that discrete noise has beyond the Gaussian noise it is post-processing of."""


@dataclass(frozen=True, kw_only=True)
class GaussianRelease(NoiseRelease):
    """Independent Gaussian noise on every coordinate, calibrated to an L2 sensitivity.

    Parameters are those of `NoiseRelease`.

    References
    ----------
    Balle and Wang, Improving the Gaussian mechanism for differential privacy, ICML 2018, Theorem 8.
    """

    mechanism: ClassVar[str] = "Gaussian"
    norm: OnlyL2 = "l2"

    @property
    def epsilon(self) -> float:
        """Infinite: Gaussian noise has no pure guarantee."""
        return math.inf if self.sensitivity > 0 else 0.0

    @property
    def spread(self) -> float:
        """The sensitivity in units of the standard deviation."""
        return self.sensitivity / self.scale

    def _hockey_stick(self, epsilon: Array) -> Array:
        return np.array([gaussian_delta(self.spread, float(e)) for e in epsilon])

    def _largest_loss(self) -> float:
        # Beyond 9 standard deviations lies a mass below 1e-18, which is counted as a certain loss.
        return self.spread**2 / 2 + 9 * self.spread


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianRelease(Release):
    """Discrete Gaussian noise on every coordinate of a vector of whole steps.

    Parameters
    ----------
    steps : float
        The L2 distance of neighbours in steps, whatever its direction.
    sigma : int
        The parameter sigma of the noise in steps, at least 3.

    Notes
    -----
    Delta is that of Gaussian noise of variance sigma^2 - 4, at most. Let y be a whole vector c plus such
    noise, and draw a whole x around y with weights exp(-|x - y|^2 / 8). By Poisson summation the sum
    of the weights of one coordinate is sqrt(8 pi) (1 + u) with abs(u) < 3 exp(-8 pi^2) < 2^-112,
    wherever y is, and likewise the sum of exp(-x^2 / (2 sigma^2)) is sqrt(2 pi) sigma (1 + v). Without
    u and v, x is discrete Gaussian around c, because variances of Gaussians add up; with them its
    probabilities are off by a factor below 1 + 2^-110 a coordinate. So noise of sigma is post-processing of
    Gaussian noise, but for an epsilon that is off by less than 2^-108 d and a delta that is off by this
    factor, less than the rounding of what is calculated here. How the change is spread may
    be chosen in the light of earlier coordinates, as long as its length is bounded, as for Gaussian
    noise (Smith and Thakurta, Fully adaptive composition for Gaussian differential privacy, 2022).
    """

    mechanism: ClassVar[str] = "discrete Gaussian"
    steps: NonNegative
    sigma: Annotated[int, Constraint(">= 3 and finite", lambda v: 3 <= v < float("inf"))]
    norm: L2 = "l2"

    @property
    def epsilon(self) -> float:
        """Infinite: Gaussian noise has no pure guarantee."""
        return math.inf if self.steps > 0 else 0.0

    @property
    def spread(self) -> float:
        """The sensitivity in units of the standard deviation of the Gaussian noise behind it."""
        return self.steps / math.sqrt(self.sigma**2 - _ROUNDING)

    def _largest_loss(self) -> float:
        return self.spread**2 / 2 + 9 * self.spread

    def _hockey_stick(self, epsilon: Array) -> Array:
        return np.array([gaussian_delta(self.spread, float(e)) for e in epsilon])

    def group(self, records: int) -> DiscreteGaussianRelease:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(self, steps=records * self.steps)


@dataclass(frozen=True, kw_only=True)
class Gaussian(VectorNoise):
    """Gaussian noise on a vector, calibrated analytically to an L2 sensitivity.

    Guarantee: (epsilon, delta) with the least standard deviation (Balle and Wang 2018). On a secure
    tape coordinates are rounded to a grid, which may move neighbours apart by one more step in each,
    and discrete Gaussian noise is added.

    Examples
    --------
    >>> round(Gaussian(epsilon=2.0, delta=1e-6).scale, 3)
    2.23
    """

    name: ClassVar[str] = "gaussian"
    summary: ClassVar[str] = "Gaussian noise on a vector of a known L2 sensitivity"
    length: ClassVar[float] = 2.0

    delta: Share
    norm: OnlyL2 = "l2"
    dimension: Count = 1

    @property
    def insecure_because(self) -> str:
        """Only where the grid would be finer than integers can count."""
        wide = gaussian_steps(self.sensitivity, self.scale, self.dimension)[2] >= 2**28
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
        _, steps, sigma = gaussian_steps(self.sensitivity, self.scale, self.dimension)
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
        return make_channel(send_gaussian, 0.0, 1.0, low, high, width, scale)

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run(tape, values, self.sensitivity, self.scale, out)


def gaussian_delta(ratio: float, epsilon: float) -> float:
    """Return the exact delta of Gaussian noise (Balle and Wang 2018, Theorem 8), rounded upwards.

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
    first = math.erfc(a / math.sqrt(2)) / 2
    second = math.exp(-a * a / 2) * _erfcx(b / math.sqrt(2)) / 2
    # Where the ratio is small they nearly cancel, and what each is off by is not.
    off = (a * a + b * b + 8) * 2.0**-52 * (first + second) if first + second > 0 else 0.0
    return min(1.0, max(0.0, first - second + off))


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


def whole_sigma(steps: float, epsilon: float, delta: float) -> int:
    """Return a sigma for which `DiscreteGaussianRelease` of `steps` is (epsilon, delta)-private.

    Examples
    --------
    >>> whole_sigma(1000.0, 1.0, 1e-5)
    3732
    """
    # (x + 1)^2 - 4 >= x^2 wherever noise is worth the name.
    return max(3, math.floor(steps * gaussian_scale(epsilon, delta) * (1 + 2.0**-40)) + 2)


@kernel
def standard_normal(tape: Any, t: Any, index: Any, purpose: Any) -> Any:
    """Return a standard normal variable; 0 at u = 1/2. NaN on a secure tape: use a release."""
    if tape.kind == SECURE:
        return np.nan
    u = noise_uniform(tape, t, index, purpose)
    return inverse_normal(min(max(u, _LEAST), 1.0 - 2.0 * _LEAST))


@kernel
def gaussian_steps(sensitivity: Any, sigma: Any, coordinates: Any) -> Any:
    """Return the grid of secure Gaussian noise: step, L2 sensitivity and sigma in whole steps."""
    finest = min(sigma * 2.0**-5, sensitivity / math.sqrt(coordinates))
    grid = math.ldexp(1.0, math.frexp(finest)[1] - 11)
    # No finer than integers can count; a coarser grid only makes the noise larger.
    while sigma >= grid * 2.0**27 and grid < sensitivity:
        grid *= 2.0
    steps = math.floor(sensitivity / grid + math.sqrt(coordinates)) + 1
    return grid, steps, math.floor(steps * (sigma / sensitivity)) + 2


@kernel
def release_gaussian(
    tape: Any,
    t: Any,
    index: Any,
    purpose: Any,
    value: Any,
    sensitivity: Any,
    sigma: Any,
    coordinates: Any,
) -> Any:
    """Release one of several coordinates plus Gaussian noise of standard deviation `sigma`.

    The sensitivity does not change the noise; a secure tape needs it to round the right way.
    """
    if tape.kind == SECURE:
        grid, _, steps = gaussian_steps(sensitivity, sigma, coordinates)
        noise = secure_gaussian(tape, t, index, purpose, steps)
        return released(tape, grid * (np.rint(value / grid) + noise))
    return released(tape, value + sigma * standard_normal(tape, t, index, purpose))


@kernel
def send_gaussian(numbers: Any, tape: Any, t: Any, index: Any, purpose: Any, value: Any) -> Any:
    """Send a number through the channel."""
    clipped = min(max(value, numbers[2]), numbers[3])
    return release_gaussian(tape, t, index, purpose, clipped, numbers[4], numbers[5], 1)


@kernel
def _run(tape: Any, values: Any, sensitivity: Any, sigma: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        for c in range(values.size):
            value = values[c]
            out[i, c] = release_gaussian(tape, i, c, NOISE, value, sensitivity, sigma, values.size)
