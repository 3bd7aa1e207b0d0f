"""Perturb, disseminate, sample, adopt: the algorithm of Tao et al. 2022, Section 4.

`run` is its box, a round of all agents. Stages 1, 3 and 4 are the kernels below it, one agent each, and
a peer on a device of its own runs the very same ones; stage 2 is in :mod:`tacit.dynamics.dissemination`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.generator import to_unit
from tacit.core.kernels import kernel
from tacit.core.samplers import block, source_of
from tacit.core.segments import segment_at
from tacit.core.tapes import EXPLORE, NOISE, WAKE
from tacit.dynamics.dissemination import disseminate, estimate, message_bits, new_deliveries
from tacit.dynamics.dissemination.crowd import perturb_counts, remember
from tacit.dynamics.dissemination.tokens import level_of
from tacit.dynamics.table import replace_adoptions, signal
from tacit.dynamics.trace import record, record_popularity
from tacit.privacy.mechanisms.randomized_response import release_bit
from tacit.privacy.mechanisms.subset_selection import release_subset

_SPOKEN = np.uint64(1 << 63)
_U1 = np.uint64(1)


class Params(NamedTuple):
    """What the kernels need."""

    engine: int
    each: bool
    """Whether every agent's perturbed vector is kept, or only the population's counts."""
    silent: bool
    memoised: bool
    p: NDArray[np.float64]
    """Probability that the bit of the adopted option is sent as 1. Shape (L,), as all up to `weight`:
    agents have L levels of epsilon, agent a the one at a modulo L."""
    q: NDArray[np.float64]
    """Probability that another bit is sent as 1."""
    subset: NDArray[np.int64]
    """How many of M + 1 symbols a subset holds; 0 flips bits independently."""
    pair_one: NDArray[np.float64]
    pair_none: NDArray[np.float64]
    """Probability that two bits are 1 together, one of them the adopted option's, or neither."""
    shift: NDArray[np.float64]
    common: NDArray[np.float64]
    """What a fixed size of subsets does to the covariance of bits."""
    slope: NDArray[np.float64]
    offset: NDArray[np.float64]
    """The estimate (7) of one level's messages is slope * share - offset."""
    weight: NDArray[np.float64]
    """How much a message counts: the inverse of its variance, 1 for the first level."""
    rho: float
    """Weight of the newest estimate; 1 keeps no memory."""
    beta: float
    mu: float
    tokens: int
    walk: int
    wake: float
    loss: float
    delay: int
    pairs: int


class State(NamedTuple):
    """What the population remembers: N agents, M options, W = delay + 1 rounds under way, L levels."""

    adoption: NDArray[np.int16]
    """Shape (N,): the option adopted, -1 for none; (0,) for a crowd."""
    counts: NDArray[np.int64]
    """Shape (M + 1,): adopters of each option, and of none."""
    split: NDArray[np.int64]
    """Shape (L, M + 1): the same by level for a crowd, else (0, M + 1)."""
    memory: NDArray[np.float64]
    """Shape (N, M): smoothed estimates of popularity, or (0, M); for a crowd of its sample."""
    pool: NDArray[np.int64]
    """Shape (W, L, 2 M + 1): senders, adopters and ones of each option in the messages under way."""
    message: NDArray[np.uint64]
    """Shape (W, N): perturbed vectors as bits, bit 63 set where something was sent, or (W, 0)."""
    flying: NDArray[np.int64]
    """Shape (W, N): tokens of a message still to travel, or (W, 0)."""
    memo: NDArray[np.uint64]
    """Shape (N,): the vector to repeat, or (0,)."""
    memo_of: NDArray[np.int16]
    """Shape (N,): the adoption it was made of, or (0,)."""
    starts: NDArray[np.int64]
    """Shape (N + 1,): rows of the walk matrix's power, or (0,)."""
    ends: NDArray[np.int32]
    """Where walks can end, row by row."""
    chances: NDArray[np.float64]
    """The probabilities of a row's ends so far, added up."""
    entries: NDArray[np.int64]
    """Shape (2,): how many entries of all rows come before those here, and how many there are."""
    public: NDArray[np.float64]
    """Shape (3,): mean probability that a hop leaves its agent, changes of adoption so far, slots."""


@kernel(allocates=True)
def run(params: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any) -> None:
    """Play rounds first to last - 1 with agents kept one by one."""
    source = source_of(tape)
    M = table.qualities.shape[1]
    deliveries, root = new_deliveries(params, table, 0), np.zeros((M, M))
    senders = np.zeros((params.weight.size, M + 1), np.int64)
    for t in range(first, last):
        replace_adoptions(table, t, state.adoption, state.counts)
        now = segment_at(table.starts, t)
        record_popularity(table.qualities, now, trace, state.counts)
        perturb(params, state, table, tape, source, t, senders)  # stage 1
        if not params.each:
            slot = t % state.pool.shape[0]
            perturb_counts(params, state.pool, tape, source, t, slot, senders, root)
        messages = disseminate(params, state, table, source, t, deliveries)  # stage 2
        sample_and_adopt(params, state, table, source, t, deliveries)  # stages 3 and 4
        record(table.qualities, now, trace, t, state.counts, messages, message_bits(params, M))


@kernel
def sample_and_adopt(
    params: Any, state: Any, table: Any, source: Any, t: Any, deliveries: Any
) -> None:
    """Stages 3 and 4 for all agents here, from what reached them."""
    Q, good = deliveries.estimates, deliveries.good
    for j in range(Q.size):
        good[j] = signal(table, t, j)
    for a in range(state.adoption.size):
        who = table.first + a
        if awake(source, t, who, params.wake):
            w0, w1, w2, _ = block(source, EXPLORE, t, who, 0)
            heard = estimate(params, deliveries, source, t, a, who, w2, Q)  # eq. (7)
            total = remember(params, state.memory, a, heard, Q)
            j = choose(to_unit(w0), params.mu, Q, total)  # stage 3
            taken = adopts(to_unit(w1), params.beta, good[j])  # stage 4
            _take(state, a, j if taken else -1)


@kernel
def awake(source: Any, t: Any, a: Any, wake: Any) -> Any:
    """Return whether agent a takes part in round t."""
    return wake >= 1.0 or to_unit(block(source, WAKE, t, a, 0)[0]) < wake


@kernel(inlined=False)
def perturb(
    params: Any, state: Any, table: Any, tape: Any, source: Any, t: Any, senders: Any
) -> None:
    """Stage 1 for all agents: one by one, or only who sends where nobody looks at messages."""
    N, M, slot = state.adoption.size, state.counts.size - 1, t % state.pool.shape[0]
    senders[:] = 0
    state.pool[slot] = 0
    for a in range(N):
        x = state.adoption[a]
        if params.each:
            state.message[slot, a] = np.uint64(0)
            state.flying[slot, a] = 0
        if (params.silent and x < 0) or not awake(source, t, table.first + a, params.wake):
            continue
        level = level_of(params, table.first + a)
        senders[level, x if x >= 0 else M] += 1
        if not params.each:
            continue
        if params.memoised and state.memo[a] != 0 and state.memo_of[a] == x:
            sent = state.memo[a]
        else:
            sent = perturb_one(params, tape, t, table.first + a, x, M)
        if params.memoised:
            state.memo[a] = sent
            state.memo_of[a] = x
        state.message[slot, a] = sent
        state.flying[slot, a] = params.tokens
        state.pool[slot, level, 0] += 1
        if x >= 0:
            state.pool[slot, level, 1 + x] += 1
        for j in range(M):
            state.pool[slot, level, 1 + M + j] += int((sent >> np.uint64(j)) & _U1)


@kernel
def perturb_one(params: Any, tape: Any, t: Any, a: Any, x: Any, M: Any) -> Any:
    """Return what agent a sends of its adoption x (-1 for none): eq. (6), or a subset."""
    sent, level = _SPOKEN, level_of(params, a)
    p, q, size = params.p[level], params.q[level], params.subset[level]
    if size > 0:
        symbol = x if x >= 0 else M
        drawn = release_subset(tape, t, a, NOISE, symbol, M + 1, size, p)
        return sent | (drawn & ((_U1 << np.uint64(M)) - _U1))
    for j in range(M):
        if release_bit(tape, t, a * M + j, NOISE, x == j, p, 1.0 - q) == 1:
            sent |= _U1 << np.uint64(j)
    return sent


@kernel
def choose(u: Any, mu: Any, Q: Any, total: Any) -> Any:
    """Stage 3, eq. (13): explore with probability mu, else follow the estimates (8)."""
    M = Q.size
    if u < mu:
        return min(M - 1, int(u / mu * M))
    u = (u - mu) / (1.0 - mu)
    if total <= 0.0:
        return min(M - 1, int(u * M))
    left = u * total
    last = 0
    for j in range(M):
        if Q[j] > 0.0:
            last = j
            left -= Q[j]
            if left < 0.0:
                return j
    return last


@kernel
def adopts(u: Any, beta: Any, good: Any) -> Any:
    """Stage 4, eq. (9): return whether the option is adopted."""
    return u < (beta if good else 1.0 - beta)


@kernel
def _take(state: Any, a: Any, new: Any) -> None:
    old = state.adoption[a]
    if new != old:
        state.public[1] += 1.0
        state.counts[old] -= 1
        state.counts[new] += 1
        state.adoption[a] = new
