"""Timed klUCB-CF: kl-UCB on feedback whose corruption changes in time, with a window or without.

Each reward is corrupted by the corruption of its own round, known to everybody. The feedback of an arm is
then a sum of bits with different means, g_s(mu) in round s, and its mean is the average of g_s(mu) over the
rounds s it comes from: a straight line too. The index is paper 003's, Algorithm 1, with that average in place
of g. A sum of independent bits of unequal means is concentrated at least as well as one of bits that all have
the average mean (Hoeffding 1956), so the confidence bound holds as it stands. Where g_s falls, the bit is
turned over first, so that no average is flat.

The paper says that Algorithm 1 works as it is "as long as the current corruption function is known". With the
function in force *now* for feedback of earlier rounds (``variant="published"``) it does not: an arm that was
heard under a clear channel then looks better than one heard under a noisy one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.corruption import Corruption, CorruptionSchedule
from tacit.arms.klucb_index import (
    Exploration,
    ExplorationFunction,
    largest_index,
    level,
    move_line,
    probabilities,
    tabulate_exploration,
)
from tacit.arms.local_policy import LocalPolicy
from tacit.arms.loops import corrupt, kernels_of
from tacit.arms.policies.klucb import State, count, drop, first_untried, new_state
from tacit.arms.policy import Kernels
from tacit.arms.table import Table, segment_at
from tacit.arms.window import forget_with, put_in_window
from tacit.core.constraints import Count, one_of, require
from tacit.core.decider import Estimate, mean_of_bits
from tacit.core.kernels import kernel
from tacit.privacy.mechanisms import Epsilon


class Params(NamedTuple):
    """What the kernels need of S segments of the schedule."""

    starts: NDArray[np.int64]
    """Shape (S,): the first round of each segment."""
    ends: NDArray[np.float64]
    """Shape (S, K, 2): g(0) and g(1) of each arm."""
    lines: NDArray[np.float64]
    """Shape (S, K, 2): the same, of bits that are turned over where g falls."""
    turned: NDArray[np.bool_]
    """Shape (S, K): where they are."""
    current: int
    """1 if the function in force now is used for all feedback, 0 for the average."""
    window: int
    """w in rounds, 0 if nothing is forgotten."""
    exploration: Exploration


@kernel
def _drop(params: Any, state: Any, arm: Any, value: Any) -> None:
    left = state.window.now[0] - state.window.arms.size
    drop(params, state, arm, value)
    state.heard[arm, segment_at(params.starts, left)] -= 1
    _average(params, state, arm)


_forget = forget_with(_drop)


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Forget what left the window; pull every arm once, then the one with the largest index."""
    if params.window > 0:
        _forget(params, state, state.window, t)
    if params.current == 1 and state.piece[0] != segment_at(params.starts, t):
        _take_current(params, state, t)
    arm = first_untried(state, eligible) if state.untried[0] > 0 else -1
    if arm < 0:
        s = min(t, params.window) if params.window > 0 else t
        f = level(params.exploration, float(s))
        arm = largest_index(state.line, state, tape, t, eligible, f)
    return arm


@kernel(inlined=False)
def _take_current(params: Any, state: Any, t: Any) -> None:
    state.piece[0] = segment_at(params.starts, t)
    for a in range(state.counts.size):
        for end in range(2):
            state.line[a, end] = params.lines[state.piece[0], a, end]
        move_line(state.line, state.counts, state.lazy, a)


@kernel
def _average(params: Any, state: Any, arm: Any) -> None:
    """Average the functions that an arm's feedback comes from."""
    N = state.counts[arm]
    if params.current == 1 or N == 0:
        return
    low, high = 0.0, 0.0
    for s in range(params.starts.size):
        share = state.heard[arm, s] / N
        low += share * params.lines[s, arm, 0]
        high += share * params.lines[s, arm, 1]
    if low != state.line[arm, 0] or high != state.line[arm, 1]:
        state.line[arm, 0], state.line[arm, 1] = low, high
        move_line(state.line, state.counts, state.lazy, arm)


@kernel
def learn_from_report(params: Any, state: Any, t: Any, arm: Any, feedback: Any) -> None:
    """Add the feedback to the arm's sum, unless its round has left the window."""
    s = segment_at(params.starts, t)
    value = 1.0 - feedback if params.turned[s, arm] else feedback
    if params.window == 0 or put_in_window(state.window, t, arm, value):
        count(params, state, t, arm, value)
        state.heard[arm, s] += 1
        _average(params, state, arm)


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Corrupt the reward as its round asks and take the feedback in."""
    ends = params.ends[segment_at(params.starts, t)]
    learn_from_report(params, state, t, arm, corrupt(ends, tape, t, arm, reward))


@dataclass(frozen=True, kw_only=True)
class TimedKLUCBCF(LocalPolicy[State]):
    """kl-UCB on feedback whose corruption changes in time.

    Guarantee: pure local differential privacy for each single reward, with the largest epsilon of
    the schedule; a reward of a round with a smaller one has that smaller one.

    Parameters
    ----------
    epsilon : float, optional
        Privacy of one reward in every round; 1 if no `schedule` is given.
    schedule : CorruptionSchedule, optional
        Which corruption is in force from which round on, instead of `epsilon`.
    window : int, optional
        How many rounds are remembered; all unless given.
    variant : "corrected" or "published", default "corrected"
        Which corruption function the index uses: the average of those in force when the feedback was
        given, or the one in force now, as printed.

    Examples
    --------
    >>> from tacit.arms import CorruptionSchedule, TimedKLUCBCF
    >>> schedule = CorruptionSchedule.of_epsilons((0.5, 2.0), starts=(0, 1000))
    >>> round(TimedKLUCBCF(n_arms=2, schedule=schedule).guarantee(horizon=5000).epsilon, 9)
    2.0

    References
    ----------
    Gajane. Local Differential Privacy for Sequential Decision Making in a Changing Environment. 2023.
    """

    name: ClassVar[str] = "timed-klucb-cf"
    summary: ClassVar[str] = "kl-UCB on locally private feedback, privacy that changes in time"
    paper: ClassVar[str] = "003 Alg. 1, corruption that changes in time"
    protects: ClassVar[str] = "each reward, locally"
    kernels: ClassVar[Kernels] = kernels_of(
        select, learn, learn_from_report=learn_from_report, probabilities=probabilities
    )

    epsilon: Epsilon | None = None
    schedule: CorruptionSchedule | None = None
    window: Count | None = None
    exploration: ExplorationFunction = "paper"
    variant: Annotated[str, one_of("corrected", "published")] = "corrected"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon is None and self.schedule is None:
            object.__setattr__(self, "epsilon", 1.0)
        one = self.epsilon is None or self.schedule is None
        require(self, "epsilon or schedule", "given, not both", one, self.epsilon)
        _ = self.params

    @property
    def schedule_in_force(self) -> CorruptionSchedule:
        """The schedule, or a corruption that never changes."""
        if self.schedule is not None:
            return self.schedule
        return CorruptionSchedule(corruptions=(Corruption.optimal(self.epsilon or 1.0),))

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        schedule = self.schedule_in_force
        ends = schedule.response_probabilities(self.n_arms)
        current = self.variant == "published"
        turned = (ends[:, :, 0] > ends[:, :, 1]) & (not current)
        return Params(
            starts=np.array(schedule.starts),
            ends=ends,
            lines=np.where(turned[:, :, None], 1.0 - ends, ends),
            turned=turned,
            current=int(current),
            window=self.window or 0,
            exploration=tabulate_exploration(self, self.exploration),
        )

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        segments, lines = self.params.starts.size, self.params.lines
        return new_state(self.n_arms, self.params.window)._replace(
            heard=np.zeros((self.n_arms, segments), np.int64),
            line=lines[0].copy(),
            piece=np.zeros(1, np.int64),
        )

    def released_means(self, state: State) -> list[Estimate | None] | None:
        """Return what the bits say of each arm's mean reward; None with a window.

        An interval for all numbers of bits at once fails sooner or later for bits that come and go.
        """
        if self.window is not None or state.heard is None:
            return None
        shares = state.heard / np.maximum(state.counts, 1)[:, None]
        lines = np.einsum("as,sae->ae", shares, self.params.lines)
        return [
            mean_of_bits(float(n), float(total), float(low), float(high))
            for n, total, (low, high) in zip(state.counts, state.sums, lines, strict=True)
        ]
