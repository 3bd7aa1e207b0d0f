"""GLR-klUCB-CF: kl-UCB on private bits, restarted by a likelihood-ratio test.

Pull the arm with the largest Kullback-Leibler index of its feedback since the last restart; a share of the
rounds explores all arms in turn. When a generalised likelihood ratio says that the pulled arm's feedback has
changed, all arms are forgotten. Besson, Kaufmann, Maillard and Seznec (2022), Algorithm 1 with global
restarts, on the bits of randomized response; beside P-IMED-CF to compare.

As there, the test's threshold is ln(3 n sqrt(n) / delta) with delta = 1 / sqrt(T), and after k restarts the
explored share is 0.1 sqrt((k + 1) K ln T / T), so that the number of changes need not be told; the horizon
must be. The test runs at every tenth observation, at the splits that :mod:`tacit.arms.change_test` keeps.
Feedback of a round before the last restart is dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.change_test import History, forget_all, largest_ratio, new_history, remember
from tacit.arms.klucb_index import (
    ExplorationFunction,
    IndexCache,
    largest_index,
    level,
    new_index_cache,
    probabilities,
    record_single_choice,
    tabulate_exploration,
)
from tacit.arms.local_policy import LocalPolicy
from tacit.arms.loops import local_kernels
from tacit.arms.policies.klucb import Params, count
from tacit.arms.policy import Kernels
from tacit.arms.table import Table
from tacit.core.constraints import Count
from tacit.core.kernels import kernel
from tacit.privacy.mechanisms import Epsilon

_EVERY = 10
_SHARE = 0.1


class State(NamedTuple):
    """What is learned since the last restart."""

    counts: NDArray[np.int64]
    """Shape (K,): n, feedback of each arm."""
    sums: NDArray[np.float64]
    """Shape (K,): its sum."""
    pulls: NDArray[np.int64]
    """Shape (K,): pulls, whose feedback may still be under way."""
    history: History
    lazy: IndexCache
    now: NDArray[np.int64]
    """Shape (2,): tau, the first round after the last restart, and k, the restarts so far."""


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Explore if it is an exploring round, else return the arm with the largest index."""
    arm = _forced(params, state, t, eligible)
    if arm >= 0:
        arm = record_single_choice(state.lazy, arm)
    else:
        f = level(params.exploration, float(t - state.now[0]))
        arm = largest_index(params.feedback.ends, state, tape, t, eligible, f)
    state.pulls[arm] += 1
    return arm


@kernel
def _forced(params: Any, state: Any, t: Any, eligible: Any) -> Any:
    # Of every K / alpha rounds since the restart the first K are for the arms in turn.
    K, T = state.counts.size, params.horizon
    alpha = min(1.0, _SHARE * math.sqrt((state.now[1] + 1.0) * K * math.log(T) / T))
    turn = (t - state.now[0]) % max(K, int(K / alpha))
    for i in range(eligible.size):
        a = eligible[i]
        if a == turn or state.pulls[a] == 0:
            return a
    return -1


@kernel
def take_in(params: Any, state: Any, t: Any, arm: Any, feedback: Any) -> Any:
    """Take in feedback of round t, if it is after the restart; return whether it is time to look."""
    if t < state.now[0]:
        return False
    count(params, state, t, arm, feedback)
    remember(state.history, arm, feedback)
    return state.counts[arm] % _EVERY == 0


@kernel(inlined=False)
def restart(state: Any, t: Any) -> None:
    """Forget all arms."""
    state.counts[:] = 0
    state.sums[:] = 0.0
    state.pulls[:] = 0
    state.lazy.stale[:] = True
    forget_all(state.history)
    state.now[0], state.now[1] = t + 1, state.now[1] + 1


@kernel
def learn_from_report(params: Any, state: Any, t: Any, arm: Any, feedback: Any) -> None:
    """Take in feedback of round t; restart if the arm has changed."""
    if take_in(params, state, t, arm, feedback):
        n = state.counts[arm]
        bar = math.log(3.0 * n * math.sqrt(float(n)) * math.sqrt(params.horizon))
        if largest_ratio(state.history, arm, n, state.sums[arm]) > bar:
            restart(state, t)


@dataclass(frozen=True, kw_only=True)
class GLRKLUCBCF(LocalPolicy[State]):
    """kl-UCB on corrupted feedback with change detection and restarts.

    Guarantee: pure local differential privacy with `epsilon` for each single reward, over the whole
    run; without it none.

    Parameters
    ----------
    horizon : int
        Number of rounds T, for the threshold and the explored share.

    Examples
    --------
    >>> from tacit.arms import GLRKLUCBCF
    >>> round(GLRKLUCBCF(n_arms=2, horizon=1000, epsilon=1.0).guarantee(1000).epsilon, 9)
    1.0

    References
    ----------
    Besson, Kaufmann, Maillard, Seznec. Efficient change-point detection for tackling
    piecewise-stationary bandits. JMLR 2022.
    """

    name: ClassVar[str] = "glr-klucb-cf"
    summary: ClassVar[str] = (
        "kl-UCB on locally private feedback with restarts, changing environment"
    )
    paper: ClassVar[str] = "Besson et al. 2022, Algorithm 1, on bits"
    kernels: ClassVar[Kernels] = local_kernels(
        select, learn_from_report, probabilities=probabilities
    )

    horizon: Count
    epsilon: Epsilon | None = None
    exploration: ExplorationFunction = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.params

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        f = tabulate_exploration(self, self.exploration)
        return Params(f, self.feedback, horizon=float(max(self.horizon, 2)))

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        K = self.n_arms
        return State(
            counts=np.zeros(K, np.int64),
            sums=np.zeros(K),
            pulls=np.zeros(K, np.int64),
            history=new_history(K),
            lazy=new_index_cache(K),
            now=np.zeros(2, np.int64),
        )
