"""Continual release of sums: after every item, the sum so far, for all items one guarantee.

Three ways. A binary tree (`binary_tree.py`) adds noise to dyadic blocks, of which each prefix needs
few and each item touches few. A square-root Toeplitz factorisation (`toeplitz.py`) correlates
Gaussian noise over time, better at every horizon but not pure. Local noise on each item needs no
trusted server; its error grows with the square root of time but not with the dimension, and for long
vectors that wins for long.

Each is calibrated to an item's sensitivity in a named norm, declares its releases and gives the exact
variance of its error after each item. Kernels run the first two by `next_sum` (`streams.py`).

On a secure tape items are rounded to a grid, of 2^-20 of the sensitivity or, where integers would not
reach so far, coarser. What is kept are whole numbers of steps below 2^53, which doubles hold
exactly, and what is released is a function of whole numbers hidden by whole noise.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tacit.core.constraints import Count, require
from tacit.core.tapes import Tape
from tacit.privacy.mechanisms.base import Mechanism, NeighbouringPair, Sensitivity
from tacit.privacy.mechanisms.gaussian import DiscreteGaussianRelease, whole_sigma
from tacit.privacy.releases import Array, Release

NO_NOISE, LAPLACE, GAUSSIAN, BALL = range(4)
"""What a stream adds to a node of a tree, or to a step."""
_FINEST = 20
_WIDEST, _LEAST = 2**27, 64
LONGEST = 2.0**52
"""Steps that a sum may have."""
A_LITTLE = 1 + 2.0**-28
"""A context may be longer than 1 by 1e-9, its square by twice that, and products are rounded."""


class Stream(NamedTuple):
    """What `next_sum` must know of a way to release sums, whatever the scale of its noise."""

    noise: int = NO_NOISE
    """One of the codes above."""
    online: int = 0
    """1 if a node of a tree is combined with the nodes below it."""
    capacity: int = 0
    """How many items there may be."""
    coefficients: Array = np.empty(0)
    """Shape (capacity,): the Toeplitz factor reversed; (0,) for a tree."""
    factor: Array = np.empty(0)
    """Shape (capacity,): the same in whole multiples of 1 / parts, for secure tapes."""
    parts: float = 1.0


class Grid(NamedTuple):
    """How sums are kept on a secure tape."""

    step: float
    """Items are rounded to multiples of it."""
    noise: int
    """The scale of the noise, or its sigma, in steps."""
    reach: float
    """Coordinates of items are clipped to this distance from 0."""


@dataclass(frozen=True, kw_only=True)
class ContinualSum(Mechanism):
    """A trusted server's way to release every prefix sum; one value of it is a whole sequence.

    Parameters
    ----------
    horizon : int
        The number of items T.
    epsilon : float
        Of the guarantee for one item over the whole run.
    sensitivity : float
        The largest distance between two values of one item, in the norm of the noise.
    dimension : int
        The length of an item.
    reach : float, optional
        The largest absolute value of a coordinate, by default the sensitivity; secure items are
        clipped to it.
    """

    scope: ClassVar[Mapping[str, Any]] = {
        "unit": "reward",
        "trust": "central",
        "span": "run",
        "pooled": True,
        "not_protected": ("sending", "others", "server", "sums"),
    }

    horizon: Count
    sensitivity: Sensitivity = 1.0
    dimension: Count = 1
    reach: Sensitivity | None = None

    @property
    @abstractmethod
    def scale(self) -> float:
        """The scale of the noise (its standard deviation, if Gaussian) on a node or a step."""

    @property
    @abstractmethod
    def grid(self) -> Grid:
        """How sums are kept on a secure tape."""

    @property
    @abstractmethod
    def stream(self) -> Stream:
        """What `next_sum` must know."""

    @property
    @abstractmethod
    def depth(self) -> int:
        """How many numbers are kept for each coordinate."""

    @abstractmethod
    def variance_after(self, items: int) -> float:
        """Return the exact variance of one coordinate of the error after `items` items."""

    def memory(self) -> Array:
        """Return what `next_sum` keeps, shape (dimension, depth), before the first item."""
        return np.zeros((self.dimension, self.depth))

    @property
    def variance(self) -> float:
        """The largest variance after any number of items."""
        most = [self.horizon]
        for bit in range(self.horizon.bit_length()):
            if self.horizon >> bit & 1:
                most.append((self.horizon >> bit << bit) - 1)
        return max(self.variance_after(items) for items in most)

    @property
    def channel_variance(self) -> float:
        """That for a sensitivity of 1."""
        return self.variance / self.sensitivity**2

    @property
    def out_of_reach(self) -> str:
        """Why whole numbers would not reach far enough, or nothing."""
        grid = self.grid
        if self.sensitivity < _LEAST * grid.step:
            return "its noise is too wide for a grid of 64 steps a sensitivity"
        long = self.horizon * (grid.reach / grid.step + 1) >= LONGEST
        return "its sums are longer than 2^52 steps of its grid" if long else ""

    def _gaussian_grid(self, epsilon: float, delta: float, growth: float, rounded: int) -> Grid:
        """Return the grid of Gaussian noise on all that an item touches.

        That is the item times numbers of length `growth`, and `rounded` coordinates of it are rounded
        once more.
        """
        power = math.frexp(self.sensitivity)[1] - 1 - _FINEST
        while True:
            step = math.ldexp(1.0, power)
            sigma = whole_sigma(self._apart(step, growth, rounded), epsilon, delta)
            if sigma < _WIDEST or step > self.sensitivity:
                return Grid(step, sigma, self._reach)
            power += 1

    def _apart(self, step: float, growth: float, rounded: int) -> float:
        """Return how many steps apart neighbours are in all that is released, in L2."""
        item = self.sensitivity * A_LITTLE / step + math.sqrt(self.dimension)
        return item * growth + math.sqrt(rounded)

    def _whole_release(self, growth: float, rounded: int) -> DiscreteGaussianRelease:
        apart = self._apart(self.grid.step, growth, rounded)
        return DiscreteGaussianRelease(steps=apart, sigma=self.grid.noise)

    @property
    def _reach(self) -> float:
        return self.sensitivity if self.reach is None else self.reach

    def worst_pairs(self) -> list[NeighbouringPair]:
        """Return zeros against a first item, which everything later contains."""
        nothing = np.zeros((self.horizon, self.dimension))
        axis, dense = nothing.copy(), nothing.copy()
        axis[0, 0] = self.sensitivity
        pairs = [
            NeighbouringPair(nothing, axis, f"0 against {self.sensitivity:g} in one coordinate")
        ]
        if self.dimension > 1:
            dense[0] = self.sensitivity / self.dimension ** (1 / self._power)
            pairs.append(NeighbouringPair(nothing, dense, "0 against an item of equal coordinates"))
        return pairs

    @property
    def _power(self) -> float:
        """The power p of the norm in which the sensitivity is measured."""
        return 2.0

    def _check(self, values: Array) -> None:
        size = self.horizon * self.dimension
        rule = f"{self.horizon} items of {self.dimension} coordinates"
        require(self, "value", rule, values.size == size, values.size)

    def _fill(self, tape: Tape, values: Array, out: Array) -> None:
        from tacit.privacy.mechanisms.streams import run_sums

        items = np.ascontiguousarray(values.reshape(self.horizon, self.dimension))
        grid = np.array(self.grid, np.float64) if self.secure else np.full(3, np.nan)
        run_sums(tape, self.stream, self.scale, grid, items, self.memory(), out)


@dataclass(frozen=True, kw_only=True)
class LocalSum:
    """Noise on every item before anybody else sees it; the sum is post-processing.

    Parameters
    ----------
    mechanism : Mechanism
        What is done to one item; it is exact on a secure tape if this is.
    """

    mechanism: Mechanism

    @property
    def releases(self) -> tuple[tuple[Release, int], ...]:
        """One use of the mechanism."""
        return ((self.mechanism.release, 1),)

    def variance_after(self, items: int) -> float:
        """Return the sum of `items` variances, at the worst values."""
        require(self, "items", ">= 0", items >= 0, items)
        return items * self.mechanism.variance
