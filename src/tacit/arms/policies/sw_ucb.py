"""SW-UCB: UCB on the last few rounds only.

Forget what is older than the window, so that an arm that was bad long ago is tried again. It is the
yardstick for changing environments, private if asked to be. Garivier and Moulines (2011), Section 3.2;
ties go to the lowest index, an arm unseen in the window is pulled first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.corruption import Feedback
from tacit.arms.local_policy import LocalPolicy
from tacit.arms.loops import local_kernels
from tacit.arms.policy import Kernels
from tacit.arms.table import Table
from tacit.arms.window import Window, forget_with, new_window, put_in_window
from tacit.core.constraints import Constraint, Count, NonNegative
from tacit.core.kernels import kernel
from tacit.privacy.mechanisms import Epsilon


class Params(NamedTuple):
    """What the kernels need."""

    window: int
    exploration: float
    feedback: Feedback


class State(NamedTuple):
    """What is learned."""

    counts: NDArray[np.int64]
    """Shape (K,): rewards of each arm in the window."""
    sums: NDArray[np.float64]
    """Shape (K,): their sums."""
    window: Window
    """What the last w rounds gave."""


@kernel
def _drop(params: Any, state: Any, arm: Any, value: Any) -> None:
    state.counts[arm] -= 1
    state.sums[arm] -= value


_forget = forget_with(_drop)


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Forget what left the window, then return the arm with the largest index."""
    _forget(params, state, state.window, t)
    log_s = params.exploration * math.log(min(t + 1.0, float(params.window)))
    best, largest = eligible[0], -1.0
    for i in range(eligible.size):
        a = eligible[i]
        N = state.counts[a]
        if N == 0:
            return a
        index = state.sums[a] / N + math.sqrt(log_s / N)
        if index > largest:
            best, largest = a, index
    return best


@kernel
def learn_from_report(params: Any, state: Any, t: Any, arm: Any, feedback: Any) -> None:
    """Add the feedback to the arm's sum, unless its round has left the window."""
    if put_in_window(state.window, t, arm, feedback):
        state.counts[arm] += 1
        state.sums[arm] += feedback


@dataclass(frozen=True, kw_only=True)
class SWUCB(LocalPolicy[State]):
    """UCB over a sliding window.

    Guarantee: pure local differential privacy with `epsilon` for each single reward; without it
    none, the decisions then depend on every reward without noise.

    Parameters
    ----------
    horizon : int
        Number of rounds T, for the window.
    n_segments : int, default 1
        Number of stationary segments L, for the window.
    window : "theory" or int, default "theory"
        2 sqrt(T ln T / L), or a number of rounds.
    exploration : float, default 0.6
        xi in the bonus sqrt(xi ln(min(t, w)) / n).
    epsilon : float, optional
        Privacy of one reward, by randomized response. The bits are averaged as they are: the
        corruption is the same for every arm, so the order of the arms survives it.

    Examples
    --------
    >>> from tacit.arms import SWUCB
    >>> SWUCB(n_arms=2, horizon=100_000, n_segments=10).window_rounds
    678

    References
    ----------
    Garivier, Moulines. On upper-confidence bound policies for switching bandit problems. 2011.
    """

    name: ClassVar[str] = "sw-ucb"
    summary: ClassVar[str] = "UCB over a sliding window, changing environment"
    paper: ClassVar[str] = "Garivier and Moulines 2011"
    kernels: ClassVar[Kernels] = local_kernels(select, learn_from_report)

    horizon: Count
    n_segments: Count = 1
    window: Annotated[
        int | str,
        Constraint("theory or a number of rounds >= 1", lambda w: w == "theory" or w >= 1),
    ] = "theory"
    exploration: NonNegative = 0.6
    epsilon: Epsilon | None = None

    @property
    def window_rounds(self) -> int:
        """The window w in rounds."""
        if not isinstance(self.window, str):
            return int(self.window)
        T = self.horizon
        return max(1, math.floor(2 * math.sqrt(T * math.log(max(T, 2)) / self.n_segments)))

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        return Params(
            window=self.window_rounds,
            exploration=float(self.exploration),
            feedback=self.feedback,
        )

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        window = new_window(self.window_rounds)
        return State(np.zeros(self.n_arms, np.int64), np.zeros(self.n_arms), window)
