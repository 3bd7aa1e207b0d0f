"""AAE: active arm elimination, the plain ancestor of GAP.

Pull every active arm once, then drop the arms whose mean is below the best one by more than the
confidence bounds allow; repeat. No noise and no graph: an arm shows its own reward only. Even-Dar,
Mannor and Mansour (2006), Algorithm 3, with c = 4; paper 002 builds GAP on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.elimination import Elimination
from tacit.arms.loops import kernels_of
from tacit.arms.policy import Kernels, PlainPolicy
from tacit.arms.table import Table
from tacit.core.kernels import kernel


class Params(NamedTuple):
    """What the kernels of AAE and AlphaSample need."""

    failure_prob: float


class State(NamedTuple):
    """What is learned."""

    active: NDArray[np.bool_]
    """Shape (K,): arms not dropped."""
    counts: NDArray[np.int64]
    """Shape (K,): rewards taken in."""
    sums: NDArray[np.float64]
    """Shape (K,): their sums."""
    cursor: NDArray[np.int64]
    """Shape (1,): the next arm of this sweep."""


@kernel
def eliminate(params: Any, state: Any) -> None:
    """Drop arms whose mean is more than two confidence radii below the largest."""
    K = state.active.size
    n = np.int64(1) << 62
    for a in range(K):
        if state.active[a]:
            n = min(n, state.counts[a])
    if n == 0:
        return
    largest = 0.0
    for a in range(K):
        if state.active[a]:
            largest = max(largest, state.sums[a] / state.counts[a])
    alpha = math.sqrt(math.log(4.0 * K * n * n / params.failure_prob) / n)
    for a in range(K):
        if state.active[a] and largest - state.sums[a] / state.counts[a] >= 2.0 * alpha:
            state.active[a] = False


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Return the next active arm of the sweep; judge the arms when a sweep is complete."""
    for sweep in range(2):
        for i in range(eligible.size):
            a = eligible[i]
            if state.active[a] and a >= state.cursor[0]:
                state.cursor[0] = a + 1
                return a
        state.cursor[0] = 0
        if sweep == 0:
            eliminate(params, state)
    return eligible[0]


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Take in a reward."""
    state.counts[arm] += 1
    state.sums[arm] += reward


@dataclass(frozen=True, kw_only=True)
class AAE(Elimination[State], PlainPolicy[State]):
    """Pull all active arms in turn and drop those that are clearly worse.

    Guarantee: none; the decisions depend on every reward without noise.

    Parameters
    ----------
    failure_prob : float, optional
        Probability with which the best arm may be dropped; 1/T if not given.

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import AAE, Bernoulli
    >>> policy, environment = AAE(n_arms=2, horizon=5000), Bernoulli(means=(0.2, 0.8))
    >>> bool(tacit.simulate(policy, environment, horizon=5000).final("regret")[0] < 200)
    True

    References
    ----------
    Even-Dar, Mannor, Mansour. Action elimination and stopping conditions for the multi-armed bandit
    and reinforcement learning problems. JMLR 2006.
    """

    name: ClassVar[str] = "aae"
    summary: ClassVar[str] = "active arm elimination, no noise, no graph"
    paper: ClassVar[str] = "Even-Dar et al. 2006, Algorithm 3"
    kernels: ClassVar[Kernels] = kernels_of(select, learn)

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        return Params(self.confidence_loss)

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        K = self.n_arms
        return State(np.ones(K, np.bool_), np.zeros(K, np.int64), np.zeros(K), np.zeros(1, int))
