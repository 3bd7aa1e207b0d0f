"""Bits that are flipped at random: one of them, or a one-hot vector of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.checks import require
from tacit.privacy.releases.base import Array, Release

__all__ = ["RandomizedResponseRelease", "UnaryRelease"]


@dataclass(frozen=True, kw_only=True)
class RandomizedResponseRelease(Release):
    """A bit that is told truly with probability ``keep_one`` or ``keep_zero`` and else flipped.

    Parameters
    ----------
    keep_one : float
        Probability of answering 1 when the bit is 1.
    keep_zero : float
        Probability of answering 0 when the bit is 0.
    norm : str
        ``"replace"``: any bit for any other.
    """

    mechanism: ClassVar[str] = "randomized response"
    keep_one: float
    keep_zero: float
    norm: str = "replace"

    def __post_init__(self) -> None:
        require(self, "norm", "== 'replace'", self.norm == "replace", self.norm)
        for name in ("keep_one", "keep_zero"):
            value = getattr(self, name)
            require(self, name, "in [0, 1]", 0 <= value <= 1, value)

    @classmethod
    def symmetric(cls, epsilon: float) -> RandomizedResponseRelease:
        """Return the release that flips either bit with probability 1 / (e^epsilon + 1)."""
        require(cls.__name__, "epsilon", ">= 0", epsilon >= 0, epsilon)
        keep = 1 / (1 + math.exp(-epsilon))
        release = cls(keep_one=keep, keep_zero=keep)
        while release.epsilon > epsilon:  # by a rounding error
            keep = math.nextafter(keep, 0.5)
            release = cls(keep_one=keep, keep_zero=keep)
        return release

    def _pair(self) -> tuple[list[float], list[float]]:
        return [self.keep_one, 1 - self.keep_one], [1 - self.keep_zero, self.keep_zero]

    @property
    def epsilon(self) -> float:
        """The largest log ratio of the probabilities of an answer."""
        return _largest_log_ratio(*self._pair())

    @property
    def spread(self) -> float:
        """The largest finite loss."""
        return _largest_finite_log_ratio(*self._pair())

    def _largest_loss(self) -> float:
        return self.spread

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        one, zero = self._pair()
        return _discrete_delta(one, zero, epsilon), _discrete_delta(zero, one, epsilon)

    def grouped(self, records: int) -> Release:
        """Return this release: a bit answers for one record."""
        return self


@dataclass(frozen=True, kw_only=True)
class UnaryRelease(Release):
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
    keep_one: float
    keep_zero: float
    norm: str = "replace"

    def __post_init__(self) -> None:
        rule = "in ('replace', 'presence')"
        require(self, "norm", rule, self.norm in ("replace", "presence"), self.norm)
        for name in ("keep_one", "keep_zero"):
            value = getattr(self, name)
            require(self, name, "in [0, 1]", 0 <= value <= 1, value)

    @classmethod
    def symmetric(cls, epsilon: float) -> UnaryRelease:
        """Return the release that flips every bit with probability 1 / (e^(epsilon/2) + 1)."""
        require(cls.__name__, "epsilon", ">= 0", epsilon >= 0, epsilon)
        keep = 1 / (1 + math.exp(-epsilon / 2))
        release = cls(keep_one=keep, keep_zero=keep)
        while release.epsilon > epsilon:  # by a rounding error
            keep = math.nextafter(keep, 0.5)
            release = cls(keep_one=keep, keep_zero=keep)
        return release

    @classmethod
    def optimised(cls, epsilon: float) -> UnaryRelease:
        """Return the release of least variance: the hot bit is a fair coin (Wang et al. 2017)."""
        require(cls.__name__, "epsilon", ">= 0", epsilon >= 0, epsilon)
        release = cls(keep_one=0.5, keep_zero=1 / (1 + math.exp(-epsilon)))
        while release.epsilon > epsilon:  # by a rounding error
            release = cls(keep_one=0.5, keep_zero=math.nextafter(release.keep_zero, 0.5))
        return release

    def _pair(self) -> tuple[list[float], list[float]]:
        hot, cold = [self.keep_one, 1 - self.keep_one], [1 - self.keep_zero, self.keep_zero]
        if self.norm == "presence":
            return hot, cold
        return [a * b for a in hot for b in cold], [b * a for b in cold for a in hot]

    @property
    def epsilon(self) -> float:
        """The largest log ratio of the probabilities of a vector."""
        return _largest_log_ratio(*self._pair())

    @property
    def spread(self) -> float:
        """The largest finite loss."""
        return _largest_finite_log_ratio(*self._pair())

    def _largest_loss(self) -> float:
        return self.spread

    def _hockey_stick(self, epsilon: Array) -> tuple[Array, Array]:
        left, right = self._pair()
        if self.norm == "replace":
            delta = _discrete_delta(left, right, epsilon)
            return delta, delta
        return _discrete_delta(left, right, epsilon), _discrete_delta(right, left, epsilon)

    def grouped(self, records: int) -> Release:
        """Return this release: a vector answers for one record."""
        return self


def _discrete_delta(left: list[float], right: list[float], epsilon: Array) -> Array:
    grown = np.exp(np.minimum(epsilon, 700.0))[:, None] * np.array(right)
    delta: Array = np.maximum(0.0, np.array(left) - grown).sum(axis=1)
    return delta


def _largest_log_ratio(left: list[float], right: list[float]) -> float:
    if any((a == 0) != (b == 0) for a, b in zip(left, right, strict=True)):
        return math.inf
    return _largest_finite_log_ratio(left, right)


def _largest_finite_log_ratio(left: list[float], right: list[float]) -> float:
    pairs = [(a, b) for a, b in zip(left, right, strict=True) if a > 0 and b > 0]
    if not pairs:
        return 1.0
    return max(abs(math.log(a) - math.log(b)) for a, b in pairs)
