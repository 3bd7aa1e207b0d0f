"""Mechanisms for one bounded value, which need no server: a bit, an option, a number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tacit.checks import require
from tacit.compiled import kernel
from tacit.privacy.mechanisms.base import Array, Mechanism
from tacit.privacy.releases import PiecewiseRelease, RandomizedResponseRelease, UnaryRelease
from tacit.privacy.samplers import release_bit, release_piecewise
from tacit.tapes import NOISE, Tape

__all__ = ["Piecewise", "RandomizedResponse", "UnaryEncoding"]


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Mechanism):
    """A bit, flipped with probability 1 / (e^epsilon + 1).

    Guarantee: pure epsilon, without a trusted server. `variance` is of the debiased bit.
    """

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

    options: int
    optimised: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
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


@kernel
def _run_bits(tape: Any, values: Any, keep_one: Any, keep_zero: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        for c in range(values.size):
            out[i, c] = release_bit(tape, i, c, NOISE, values[c] != 0, keep_one, keep_zero)


@kernel
def _run_piecewise(tape: Any, value: Any, epsilon: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i, 0] = release_piecewise(tape, i, 0, NOISE, value, epsilon)
