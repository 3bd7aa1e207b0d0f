"""Tokens one by one: which of them travel, dealt at random, walked hop by hop, or drawn at their endpoints.

A token's hops are draws under the token's own name, (round, origin and number, hop): whoever holds
it can draw the next one, in the simulator and on a device of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.generator import to_unit
from tacit.core.kernels import kernel
from tacit.core.samplers import binomial, block
from tacit.core.tapes import ARRIVE, DEAL, LOSE, SPREAD, WALK
from tacit.graphs.walks import metropolis_step, proposal

_U1 = np.uint64(1)


@kernel(inlined=False)
def arrivals(params: Any, source: Any, t: Any, d: Any, N: Any, a: Any, flying: Any) -> Any:
    """Return how many of `flying` tokens, sent d rounds ago, travel now and how many of them last.

    Delays are uniform on 0, ..., `delay`, so a token that has waited d rounds goes with
    probability 1 / (delay + 1 - d).
    """
    going = binomial(source, ARRIVE, t, d * N + a, flying, 1.0 / (params.delay + 1 - d))
    return going, binomial(source, LOSE, t, d * N + a, going, 1.0 - params.loss)


@kernel
def level_of(params: Any, who: Any) -> Any:
    """Return which of the levels of epsilon an agent has; a division saved where there is one."""
    return who % params.weight.size if params.weight.size > 1 else 0


@kernel
def deliver(params: Any, deliveries: Any, b: Any, sent: Any, c: Any, level: Any) -> None:
    """Give agent b c tokens of a perturbed vector of a level, or put them by if it is not here."""
    row = b - deliveries.first
    if row < 0 or row >= deliveries.got.size:
        k = deliveries.away[0]
        deliveries.away_to[k] = b
        deliveries.away_sent[k] = sent
        deliveries.away_count[k] = c
        deliveries.away_level[k] = level
        deliveries.away[0] = k + 1
        return
    weight = c * params.weight[level]
    undone = weight * (params.slope[level] / params.slope[0])
    deliveries.got[row] += weight
    deliveries.lifted[row] += weight * (params.offset[level] - params.offset[0])
    received = deliveries.received[row]
    for j in range(received.size):
        received[j] += undone if (sent >> np.uint64(j)) & _U1 != 0 else 0.0


@kernel
def deliver_all(params: Any, deliveries: Any, to: Any, sent: Any, count: Any, level: Any) -> None:
    """Give agents here what came from elsewhere."""
    for k in range(to.size):
        deliver(params, deliveries, to[k], sent[k], count[k], level[k])


@kernel(inlined=False)
def deal(
    params: Any, source: Any, t: Any, d: Any, N: Any, a: Any, n: Any, sent: Any, deliveries: Any
) -> None:
    """Give each of n tokens of agent a to a uniformly random agent."""
    w0, w1, w2, w3 = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    for k in range(n):
        if k & 3 == 0:
            w0, w1, w2, w3 = block(source, DEAL, t, d * N + a, k >> 2)
        b = int(to_unit(w0) * N)
        w0, w1, w2, w3 = w1, w2, w3, w0
        deliver(params, deliveries, b, sent, 1, level_of(params, a))


@kernel(inlined=False)
def spread(
    params: Any,
    source: Any,
    t: Any,
    d: Any,
    a: Any,
    who: Any,
    n: Any,
    sent: Any,
    state: Any,
    deliveries: Any,
) -> None:
    """Send n tokens of the agent `who` in row a to the ends of their walks, whose hops are not made.

    Many tokens: one binomial for each possible end, given none of the earlier ones. Few: one search
    for each token.
    """
    starts, ends, chances = state.starts, state.ends, state.chances
    first, last = starts[a], starts[a + 1]
    level = level_of(params, who)
    place = d * state.entries[1] + state.entries[0]
    if 4 * n < last - first:
        for k in range(n):
            u = to_unit(block(source, SPREAD, t, place + first, k)[0]) * chances[last - 1]
            e = min(first + np.searchsorted(chances[first:last], u, side="right"), last - 1)
            deliver(params, deliveries, ends[e], sent, 1, level)
        return
    below = 0.0
    for e in range(first, last):
        share = (chances[e] - below) / (chances[last - 1] - below) if e < last - 1 else 1.0
        below = chances[e]
        c = binomial(source, SPREAD, t, place + e, n, share)
        if c > 0:
            deliver(params, deliveries, ends[e], sent, c, level)
            n -= c
        if n == 0:
            return


@kernel
def hop_words(source: Any, t: Any, d: Any, token: Any, made: Any) -> Any:
    """Return the words of four hops of a token, `made` among them, d rounds late."""
    return block(source, WALK, t, token, (d << 14) | (made >> 2))


@kernel
def hop(
    source: Any, t: Any, d: Any, token: Any, made: Any, indptr: Any, indices: Any, a: Any
) -> Any:
    """Return where a token goes from agent a by eq. (2), after `made` hops, d rounds late."""
    words = hop_words(source, t, d, token, made)
    word = words[0]
    if made & 3 == 1:
        word = words[1]
    elif made & 3 == 2:
        word = words[2]
    elif made & 3 == 3:
        word = words[3]
    return metropolis_step(indptr, indices, a, to_unit(word))


class Rows(NamedTuple):
    """The network as `slot` reads it: degrees as real numbers, which saves a fifth of its time."""

    indptr: NDArray[np.int64]
    neighbours: NDArray[np.int32]
    degrees: NDArray[np.float64]


class Walkers(NamedTuple):
    """The n tokens that walk in a round, by a number that each keeps; 56 bytes a token."""

    queue: NDArray[np.uint32]
    """Shape (n,), as all but `ahead`: who is under way, in the order of queues."""
    moved: NDArray[np.uint32]
    """Who made a hop in this slot."""
    place: NDArray[np.uint32]
    """Where a token is."""
    made: NDArray[np.uint32]
    """Its hops so far."""
    ahead: NDArray[np.uint64]
    """Shape (3, n): words of its next hops, since a block has four."""
    row: NDArray[np.uint32]
    origin: NDArray[np.uint32]
    """Which message it carries: of which of the rounds under way, and of whom."""
    name: NDArray[np.int64]


@kernel(allocates=True)
def walk(params: Any, source: Any, t: Any, messages: Any, table: Any, deliveries: Any) -> Any:
    """Walk every launched token by eq. (2); return messages sent and time slots taken."""
    launched = deliveries.launched
    W, N = launched.shape
    alive = 0
    for row in range(W):
        for a in range(N):
            alive += launched[row, a]
    walkers = Walkers(
        np.arange(alive).astype(np.uint32),
        np.empty(alive, np.uint32),
        np.empty(alive, np.uint32),
        np.zeros(alive, np.uint32),
        np.empty((3, alive), np.uint64),
        np.empty(alive, np.uint32),
        np.empty(alive, np.uint32),
        np.empty(alive, np.int64),
    )
    k = 0
    for row in range(W):
        for a in range(N):
            for i in range(launched[row, a]):
                walkers.place[k], walkers.row[k], walkers.origin[k] = a, row, a
                walkers.name[k] = a * params.tokens + i
                k += 1
    degrees, used = np.empty(N), np.empty(N, np.int64)
    for a in range(N):
        degrees[a] = table.indptr[a + 1] - table.indptr[a]
    neighbours = np.zeros(table.indices.size + 1, np.int32)  # who has none finds agent 0, and stays
    neighbours[:-1] = table.indices
    network = Rows(table.indptr, neighbours, degrees)
    sent, slots = 0, 0
    while alive > 0:
        used[:] = 0
        hops, alive = slot(params, source, t, messages, network, deliveries, walkers, used, alive)
        sent += hops
        slots += 1
    return sent, slots


@kernel(inlined=False)
def slot(
    params: Any,
    source: Any,
    t: Any,
    messages: Any,
    network: Any,
    deliveries: Any,
    walkers: Any,
    used: Any,
    alive: Any,
) -> Any:
    """Let every agent forward the first `rule.tokens` tokens of its queue; staying costs no message.

    Return messages sent and tokens still under way.
    """
    queue, moved, place, made, ahead, rows, origins, names = walkers
    indptr, neighbours, degrees = network
    W = messages.shape[0]
    sent, waiting, moving = 0, 0, 0
    for k in range(alive):
        token = queue[k]
        here = place[token]
        if used[here] >= params.tokens:
            queue[waiting] = token
            waiting += 1
            continue
        used[here] += 1
        n = made[token]
        if n & 3 == 0:
            late = (t - rows[token]) % W if W > 1 else 0
            word, w1, w2, w3 = hop_words(source, t, late, names[token], n)
            ahead[0, token], ahead[1, token], ahead[2, token] = w1, w2, w3
        else:
            word = ahead[(n & 3) - 1, token]
        degree = degrees[here]
        there, rest = proposal(neighbours, indptr[here], degree, to_unit(word))
        # Written so that it is chosen without a branch, which would be a third slower.
        if not rest * degrees[there] < degree:
            there = here
        sent += there != here
        if n + 1 == params.walk:
            a = origins[token]
            deliver(params, deliveries, there, messages[rows[token], a], 1, level_of(params, a))
        else:
            place[token], made[token] = there, n + 1
            moved[moving] = token
            moving += 1
    for k in range(moving):
        queue[waiting + k] = moved[k]
    return sent, waiting + moving
