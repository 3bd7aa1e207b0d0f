"""The trace of the learning dynamics: regret (eq. 1), popularity and what the agents sent."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.kernels import kernel

MEASURES = ("regret", "best_popularity", "adopting", "messages", "bits")


class Trace(NamedTuple):
    """What is kept of a run: C checkpoints, and all R = T rounds if asked for."""

    checkpoints: NDArray[np.int64]
    """Shape (C,): numbers of rounds played, increasing."""
    measures: NDArray[np.float64]
    """Shape (C, 5): regret (eq. 1, where qualities change against the best of each round), popularity
    of the option that is best now, share of agents with an adoption, messages and bits sent by an agent
    in a round on average so far."""
    totals: NDArray[np.float64]
    """Shape (4,): rewards of the population, messages, bits, and rewards of the best options so far."""
    cursor: NDArray[np.int64]
    """Shape (1,): the next checkpoint."""
    popularity: NDArray[np.float64]
    """Shape (C, M): the popularity Q of every option."""
    decisions: NDArray[np.int64]
    """Shape (R, M): how many agents adopt each option after every round."""


@kernel
def record_popularity(qualities: Any, now: Any, trace: Any, counts: Any) -> None:
    """Add the round's expected reward under the popularity before it (eq. 1), and the best there is.

    `now` is the row of `qualities` that holds in the round.
    """
    M = qualities.shape[1]
    adopting = 0
    for j in range(M):
        adopting += counts[j]
    best = 0.0
    for j in range(M):
        popularity = counts[j] / adopting if adopting > 0 else 1.0 / M
        trace.totals[0] += popularity * qualities[now, j]
        best = max(best, qualities[now, j])
    trace.totals[3] += best


@kernel
def record(
    qualities: Any, now: Any, trace: Any, t: Any, counts: Any, messages: Any, bits: Any
) -> None:
    """Write the end of round t to the trace: adopters (the last count is nobody's) and traffic."""
    M = qualities.shape[1]
    N = 0
    for j in range(M + 1):
        N += counts[j]
    trace.totals[1] += messages / N
    trace.totals[2] += messages / N * bits
    if trace.decisions.shape[0] > 0:
        for j in range(M):
            trace.decisions[t, j] = counts[j]
    cursor = trace.cursor[0]
    if cursor < trace.checkpoints.size and trace.checkpoints[cursor] == t + 1:
        adopting = N - counts[M]
        best = 0
        for j in range(M):
            best = j if qualities[now, j] > qualities[now, best] else best
            trace.popularity[cursor, j] = counts[j] / adopting if adopting > 0 else 1.0 / M
        trace.measures[cursor, 0] = (trace.totals[3] - trace.totals[0]) / (t + 1)
        trace.measures[cursor, 1] = trace.popularity[cursor, best]
        trace.measures[cursor, 2] = adopting / N
        trace.measures[cursor, 3] = trace.totals[1] / (t + 1)
        trace.measures[cursor, 4] = trace.totals[2] / (t + 1)
        trace.cursor[0] += 1
