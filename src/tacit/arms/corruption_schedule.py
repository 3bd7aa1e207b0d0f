"""A corruption that changes in time, as everybody knows: who is asked later may be promised more, or less.

Paper 003: the algorithm also works if the corruption function of an arm changes across time, as long as the
current one is known. Each reward is corrupted once, by the corruption of its own round; so what one reward
is promised is the epsilon of its round, and what all of them are promised is the largest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arms.corruption import Corruption
from tacit.core.constraints import require
from tacit.privacy import Release, least_private


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
        """Return the most useful one that is private with the epsilon of each piece."""
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

    def ends(self, n_arms: int) -> NDArray[np.float64]:
        """Return g(0) and g(1) of every arm in every piece, shape (pieces, K, 2)."""
        return np.stack([corruption.ends(n_arms) for corruption in self.corruptions])

    def release(self, n_arms: int) -> Release:
        """Return the least private release of any piece."""
        return least_private([corruption.release(n_arms) for corruption in self.corruptions])
