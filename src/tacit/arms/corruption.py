"""Corruption functions: how a true reward becomes the feedback that leaves its owner.

A reward r of arm a is turned into one bit that is 1 with probability g_a(r), for a strictly monotone
g_a. Randomized response is the straight line from 1 - p00 to p11. Whatever its shape, such a bit is
randomized response on a rounded reward, so its privacy is that of the end points of g_a.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import require
from tacit.compiled import kernel
from tacit.privacy import RandomizedResponseRelease, Release
from tacit.privacy.mechanisms import release_bit
from tacit.tapes import NOISE, ROUNDING, uniform

__all__ = ["Corruption", "RandomizedResponse", "corrupted", "grid_inverse", "grid_value"]


@dataclass(frozen=True, kw_only=True)
class Corruption:
    """Strictly monotone corruption functions, one for all arms or one for each.

    Parameters
    ----------
    values : sequence of float, or one such sequence for each arm
        g on an even grid of [0, 1], straight lines in between: two values make a line.

    Examples
    --------
    >>> from tacit.arms import Corruption
    >>> Corruption(values=(0.9, 0.2)).grid(2)
    array([[0.9, 0.2],
           [0.9, 0.2]])
    """

    values: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        grid = np.array(self.values, dtype=np.float64, ndmin=2)
        object.__setattr__(self, "values", tuple(map(tuple, grid.tolist())))
        require(self, "values", "at least 2 a row", grid.ndim == 2 and grid.shape[1] >= 2, grid)
        inside = bool((grid >= 0).all() and (grid <= 1).all())
        require(self, "values", "in [0, 1]", inside, self.values)
        steps = np.diff(grid, axis=1)
        monotone = bool(((steps > 0).all(axis=1) | (steps < 0).all(axis=1)).all())
        require(self, "values", "strictly increasing or decreasing", monotone, self.values)

    @classmethod
    def from_function(cls, function: Callable[[float], float], points: int = 1025) -> Corruption:
        """Return the piecewise linear function through `points` values of `function`."""
        return cls(values=(tuple(float(function(x)) for x in np.linspace(0, 1, points)),))

    @classmethod
    def from_written(cls, value: Any) -> Corruption:
        """Return the corruption written as ``{p00 = 0.8, p11 = 0.9}`` or ``{values = [0.9, 0.2]}``."""
        if not isinstance(value, Mapping):
            raise ValueError(f"corruption: expected values, or p00 and p11, got {value!r}")
        return cls(**value) if "values" in value else RandomizedResponse.of(**value)

    def grid(self, n_arms: int) -> NDArray[np.float64]:
        """Return g of every arm, shape (K, G)."""
        grid = np.array(self.values)
        require(self, "values", f"1 row or {n_arms}", len(grid) in (1, n_arms), len(grid))
        return np.ascontiguousarray(np.broadcast_to(grid, (n_arms, grid.shape[1])))

    def release(self, n_arms: int) -> Release:
        """Return the least private of the arms' releases."""
        ends = self.grid(n_arms)[:, [0, -1]]
        releases = [
            RandomizedResponseRelease(keep_zero=float(1.0 - low), keep_one=float(high))
            for low, high in np.sort(ends, axis=1)
        ]
        return max(releases, key=lambda release: release.epsilon)


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Corruption):
    """Randomized response: the line from 1 - p00 to p11."""

    @classmethod
    def of(cls, p00: ArrayLike, p11: ArrayLike) -> RandomizedResponse:
        """Return the corruption that keeps a 0 with probability p00 and a 1 with p11.

        Examples
        --------
        >>> from tacit.arms import RandomizedResponse
        >>> RandomizedResponse.of(p00=0.75, p11=0.75).values
        ((0.25, 0.75),)
        """
        zero, one = np.atleast_1d(np.asarray(p00, float)), np.atleast_1d(np.asarray(p11, float))
        both = np.broadcast_arrays(1.0 - zero, one)
        return cls(values=tuple(map(tuple, np.stack(both, axis=1).tolist())))

    @classmethod
    def optimal(cls, epsilon: float) -> RandomizedResponse:
        """Return the most useful one that is epsilon-private (paper 003, eq. 2)."""
        keep = 1.0 / (1.0 + math.exp(-epsilon))
        return cls.of(p00=keep, p11=keep)


@kernel
def grid_value(grid: Any, a: Any, x: Any) -> Any:
    """Return g_a(x)."""
    G = grid.shape[1] - 1
    i = min(int(x * G), G - 1)
    return grid[a, i] + (x * G - i) * (grid[a, i + 1] - grid[a, i])


@kernel
def grid_inverse(grid: Any, a: Any, y: Any) -> Any:
    """Return the x in [0, 1] whose g_a(x) is nearest to y."""
    G = grid.shape[1] - 1
    rising = grid[a, 0] < grid[a, G]
    low, high = 0, G - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if (grid[a, middle] <= y) == rising:
            low = middle
        else:
            high = middle - 1
    x = (low + (y - grid[a, low]) / (grid[a, low + 1] - grid[a, low])) / G
    return min(1.0, max(0.0, x))


@kernel
def corrupted(grid: Any, tape: Any, t: Any, a: Any, reward: Any) -> Any:
    """Return the feedback bit: 1 with probability g_a(reward)."""
    first, last = grid[a, 0], grid[a, grid.shape[1] - 1]
    share = (grid_value(grid, a, reward) - first) / (last - first)
    bit = share
    if 0.0 < share < 1.0:
        bit = 1.0 if uniform(tape, t, a, ROUNDING) < share else 0.0
    return release_bit(tape, t, a, NOISE, bit, last, 1.0 - first)
