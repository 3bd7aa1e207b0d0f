"""The trace of the arms setting: what is kept of a run, at the rounds that a result needs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.table import RECORDED, segment_at
from tacit.core.kernels import kernel

MEASURES = ("regret", "reward")


class Trace(NamedTuple):
    """What is kept of a run: C checkpoints, and R = T decisions if asked for."""

    checkpoints: NDArray[np.int64]
    """Shape (C,): numbers of rounds played, increasing."""
    measures: NDArray[np.float64]
    """Shape (C, 2): regret and reward so far."""
    totals: NDArray[np.float64]
    """Shape (2,): the same, now."""
    cursor: NDArray[np.int64]
    """Shape (1,): the next checkpoint."""
    pulls: NDArray[np.int64]
    """Shape (K,): how often each arm was pulled."""
    decisions: NDArray[np.int32]
    """Shape (R,): the arm of every round."""
    rewards: NDArray[np.float64]
    """Shape (R,): the true reward of every round."""


def new_trace(
    n_arms: int, horizon: int, checkpoints: NDArray[np.int64], *, record: bool = False
) -> Trace:
    """Return an empty trace."""
    kept = horizon if record else 0
    return Trace(
        np.ascontiguousarray(checkpoints, np.int64),
        np.zeros((len(checkpoints), len(MEASURES))),
        np.zeros(2),
        np.zeros(1, np.int64),
        np.zeros(n_arms, np.int64),
        np.zeros(kept, np.int32),
        np.zeros(kept),
    )


@kernel
def record(table: Any, trace: Any, t: Any, a: Any, value: Any) -> None:
    """Write to the trace that arm a was pulled in round t and paid `value`.

    Regret is against the best mean of the round, or against the champion's record.
    """
    if table.kind == RECORDED:
        best, mean = table.recorded[t, table.champion], table.recorded[t, a]
    else:
        segment = segment_at(table.starts, t) if table.starts.size > 1 else 0
        best, mean = table.best[segment], table.means[segment, a]
        if table.linear == 1 and segment + 1 < table.starts.size:
            start, end = table.starts[segment], table.starts[segment + 1]
            share, best = (t - start) / (end - start), 0.0
            for b in range(table.means.shape[1]):
                low = table.means[segment, b]
                level = low + share * (table.means[segment + 1, b] - low)
                best = max(best, level)
                mean = level if b == a else mean
    trace.totals[0] += best - mean
    trace.totals[1] += value
    trace.pulls[a] += 1
    if trace.decisions.size > 0:
        trace.decisions[t] = a
        trace.rewards[t] = value
    cursor = trace.cursor[0]
    if cursor < trace.checkpoints.size and trace.checkpoints[cursor] == t + 1:
        trace.measures[cursor, 0] = trace.totals[0]
        trace.measures[cursor, 1] = trace.totals[1]
        trace.cursor[0] += 1
