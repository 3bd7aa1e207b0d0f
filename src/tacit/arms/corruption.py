"""Corruption: how a true reward becomes the bit that leaves its owner.

Paper 003 knows, for each arm, a function g that maps the mean reward to the mean feedback. Here a reward r
in [0, 1] is first rounded to a bit, 1 with probability r, and the bit then passes through randomized
response, which answers 1 with probability g(1) where it is 1 and g(0) where it is 0. The mean
feedback is then g(0) + (g(1) - g(0)) mu *exactly*, whatever the distribution of the rewards: a straight
line through the ends. No channel for 0/1 rewards has a curved g, and for other rewards the mean
feedback of a curved channel is no function of the mean; so a corruption here is its two ends.

The paper: the algorithm also works if the corruption function of an arm changes across time, as long as the
current one is known. Each reward is corrupted once, by the corruption of its own round; so what one reward is
promised is the epsilon of its round, and what all of them are promised is the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.core.constraints import require
from tacit.privacy import RandomizedResponseRelease, Release, keep_probability, least_private


@dataclass(frozen=True, kw_only=True)
class Corruption:
    """Randomized response for all arms alike, or one for each arm.

    Parameters
    ----------
    values : two numbers, or two for each arm
        g(0) and g(1): how often a reward of 0 and how often one of 1 is answered by 1. They differ;
        g may fall.

    Examples
    --------
    >>> from tacit.arms import Corruption
    >>> Corruption(values=(0.9, 0.2)).response_probabilities(2)
    array([[0.9, 0.2],
           [0.9, 0.2]])
    """

    values: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        ends = np.array(self.values, dtype=np.float64, ndmin=2)
        object.__setattr__(self, "values", tuple(map(tuple, ends.tolist())))
        rule = "two a row, because single rewards map their mean along the line through the ends"
        require(self, "values", rule, ends.ndim == 2 and ends.shape[1] == 2, self.values)
        inside = bool((ends >= 0).all() and (ends <= 1).all())
        require(self, "values", "in [0, 1]", inside, self.values)
        differ = bool((ends[:, 0] != ends[:, 1]).all())
        require(self, "values", "two that differ, a row", differ, self.values)

    @classmethod
    def from_spec(cls, value: Any) -> Corruption:
        """Return the corruption written as ``{p00 = 0.8, p11 = 0.9}`` or ``{values = [0.9, 0.2]}``."""
        if not isinstance(value, Mapping):
            raise ValueError(f"corruption: expected values, or p00 and p11, got {value!r}")
        return cls(**value) if "values" in value else cls.of(**value)

    @classmethod
    def of(cls, p00: ArrayLike, p11: ArrayLike) -> Corruption:
        """Return the corruption that keeps a 0 with probability p00 and a 1 with p11.

        Examples
        --------
        >>> from tacit.arms import Corruption
        >>> Corruption.of(p00=0.75, p11=0.75).values
        ((0.25, 0.75),)
        """
        zero, one = np.atleast_1d(np.asarray(p00, float)), np.atleast_1d(np.asarray(p11, float))
        both = np.broadcast_arrays(1.0 - zero, one)
        return cls(values=tuple(map(tuple, np.stack(both, axis=1).tolist())))

    @classmethod
    def optimal(cls, epsilon: float) -> Corruption:
        """Return the most useful one that is epsilon-private (paper 003, eq. 2)."""
        keep = keep_probability(epsilon)
        return cls.of(p00=keep, p11=keep)

    @classmethod
    def from_functions(cls, *functions: Callable[[float], float]) -> Corruption:
        """Return the corruption of channels that answer 1 with probability g(r), one or one an arm.

        Of a curved g only the ends count: 0/1 rewards see nothing else, others are rounded first.

        Examples
        --------
        >>> from tacit.arms import Corruption
        >>> Corruption.from_functions(lambda x: x, lambda x: 0.1 + 0.5 * x**2).values
        ((0.0, 1.0), (0.1, 0.6))
        """
        return cls(values=tuple((float(g(0.0)), float(g(1.0))) for g in functions))

    def response_probabilities(self, n_arms: int) -> NDArray[np.float64]:
        """Return g(0) and g(1) of every arm, shape (K, 2)."""
        ends = np.array(self.values)
        require(self, "values", f"1 row or {n_arms}", len(ends) in (1, n_arms), len(ends))
        return np.array(np.broadcast_to(ends, (n_arms, 2)), order="C")

    def release(self, n_arms: int) -> Release:
        """Return the least private of the arms' releases."""
        releases = [
            RandomizedResponseRelease(keep_zero=float(1.0 - low), keep_one=float(high))
            for low, high in np.sort(self.response_probabilities(n_arms), axis=1)
        ]
        return least_private(releases)


@dataclass(frozen=True, kw_only=True)
class CorruptionSchedule:
    """Corruptions, and the round from which each is in force.

    Parameters
    ----------
    corruptions : sequence of Corruption
    starts : sequence of int, default (0,)
        The first round of each: 0, then increasing.

    Examples
    --------
    >>> from tacit.arms import CorruptionSchedule
    >>> schedule = CorruptionSchedule.of_epsilons((2.0, 0.5), starts=(0, 1000))
    >>> round(schedule.release(n_arms=2).epsilon, 9)
    2.0
    """

    corruptions: tuple[Corruption, ...]
    starts: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "corruptions", tuple(self.corruptions))
        object.__setattr__(self, "starts", tuple(int(start) for start in self.starts))
        many = len(self.corruptions)
        one_each = many > 0 and len(self.starts) == many
        require(self, "starts", f"one for each of {many} corruptions", one_each, self.starts)
        rising = all(a < b for a, b in zip((-1, *self.starts), self.starts, strict=False))
        begins = rising and self.starts[0] == 0
        require(self, "starts", "0, then increasing rounds", begins, self.starts)

    @classmethod
    def of_epsilons(cls, epsilons: Sequence[float], *, starts: Sequence[int]) -> CorruptionSchedule:
        """Return the most useful one that is private with the epsilon of each segment."""
        corruptions = tuple(Corruption.optimal(epsilon) for epsilon in epsilons)
        return cls(corruptions=corruptions, starts=tuple(starts))

    @classmethod
    def from_spec(cls, value: Any) -> CorruptionSchedule:
        """Return the schedule written as ``{starts = [0, 1000], epsilons = [2.0, 0.5]}``.

        Instead of ``epsilons`` it may have ``corruptions``, each as for a single one.
        """
        keys = {"starts", "epsilons"}, {"starts", "corruptions"}
        if not isinstance(value, Mapping) or set(value) not in keys:
            raise ValueError(
                f"schedule: expected starts, and epsilons or corruptions, got {value!r}"
            )
        if "epsilons" in value:
            return cls.of_epsilons(value["epsilons"], starts=value["starts"])
        corruptions = tuple(Corruption.from_spec(each) for each in value["corruptions"])
        return cls(corruptions=corruptions, starts=value["starts"])

    def response_probabilities(self, n_arms: int) -> NDArray[np.float64]:
        """Return g(0) and g(1) of every arm in every segment, shape (segments, K, 2)."""
        return np.stack(
            [corruption.response_probabilities(n_arms) for corruption in self.corruptions]
        )

    def release(self, n_arms: int) -> Release:
        """Return the least private release of any segment."""
        return least_private([corruption.release(n_arms) for corruption in self.corruptions])


class Feedback(NamedTuple):
    """What a kernel needs to turn a reward into feedback."""

    private: int
    """1 if feedback is a corrupted bit, 0 if it is the reward."""
    ends: NDArray[np.float64]
    """Shape (1, 2) for all arms alike, or (K, 2): g(0) and g(1)."""
