"""Unary encoding: one of several options as a vector of bits, each flipped by itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from tacit.core.constraints import Count, Probability, one_of, require
from tacit.core.tapes import Tape
from tacit.device.instructions import make_instructions
from tacit.privacy.mechanisms.base import Mechanism, NeighbouringPair
from tacit.privacy.mechanisms.device_weights import BITS, keep_probability
from tacit.privacy.mechanisms.randomized_response import repeat_bits
from tacit.privacy.releases import Array, FewAnswers, largest_log_ratio


@dataclass(frozen=True, kw_only=True)
class UnaryRelease(FewAnswers):
    """A one-hot vector (or zeros) whose bits pass through randomized response independently.

    Parameters
    ----------
    keep_one : float
        Probability that the hot bit stays 1.
    keep_zero : float
        Probability that a cold bit stays 0.
    norm : str
        ``"replace"``: one option for another, the worst case, changes two bits;
        ``"presence"``: an option for none (all zeros) changes one.
    """

    mechanism: ClassVar[str] = "unary encoding"
    keep_one: Probability
    keep_zero: Probability
    norm: Annotated[str, one_of("replace", "presence")] = "replace"

    @classmethod
    def symmetric(cls, epsilon: float) -> UnaryRelease:
        """Return the release that flips every bit with probability 1 / (e^(epsilon/2) + 1).

        An infinite epsilon flips none.
        """
        keep = 1.0 if math.isinf(epsilon) else keep_probability(epsilon / 2)
        return cls(keep_one=keep, keep_zero=keep)

    @classmethod
    def optimised(cls, epsilon: float) -> UnaryRelease:
        """Return the release of least variance: the hot bit is a fair coin (Wang et al. 2017)."""
        return cls(keep_one=0.5, keep_zero=keep_probability(epsilon))

    def _pair(self) -> tuple[list[float], list[float]]:
        hot, cold = [self.keep_one, 1 - self.keep_one], [1 - self.keep_zero, self.keep_zero]
        if self.norm == "presence":
            return hot, cold
        return [a * b for a in hot for b in cold], [b * a for b in cold for a in hot]

    @property
    def epsilon(self) -> float:
        """The largest log ratio of the probabilities of a vector."""
        hot, cold = [self.keep_one, 1 - self.keep_one], [1 - self.keep_zero, self.keep_zero]
        if self.norm == "presence":
            return largest_log_ratio(hot, cold)
        # Two options differ in two bits: what a 1 tells at one place and a 0 at the other.
        return sum(largest_log_ratio([a], [b]) for a, b in zip(hot, cold, strict=True))


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(Mechanism):
    """One of several options (or none) as a one-hot vector of independently flipped bits.

    Guarantee: pure epsilon for one option against another, half of it for the symmetric form
    against none. `variance` is of the debiased cold bit.

    Parameters
    ----------
    epsilon : float
        For one option against another.
    options : int
        How many.
    optimised : bool
        The hot bit is a fair coin and the others flip less (Wang et al. 2017).
    """

    name: ClassVar[str] = "unary-encoding"
    summary: ClassVar[str] = "one of several options, as flipped bits"

    options: Count
    optimised: bool = False

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

    def instructions(
        self, *, low: float = 0.0, high: float | None = None, default: float | None = None
    ) -> dict[str, Any]:
        """Return a question for the number of an option, 0 to options - 1, and its bits."""
        top = self.options - 1
        fits = low == 0 and high in (None, top) and top > 0
        require(self, "range", f"of the options, [0, {top}], at least two", fits, (low, high))
        one, zero = (int(k * 2**BITS) for k in (self.release.keep_one, self.release.keep_zero))
        rows = [[zero, 2**BITS - zero], [2**BITS - one, one]]
        answer = {"kind": "unary", "bits": self.options, "rows": rows}
        question = {"low": 0.0, "high": float(top), "levels": self.options}
        return make_instructions(self._owner, question, answer, default)

    def worst_pairs(self) -> list[NeighbouringPair]:
        """Return an option against another, and against none."""
        one = np.eye(self.options)
        pairs = [NeighbouringPair(one[0], np.zeros(self.options), "an option against none")]
        if self.options > 1:
            pairs.insert(0, NeighbouringPair(one[0], one[1], "an option against another"))
        return pairs

    def _check(self, values: Array) -> None:
        require(self, "value", f"{self.options} bits", values.size == self.options, values.size)

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        repeat_bits(tape, values, self.release.keep_one, self.release.keep_zero, out)
