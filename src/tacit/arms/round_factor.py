"""How many times the noise of a reward hides a whole round of GAP: a number that is public.

All rewards of a round are shown by one pulled arm, and each moves the mean of its own arm by at most
1 / o, where o counts that arm's observations in the phase. With noise made for 1 / L, a round costs the
sum of L / o over the active arms shown, at most; with noise made for 1 / o, their number.
"""

from __future__ import annotations

from typing import Any

from tacit.arms.table import row_of
from tacit.core.kernels import kernel


@kernel(inlined=False)
def planned_factor(tight: Any, state: Any, graph: Any) -> Any:
    """Return the factor if every chosen arm is pulled equally often."""
    K = state.active.size
    largest = 1.0
    for a in range(K):
        if state.chosen[a]:
            total = 0.0
            low, high = row_of(state.indptr, K, graph, a)
            for e in range(low, high):
                b = state.indices[e]
                if state.active[b]:
                    seen_by = 0
                    low_b, high_b = row_of(state.indptr, K, graph, b)
                    for f in range(low_b, high_b):
                        seen_by += state.chosen[state.indices[f]]
                    total += 1.0 if tight == 1 else 1.0 / seen_by
            largest = max(largest, total)
    return largest


@kernel(inlined=False)
def round_factor(tight: Any, state: Any, graph: Any, L: Any) -> Any:
    """Return the factor, given how often every arm was observed."""
    K = state.active.size
    largest = 1.0
    for a in range(K):
        if state.pulls[a] > 0:
            total = 0.0
            low, high = row_of(state.indptr, K, graph, a)
            for e in range(low, high):
                b = state.indices[e]
                if state.active[b]:
                    total += 1.0 if tight == 1 else L / state.counts[b]
            largest = max(largest, total)
    return largest
