"""A round of the learning dynamics, stages 1 to 4 of Tao et al. 2022, Section 4, in order.

`run_agents` keeps agents one by one and disseminates as its engine says; `run_crowd` keeps counts
alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.compiled import kernel
from tacit.dynamics.engines import (
    arrivals,
    crowd_of,
    deal,
    draw_normals,
    new_crowd,
    receive,
    spread,
    tokens_received,
    walk,
)
from tacit.dynamics.stages import awake, choose, perturb_counts, perturb_each
from tacit.dynamics.tables import note, replace_adoptions, signal, watch
from tacit.generator import to_unit
from tacit.tapes import ADOPT, EXPLORE, PICK, WAKE
from tacit.variates import binomial, block, multinomial, source_of

__all__ = ["CROWD", "DEALT", "ENDPOINTS", "MOMENTS", "TOKENS", "run_agents", "run_crowd"]

TOKENS, ENDPOINTS, DEALT, MOMENTS, CROWD = 0, 1, 2, 3, 4


@kernel(allocates=True)
def run_agents(
    rule: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any
) -> None:
    """Play rounds first to last - 1 with agents kept one by one."""
    source = source_of(tape)
    N, M, W = state.adoption.size, table.qualities.size, state.pool.shape[0]
    tallied = rule.engine != MOMENTS
    received = np.zeros((N if tallied else 0, M), np.int64)
    got = np.zeros(N if tallied else 0, np.int64)
    launched = np.zeros((W, N if rule.engine == TOKENS else 0), np.int64)
    crowd = new_crowd(M)
    shares, base, reach, tilt, numbers = crowd
    weights, x = np.zeros(M), np.zeros(M)
    senders = np.zeros(M + 1, np.int64)
    adopt = np.zeros(M)
    bits = M + math.ceil(math.log2(rule.walk + 1.0))
    for t in range(first, last):
        replace_adoptions(table, t, state.adoption, state.counts)
        watch(table.qualities, trace, state.counts)
        slot = t % W
        if rule.each:
            perturb_each(rule, state, tape, source, t, slot)
        else:
            senders[:] = 0
            for a in range(N):
                if awake(source, t, a, rule.wake):
                    senders[state.adoption[a] if state.adoption[a] >= 0 else M] += 1
            if rule.silent:
                senders[M] = 0
            perturb_counts(rule, state.pool, tape, source, t, slot, senders)
        traffic = state.pool[slot, 0] * float(rule.tokens) * rule.walk * state.public[0]
        if tallied:
            received[:] = 0
            got[:] = 0
            for d in range(min(W, t + 1)):
                row = (t - d) % W
                for a in range(N):
                    if state.flying[row, a] == 0:
                        continue
                    going, n = arrivals(rule, source, t, d, N, a, state.flying[row, a])
                    state.flying[row, a] -= going
                    mask = state.message[row, a]
                    if rule.engine == TOKENS:
                        launched[row, a] = n
                    elif rule.engine == ENDPOINTS:
                        spread(source, t, d, a, n, mask,
                               state.starts, state.ends, state.heaps, got, received)  # fmt: skip
                    else:
                        deal(source, t, d, N, a, n, mask, got, received)
            if rule.engine == TOKENS:
                sent, slots = walk(source, t, launched, state.message, rule.walk, rule.tokens,
                                   table.indptr, table.indices, got, received)  # fmt: skip
                traffic = float(sent)
                state.public[2] += slots
                launched[:] = 0
        else:
            crowd_of(rule, state.pool, N, crowd)
        for j in range(M):
            adopt[j] = rule.beta if signal(table, t, j) else 1.0 - rule.beta
        for a in range(N):
            if not awake(source, t, a, rule.wake):
                continue
            w0, w1, w2, _ = block(source, EXPLORE, t, a, 0)
            total = 0.0
            if tallied:
                if got[a] > 0:
                    for j in range(M):
                        share = received[a, j] / got[a]
                        weights[j] = max(rule.slope * share - rule.offset, 0.0)
                        total += weights[j]
            else:
                v = tokens_received(w2, source, t, a, numbers[0], numbers[1], numbers[3])
                if v > 0.0:
                    inner = numbers[2] * draw_normals(source, t, a, tilt, x)
                    total = receive(rule.slope, rule.offset, shares, base, reach, tilt,
                                    v, x, inner, 1.0, source, t, a, weights)  # fmt: skip
            j = choose(to_unit(w0), rule.mu, weights, total)
            old = state.adoption[a]
            new = j if to_unit(w1) < adopt[j] else -1
            if new != old:
                state.public[1] += 1.0
                state.counts[old] -= 1
                state.counts[new] += 1
                state.adoption[a] = new
        note(table.qualities, trace, t, state.counts, traffic, bits)


@kernel(allocates=True)
def run_crowd(
    rule: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any
) -> None:
    """Play rounds first to last - 1 with counts alone: agents are exchangeable given the pool."""
    source = source_of(tape)
    M, W = table.qualities.size, state.pool.shape[0]
    N = table.n_agents
    crowd = new_crowd(M)
    shares, base, reach, tilt, numbers = crowd
    weights, x, chosen = np.zeros(M), np.zeros(M), np.zeros(M)
    senders, picks = np.zeros(M + 1, np.int64), np.zeros(M, np.int64)
    bits = M + math.ceil(math.log2(rule.walk + 1.0))
    for t in range(first, last):
        watch(table.qualities, trace, state.counts)
        slot = t % W
        present = 0
        for j in range(M + 1):
            senders[j] = binomial(source, WAKE, t, j, state.counts[j], rule.wake)
            state.counts[j] -= senders[j]
            present += senders[j]
        if rule.silent:
            senders[M] = 0
        perturb_counts(rule, state.pool, tape, source, t, slot, senders)
        crowd_of(rule, state.pool, N, crowd)
        chosen[:] = 0.0
        for i in range(rule.pairs):
            word = block(source, EXPLORE, t, i, 0)[0]
            v = tokens_received(word, source, t, i, numbers[0], numbers[1], numbers[3])
            inner = numbers[2] * draw_normals(source, t, i, tilt, x)
            for sign in (1.0, -1.0):
                total = 0.0
                if v > 0.0:
                    total = receive(rule.slope, rule.offset, shares, base, reach, tilt,
                                    v, x, inner, sign, source, t, i, weights)  # fmt: skip
                for j in range(M):
                    chosen[j] += weights[j] / total if total > 0.0 else 1.0 / M
        for j in range(M):
            chosen[j] = (1.0 - rule.mu) * chosen[j] / (2.0 * rule.pairs) + rule.mu / M
        multinomial(source, PICK, t, 0, present, chosen, picks)
        state.counts[M] += present
        for j in range(M):
            probability = rule.beta if signal(table, t, j) else 1.0 - rule.beta
            adopters = binomial(source, ADOPT, t, j, picks[j], probability)
            state.counts[j] += adopters
            state.counts[M] -= adopters
        traffic = state.pool[slot, 0] * float(rule.tokens) * rule.walk * state.public[0]
        note(table.qualities, trace, t, state.counts, traffic, bits)
