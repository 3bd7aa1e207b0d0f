"""The table of the arms setting: what every arm would pay in every round.

Entry (t, a) is a pure function of a key and the position, computed when a kernel looks at it, or a
cell of a recorded array; a few entries may be overridden, which makes a neighbouring table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.generator import inverse_normal, philox, to_open_unit, to_unit
from tacit.core.kernels import address_of, evaluate, kernel
from tacit.graphs import Graph

BERNOULLI, NORMAL, BETA, RECORDED, GAUSSIAN = 0, 1, 2, 3, 4


class Table(NamedTuple):
    """Rewards of K arms, in [0, 1] or of any size; S segments of the means' schedule; E overridden ones."""

    kind: int
    """0 Bernoulli, 1 truncated normal, 2 beta, 3 recorded, 4 normal and unbounded."""
    key0: np.uint64
    key1: np.uint64
    starts: NDArray[np.int64]
    """Shape (S,): the first round of each segment."""
    means: NDArray[np.float64]
    """Shape (S, K): the means of each segment, or at its start where `linear`."""
    linear: int
    """1 if the means go linearly from one segment's to the next one's, 0 if they jump."""
    best: NDArray[np.float64]
    """Shape (S,): the largest mean of each segment."""
    spread: float
    """Standard deviation of a normal, concentration of the beta."""
    cdf_zero: NDArray[np.float64]
    """Shape (S, K): probability that the untruncated normal is below 0."""
    cdf_span: NDArray[np.float64]
    """Shape (S, K): probability that the untruncated normal is in [0, 1]; where rewards are drawn by
    `drawing`, what the spread is multiplied by."""
    recorded: NDArray[np.float64]
    """Shape (T, K), or (0, K) where nothing is recorded."""
    champion: int
    """The best fixed arm of a recorded table, which regret is measured against."""
    all_arms: NDArray[np.int64]
    """Shape (K,): the numbers of the arms."""
    indptr: NDArray[np.int64]
    """Shape (G (K + 1),): graph after graph, where each arm's list of observed arms begins."""
    indices: NDArray[np.int64]
    """The arms observed when an arm is pulled, itself among them."""
    edit_rounds: NDArray[np.int64]
    edit_arms: NDArray[np.int64]
    edit_values: NDArray[np.float64]
    """Shape (E,) each: the overridden entries."""
    graph_starts: NDArray[np.int64] = np.zeros(1, np.int64)
    """Shape (G,): the first round of each feedback graph."""
    drawing: Any = 0
    """Where the code that draws a beta or an unbounded reward begins: only who has them compiles it."""


class FeedbackRows(NamedTuple):
    """Who is observed with whom, graph after graph, as tables and policies keep it."""

    graph_starts: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]


def closed_rows(
    n_arms: int, graphs: Sequence[Graph] = (), changes: Sequence[int] = ()
) -> FeedbackRows:
    """Return the rows of `graphs`, every arm added to its own; without graphs, of no edges.

    Examples
    --------
    >>> from tacit.graphs import path
    >>> closed_rows(3, [path(3)]).indices
    array([0, 1, 0, 1, 2, 1, 2])
    """
    if not graphs:
        return FeedbackRows(np.zeros(1, np.int64), np.arange(n_arms + 1), np.arange(n_arms))
    indptr: list[NDArray[np.int64]] = []
    indices: list[NDArray[np.int64]] = []
    offset = 0
    loops = np.arange(n_arms)
    for graph in graphs:
        rows = np.concatenate((graph.rows, loops))
        columns = np.concatenate((graph.indices.astype(np.int64), loops))
        indices.append(columns[np.lexsort((columns, rows))])
        indptr.append(offset + graph.indptr + np.arange(n_arms + 1))
        offset += rows.size
    starts = np.array([0, *changes], np.int64)
    return FeedbackRows(starts, np.concatenate(indptr), np.concatenate(indices))


def undirected(n_arms: int, rows: FeedbackRows) -> bool:
    """Return whether every arm is shown by all arms that it shows.

    Examples
    --------
    >>> from tacit.graphs import path
    >>> undirected(3, closed_rows(3, [path(3)]))
    True
    """
    for g in range(rows.graph_starts.size):
        ends = rows.indptr[g * (n_arms + 1) : (g + 1) * (n_arms + 1)]
        shown = rows.indices[ends[0] : ends[-1]]
        showing = np.repeat(np.arange(n_arms), np.diff(ends))
        there, back = np.sort(showing * n_arms + shown), np.sort(shown * n_arms + showing)
        if not np.array_equal(there, back):
            return False
    return True


@kernel
def segment_at(starts: Any, t: Any) -> Any:
    """Return the segment that round t lies in."""
    low, high = 0, starts.size - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if starts[middle] <= t:
            low = middle
        else:
            high = middle - 1
    return low


@kernel
def row_of(indptr: Any, n_arms: Any, graph: Any, a: Any) -> Any:
    """Return where the arms observed with arm a begin and end in the indices of a graph."""
    at = graph * (n_arms + 1) + a
    return indptr[at], indptr[at + 1]


@kernel
def word_at(key0: Any, key1: Any, t: Any, a: Any, k: Any) -> Any:
    """Return word k of entry (t, a); four consecutive rounds of an arm share a block."""
    t64 = np.uint64(t)
    w0, w1, w2, w3 = philox(
        key0, key1, t64 >> np.uint64(2), np.uint64(a), np.uint64(k), np.uint64(0)
    )
    turn = t64 & np.uint64(3)
    if turn < np.uint64(2):
        return w0 if turn == np.uint64(0) else w1
    return w2 if turn == np.uint64(2) else w3


@kernel
def _gamma(key0: Any, key1: Any, t: Any, a: Any, k: Any, shape: Any) -> Any:
    # Marsaglia and Tsang (2000); a shape below 1 is boosted. Words k, k + 2, k + 4, ... are used.
    boost = 1.0
    if shape < 1.0:
        boost = to_unit(word_at(key0, key1, t, a, k)) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        k += 4
        x = inverse_normal(to_open_unit(word_at(key0, key1, t, a, k)))
        v = (1.0 + c * x) ** 3
        if v > 0.0:
            u = to_open_unit(word_at(key0, key1, t, a, k + 2))
            if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                return boost * d * v


@kernel
def _beta(key0: Any, key1: Any, t: Any, a: Any, mean: Any, concentration: Any) -> Any:
    # Even words feed one gamma variate, odd words the other.
    x = _gamma(key0, key1, t, a, 0, mean * concentration)
    y = _gamma(key0, key1, t, a, 1, (1.0 - mean) * concentration)
    return x / (x + y)


@kernel
def _gaussian(key0: Any, key1: Any, t: Any, a: Any, mean: Any, deviation: Any) -> Any:
    return mean + deviation * inverse_normal(to_open_unit(word_at(key0, key1, t, a, 0)))


def address_of_drawing(kind: int) -> Any:
    """Return where the code that draws such a reward begins, if kernels do not contain it."""
    drawing = {BETA: _beta, GAUSSIAN: _gaussian}.get(kind)
    return 0 if drawing is None else address_of(drawing, np.uint64(0), np.uint64(0), 0, 0, 0.5, 1.0)


@kernel
def four_rewards(table: Any, segment: Any, t: Any, a: Any) -> Any:
    """Return the rewards of arm a in rounds t to t + 3 of a segment, for t a multiple of 4.

    For Bernoulli and truncated normal rewards whose means do not go linearly and that nobody overrides.
    Their random words are made together (``python benchmarks/dp_imed.py --draws``).
    """
    block = np.uint64(t) >> np.uint64(2)
    words = philox(table.key0, table.key1, block, np.uint64(a), np.uint64(0), np.uint64(0))
    u0, u1, u2, u3 = to_unit(words[0]), to_unit(words[1]), to_unit(words[2]), to_unit(words[3])
    mean, spread = table.means[segment, a], table.spread
    if table.kind == BERNOULLI:
        return (
            1.0 if u0 < mean else 0.0,
            1.0 if u1 < mean else 0.0,
            1.0 if u2 < mean else 0.0,
            1.0 if u3 < mean else 0.0,
        )
    zero, span = table.cdf_zero[segment, a], table.cdf_span[segment, a]
    x0, x1 = inverse_normal(zero + u0 * span), inverse_normal(zero + u1 * span)
    x2, x3 = inverse_normal(zero + u2 * span), inverse_normal(zero + u3 * span)
    return (
        min(1.0, max(0.0, mean + spread * x0)),
        min(1.0, max(0.0, mean + spread * x1)),
        min(1.0, max(0.0, mean + spread * x2)),
        min(1.0, max(0.0, mean + spread * x3)),
    )


@kernel
def reward(table: Any, t: Any, a: Any) -> Any:
    """Return the reward of arm a in round t."""
    word = np.uint64(0)
    if table.kind <= NORMAL:
        word = word_at(table.key0, table.key1, t, a, 0)
    for e in range(table.edit_rounds.size):
        if table.edit_rounds[e] == t and table.edit_arms[e] == a:
            return table.edit_values[e]
    if table.kind == RECORDED:
        return table.recorded[t, a]
    segment = segment_at(table.starts, t) if table.starts.size > 1 else 0
    mean = table.means[segment, a]
    zero, span = table.cdf_zero[segment, a], table.cdf_span[segment, a]
    if table.linear == 1 and segment + 1 < table.starts.size:
        start, end = table.starts[segment], table.starts[segment + 1]
        mean += (t - start) / (end - start) * (table.means[segment + 1, a] - mean)
        if table.kind == NORMAL:
            zero = 0.5 * math.erfc(mean / table.spread / math.sqrt(2.0))
            span = 1.0 - zero - 0.5 * math.erfc((1.0 - mean) / table.spread / math.sqrt(2.0))
    if table.kind == BERNOULLI:
        return 1.0 if to_unit(word) < mean else 0.0
    if table.kind == NORMAL:
        x = inverse_normal(zero + to_unit(word) * span)
        return min(1.0, max(0.0, mean + table.spread * x))
    place = (table.key0, table.key1, np.int64(t), np.int64(a))
    return evaluate(table.drawing, (*place, mean, table.spread * span))
