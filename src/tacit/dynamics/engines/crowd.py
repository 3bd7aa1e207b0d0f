"""The four stages for a crowd: counts in place of agents, who are exchangeable given what was sent.

A round costs the same for any number of agents. How they pick is averaged over a sample of pairs of
agents, whose errors are mirror images; with smoothing the pairs keep their memory.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.compiled import kernel
from tacit.dynamics.engines.moments import (
    crowd_of,
    draw_normals,
    new_crowd,
    receive,
    tokens_received,
)
from tacit.dynamics.tables import note, piece_at, signal, watch
from tacit.tapes import ADOPT, EXPLORE, NOISE, PICK, WAKE, drawn, released
from tacit.variates import binomial, block, multinomial, normal, source_of

__all__ = ["perturb_counts", "remember", "run_crowd"]


@kernel(allocates=True)
def run_crowd(
    rule: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any
) -> None:
    """Play rounds first to last - 1."""
    source = source_of(tape)
    M, W = table.qualities.shape[1], state.pool.shape[0]
    N = table.n_agents
    crowd = new_crowd(M)
    Q, x, chosen = np.zeros(M), np.zeros(M), np.zeros(M)
    senders, picks, root = np.zeros(M + 1, np.int64), np.zeros(M, np.int64), np.zeros((M, M))
    bits = M + math.ceil(math.log2(rule.walk + 1.0))
    for t in range(first, last):
        now = piece_at(table.starts, t)
        watch(table.qualities, now, trace, state.counts)
        slot = t % W
        present = 0
        for j in range(M + 1):
            senders[j] = binomial(source, WAKE, t, j, state.counts[j], rule.wake)
            state.counts[j] -= senders[j]
            present += senders[j]
        if rule.silent:
            senders[M] = 0
        perturb_counts(rule, state.pool, tape, source, t, slot, senders, root)  # stage 1
        crowd_of(rule, state.pool, N, crowd)  # stage 2
        chosen[:] = 0.0
        for i in range(rule.pairs):  # stage 3
            word = block(source, EXPLORE, t, i, 0)[0]
            numbers = crowd.numbers
            v = tokens_received(word, source, t, i, numbers[0], numbers[1], numbers[3])
            Ux = draw_normals(source, t, i, crowd.tilt, x)
            for twin in range(2):
                if v > 0.0:
                    receive(rule, crowd, v, x, Ux, 1.0 - 2.0 * twin, source, t, i, Q)
                total = remember(rule, state.memory, 2 * i + twin, v > 0.0, Q)
                for j in range(M):
                    chosen[j] += Q[j] / total if total > 0.0 else 1.0 / M
        for j in range(M):
            chosen[j] = (1.0 - rule.mu) * chosen[j] / (2.0 * rule.pairs) + rule.mu / M
        multinomial(source, PICK, t, 0, present, chosen, picks)
        state.counts[M] += present
        for j in range(M):  # stage 4
            probability = rule.beta if signal(table, t, j) else 1.0 - rule.beta
            adopters = binomial(source, ADOPT, t, j, picks[j], probability)
            state.counts[j] += adopters
            state.counts[M] -= adopters
        traffic = state.pool[slot, 0] * float(rule.tokens) * rule.walk * state.public[0]
        note(table.qualities, now, trace, t, state.counts, traffic, bits)


@kernel
def remember(rule: Any, memory: Any, a: Any, heard: Any, Q: Any) -> Any:
    """Smooth the estimates Q of agent a if it has a memory, clip them at 0 and return their sum."""
    total = 0.0
    for j in range(Q.size):
        if rule.rho < 1.0:
            if heard:
                memory[a, j] += rule.rho * (Q[j] - memory[a, j])
            Q[j] = memory[a, j]
        elif not heard:
            Q[j] = 0.0
        Q[j] = max(Q[j], 0.0)
        total += Q[j]
    return total


@kernel(inlined=False)
def perturb_counts(
    rule: Any, pool: Any, tape: Any, source: Any, t: Any, slot: Any, senders: Any, root: Any
) -> None:
    """Stage 1, eq. (6), for the counts of `senders` (the last one adopts nothing).

    What all messages together say, how many ones there are for each option, is what is released.
    """
    M = senders.size - 1
    S = 0
    for j in range(M + 1):
        S += senders[j]
    pool[slot, 0] = S
    for j in range(M):
        pool[slot, 1 + j] = senders[j]
    if rule.subset > 0:
        drawn(tape, t, 0, NOISE, S)
        _count_subsets(rule, pool[slot, 1 + M :], source, t, senders, S, root)
        return
    for j in range(M):
        drawn(tape, t, 2 * j, NOISE, senders[j])
        drawn(tape, t, 2 * j + 1, NOISE, S - senders[j])
        ones = binomial(source, NOISE, t, 2 * j, senders[j], rule.p)
        ones += binomial(source, NOISE, t, 2 * j + 1, S - senders[j], rule.q)
        pool[slot, 1 + M + j] = ones
        released(tape, float(ones))


@kernel(inlined=False)
def _count_subsets(
    rule: Any, ones: Any, source: Any, t: Any, senders: Any, S: Any, root: Any
) -> None:
    """Write how many subsets hold each option: normals of the exact mean and covariance, rounded."""
    M = ones.size
    p, q = rule.p, rule.q
    with_one = rule.pair_one - p * q  # covariance of two bits, one of them the sender's own
    with_none = rule.pair_none - q * q
    for j in range(M):
        for k in range(j + 1):
            n = senders[j] + senders[k]
            value = n * with_one + (S - n) * with_none
            if j == k:
                value = senders[j] * p * (1.0 - p) + (S - senders[j]) * q * (1.0 - q)
            for i in range(k):
                value -= root[j, i] * root[k, i]
            if j == k:
                root[j, j] = math.sqrt(max(value, 0.0))
            else:
                root[j, k] = value / root[k, k] if root[k, k] > 0.0 else 0.0
    for j in range(M):
        value = senders[j] * p + (S - senders[j]) * q
        for k in range(j + 1):
            word = block(source, NOISE, t, k, 0)[0]
            value += root[j, k] * normal(word, source, NOISE, t, k, 0)
        ones[j] = min(max(math.floor(value + 0.5), 0), S)
