"""How rounds are played, whatever the policy: somebody arrives, is offered something, and tells.

`rounds` makes a kernel of a policy's own kernels, which are compiled into it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tacit.contextual.table import Table, arrive, contexts_at, n_rounds
from tacit.contextual.trace import LEFT_OUT, Trace, due, observe, record
from tacit.core.kernels import kernel
from tacit.core.policy import Program
from tacit.core.tapes import Tape

Kernel = Callable[..., Any]


class Kernels(NamedTuple):
    """The compiled half of a policy: the same functions for a simulation and for one step."""

    select: Kernel
    """``(params, state, user, contexts, scratch)``: return a slot."""
    learn: Kernel
    """``(params, state, tape, t, user, context, reward)``: take in a reward; return whether it was."""
    run: Kernel
    """What `rounds` makes of them: many rounds."""
    learn_from_report: Kernel | None = None
    """``(params, state, user, context, question, report)``: the server's half, where devices report."""
    learn_from_release: Kernel | None = None
    """``(params, state, user)``: learn from what a visit of this user let be released, where visits wait
    in batches."""


def rounds(select: Kernel, learn: Kernel, error: Kernel) -> Kernel:
    """Return `Kernels.run` of a policy.

    Parameters
    ----------
    select : kernel (params, state, user, contexts, scratch) -> slot
    learn : kernel (params, state, tape, t, user, context, reward) -> bool
        Whether the reward was taken in.
    error : kernel (params, state, preferences) -> float
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
        for t in range(first, min(last, n_rounds(table))):
            user = arrive(table, t, shown)
            contexts_at(table, t, shown, contexts)
            slot = select(params, state, user, contexts, scratch)
            reward = observe(table, trace, t, user, shown, slot)
            if not learn(params, state, tape, t, user, contexts[slot], reward):
                trace.totals[LEFT_OUT] += 1.0
            if due(trace, t):
                record(trace, error(params, state, table.preferences))

    return play


def make_program(
    play: Kernel, params: Any, state: Any, table: Table, tape: Tape, trace: Trace
) -> Program:
    """Return a kernel that `rounds` made and its arguments, scratch among them."""
    shown = np.empty(table.n_shown, np.int64)
    contexts = np.empty((table.n_shown, table.features.shape[1]))
    return play, (params, state, table, tape, trace, shown, contexts, np.empty_like(contexts))


@kernel
def select_by_ucb(params: Any, state: Any, user: Any, contexts: Any, scratch: Any) -> Any:
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
def estimation_error(params: Any, state: Any, preferences: Any) -> Any:
    """Return the distance of all users' estimates from the truth."""
    total = 0.0
    for user in range(preferences.shape[0]):
        for a in range(preferences.shape[1]):
            total += (state.mean[user, a] - preferences[user, a]) ** 2
    return math.sqrt(total)
