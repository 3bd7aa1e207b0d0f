"""The bounded noise of paper 000, which does not keep what is claimed of it, and what it keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.core.constraints import Positive
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, Tape, released
from tacit.privacy.mechanisms.base import AdditiveNoise, Channel, make_channel
from tacit.privacy.mechanisms.laplace import laplace_cdf, laplace_noise, on_grid
from tacit.privacy.releases import L1, Array, NoiseRelease, Scale


@dataclass(frozen=True, kw_only=True)
class BoundedNoiseRelease(NoiseRelease):
    """Laplace noise of which draws outside [-bound, bound] become the constant bound / 2.

    This is the mechanism of Odeyomi, not a sound one: the ends of the two supports do not overlap
    and the constant betrays the value, so no finite pure epsilon holds and delta never falls below
    ``delta(sensitivity / scale)``.

    Parameters
    ----------
    sensitivity, scale, norm
        As in `NoiseRelease`, of the noise before it is bounded.
    bound : float
        The bound b.
    """

    mechanism: ClassVar[str] = "bounded noise"
    bound: Scale
    norm: L1 = "l1"

    @property
    def epsilon(self) -> float:
        """Infinite, whatever the bound."""
        return math.inf if self.sensitivity > 0 else 0.0

    @property
    def spread(self) -> float:
        """The loss where the supports overlap."""
        return self.sensitivity / self.scale

    def _largest_loss(self) -> float:
        return self.spread

    def _hockey_stick(self, epsilon: Array) -> Array:
        s, b = self.sensitivity / self.scale, self.bound / self.scale
        # The overlap is [s - b, b]; there the loss exceeds epsilon left of (s - epsilon) / 2.
        low = np.full_like(epsilon, s - b)
        high = np.maximum(low, np.minimum(b, np.where(epsilon < s, (s - epsilon) / 2, -np.inf)))
        here = laplace_cdf(high) - laplace_cdf(low)
        there = laplace_cdf(high - s) - laplace_cdf(low - s)
        end = laplace_cdf(np.minimum(low, b)) - laplace_cdf(np.full_like(epsilon, -b))
        delta = math.exp(-b) + end + here - np.exp(np.minimum(epsilon, s)) * there
        clipped: Array = np.clip(delta, 0.0, 1.0)
        return clipped


@dataclass(frozen=True, kw_only=True)
class BoundedNoise(AdditiveNoise):
    """The noise of paper 000: Laplace, but beyond the bound it is the constant bound / 2.

    Guarantee: none that is pure; `release` has the exact delta. Kept to reproduce and refute it.

    Parameters
    ----------
    epsilon, sensitivity : float
        What the Laplace noise is calibrated to.
    bound : float
        The bound b.
    """

    name: ClassVar[str] = "bounded-noise"
    summary: ClassVar[str] = "the bounded noise published in paper 000, which is not private"

    bound: Positive

    @property
    def release(self) -> BoundedNoiseRelease:
        """The bounded noise as a record."""
        return BoundedNoiseRelease(sensitivity=self.sensitivity, scale=self.scale, bound=self.bound)

    @property
    def insecure_because(self) -> str:
        """It is not offered securely."""
        return "it keeps no epsilon whatever the numerics"

    @property
    def variance(self) -> float:
        """Of the noise around its own mean, which is not zero."""
        scale = self.scale
        b = self.bound / scale
        inside = scale**2 * (2 - math.exp(-b) * (b * b + 2 * b + 2))
        constant, mass = self.bound / 2, math.exp(-b)
        return inside + mass * constant**2 - (mass * constant) ** 2

    def channel(self, low: float = 0.0, high: float = 1.0) -> Channel:
        """Return the channel: its estimate has the bias of the noise."""
        width = self._width(low, high)
        return make_channel(send_bounded, 0.0, 1.0, low, high, width, self.epsilon, self.bound)

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run(tape, values[0], self.sensitivity, self.epsilon, self.bound, out)


@kernel
def release_bounded(
    tape: Any,
    t: Any,
    index: Any,
    purpose: Any,
    value: Any,
    sensitivity: Any,
    epsilon: Any,
    bound: Any,
) -> Any:
    """Release `value` plus the bounded noise of paper 000: beyond the bound it is bound / 2."""
    noise = laplace_noise(tape, t, index, purpose, sensitivity, epsilon, 1)
    if abs(noise) > bound:
        noise = bound / 2
    return released(tape, on_grid(tape, value, sensitivity, epsilon, 1) + noise)


@kernel
def send_bounded(numbers: Any, tape: Any, t: Any, index: Any, purpose: Any, value: Any) -> Any:
    """Send a number through the channel."""
    clipped = min(max(value, numbers[2]), numbers[3])
    return release_bounded(tape, t, index, purpose, clipped, numbers[4], numbers[5], numbers[6])


@kernel
def _run(tape: Any, value: Any, sensitivity: Any, epsilon: Any, bound: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i, 0] = release_bounded(tape, i, 0, NOISE, value, sensitivity, epsilon, bound)
