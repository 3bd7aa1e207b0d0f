"""How rounds are played, whatever the policy: decide, look, learn.

Each function here makes a kernel of a policy's own kernels, which are compiled into it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.arms.corruption import feedback_of
from tacit.arms.policy import Kernels
from tacit.arms.table import piece_of, reward, row_of
from tacit.arms.trace import observe
from tacit.core.kernels import kernel

Kernel = Callable[..., Any]


def rounds(select: Kernel, learn: Kernel) -> Kernel:
    """Return ``run`` of a policy that learns from the arm it pulls."""

    @kernel
    def run(
        params: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any
    ) -> None:
        """Play rounds first to last - 1."""
        for t in range(first, last):
            arm = select(params, state, tape, t, params.all_arms)
            learn(params, state, tape, t, arm, observe(table, trace, t, arm))

    return run


def rounds_on_graph(select: Kernel, learn: Kernel) -> Kernel:
    """Return ``run`` of a policy that learns from all arms that the pulled one shows."""

    @kernel
    def run(
        params: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any
    ) -> None:
        """Play rounds first to last - 1."""
        K = params.all_arms.size
        for t in range(first, last):
            arm = select(params, state, tape, t, params.all_arms)
            value = observe(table, trace, t, arm)
            low, high = row_of(table.indptr, K, piece_of(table.graph_starts, t), arm)
            for e in range(low, high):
                b = table.indices[e]
                learn(params, state, tape, t, b, value if b == arm else reward(table, t, b))

    return run


def corrupting(learn_from_report: Kernel) -> Kernel:
    """Return ``learn`` of a local policy: the device's half and then its own, the server's."""

    @kernel
    def learn(params: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
        """Corrupt the reward, if private, and take the feedback in."""
        feedback = feedback_of(params.feedback, tape, t, arm, reward)
        learn_from_report(params, state, t, arm, feedback)

    return learn


def local_kernels(
    select: Kernel, learn_from_report: Kernel, probabilities: Kernel | None = None
) -> Kernels:
    """Return the kernels of a local policy that learns from the arm it pulls."""
    learn = corrupting(learn_from_report)
    return Kernels(
        select=select,
        learn=learn,
        run=rounds(select, learn),
        learn_from_report=learn_from_report,
        probabilities=probabilities,
    )
