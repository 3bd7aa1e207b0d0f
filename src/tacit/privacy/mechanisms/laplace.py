"""Laplace noise, calibrated to an L1 sensitivity, and its twin on a grid (Dwork et al. 2006)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from tacit.core.constraints import Constraint, Count, Whole
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, SECURE, Tape, noise_uniform, released
from tacit.device.instructions import noise_scale
from tacit.privacy.exact import secure_laplace
from tacit.privacy.mechanisms.base import Channel, VectorNoise, make_channel, round_to_level
from tacit.privacy.releases import Array, NoiseRelease, Release

_LEAST = 2.0**-54
LEVELS = 2**16
"""Steps of a channel's range on a secure tape and on devices."""
_FARTHEST = 2.0**52
OnlyL1 = Annotated[str, Constraint("== 'l1' (Laplace noise needs it)", lambda v: v == "l1")]


@dataclass(frozen=True, kw_only=True)
class LaplaceRelease(NoiseRelease):
    """Independent Laplace noise on every coordinate, calibrated to an L1 sensitivity.

    Parameters are those of `NoiseRelease`.

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
    norm: OnlyL1 = "l1"

    def _hockey_stick(self, epsilon: Array) -> Array:
        return laplace_delta(self.epsilon, epsilon)


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplaceRelease(Release):
    """Discrete Laplace noise on a grid: the secure twin of `LaplaceRelease`.

    Parameters
    ----------
    steps : int
        The L1 sensitivity in grid steps, rounded up.
    scale : int
        The scale of the noise in grid steps; epsilon is ``steps / scale``.
    """

    mechanism: ClassVar[str] = "discrete Laplace"
    steps: Whole
    scale: Annotated[int, Constraint("> 0", lambda value: value > 0)]
    norm: OnlyL1 = "l1"

    @property
    def epsilon(self) -> float:
        """The sensitivity in units of the scale."""
        return self.steps / self.scale

    def _hockey_stick(self, epsilon: Array) -> Array:
        # The loss of x exceeds epsilon below (steps - epsilon scale) / 2.
        last = np.ceil((self.steps - np.minimum(epsilon, self.epsilon) * self.scale) / 2) - 1
        here, there = self._cdf(last), self._cdf(last - self.steps)
        grown = np.exp(np.minimum(epsilon, self.epsilon)) * there
        delta: Array = np.where(epsilon < self.epsilon, np.maximum(0.0, here - grown), 0.0)
        return delta

    def _cdf(self, x: Array) -> Array:
        tail = np.exp(-(np.abs(x) + np.where(x < 0, 0.0, 1.0)) / self.scale)
        tail = tail / (1 + math.exp(-1 / self.scale))
        cdf: Array = np.where(x < 0, tail, 1 - tail)
        return cdf

    def group(self, records: int) -> DiscreteLaplaceRelease:
        """Return the release with the sensitivity of `records` records."""
        return dataclasses.replace(self, steps=records * self.steps)


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

    name: ClassVar[str] = "laplace"
    summary: ClassVar[str] = "Laplace noise on numbers of a known L1 sensitivity"
    length: ClassVar[float] = 1.0

    norm: OnlyL1 = "l1"
    dimension: Count = 1

    @property
    def insecure_because(self) -> str:
        """Only where the grid would be finer than integers can count."""
        _, _, scale = laplace_steps(self.sensitivity, self.epsilon, self.dimension)
        return "" if scale < _FARTHEST else "its scale is more than 2^52 steps of its grid"

    @property
    def release(self) -> LaplaceRelease:
        """Laplace noise of scale sensitivity / epsilon."""
        return LaplaceRelease(sensitivity=self.sensitivity, scale=self.scale, norm=self.norm)

    @property
    def secure_release(self) -> DiscreteLaplaceRelease:
        """Discrete Laplace noise on the grid the sampler chooses."""
        self.require_secure()
        _, steps, scale = laplace_steps(self.sensitivity, self.epsilon, self.dimension)
        return DiscreteLaplaceRelease(steps=int(steps), scale=int(scale))

    @property
    def variance(self) -> float:
        """Twice the scale squared."""
        return 2 * self.scale**2

    @property
    def channel_release(self) -> DiscreteLaplaceRelease:
        """What one use of the channel releases on a secure tape, and a device."""
        return DiscreteLaplaceRelease(steps=LEVELS, scale=level_scale(self.epsilon))

    def channel(self, low: float = 0.0, high: float = 1.0) -> Channel:
        """Return the channel; securely, a level of the range plus whole steps of noise."""
        self._number_only()
        return make_channel(send_noisy, *channel_numbers(self.epsilon, low, self._width(low, high)))

    def _answer(self, low: float, high: float) -> tuple[int, dict[str, Any]]:
        # A question of 2^16 steps and the scale of the noise in steps.
        self._number_only()
        self._width(low, high)
        return LEVELS + 1, {"kind": "noise", "scale": level_scale(self.epsilon)}

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        repeat_laplace(tape, values, self.sensitivity, self.epsilon, out)


def laplace_delta(level: float, epsilon: Array) -> Array:
    """Return the exact delta of Laplace noise at each epsilon; `level` is its pure epsilon."""
    return -np.expm1(np.minimum(epsilon - level, 0.0) / 2)


def laplace_cdf(x: ArrayLike) -> Array:
    """Return the distribution function of the Laplace distribution of scale 1."""
    x = np.asarray(x, dtype=np.float64)
    half = np.exp(-np.abs(x)) / 2
    cdf: Array = np.where(x < 0, half, 1 - half)
    return cdf


def level_scale(epsilon: float) -> int:
    """Return the scale of a channel's noise in steps, rounded up."""
    return noise_scale(epsilon, LEVELS)


def channel_numbers(epsilon: float, low: float, width: float) -> tuple[float, ...]:
    """Return what `send_noisy` needs."""
    numbers = low, width / LEVELS, low, low + width, width / epsilon, level_scale(epsilon)
    return tuple(float(number) for number in numbers)


@kernel
def laplace_quantile(u: Any) -> Any:
    """Return the u-quantile of the Laplace distribution of scale 1; 0 at u = 1/2."""
    value = math.log(2.0 * max(min(u, 1.0 - u), _LEAST))
    return value if u < 0.5 else -value


@kernel
def standard_laplace(tape: Any, t: Any, index: Any, purpose: Any) -> Any:
    """Return a Laplace variable of scale 1; 0 at u = 1/2. NaN on a secure tape: use a release."""
    if tape.kind == SECURE:
        return np.nan
    return laplace_quantile(noise_uniform(tape, t, index, purpose))


@kernel
def laplace_steps(sensitivity: Any, epsilon: Any, coordinates: Any) -> Any:
    """Return the grid of secure Laplace noise: step, L1 sensitivity and scale in whole steps.

    Rounding moves two neighbours apart by at most one more step a coordinate.
    """
    finest = min(sensitivity / epsilon * 2.0**-10, sensitivity / coordinates)
    grid = math.ldexp(1.0, math.frexp(finest)[1] - 11)
    steps = math.floor(sensitivity / grid) + coordinates
    return grid, steps, math.floor(steps / epsilon) + 1


@kernel
def laplace_noise(
    tape: Any, t: Any, index: Any, purpose: Any, sensitivity: Any, epsilon: Any, coordinates: Any
) -> Any:
    """Return the noise of one coordinate of a Laplace release, on the grid on a secure tape."""
    if tape.kind == SECURE:
        grid, _, scale = laplace_steps(sensitivity, epsilon, coordinates)
        return grid * secure_laplace(tape, t, index, purpose, scale)
    return (sensitivity / epsilon) * laplace_quantile(noise_uniform(tape, t, index, purpose))


@kernel
def on_grid(tape: Any, value: Any, sensitivity: Any, epsilon: Any, coordinates: Any) -> Any:
    """Return the value, on a secure tape rounded to the grid of its noise."""
    if tape.kind == SECURE:
        grid = laplace_steps(sensitivity, epsilon, coordinates)[0]
        return grid * np.rint(value / grid)
    return value


@kernel
def release_laplace(
    tape: Any, t: Any, index: Any, purpose: Any, value: Any, sensitivity: Any, epsilon: Any
) -> Any:
    """Release `value` plus Laplace noise of scale sensitivity / epsilon."""
    noise = laplace_noise(tape, t, index, purpose, sensitivity, epsilon, 1)
    return released(tape, on_grid(tape, value, sensitivity, epsilon, 1) + noise)


@kernel
def release_laplace_vector(
    tape: Any,
    t: Any,
    index: Any,
    purpose: Any,
    values: Any,
    sensitivity: Any,
    epsilon: Any,
    out: Any,
) -> None:
    """Release a vector of L1 sensitivity `sensitivity`, into `out`; reads d indices."""
    d = values.size
    for i in range(d):
        noise = laplace_noise(tape, t, index + i, purpose, sensitivity, epsilon, d)
        out[i] = released(tape, on_grid(tape, values[i], sensitivity, epsilon, d) + noise)


@kernel
def noisy_number(numbers: Any, tape: Any, t: Any, index: Any, purpose: Any, value: Any) -> Any:
    """Return a number of the range plus noise, not yet released."""
    if tape.kind == SECURE:
        level = round_to_level(numbers, tape, t, index, value, LEVELS)
        noise = secure_laplace(tape, t, index, purpose, np.int64(numbers[5]))
        symbol = min(max(1.0 * (level + noise), -_FARTHEST), _FARTHEST)
        return numbers[0] + numbers[1] * symbol
    clipped = min(max(value, numbers[2]), numbers[3])
    return clipped + numbers[4] * laplace_quantile(noise_uniform(tape, t, index, purpose))


@kernel
def send_noisy(numbers: Any, tape: Any, t: Any, index: Any, purpose: Any, value: Any) -> Any:
    """Send a number through the channel."""
    return released(tape, noisy_number(numbers, tape, t, index, purpose, value))


@kernel
def repeat_laplace(tape: Any, values: Any, sensitivity: Any, epsilon: Any, out: Any) -> None:
    """Release a vector once for each row of `out`."""
    for i in range(out.shape[0]):
        release_laplace_vector(tape, i, 0, NOISE, values, sensitivity, epsilon, out[i])
