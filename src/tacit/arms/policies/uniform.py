"""Uniform: pull any arm, learn nothing.

The baseline every policy must beat, and the only one that protects rewards perfectly: its decisions
do not depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.loops import kernels_of
from tacit.arms.policy import ArmsPolicy, Kernels
from tacit.arms.table import Table
from tacit.core.kernels import kernel
from tacit.core.tapes import CHOICE, uniform
from tacit.privacy import Guarantee, Mechanism, compose


class State(NamedTuple):
    """What is learned: nothing but how often each arm was seen."""

    counts: NDArray[np.int64]
    """Shape (K,): rewards taken in."""


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Return any eligible arm."""
    return eligible[int(uniform(tape, t, 0, CHOICE) * eligible.size)]


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Count the pull."""
    state.counts[arm] += 1


@kernel
def probabilities(params: Any, state: Any, t: Any, eligible: Any, out: Any) -> None:
    """Write the probability of every arm in the draw of round t."""
    for a in range(out.size):
        out[a] = 0.0
    for i in range(eligible.size):
        out[eligible[i]] = 1.0 / eligible.size


@dataclass(frozen=True, kw_only=True)
class Uniform(ArmsPolicy[State]):
    """Pull an arm uniformly at random.

    Guarantee: epsilon = 0 for everything; rewards are never used.

    Examples
    --------
    >>> from tacit.arms import Uniform
    >>> Uniform(n_arms=3).guarantee(horizon=1000).epsilon
    0.0
    """

    name: ClassVar[str] = "uniform"
    summary: ClassVar[str] = "any arm at random: the baseline"
    paper: ClassVar[str] = ""
    protects: ClassVar[str] = "everything"
    kernels: ClassVar[Kernels] = kernels_of(select, learn, probabilities=probabilities)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """None: there is nothing to protect."""
        return ()

    def guarantee(self, horizon: int) -> Guarantee:
        """Return perfect protection: nothing is released."""
        return compose(
            [], unit="user", trust="local", span="run", note="The decisions ignore all rewards"
        )

    def start(self, table: Table | None = None) -> State:
        """Return an empty state."""
        return State(np.zeros(self.n_arms, np.int64))
