"""How rounds are played, whatever the policy: somebody arrives, is offered something, and tells.

`rounds` makes a kernel of a policy's own kernels, which are compiled into it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.contextual.table import arrive, contexts_at, ends
from tacit.contextual.trace import LEFT_OUT, due, observe, record
from tacit.core.kernels import kernel

Kernel = Callable[..., Any]


def rounds(select: Kernel, learn: Kernel, error: Kernel) -> Kernel:
    """Return ``play`` of a policy.

    Parameters
    ----------
    select : kernel (rule, state, user, contexts, scratch) -> slot
    learn : kernel (rule, state, tape, t, user, context, reward) -> bool
        Whether the reward was taken in.
    error : kernel (rule, state, preferences) -> float
        How far all users' estimates are from the truth.
    """

    @kernel
    def play(
        params: Any,
        state: Any,
        table: Any,
        tape: Any,
        trace: Any,
        shown: Any,
        contexts: Any,
        scratch: Any,
        first: Any,
        last: Any,
    ) -> None:
        """Play rounds first to last - 1; `shown`, `contexts` and `scratch` are scratch."""
        for t in range(first, min(last, ends(table))):
            user = arrive(table, t, shown)
            contexts_at(table, t, shown, contexts)
            slot = select(params, state, user, contexts, scratch)
            reward = observe(table, trace, t, user, shown, slot)
            if not learn(params, state, tape, t, user, contexts[slot], reward):
                trace.totals[LEFT_OUT] += 1.0
            if due(trace, t):
                record(trace, error(params, state, table.preferences))

    return play


@kernel
def most_promising(params: Any, state: Any, user: Any, contexts: Any, scratch: Any) -> Any:
    """Return the slot with the largest upper confidence bound, of users with a matrix each.

    It needs no scratch; whoever calls it may pass the contexts.
    """
    C, p = state.covariance[user], state.mean[user]
    best, largest = 0, -np.inf
    for slot in range(contexts.shape[0]):
        mean, square = 0.0, 0.0
        for a in range(p.size):
            mean += contexts[slot, a] * p[a]
            for b in range(p.size):
                square += contexts[slot, a] * C[a, b] * contexts[slot, b]
        index = mean + params.exploration * math.sqrt(max(square, 0.0))
        if index > largest:
            best, largest = slot, index
    return best


@kernel(inlined=False)
def distance(params: Any, state: Any, preferences: Any) -> Any:
    """Return the distance of all users' estimates from the truth."""
    total = 0.0
    for user in range(preferences.shape[0]):
        for a in range(preferences.shape[1]):
            total += (state.mean[user, a] - preferences[user, a]) ** 2
    return math.sqrt(total)
