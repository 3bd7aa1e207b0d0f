"""UCB1: optimism in the face of uncertainty.

Pull the arm whose mean reward, plus a bonus that shrinks as the arm is pulled, is largest. It is the
plain yardstick for one learner in an environment that does not change. Auer, Cesa-Bianchi and Fischer (2002),
Fig. 1; ties go to the lowest index.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.loops import kernels_of
from tacit.arms.policy import Kernels, PlainPolicy
from tacit.arms.table import Table
from tacit.core.constraints import NonNegative
from tacit.core.kernels import kernel


class Params(NamedTuple):
    """What the kernels need."""

    exploration: float


class State(NamedTuple):
    """What is learned."""

    counts: NDArray[np.int64]
    """Shape (K,): rewards taken in."""
    sums: NDArray[np.float64]
    """Shape (K,): their sums."""
    means: NDArray[np.float64]
    """Shape (K,): their means; infinite before the first."""
    widths: NDArray[np.float64]
    """Shape (K,): 1 / sqrt(n), to which the bonus is proportional; 0 before the first."""


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Return the arm with the largest index."""
    bonus = math.sqrt(params.exploration * math.log(max(1.0, float(t))))
    best, largest = eligible[0], -1.0
    for i in range(eligible.size):
        a = eligible[i]
        index = state.means[a] + bonus * state.widths[a]
        if index > largest:
            best, largest = a, index
    return best


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Update the mean of the arm and the width of its bonus."""
    state.counts[arm] += 1
    state.sums[arm] += reward
    state.means[arm] = state.sums[arm] / state.counts[arm]
    state.widths[arm] = 1.0 / math.sqrt(state.counts[arm])


@dataclass(frozen=True, kw_only=True)
class UCB1(PlainPolicy[State]):
    """Pull the arm with the largest upper confidence bound.

    Guarantee: none; the decisions depend on every reward without noise.

    Parameters
    ----------
    exploration : float, default 2
        c in the bonus sqrt(c ln t / n); 2 is the published constant.

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import UCB1, Bernoulli
    >>> result = tacit.simulate(UCB1(n_arms=2), Bernoulli(means=(0.4, 0.6)), horizon=1000, seed=1)
    >>> bool(result.final("regret").mean() < 60)
    True

    References
    ----------
    Auer, Cesa-Bianchi, Fischer. Finite-time analysis of the multiarmed bandit problem. 2002.
    """

    name: ClassVar[str] = "ucb1"
    summary: ClassVar[str] = "upper confidence bound for an environment that does not change"
    paper: ClassVar[str] = "Auer et al. 2002"
    kernels: ClassVar[Kernels] = kernels_of(select, learn)

    exploration: NonNegative = 2.0

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        return Params(float(self.exploration))

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        K = self.n_arms
        return State(np.zeros(K, np.int64), np.zeros(K), np.full(K, np.inf), np.zeros(K))
