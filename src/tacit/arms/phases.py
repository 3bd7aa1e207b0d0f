"""How a phase of GAP, GAPU and DP-SE is played: whom to pull, what to take in, four rounds at once.

The words of four rounds of an arm come from one block of the generator. Where there are at most 62 arms,
the active arms that a member shows are the bits of one number, and four rounds are played together:
every arm that any of them shows is looked up once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arms.elimination import CURSOR, FIRST, GRAPH, LACKING, LEAST, SIZE, WANTED
from tacit.arms.tables import NORMAL, book, observe, reward, reward_of, row_of, words_of
from tacit.compiled import kernel

__all__ = ["learn", "n_active", "pick", "plan", "planned_factor", "play_phase", "round_factor"]

_MOST_BITS = 62


@kernel
def plan(state: Any, t: Any) -> None:
    """Forget the last phase and list the members of the set chosen for the next."""
    K = state.active.size
    state.counts[:] = 0
    state.sums[:] = 0.0
    state.pulls[:] = 0
    m = 0
    for a in range(K):
        if state.chosen[a]:
            state.members[m] = a
            m += 1
    state.now[SIZE], state.now[CURSOR], state.now[LEAST], state.now[FIRST] = m, 0, 0, t
    if K <= _MOST_BITS:
        for i in range(m):
            a, bits = state.members[i], 0
            low, high = row_of(state.indptr, K, state.now[GRAPH], a)
            for e in range(low, high):
                b = state.indices[e]
                if state.active[b]:
                    bits |= 1 << b
            state.near[a] = bits


@kernel
def n_active(active: Any) -> Any:
    """Return the size of the active set."""
    n = 0
    for a in range(active.size):
        n += active[a]
    return n


@kernel
def pick(state: Any, eligible: Any) -> Any:
    """Line 14: the member pulled least often, or any eligible arm if no member is eligible."""
    arm = state.members[state.now[CURSOR]]
    if eligible.size < state.active.size:
        arm = eligible[0]
        fewest = np.int64(1) << 62
        for i in range(eligible.size):
            a = eligible[i]
            if state.chosen[a] and state.pulls[a] < fewest:
                arm, fewest = a, state.pulls[a]
    state.pulls[arm] += 1
    while state.pulls[state.members[state.now[CURSOR]]] > state.now[LEAST]:
        state.now[CURSOR] += 1
        if state.now[CURSOR] == state.now[SIZE]:
            state.now[CURSOR] = 0
            state.now[LEAST] += 1
    return arm


@kernel
def learn(rule: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Line 17: take in one observed reward, of the pulled arm or of a neighbour."""
    if state.active[arm] and t >= state.now[FIRST]:
        state.counts[arm] += 1
        state.sums[arm] += reward
        if state.counts[arm] == state.now[WANTED]:
            state.now[LACKING] -= 1


@kernel(inlined=False)
def play_phase(rule: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any, last: Any) -> Any:
    """Lines 13 to 19: play from round t until the phase or the graph ends; return the round."""
    K, g = state.active.size, state.now[GRAPH]
    if g + 1 < state.graph_starts.size:
        last = min(last, state.graph_starts[g + 1])
    by_four = K <= _MOST_BITS and table.kind <= NORMAL
    latest = state.members[state.now[SIZE] - 1]
    while t < last and state.now[LACKING] > 0:
        # A member is observed when it is pulled only, so the phase has as many rounds left.
        if (
            by_four
            and t % 4 == 0
            and t + 4 <= last
            and state.counts[latest] + 4 < state.now[WANTED]
        ):
            four_rounds(rule, state, table, tape, trace, t)
            t += 4
            continue
        arm = pick(state, rule.everyone)
        value = observe(table, trace, t, arm)
        low, high = row_of(state.indptr, K, g, arm)
        for e in range(low, high):
            b = state.indices[e]
            if b == arm:
                learn(rule, state, tape, t, b, value)
            elif state.active[b]:
                learn(rule, state, tape, t, b, reward(table, t, b))
        t += 1
    return t


@kernel
def four_rounds(rule: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any) -> None:
    """Play rounds t to t + 3, for which an arm's random words are made at once."""
    a0, a1 = pick(state, rule.everyone), pick(state, rule.everyone)
    a2, a3 = pick(state, rule.everyone), pick(state, rule.everyone)
    near0, near1, near2, near3 = state.near[a0], state.near[a1], state.near[a2], state.near[a3]
    shown = near0 | near1 | near2 | near3
    r0, r1, r2, r3 = 0.0, 0.0, 0.0, 0.0
    for b in range(state.active.size):
        if (shown >> b) & 1 == 0:
            continue
        word0, word1, word2, word3 = words_of(table, t, b)
        if (near0 >> b) & 1 == 1:
            r = reward_of(table, t, b, word0)
            learn(rule, state, tape, t, b, r)
            r0 = r if b == a0 else r0
        if (near1 >> b) & 1 == 1:
            r = reward_of(table, t + 1, b, word1)
            learn(rule, state, tape, t + 1, b, r)
            r1 = r if b == a1 else r1
        if (near2 >> b) & 1 == 1:
            r = reward_of(table, t + 2, b, word2)
            learn(rule, state, tape, t + 2, b, r)
            r2 = r if b == a2 else r2
        if (near3 >> b) & 1 == 1:
            r = reward_of(table, t + 3, b, word3)
            learn(rule, state, tape, t + 3, b, r)
            r3 = r if b == a3 else r3
    book(table, trace, t, a0, r0)
    book(table, trace, t + 1, a1, r1)
    book(table, trace, t + 2, a2, r2)
    book(table, trace, t + 3, a3, r3)


@kernel(inlined=False)
def planned_factor(rule: Any, state: Any) -> Any:
    """Return the noise factor of a whole round if every member is pulled equally often."""
    K = state.active.size
    largest = 1.0
    for i in range(state.now[SIZE]):
        total = 0.0
        low, high = row_of(state.indptr, K, state.now[GRAPH], state.members[i])
        for e in range(low, high):
            b = state.indices[e]
            if state.active[b]:
                seen_by = 0
                low_b, high_b = row_of(state.indptr, K, state.now[GRAPH], b)
                for f in range(low_b, high_b):
                    seen_by += state.chosen[state.indices[f]]
                total += 1.0 if rule.tight == 1 else 1.0 / seen_by
        largest = max(largest, total)
    return largest


@kernel(inlined=False)
def round_factor(rule: Any, state: Any) -> Any:
    """Return the noise factor of a whole round, given how often every arm was observed."""
    K, L = state.active.size, state.now[WANTED]
    largest = 1.0
    for a in range(K):
        if state.pulls[a] > 0:
            total = 0.0
            low, high = row_of(state.indptr, K, state.now[GRAPH], a)
            for e in range(low, high):
                b = state.indices[e]
                if state.active[b]:
                    total += 1.0 if rule.tight == 1 else L / state.counts[b]
            largest = max(largest, total)
    return largest
