"""The table of the arms setting: what every arm would pay in every round.

Entry (t, a) is a pure function of a key and the position, computed when a kernel looks at it, or a
cell of a recorded array; a few entries may be overridden, which makes a neighbouring table.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.generator import inverse_normal, philox, to_open_unit, to_unit
from tacit.core.kernels import address_of, evaluate, kernel

BERNOULLI, NORMAL, BETA, RECORDED, GAUSSIAN = 0, 1, 2, 3, 4


class Table(NamedTuple):
    """Rewards in [0, 1] of K arms, or of any size; S pieces of the means' schedule; E overridden entries."""

    kind: int
    """0 Bernoulli, 1 truncated normal, 2 beta, 3 recorded, 4 normal and unbounded."""
    key0: np.uint64
    key1: np.uint64
    starts: NDArray[np.int64]
    """Shape (S,): the first round of each piece."""
    means: NDArray[np.float64]
    """Shape (S, K): the means of each piece, or at its start where `linear`."""
    linear: int
    """1 if the means go linearly from one piece's to the next one's, 0 if they jump."""
    best: NDArray[np.float64]
    """Shape (S,): the largest mean of each piece."""
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


@kernel
def piece_of(starts: Any, t: Any) -> Any:
    """Return the piece that round t lies in."""
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
def _share(starts: Any, piece: Any, t: Any) -> Any:
    return (t - starts[piece]) / (starts[piece + 1] - starts[piece])


@kernel
def mean_of(table: Any, t: Any, a: Any) -> Any:
    """Return the nominal mean of arm a in round t."""
    if table.kind == RECORDED:
        return table.recorded[t, a]
    piece = piece_of(table.starts, t)
    mean = table.means[piece, a]
    if table.linear == 1 and piece + 1 < table.starts.size:
        share = _share(table.starts, piece, t)
        mean += share * (table.means[piece + 1, a] - mean)
    return mean


@kernel
def best_of(table: Any, t: Any) -> Any:
    """Return what the comparator gets in round t: the best mean, or the champion's record."""
    if table.kind == RECORDED:
        return table.recorded[t, table.champion]
    piece = piece_of(table.starts, t)
    if table.linear == 0 or piece + 1 == table.starts.size:
        return table.best[piece]
    share = _share(table.starts, piece, t)
    best = 0.0
    for a in range(table.means.shape[1]):
        mean = table.means[piece, a]
        best = max(best, mean + share * (table.means[piece + 1, a] - mean))
    return best


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


_DRAWN = {BETA: _beta, GAUSSIAN: _gaussian}


def drawing_of(kind: int) -> Any:
    """Return where the code that draws such a reward begins, if kernels do not contain it."""
    if kind not in _DRAWN:
        return 0
    return address_of(_DRAWN[kind], np.uint64(0), np.uint64(0), 0, 0, 0.5, 1.0)


@kernel
def words_of(table: Any, t: Any, a: Any) -> Any:
    """Return the words of arm a in the rounds t to t + 3, for t a multiple of 4."""
    block = np.uint64(t) >> np.uint64(2)
    return philox(table.key0, table.key1, block, np.uint64(a), np.uint64(0), np.uint64(0))


@kernel
def _bit(mean: Any, u: Any) -> Any:
    return 1.0 if u < mean else 0.0


@kernel
def _truncated(mean: Any, spread: Any, x: Any) -> Any:
    return min(1.0, max(0.0, mean + spread * x))


@kernel
def four_rewards(table: Any, piece: Any, t: Any, a: Any) -> Any:
    """Return the rewards of arm a in rounds t to t + 3 of a piece, for t a multiple of 4.

    For Bernoulli and truncated normal rewards whose means do not go linearly and that nobody overrides.
    Their random words are made together (``python benchmarks/dp_imed.py --draws``).
    """
    w0, w1, w2, w3 = words_of(table, t, a)
    u0, u1, u2, u3 = to_unit(w0), to_unit(w1), to_unit(w2), to_unit(w3)
    mean, spread = table.means[piece, a], table.spread
    if table.kind == BERNOULLI:
        return _bit(mean, u0), _bit(mean, u1), _bit(mean, u2), _bit(mean, u3)
    zero, span = table.cdf_zero[piece, a], table.cdf_span[piece, a]
    x0, x1 = inverse_normal(zero + u0 * span), inverse_normal(zero + u1 * span)
    x2, x3 = inverse_normal(zero + u2 * span), inverse_normal(zero + u3 * span)
    return (
        _truncated(mean, spread, x0),
        _truncated(mean, spread, x1),
        _truncated(mean, spread, x2),
        _truncated(mean, spread, x3),
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
    piece = piece_of(table.starts, t)
    mean = table.means[piece, a]
    zero, span = table.cdf_zero[piece, a], table.cdf_span[piece, a]
    if table.linear == 1 and piece + 1 < table.starts.size:
        share = _share(table.starts, piece, t)
        mean += share * (table.means[piece + 1, a] - mean)
        if table.kind == NORMAL:
            zero = 0.5 * math.erfc(mean / table.spread / math.sqrt(2.0))
            span = 1.0 - zero - 0.5 * math.erfc((1.0 - mean) / table.spread / math.sqrt(2.0))
    if table.kind == BERNOULLI:
        return _bit(mean, to_unit(word))
    if table.kind == NORMAL:
        return _truncated(mean, table.spread, inverse_normal(zero + to_unit(word) * span))
    place = (table.key0, table.key1, np.int64(t), np.int64(a))
    return evaluate(table.drawing, (*place, mean, table.spread * span))
