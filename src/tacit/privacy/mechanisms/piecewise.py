"""The piecewise mechanism: a number of a range, told as one number near it (Wang et al. 2019).

Of a row of cells, one is told: a cell within a window that moves with the number is e^epsilon times
as likely as one outside. The window is wide at small epsilon and narrow at large, so that the
variance stays below that of Laplace noise. Algorithm 2 of the paper has infinitely many cells; here
there are 1024, in integers, which is what a device can do exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tacit.core.constraints import Share, require
from tacit.core.kernels import kernel
from tacit.core.tapes import Tape, released
from tacit.device.instructions import window_width
from tacit.privacy.exact import whole
from tacit.privacy.mechanisms.base import (
    Channel,
    Mechanism,
    NeighbouringPair,
    make_channel,
    round_to_level,
)
from tacit.privacy.mechanisms.device_weights import weights_of
from tacit.privacy.releases import AnswersOnce, Array, Replace, Scale

CELLS = 1024


@dataclass(frozen=True, kw_only=True)
class PiecewiseRelease(AnswersOnce):
    """A number told by a likely window that moves with it, and an unlikely rest.

    Parameters
    ----------
    level : float
        The log ratio of the probabilities of a cell inside and of one outside.
    likely : float
        The probability of the window.
    """

    mechanism: ClassVar[str] = "piecewise"
    level: Scale
    likely: Share
    norm: Replace = "replace"

    @property
    def epsilon(self) -> float:
        """The level."""
        return self.level

    def _hockey_stick(self, epsilon: Array) -> Array:
        # The windows of the two ends do not meet; elsewhere the ends agree.
        delta: Array = self.likely * np.maximum(
            0.0, -np.expm1(np.minimum(epsilon - self.level, 0.0))
        )
        return delta


class _Window(NamedTuple):
    """The row of cells: how many are in the window, and the weights inside and outside."""

    width: int
    inside: int
    outside: int

    @property
    def total(self) -> int:
        return self.width * self.inside + (CELLS - self.width) * self.outside


@dataclass(frozen=True, kw_only=True)
class Piecewise(Mechanism):
    """A number in [-1, 1] (its channel: of any range) by the piecewise mechanism.

    Guarantee: pure epsilon, without a trusted server; unbiased.

    References
    ----------
    Wang et al., Collecting and analyzing multidimensional data with local differential privacy,
    ICDE 2019, Algorithm 2.
    """

    name: ClassVar[str] = "piecewise"
    summary: ClassVar[str] = "a number of a range, told as a number near it"

    @cached_property
    def _window(self) -> _Window:
        width = window_width(self.epsilon, CELLS)
        return _Window(width, *weights_of(self.epsilon, width, CELLS - width))

    @property
    def release(self) -> PiecewiseRelease:
        """The mechanism as a record."""
        width, inside, outside = self._window
        return PiecewiseRelease(
            level=math.log1p((inside - outside) / outside),
            likely=width * inside / self._window.total,
        )

    def _means(self, symbol: Any) -> tuple[Any, Any]:
        """Return the mean and the mean square of the cell that is told for a symbol."""
        width, inside, outside = self._window
        cells, total = CELLS, self._window.total
        first = width * symbol + width * (width - 1) / 2
        squares = width * symbol**2 + symbol * width * (width - 1) + _squares(width)
        extra, rest = (inside - outside) / total, outside / total
        return (
            extra * first + rest * cells * (cells - 1) / 2,
            extra * squares + rest * _squares(cells),
        )

    @property
    def _estimate(self) -> tuple[float, float]:
        """Offset and slope of the estimate of a number in [0, 1], as a function of the cell."""
        top = CELLS - self._window.width
        low, high = self._means(0)[0], self._means(top)[0]
        return -low / (high - low), 1 / (high - low)

    @property
    def variance(self) -> float:
        """At the ends of [-1, 1], where it is largest."""
        return self.variance_at(1.0)

    def variance_at(self, value: float) -> float:
        """Return the variance of what is told of a number in [-1, 1], but for that of rounding."""
        mean, square = self._means((value + 1) / 2 * (CELLS - self._window.width))
        return float(4 * (square - mean**2) * self._estimate[1] ** 2)

    @property
    def channel_variance(self) -> float:
        """At most that at the ends and of rounding to a level."""
        return self.variance / 4 + 0.25 / (CELLS - self._window.width) ** 2

    @property
    def half_range(self) -> float:
        """Half the distance of the estimates of the first cell and the last."""
        return float(self._estimate[1] * (CELLS - 1) / 2)

    def channel(self, low: float = 0.0, high: float = 1.0) -> Channel:
        """Return the channel: round to a level without bias, then tell a cell."""
        require(self, "high", f"> low = {low:g}", high > low, high)
        offset, slope = (number * (high - low) for number in self._estimate)
        return make_channel(send_cell, low + offset, slope, low, high, *self._window)

    def _answer(self, low: float, high: float) -> tuple[int, dict[str, Any]]:
        width, inside, outside = self._window
        answer = {"kind": "window", "cells": CELLS, "width": width, "weights": [inside, outside]}
        return CELLS - width + 1, answer

    def worst_pairs(self) -> list[NeighbouringPair]:
        """Return the ends, and the middle against an end."""
        return [
            NeighbouringPair(-1.0, 1.0, "-1 against 1"),
            NeighbouringPair(0.0, 1.0, "0 against 1"),
        ]

    def _check(self, values: Array) -> None:
        inside = values.size == 1 and abs(values[0]) <= 1
        require(self, "value", "a number in [-1, 1]", inside, values.tolist())

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        self._send(tape, values, out, -1.0, 1.0)


def _squares(n: int) -> float:
    """Return the sum of the squares of 0 to n - 1."""
    return (n - 1) * n * (2 * n - 1) / 6


@kernel
def send_cell(numbers: Any, tape: Any, t: Any, index: Any, purpose: Any, value: Any) -> Any:
    """Send a number through the channel."""
    width = np.int64(numbers[4])
    inside, outside = np.int64(numbers[5]), np.int64(numbers[6])
    symbol = round_to_level(numbers, tape, t, index, value, CELLS - width)
    word = whole(tape, t, index, purpose, width * inside + (CELLS - width) * outside)
    beyond = word - width * inside
    place = word // inside if beyond < 0 else width + beyond // outside
    return released(tape, numbers[0] + numbers[1] * ((symbol + place) % CELLS))
