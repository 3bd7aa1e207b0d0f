"""The trace of the users setting: what is kept of a run, at the rounds that a result needs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.table import expected, reward
from tacit.core.kernels import kernel

MEASURES = (
    "regret",
    "reward",
    "random_reward",
    "random_regret",
    "left_out",
    "parameter_error",
)
_REGRET, _REWARD, _RANDOM_REWARD, _RANDOM_REGRET, LEFT_OUT, _ERROR = range(6)


class Trace(NamedTuple):
    """What is kept of a run: C checkpoints, and R = T decisions if asked for."""

    checkpoints: NDArray[np.int64]
    """Shape (C,): numbers of rounds played, increasing."""
    measures: NDArray[np.float64]
    """Shape (C, 6): the columns of ``MEASURES``."""
    totals: NDArray[np.float64]
    """Shape (5,): the cumulative ones, now."""
    cursor: NDArray[np.int64]
    """Shape (1,): the next checkpoint."""
    decisions: NDArray[np.int32]
    """Shape (R,): the slot chosen in every round."""
    rewards: NDArray[np.float64]
    """Shape (R,): the true reward of every round."""


def new_trace(horizon: int, checkpoints: NDArray[np.int64], *, record: bool = False) -> Trace:
    """Return an empty trace."""
    kept = horizon if record else 0
    return Trace(
        np.ascontiguousarray(checkpoints, np.int64),
        np.zeros((len(checkpoints), len(MEASURES))),
        np.zeros(len(MEASURES) - 1),
        np.zeros(1, np.int64),
        np.zeros(kept, np.int32),
        np.zeros(kept),
    )


@kernel(inlined=False)
def observe(table: Any, trace: Any, t: Any, user: Any, shown: Any, slot: Any) -> Any:
    """Choose a slot in round t: add to the totals and return the reward."""
    value = reward(table, t, user, slot, shown[slot])
    best, total, chosen = -np.inf, 0.0, 0.0
    for j in range(shown.size):
        mean = expected(table, t, user, j, shown[j])
        best = max(best, mean)
        total += mean
        if j == slot:
            chosen = mean
    average = total / shown.size
    trace.totals[_REGRET] += best - chosen
    trace.totals[_REWARD] += value
    trace.totals[_RANDOM_REWARD] += average
    trace.totals[_RANDOM_REGRET] += best - average
    if t < trace.decisions.size:
        trace.decisions[t] = slot
        trace.rewards[t] = value
    return value


@kernel
def due(trace: Any, t: Any) -> Any:
    """Return whether round t completes a checkpoint."""
    cursor = trace.cursor[0]
    return cursor < trace.checkpoints.size and trace.checkpoints[cursor] == t + 1


@kernel
def record(trace: Any, error: Any) -> None:
    """Write the checkpoint that is due."""
    cursor = trace.cursor[0]
    for i in range(trace.totals.size):
        trace.measures[cursor, i] = trace.totals[i]
    trace.measures[cursor, _ERROR] = error
    trace.cursor[0] = cursor + 1
