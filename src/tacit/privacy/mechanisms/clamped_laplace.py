"""Laplace noise on a number, clamped afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.core.constraints import Finite, require
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, Tape, released
from tacit.privacy.mechanisms.base import AdditiveNoise, Channel, UsesNoise, make_channel
from tacit.privacy.mechanisms.laplace import (
    Laplace,
    channel_numbers,
    laplace_noise,
    noisy_number,
    on_grid,
)
from tacit.privacy.releases import Array


@dataclass(frozen=True, kw_only=True)
class ClampedLaplace(UsesNoise, AdditiveNoise):
    """Laplace noise on a number, clamped to [low, high] afterwards, which costs nothing.

    Guarantee: pure epsilon. `variance` is that before clamping, an upper bound, and what is
    released is no longer unbiased.

    Parameters
    ----------
    epsilon, sensitivity : float
        As of `Laplace`.
    low, high : float
        What is released is between these.
    """

    name: ClassVar[str] = "clamped-laplace"
    summary: ClassVar[str] = "Laplace noise on a number, clamped to a range"

    low: Finite
    high: Finite

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "high", f"> low = {self.low:g}", self.high > self.low, self.high)

    @property
    def noise(self) -> Laplace:
        """The noise before clamping."""
        return Laplace(epsilon=self.epsilon, sensitivity=self.sensitivity)

    def channel(self, low: float = 0.0, high: float = 1.0) -> Channel:
        """Return the channel of Laplace noise, whose estimate is clamped to this mechanism's range."""
        numbers = channel_numbers(self.epsilon, low, self._width(low, high))
        return make_channel(send_clamped, *numbers, self.low, self.high)

    def _answer(self, low: float, high: float) -> tuple[int, dict[str, Any]]:
        return self.noise._answer(low, high)  # Whoever receives it clamps.

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run(tape, values[0], self.sensitivity, self.epsilon, self.low, self.high, out)


@kernel
def release_clamped(
    tape: Any,
    t: Any,
    index: Any,
    purpose: Any,
    value: Any,
    sensitivity: Any,
    epsilon: Any,
    low: Any,
    high: Any,
) -> Any:
    """Release `value` plus Laplace noise, clamped to [low, high], which costs nothing."""
    noise = laplace_noise(tape, t, index, purpose, sensitivity, epsilon, 1)
    noisy = on_grid(tape, value, sensitivity, epsilon, 1) + noise
    return released(tape, min(max(noisy, low), high))


@kernel
def send_clamped(numbers: Any, tape: Any, t: Any, index: Any, purpose: Any, value: Any) -> Any:
    """Send a number through the channel."""
    noisy = noisy_number(numbers, tape, t, index, purpose, value)
    return released(tape, min(max(noisy, numbers[6]), numbers[7]))


@kernel
def _run(
    tape: Any, value: Any, sensitivity: Any, epsilon: Any, low: Any, high: Any, out: Any
) -> None:
    for i in range(out.shape[0]):
        out[i, 0] = release_clamped(tape, i, 0, NOISE, value, sensitivity, epsilon, low, high)
