"""What every policy of the arms setting offers: the same kernels for a simulation and for one step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.arms.tables import Table, Trace
from tacit.policy import Policy, Program
from tacit.tapes import Tape

if TYPE_CHECKING:
    from tacit.deciding import Decider

__all__ = ["ArmsPolicy"]


class ArmsPolicy(Policy[Table, Any, Trace]):
    """A policy that picks one of `n_arms` arms.

    A subclass gives three kernels: ``act(rule, state, tape, t, eligible)`` returns an arm,
    ``learn(rule, state, tape, t, arm, reward)`` takes in a reward, and
    ``run(rule, state, table, tape, trace, first, last)`` does both for many rounds.
    """

    setting: ClassVar[str] = "arms"
    example_environment: ClassVar[str] = "bernoulli:means=[0.3,0.7]"
    n_arms: int
    act: ClassVar[Callable[..., Any]]
    learn: ClassVar[Callable[..., Any]]
    run: ClassVar[Callable[..., Any]]
    chances: ClassVar[Callable[..., None] | None] = None
    """``chances(rule, state, t, eligible, out)`` writes, after ``act`` of round t, the chance that each
    eligible arm had, at its own place; None where arms are chosen without chance."""
    learns_from_any: ClassVar[bool] = True
    """Whether it may learn from an arm that it did not choose itself."""

    @abstractmethod
    def start(self, table: Table | None = None) -> Any:
        """Return a state that has seen nothing; without a table for one step at a time."""

    @property
    def secure(self) -> bool:
        """Whether all its noise has an exact sampler."""
        return True

    @property
    @abstractmethod
    def rule(self) -> Any:
        """The numbers the kernels need, as a ``NamedTuple``."""

    def program(self, state: Any, table: Any, tape: Tape, trace: Any) -> Program:
        """Return ``run`` and its arguments."""
        return type(self).run, (self.rule, state, table, tape, trace)

    def select(self, state: Any, tape: Tape, t: int, eligible: NDArray[np.int64]) -> int:
        """Return the arm to pull in round `t` among `eligible` (indices, increasing)."""
        return int(type(self).act(self.rule, state, tape, t, eligible))

    def update(self, state: Any, tape: Tape, t: int, arm: int, reward: float) -> None:
        """Take in the reward of the arm pulled in round `t`, at once or later."""
        type(self).learn(self.rule, state, tape, t, arm, reward)

    def carry_over(self, state: Any, larger: Any) -> None:
        """Copy what was learned into the state of a policy with more arms: the leading slices."""
        for old, new in zip(_arrays(state), _arrays(larger), strict=True):
            new[tuple(slice(n) for n in old.shape)] = old

    def retire(self, state: Any, arm: int) -> None:
        """Prepare for never pulling an arm again."""

    def forget_unreleased(self, state: Any) -> None:
        """Forget sums that were not released, so that they never will be."""

    def decider(self, *, explore: float = 0.0) -> Decider:
        """Return this policy at work, for :mod:`tacit.serving`."""
        from tacit.arms.deciding import ArmsDecider

        return ArmsDecider(self, explore=explore)


def _arrays(state: Any) -> list[NDArray[Any]]:
    if isinstance(state, np.ndarray):
        return [state]
    return [array for value in state for array in _arrays(value)] if isinstance(state, tuple) else []
