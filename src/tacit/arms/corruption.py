"""Corruption: how a true reward becomes the bit that leaves its owner.

Paper 003 knows, for each arm, a function g that maps the mean reward to the mean feedback. Here a reward r
in [0, 1] is first rounded to a bit, 1 with probability r, and the bit then passes through randomized
response, which answers 1 with probability g(1) where it is 1 and g(0) where it is 0. The mean
feedback is then g(0) + (g(1) - g(0)) mu *exactly*, whatever the distribution of the rewards: a straight
line through the ends. No channel for 0/1 rewards has a curved g, and for other rewards the mean
feedback of a curved channel is no function of the mean; so a corruption here is its two ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.core.constraints import require
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, ROUNDING, uniform
from tacit.privacy import RandomizedResponseRelease, Release, keep_probability, least_private
from tacit.privacy.mechanisms.randomized_response import release_bit


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
    >>> Corruption(values=(0.9, 0.2)).ends(2)
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

    def ends(self, n_arms: int) -> NDArray[np.float64]:
        """Return g(0) and g(1) of every arm, shape (K, 2)."""
        ends = np.array(self.values)
        require(self, "values", f"1 row or {n_arms}", len(ends) in (1, n_arms), len(ends))
        return np.array(np.broadcast_to(ends, (n_arms, 2)), order="C")

    def release(self, n_arms: int) -> Release:
        """Return the least private of the arms' releases."""
        releases = [
            RandomizedResponseRelease(keep_zero=float(1.0 - low), keep_one=float(high))
            for low, high in np.sort(self.ends(n_arms), axis=1)
        ]
        return least_private(releases)


def corruption_of(epsilon: float | None, corruption: Corruption | None) -> Corruption | None:
    """Return the corruption that `epsilon` asks for, or the one given."""
    return corruption if epsilon is None else Corruption.optimal(epsilon)


def check_privacy(owner: Any, epsilon: float | None, corruption: Corruption | None) -> None:
    """Refuse two answers to one question, and a corruption for another number of arms."""
    one = epsilon is None or corruption is None
    require(owner, "epsilon or corruption", "given, not both", one, epsilon)
    if corruption is not None:
        corruption.ends(owner.n_arms)


class Feedback(NamedTuple):
    """What a kernel needs to turn a reward into feedback."""

    private: int
    """1 if feedback is a corrupted bit, 0 if it is the reward."""
    ends: NDArray[np.float64]
    """Shape (1, 2) for all arms alike, or (K, 2): g(0) and g(1)."""


@kernel
def feedback_of(feedback: Any, tape: Any, t: Any, arm: Any, reward: Any) -> Any:
    """Return what is learned of a reward: a corrupted bit, or the reward itself."""
    if feedback.private == 1:
        return corrupted(feedback.ends, tape, t, arm, reward)
    return reward


@kernel
def corrupted(ends: Any, tape: Any, t: Any, arm: Any, reward: Any) -> Any:
    """Return the feedback of a reward in [0, 1]: 1 with probability g(reward), else 0.

    `ends` has one row for all arms alike or a row for each.
    """
    bit = reward
    if 0.0 < reward < 1.0:
        bit = 1.0 if uniform(tape, t, arm, ROUNDING) < reward else 0.0
    row = min(arm, ends.shape[0] - 1)
    return float(release_bit(tape, t, arm, NOISE, bit, ends[row, 1], 1.0 - ends[row, 0]))
