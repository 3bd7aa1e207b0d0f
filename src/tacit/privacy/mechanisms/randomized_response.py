"""Randomized response: a bit that is told truly, or flipped, by chance (Warner 1965).

A number of a range becomes a bit first, at random and without bias, so that any number against any
other costs what 0 against 1 costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tacit.core.constraints import Probability, Share, require
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, Tape, released, uniform
from tacit.privacy.exact import happens
from tacit.privacy.mechanisms.base import (
    Channel,
    Epsilon,
    Mechanism,
    NeighbouringPair,
    make_channel,
    round_to_level,
)
from tacit.privacy.mechanisms.device_weights import BITS, keep_probability
from tacit.privacy.releases import Array, FewAnswers, Replace, largest_log_ratio


@dataclass(frozen=True, kw_only=True)
class RandomizedResponseRelease(FewAnswers):
    """A bit that is told truly with probability ``keep_one`` or ``keep_zero`` and else flipped.

    Parameters
    ----------
    keep_one : float
        Probability of answering 1 when the bit is 1.
    keep_zero : float
        Probability of answering 0 when the bit is 0.
    """

    mechanism: ClassVar[str] = "randomized response"
    keep_one: Probability
    keep_zero: Probability
    norm: Replace = "replace"

    @classmethod
    def symmetric(cls, epsilon: float) -> RandomizedResponseRelease:
        """Return the release that flips either bit with probability 1 / (e^epsilon + 1)."""
        keep = keep_probability(epsilon)
        return cls(keep_one=keep, keep_zero=keep)

    def _pair(self) -> tuple[list[float], list[float]]:
        return [self.keep_one, 1 - self.keep_one], [1 - self.keep_zero, self.keep_zero]


class _Response(Mechanism):
    """What both forms share: a bit, and a number as a bit."""

    @property
    def _keeps(self) -> tuple[float, float]:
        """The probabilities that a 1 and a 0 are told."""
        raise NotImplementedError

    @property
    def release(self) -> RandomizedResponseRelease:
        """The response as a record."""
        one, zero = self._keeps
        return RandomizedResponseRelease(keep_one=one, keep_zero=zero)

    @property
    def variance(self) -> float:
        """Of the debiased bit: p (1 - p) / (p - q)^2 with p = P(1 | 1) and q = P(1 | 0), or at q."""
        p, q = self._keeps[0], 1 - self._keeps[1]
        return max(p * (1 - p), q * (1 - q)) / (p - q) ** 2

    @property
    def channel_variance(self) -> float:
        """The same of a number x, told as 1 with probability q + (p - q) x, at the worst x."""
        p, q = self._keeps[0], 1 - self._keeps[1]
        nearest = min(max(0.5, min(p, q)), max(p, q))
        return nearest * (1 - nearest) / (p - q) ** 2

    @property
    def half_range(self) -> float:
        """Half the distance of the two estimates, 1 / tanh(epsilon / 2) times 1/2 where symmetric."""
        return float(abs(self.channel().numbers[1]) / 2)

    def channel(self, low: float = 0.0, high: float = 1.0) -> Channel:
        """Return the channel: round to a bit without bias, then respond."""
        require(self, "high", f"> low = {low:g}", high > low, high)
        p, q = self._keeps[0], 1 - self._keeps[1]
        slope = (high - low) / (p - q)
        return make_channel(send_bit, low - slope * q, slope, low, high, *self._keeps)

    def _answer(self, low: float, high: float) -> tuple[int, dict[str, Any]]:
        one, zero = (int(keep * 2**BITS) for keep in self._keeps)
        rows = [[zero, 2**BITS - zero], [2**BITS - one, one]]
        return 2, {"kind": "table", "rows": rows}

    def worst_pairs(self) -> list[NeighbouringPair]:
        """Return the one there is."""
        return [NeighbouringPair(0.0, 1.0, "0 against 1")]

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        repeat_bits(tape, values, *self._keeps, out)


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(_Response):
    """A bit, flipped with probability 1 / (e^epsilon + 1).

    Guarantee: pure epsilon, without a trusted server. A number becomes a bit first.

    Examples
    --------
    >>> round(RandomizedResponse(epsilon=1.0).keep, 6)
    0.731059
    """

    name: ClassVar[str] = "randomized-response"
    summary: ClassVar[str] = "a bit, flipped now and then"

    @property
    def keep(self) -> float:
        """The probability that the truth is told."""
        return keep_probability(self.epsilon)

    @property
    def _keeps(self) -> tuple[float, float]:
        return self.keep, self.keep


@dataclass(frozen=True, kw_only=True)
class AsymmetricResponse(_Response):
    """A bit that stays 1 with probability `keep_one` and 0 with `keep_zero`.

    Guarantee: pure epsilon, which follows from the two. They are rounded to multiples of 2^-52 in
    the direction that lowers it. A sum of 1 would tell nothing; below 1 the answer means the
    contrary.

    Examples
    --------
    >>> round(AsymmetricResponse(keep_one=0.5, keep_zero=0.9).epsilon, 6)
    1.609438
    """

    name: ClassVar[str] = "asymmetric-response"
    summary: ClassVar[str] = "a bit, of which 0 and 1 are flipped with different probabilities"

    keep_one: Share
    keep_zero: Share
    epsilon: Epsilon = field(init=False, default=math.nan)

    def __post_init__(self) -> None:
        for name in ("keep_one", "keep_zero"):
            value = getattr(self, name)
            require(self, name, "in (0, 1)", 0 < value < 1, value)
        total = self.keep_one + self.keep_zero
        towards = math.floor if total >= 1 else math.ceil
        for name in ("keep_one", "keep_zero"):
            value = towards(getattr(self, name) * 2**BITS) * 2.0**-BITS
            object.__setattr__(self, name, value)
        one, zero = self.keep_one, self.keep_zero
        require(
            self, "keep_one", f"other than {1 - zero:g}, which tells nothing", one != 1 - zero, one
        )
        ratio = largest_log_ratio([one, 1 - one], [1 - zero, zero])
        object.__setattr__(self, "epsilon", ratio)
        super().__post_init__()

    @property
    def _keeps(self) -> tuple[float, float]:
        return self.keep_one, self.keep_zero


@kernel
def release_bit(
    tape: Any, t: Any, index: Any, purpose: Any, bit: Any, keep_one: Any, keep_zero: Any
) -> Any:
    """Release a bit that stays 1 with probability `keep_one` and 0 with `keep_zero`.

    To round these down, as a secure tape does, can only lower epsilon.
    """
    kept = happens(tape, t, index, purpose, keep_one if bit else keep_zero)
    answer = 1 if (bit != 0) == kept else 0
    released(tape, float(answer))
    return answer


@kernel
def round_to_bit(tape: Any, t: Any, index: Any, purpose: Any, value: Any) -> Any:
    """Return 1 with probability `value` in [0, 1], else 0; a draw for choosing, not for privacy."""
    return 1 if uniform(tape, t, index, purpose) < value else 0


@kernel
def send_bit(numbers: Any, tape: Any, t: Any, index: Any, purpose: Any, value: Any) -> Any:
    """Send a number through the channel of either response."""
    bit = round_to_level(numbers, tape, t, index, value, 1)
    answer = release_bit(tape, t, index, purpose, bit, numbers[4], numbers[5])
    return numbers[0] + numbers[1] * answer


@kernel
def repeat_bits(tape: Any, values: Any, keep_one: Any, keep_zero: Any, out: Any) -> None:
    """Release bits once for each row of `out`."""
    for i in range(out.shape[0]):
        for c in range(values.size):
            out[i, c] = release_bit(tape, i, c, NOISE, values[c] != 0, keep_one, keep_zero)
