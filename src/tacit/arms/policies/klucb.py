"""kl-UCB: optimism by Kullback-Leibler confidence bounds.

Bound each arm's mean reward from above by the largest mean that its rewards do not contradict, and pull the
arm with the largest bound. Nothing is forgotten: the environment is taken not to change. Garivier and
Cappe (2011), Algorithm 1, with f(t) = ln t + 3 ln ln t, floored at 0; ties are broken at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.corruption import Feedback
from tacit.arms.klucb_index import (
    Exploration,
    ExplorationFunction,
    IndexCache,
    largest_index,
    level,
    new_index_cache,
    probabilities,
    record_single_choice,
    tabulate_exploration,
)
from tacit.arms.loops import kernels_of
from tacit.arms.policy import Kernels, PlainPolicy
from tacit.arms.table import Table
from tacit.arms.window import Window, new_window
from tacit.core.kernels import kernel


class Params(NamedTuple):
    """What the kernels of the kl-UCB family need."""

    exploration: Exploration
    feedback: Feedback
    """How a reward becomes what is observed."""
    window: int = 0
    """w in rounds, 0 if nothing is forgotten."""
    level: float = 0.0
    """f(w)."""
    horizon: float = 0.0
    """T, where it is told."""


class State(NamedTuple):
    """What a policy of the kl-UCB family learns; a part that it has no use for is None."""

    counts: NDArray[np.int64]
    """Shape (K,): N, rewards or feedback of each arm that is remembered."""
    sums: NDArray[np.float64]
    """Shape (K,): their sums."""
    heard: NDArray[np.int64] | None
    """Shape (K, S): how much comes from each segment, where the corruption changes in time."""
    line: NDArray[np.float64] | None
    """Shape (K, 2): there, the mean of the feedback where the mean reward is 0 and 1."""
    tried: NDArray[np.bool_]
    """Shape (K,): whether an arm was ever pulled, or since all was forgotten."""
    untried: NDArray[np.int64]
    """Shape (1,): how many were not."""
    window: Window | None
    """What the last rounds gave, where older ones are forgotten."""
    lazy: IndexCache
    piece: NDArray[np.int64] | None = None
    """Shape (1,): the segment of the latest round, where the corruption changes in time."""
    epoch: NDArray[np.int64] | None = None
    """Shape (1,): the number of the epoch, where all is forgotten now and then."""


def new_state(n_arms: int, window: int | None = None) -> State:
    """Return a state that has seen nothing, and remembers all or the last `window` rounds."""
    return State(
        counts=np.zeros(n_arms, np.int64),
        sums=np.zeros(n_arms),
        heard=None,
        line=None,
        tried=np.zeros(n_arms, np.bool_),
        untried=np.full(1, n_arms),
        window=None if window is None else new_window(window),
        lazy=new_index_cache(n_arms),
    )


@kernel
def first_untried(state: Any, eligible: Any) -> Any:
    """Choose the first eligible arm that was never pulled; return -1 if there is none."""
    for i in range(eligible.size):
        if not state.tried[eligible[i]]:
            state.tried[eligible[i]] = True
            state.untried[0] -= 1
            return record_single_choice(state.lazy, eligible[i])
    return -1


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Pull every arm once, then the one whose index max{q: N d(mean, q) <= f(t)} is largest."""
    arm = first_untried(state, eligible) if state.untried[0] > 0 else -1
    if arm < 0:
        f = level(params.exploration, float(t))
        arm = largest_index(params.feedback.ends, state, tape, t, eligible, f)
    return arm


@kernel
def count(params: Any, state: Any, t: Any, arm: Any, value: Any) -> None:
    """Add what was observed to the arm's sum."""
    state.counts[arm] += 1
    state.sums[arm] += value
    state.lazy.stale[arm] = True


@kernel
def drop(params: Any, state: Any, arm: Any, value: Any) -> None:
    """Take out of the arm's sum what was added to it."""
    state.counts[arm] -= 1
    state.sums[arm] = state.sums[arm] - value if state.counts[arm] > 0 else 0.0
    state.lazy.stale[arm] = True


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Take in a reward."""
    count(params, state, t, arm, reward)


@dataclass(frozen=True, kw_only=True)
class KLUCB(PlainPolicy[State]):
    """Pull the arm with the largest Kullback-Leibler upper confidence bound.

    Guarantee: none; the decisions depend on every reward without noise.

    Parameters
    ----------
    exploration : "paper", "log" or function of t, default "paper"
        f: ln t + 3 ln ln t, ln t, or another non-decreasing function of the rounds played.

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import KLUCB, Bernoulli
    >>> result = tacit.simulate(KLUCB(n_arms=2), Bernoulli(means=(0.4, 0.6)), horizon=1000, seed=1)
    >>> bool(result.final("regret").mean() < 40)
    True

    References
    ----------
    Garivier, Cappe. The KL-UCB algorithm for bounded stochastic bandits and beyond. 2011.
    """

    name: ClassVar[str] = "klucb"
    summary: ClassVar[str] = "Kullback-Leibler upper confidence bound for an unchanging environment"
    paper: ClassVar[str] = "Garivier and Cappe 2011"
    kernels: ClassVar[Kernels] = kernels_of(select, learn, probabilities=probabilities)

    exploration: ExplorationFunction = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.params

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        f = tabulate_exploration(self, self.exploration)
        return Params(f, Feedback(0, np.array([[0.0, 1.0]])))

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        return new_state(self.n_arms)
