"""k-ary response: one of several options, told truly or replaced by any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from tacit.core.constraints import Constraint, Probability, require
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, SECURE, Tape, noise_uniform, released
from tacit.privacy.exact import happens, secure_below
from tacit.privacy.mechanisms.base import (
    Channel,
    Mechanism,
    NeighbouringPair,
    make_channel,
    round_to_level,
)
from tacit.privacy.mechanisms.device_weights import BITS, keep_probability
from tacit.privacy.releases import Array, FewAnswers, Replace

Options = Annotated[
    int,
    Constraint("between 2 and 65536", lambda v: 2 <= v <= 2**16, {"minimum": 2, "maximum": 2**16}),
]
"""How many options an answer may have."""


@dataclass(frozen=True, kw_only=True)
class KAryResponseRelease(FewAnswers):
    """One of several options: itself with probability `keep`, any other with equal ones.

    Parameters
    ----------
    options : int
        How many.
    keep : float
        The probability of the truth.
    """

    mechanism: ClassVar[str] = "k-ary response"
    options: Annotated[int, Constraint(">= 2", lambda value: value >= 2)]
    keep: Probability
    norm: Replace = "replace"

    def _pair(self) -> tuple[list[float], list[float]]:
        # Two options differ in the probabilities of these two answers alone.
        other = (1 - self.keep) / (self.options - 1)
        return [self.keep, other], [other, self.keep]


@dataclass(frozen=True, kw_only=True)
class KAryResponse(Mechanism):
    """One of several options, told with probability e^epsilon / (e^epsilon + options - 1).

    Guarantee: pure epsilon, without a trusted server. A number of a range becomes one of as many
    levels first, at random and without bias.

    Parameters
    ----------
    epsilon : float
    options : int
        How many, at least 2.

    Examples
    --------
    >>> round(KAryResponse(epsilon=1.0, options=5).keep, 6)
    0.40461
    """

    name: ClassVar[str] = "k-ary-response"
    summary: ClassVar[str] = "one of several options, or any other instead"

    options: Options

    @property
    def _bits(self) -> int:
        return BITS - (self.options - 2).bit_length()

    @property
    def keep(self) -> float:
        """The probability of the truth, a multiple of a power of two that a device can repeat."""
        return keep_probability(self.epsilon, self.options - 1, bits=self._bits)

    @property
    def release(self) -> KAryResponseRelease:
        """The response as a record."""
        return KAryResponseRelease(options=self.options, keep=self.keep)

    @property
    def _lift(self) -> tuple[float, float]:
        """Offset and slope of the mean answer as a function of the true option."""
        other = (1 - self.keep) / (self.options - 1)
        return other * self.options * (self.options - 1) / 2, self.keep - other

    @property
    def variance(self) -> float:
        """Of the estimate of an option's number, at the worst option."""
        k = np.arange(self.options, dtype=np.float64)
        offset, slope = self._lift
        other = (1 - self.keep) / (self.options - 1)
        second = self.keep * k**2 + other * ((k**2).sum() - k**2)
        return float((second - (offset + slope * k) ** 2).max() / slope**2)

    @property
    def channel_variance(self) -> float:
        """At most that of an option and of rounding to one, in units of the range."""
        return (self.variance + 0.25) / (self.options - 1) ** 2

    def channel(self, low: float = 0.0, high: float = 1.0) -> Channel:
        """Return the channel: round to a level without bias, then respond."""
        require(self, "high", f"> low = {low:g}", high > low, high)
        offset, slope = self._lift
        step = (high - low) / (self.options - 1)
        numbers = low - step * offset / slope, step / slope, low, high, self.options, self.keep
        return make_channel(send_level, *numbers)

    def _answer(self, low: float, high: float) -> tuple[int, dict[str, Any]]:
        scale = 2**self._bits
        kept = int(self.keep * scale)
        weights = [kept * (self.options - 1), scale - kept]
        answer = {"kind": "window", "cells": self.options, "width": 1, "weights": weights}
        return self.options, answer

    def worst_pairs(self) -> list[NeighbouringPair]:
        """Return one option against another."""
        return [NeighbouringPair(0.0, 1.0, "an option against another")]

    def _check(self, values: Array) -> None:
        option = values.size == 1 and values[0] in range(self.options)
        require(self, "value", f"an option 0 to {self.options - 1}", option, values.tolist())

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        _run(tape, int(values[0]), self.options, self.keep, out)


@kernel
def release_option(
    tape: Any, t: Any, index: Any, purpose: Any, option: Any, options: Any, keep: Any
) -> Any:
    """Release one of several options: itself with probability `keep`, else any other alike."""
    other = -1
    if tape.kind == SECURE:
        # Drawn even where the truth is told: how long it takes must not tell which it was.
        instead = secure_below(tape, t, index, purpose, max(1, options - 1), 1)
        if not happens(tape, t, index, purpose, keep) and options > 1:
            other = instead
    else:
        u = noise_uniform(tape, t, index, purpose)
        if u >= keep:
            other = min(int((u - keep) / (1.0 - keep) * (options - 1)), options - 2)
    answer = option if other < 0 else other + 1 if other >= option else other
    released(tape, float(answer))
    return answer


@kernel
def send_level(numbers: Any, tape: Any, t: Any, index: Any, purpose: Any, value: Any) -> Any:
    """Send a number through the channel."""
    options = np.int64(numbers[4])
    level = round_to_level(numbers, tape, t, index, value, options - 1)
    return numbers[0] + numbers[1] * release_option(
        tape, t, index, purpose, level, options, numbers[5]
    )


@kernel
def _run(tape: Any, option: Any, options: Any, keep: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i, 0] = release_option(tape, i, 0, NOISE, option, options, keep)
