"""SW-KLUCB-CF for a horizon that nobody knows: begin anew with twice the horizon, again and again.

The window of SW-KLUCB-CF depends on the horizon T. Paper 003: an unknown T can be handled using the doubling
trick. Guess a horizon, play SW-KLUCB-CF for that long, then forget everything and play it for twice as long.
Each epoch is Algorithm 1 of the paper with the window of its own length and time counted from its own
beginning; feedback of a round before the epoch is dropped. Because the window is kept in memory, epochs stop
doubling after 2^26 rounds: the last one goes on for ever.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.corruption import Corruption, Feedback
from tacit.arms.klucb_index import (
    Exploration,
    ExplorationFunction,
    largest_index,
    level,
    probabilities,
    tabulate_exploration,
)
from tacit.arms.local_policy import LocalPolicy
from tacit.arms.loops import local_kernels
from tacit.arms.policies.klucb import State, count, first_untried, new_state
from tacit.arms.policies.sw_klucb_cf import SWKLUCBCF, forget
from tacit.arms.policy import Kernels
from tacit.arms.table import Table
from tacit.arms.window import Window, put_in_window
from tacit.core.constraints import Constraint, Count, one_of
from tacit.core.kernels import kernel
from tacit.privacy.mechanisms import Epsilon

LONGEST = 2**26
"""No epoch but the last is longer than this many rounds."""
_Horizon = Annotated[int, Constraint(f"in 1..{LONGEST:,}", lambda n: 1 <= n <= LONGEST)]


class Params(NamedTuple):
    """What the kernels need of E epochs."""

    starts: NDArray[np.int64]
    """Shape (E,): the first round of each epoch."""
    windows: NDArray[np.int64]
    """Shape (E,): w of each epoch, in rounds."""
    exploration: Exploration
    feedback: Feedback


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Begin an epoch if it is time; then decide as SW-KLUCB-CF does, with time since its beginning."""
    while state.epoch[0] + 1 < params.starts.size and t >= params.starts[state.epoch[0] + 1]:
        _begin(state)
    s = t - params.starts[state.epoch[0]]
    w = params.windows[state.epoch[0]]
    forget(params, state, _latest(state.window, w), s)
    arm = first_untried(state, eligible) if state.untried[0] > 0 else -1
    if arm < 0:
        f = level(params.exploration, float(min(s, w)))
        arm = largest_index(params.feedback.ends, state, tape, t, eligible, f)
    return arm


@kernel(inlined=False)
def _begin(state: Any) -> None:
    """Forget everything and go on to the next epoch."""
    state.epoch[0] += 1
    state.counts[:] = 0
    state.sums[:] = 0.0
    state.tried[:] = False
    state.untried[0] = state.counts.size
    state.window.arms[:] = -1
    state.window.now[0] = -1
    state.lazy.stale[:] = True
    state.lazy.latest[0] = 0


@kernel
def _latest(window: Any, w: Any) -> Any:
    """Return a window of w rounds in the memory of a longer one."""
    return Window(window.arms[: w + 1], window.values[: w + 1], window.now)


@kernel
def learn_from_report(params: Any, state: Any, t: Any, arm: Any, feedback: Any) -> None:
    """Add the feedback to the arm's sum, unless its round has left the window or the epoch."""
    s = t - params.starts[state.epoch[0]]
    window = _latest(state.window, params.windows[state.epoch[0]])
    if s >= 0 and put_in_window(window, s, arm, feedback):
        count(params, state, t, arm, feedback)


@dataclass(frozen=True, kw_only=True)
class DoublingSWKLUCBCF(LocalPolicy[State]):
    """Sliding-window kl-UCB on corrupted feedback, restarted with twice the horizon.

    Guarantee: pure local differential privacy with `epsilon` for each single reward, over the whole
    run; none without `epsilon` and `corruption`.

    Parameters
    ----------
    first_horizon : int, default 1000
        The length of the first epoch.
    n_segments : int, default 1
        L, the number of stationary segments, for the windows.
    window : "log" or "published", default "log"
        As in :class:`~tacit.arms.SWKLUCBCF`, for the length of an epoch.

    Examples
    --------
    >>> from tacit.arms import DoublingSWKLUCBCF
    >>> policy = DoublingSWKLUCBCF(n_arms=2, epsilon=1.0)
    >>> policy.params.starts[:4].tolist(), policy.params.windows[:4].tolist()
    ([0, 1000, 3000, 7000], [122, 181, 268, 395])

    References
    ----------
    Gajane. Local Differential Privacy for Sequential Decision Making in a Changing Environment. 2023.
    """

    name: ClassVar[str] = "doubling-sw-klucb-cf"
    summary: ClassVar[str] = "SW-KLUCB-CF for an unknown horizon, by the doubling trick"
    paper: ClassVar[str] = "003 Alg. 1, horizon unknown"
    kernels: ClassVar[Kernels] = local_kernels(
        select, learn_from_report, probabilities=probabilities
    )

    first_horizon: _Horizon = 1000
    n_segments: Count = 1
    epsilon: Epsilon | None = None
    corruption: Corruption | None = None
    window: Annotated[str, one_of("log", "published", "paper")] = "log"
    exploration: ExplorationFunction = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.params

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        doublings = math.floor(math.log2(LONGEST / self.first_horizon))
        lengths = [self.first_horizon * 2**i for i in range(doublings + 1)]
        windows = [
            SWKLUCBCF(
                n_arms=self.n_arms, horizon=T, n_segments=self.n_segments, window=self.window
            ).window_rounds
            for T in lengths
        ]
        return Params(
            starts=np.cumsum([0, *lengths[:-1]]),
            windows=np.array(windows),
            exploration=tabulate_exploration(self, self.exploration),
            feedback=self.feedback,
        )

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        longest = int(self.params.windows[-1])
        return new_state(self.n_arms, longest)._replace(epoch=np.zeros(1, np.int64))
