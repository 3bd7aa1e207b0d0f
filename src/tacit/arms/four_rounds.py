"""Four rounds at once: a phase of GAP, GAPU or DP-SE, several times as fast.

The random words of four consecutive rounds of an arm come from one block of the generator. Where there
are at most 62 arms, the active arms that a member shows are the bits of one number, and four rounds are
played together: every arm that any of them shows is looked up once. What that gains is printed by
``python benchmarks/gap.py``.
"""

from __future__ import annotations

from typing import Any

from tacit.arms.tables import NORMAL, book, reward_of, row_of, words_of
from tacit.compiled import kernel
from tacit.privacy.block_sums import on_grid

__all__ = ["can_play_four", "shown_as_bits", "take_four"]

_MOST_BITS = 62


@kernel
def shown_as_bits(
    indptr: Any, indices: Any, graph: Any, active: Any, chosen: Any, near: Any
) -> None:
    """Write which active arms each chosen arm shows into `near`, as bits."""
    K = active.size
    if K <= _MOST_BITS:
        for a in range(K):
            if chosen[a]:
                bits = 0
                low, high = row_of(indptr, K, graph, a)
                for e in range(low, high):
                    if active[indices[e]]:
                        bits |= 1 << indices[e]
                near[a] = bits


@kernel
def can_play_four(table: Any, n_arms: Any, t: Any, left: Any) -> Any:
    """Return whether rounds t to t + 3 share their words and `left` rounds allow for four."""
    return t % 4 == 0 and left >= 4 and n_arms <= _MOST_BITS and table.kind <= NORMAL


@kernel
def take_four(
    table: Any,
    tape: Any,
    trace: Any,
    t: Any,
    a0: Any,
    a1: Any,
    a2: Any,
    a3: Any,
    near: Any,
    counts: Any,
    sums: Any,
    wanted: Any,
) -> Any:
    """Pull a0 to a3 in rounds t to t + 3 and take in all they show.

    Returns how many arms reached the count `wanted`.
    """
    near0, near1, near2, near3 = near[a0], near[a1], near[a2], near[a3]
    shown = near0 | near1 | near2 | near3
    r0, r1, r2, r3 = 0.0, 0.0, 0.0, 0.0
    reached = 0
    for b in range(counts.size):
        if (shown >> b) & 1 == 0:
            continue
        word0, word1, word2, word3 = words_of(table, t, b)
        before = counts[b]
        if (near0 >> b) & 1 == 1:
            r = reward_of(table, t, b, word0)
            counts[b] += 1
            sums[b] += on_grid(tape, r)
            r0 = r if b == a0 else r0
        if (near1 >> b) & 1 == 1:
            r = reward_of(table, t + 1, b, word1)
            counts[b] += 1
            sums[b] += on_grid(tape, r)
            r1 = r if b == a1 else r1
        if (near2 >> b) & 1 == 1:
            r = reward_of(table, t + 2, b, word2)
            counts[b] += 1
            sums[b] += on_grid(tape, r)
            r2 = r if b == a2 else r2
        if (near3 >> b) & 1 == 1:
            r = reward_of(table, t + 3, b, word3)
            counts[b] += 1
            sums[b] += on_grid(tape, r)
            r3 = r if b == a3 else r3
        reached += before < wanted <= counts[b]
    book(table, trace, t, a0, r0)
    book(table, trace, t + 1, a1, r1)
    book(table, trace, t + 2, a2, r2)
    book(table, trace, t + 3, a3, r3)
    return reached
