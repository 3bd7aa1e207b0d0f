"""The four stages for a crowd: counts in place of agents, who are exchangeable given what was sent.

A round costs the same for any number of agents. How they pick is averaged over a sample of pairs of
agents, whose errors are mirror images; with smoothing the pairs keep their memory.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.core.kernels import kernel
from tacit.core.samplers import binomial, block, multinomial, normal, source_of
from tacit.core.segments import segment_at
from tacit.core.tapes import ADOPT, EXPLORE, NOISE, PICK, WAKE, drawn, released
from tacit.dynamics.dissemination import message_bits, senders_of
from tacit.dynamics.dissemination.moments import (
    crowd_of,
    draw_sample,
    new_crowd,
    new_sample,
    receive,
)
from tacit.dynamics.table import signal
from tacit.dynamics.trace import record, record_popularity


@kernel(allocates=True)
def run_crowd(
    params: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any
) -> None:
    """Play rounds first to last - 1."""
    source = source_of(tape)
    M, W = table.qualities.shape[1], state.pool.shape[0]
    N, levels, split = table.n_agents, params.weight.size, state.split
    crowd, sample = new_crowd(levels, M), new_sample(levels, M)
    Q, chosen = np.zeros(M), np.zeros(M)
    senders, present = np.zeros((levels, M + 1), np.int64), np.zeros(levels, np.int64)
    picks, root = np.zeros(M, np.int64), np.zeros((M, M))
    bits = message_bits(params, M)
    for t in range(first, last):
        now = segment_at(table.starts, t)
        record_popularity(table.qualities, now, trace, state.counts)
        slot = t % W
        for level in range(levels):
            present[level] = 0
            for j in range(M + 1):
                n = binomial(source, WAKE, t, level * (M + 1) + j, split[level, j], params.wake)
                senders[level, j] = n
                split[level, j] -= n
                present[level] += n
            if params.silent:
                senders[level, M] = 0
        perturb_counts(params, state.pool, tape, source, t, slot, senders, root)  # stage 1
        crowd_of(params, state.pool, N, crowd)  # stage 2
        chosen[:] = 0.0
        for i in range(params.pairs):  # stage 3
            word = block(source, EXPLORE, t, i, 0)[0]
            draw_sample(crowd, sample, word, source, t, i)
            for twin in range(2):
                heard = receive(params, crowd, sample, 1.0 - 2.0 * twin, source, t, i, Q)
                total = remember(params, state.memory, 2 * i + twin, heard, Q)
                for j in range(M):
                    chosen[j] += Q[j] / total if total > 0.0 else 1.0 / M
        for j in range(M):
            chosen[j] = (1.0 - params.mu) * chosen[j] / (2.0 * params.pairs) + params.mu / M
        state.counts[:] = 0
        for level in range(levels):
            multinomial(source, PICK, t, level * M, present[level], chosen, picks)
            split[level, M] += present[level]
            for j in range(M):  # stage 4
                probability = params.beta if signal(table, t, j) else 1.0 - params.beta
                adopters = binomial(source, ADOPT, t, level * M + j, picks[j], probability)
                split[level, j] += adopters
                split[level, M] -= adopters
            for j in range(M + 1):
                state.counts[j] += split[level, j]
        traffic = (
            senders_of(state.pool, slot) * float(params.tokens) * params.walk * state.public[0]
        )
        record(table.qualities, now, trace, t, state.counts, traffic, bits)


@kernel
def remember(params: Any, memory: Any, a: Any, heard: Any, Q: Any) -> Any:
    """Smooth the estimates Q of agent a if it has a memory, clip them at 0 and return their sum."""
    if params.rho < 1.0:
        smooth = memory[a]
        for j in range(Q.size):
            if heard:
                smooth[j] += params.rho * (Q[j] - smooth[j])
            Q[j] = smooth[j]
    elif not heard:
        Q[:] = 0.0
    total = 0.0
    for j in range(Q.size):
        Q[j] = max(Q[j], 0.0)
        total += Q[j]
    return total


@kernel(inlined=False)
def perturb_counts(
    params: Any, pool: Any, tape: Any, source: Any, t: Any, slot: Any, senders: Any, root: Any
) -> None:
    """Stage 1, eq. (6), for the counts of `senders` of each level (the last one adopts nothing).

    What all messages together say, how many ones there are for each option, is what is released.
    """
    levels, M = senders.shape[0], senders.shape[1] - 1
    for level in range(levels):
        S = 0
        for j in range(M + 1):
            S += senders[level, j]
        pool[slot, level, 0] = S
        for j in range(M):
            pool[slot, level, 1 + j] = senders[level, j]
        if params.subset[level] > 0:
            drawn(tape, t, level, NOISE, S)
            _count_subsets(params, level, pool[slot, level, 1 + M :], source, t, senders, S, root)
            continue
        for j in range(M):
            adopters, at = senders[level, j], 2 * (level * M + j)
            drawn(tape, t, at, NOISE, adopters)
            drawn(tape, t, at + 1, NOISE, S - adopters)
            ones = binomial(source, NOISE, t, at, adopters, params.p[level])
            ones += binomial(source, NOISE, t, at + 1, S - adopters, params.q[level])
            pool[slot, level, 1 + M + j] = ones
            if S > 0:  # where nobody sends, nothing was drawn that could be released
                released(tape, float(ones))


@kernel(inlined=False)
def _count_subsets(
    params: Any, level: Any, ones: Any, source: Any, t: Any, senders: Any, S: Any, root: Any
) -> None:
    """Write how many subsets hold each option: normals of the exact mean and covariance, rounded."""
    M = ones.size
    p, q = params.p[level], params.q[level]
    with_one = (
        params.pair_one[level] - p * q
    )  # covariance of two bits, one of them the sender's own
    with_none = params.pair_none[level] - q * q
    for j in range(M):
        for k in range(j + 1):
            n = senders[level, j] + senders[level, k]
            value = n * with_one + (S - n) * with_none
            if j == k:
                own = senders[level, j]
                value = own * p * (1.0 - p) + (S - own) * q * (1.0 - q)
            for i in range(k):
                value -= root[j, i] * root[k, i]
            if j == k:
                root[j, j] = math.sqrt(max(value, 0.0))
            else:
                root[j, k] = value / root[k, k] if root[k, k] > 0.0 else 0.0
    for j in range(M):
        value = senders[level, j] * p + (S - senders[level, j]) * q
        for k in range(j + 1):
            word = block(source, NOISE, t, level * M + k, 0)[0]
            value += root[j, k] * normal(word, source, NOISE, t, level * M + k, 0)
        ones[j] = min(max(math.floor(value + 0.5), 0), S)
