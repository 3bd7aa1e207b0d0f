"""How rounds are played, whatever the policy: decide, look, corrupt if private, learn.

A function that is no kernel makes one of a policy's own kernels, which are compiled into it.
"""

from __future__ import annotations

from typing import Any

from tacit.arms.policy import Kernel, Kernels
from tacit.arms.table import NORMAL, four_rewards, reward, row_of, segment_at
from tacit.arms.trace import record
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, ROUNDING, uniform
from tacit.privacy.block_sums import on_grid
from tacit.privacy.mechanisms.randomized_response import release_bit


def rounds(select: Kernel, learn: Kernel) -> Kernel:
    """Return ``run`` of a policy that learns from the arm it pulls."""

    @kernel
    def run(
        params: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any
    ) -> None:
        """Play rounds first to last - 1."""
        for t in range(first, last):
            arm = select(params, state, tape, t, table.all_arms)
            value = reward(table, t, arm)
            record(table, trace, t, arm, value)
            learn(params, state, tape, t, arm, value)

    return run


def rounds_on_graph(select: Kernel, learn: Kernel) -> Kernel:
    """Return ``run`` of a policy that learns from all arms that the pulled one shows."""

    @kernel
    def run(
        params: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any
    ) -> None:
        """Play rounds first to last - 1."""
        K = table.all_arms.size
        for t in range(first, last):
            arm = select(params, state, tape, t, table.all_arms)
            value = reward(table, t, arm)
            record(table, trace, t, arm, value)
            low, high = row_of(table.indptr, K, segment_at(table.graph_starts, t), arm)
            for e in range(low, high):
                b = table.indices[e]
                learn(params, state, tape, t, b, value if b == arm else reward(table, t, b))

    return run


@kernel
def steady_segment(table: Any, t: Any, last: Any) -> Any:
    """Return the segment of rounds t to last - 1 if all means stay and nobody overrides a reward, else -1."""
    segment = segment_at(table.starts, t)
    ends = segment + 1 < table.starts.size and table.starts[segment + 1] < last
    if ends or table.linear == 1 or table.edit_rounds.size > 0 or table.kind > NORMAL:
        return -1
    return segment


@kernel
def sum_rewards(
    total: Any, table: Any, tape: Any, trace: Any, t: Any, last: Any, b: Any, arm: Any, segment: Any
) -> Any:
    """Add the rewards of arm b in rounds t to last - 1, one by one; record those of the pulled arm.

    In a `steady_segment`, rounds that share their random words are looked up together.
    """
    while t < last:
        if segment < 0 or t & 3 > 0 or t + 4 > last:
            value = reward(table, t, b)
            total += on_grid(tape, value)
            if b == arm:
                record(table, trace, t, arm, value)
            t += 1
        else:
            for value in four_rewards(table, segment, t, b):
                total += on_grid(tape, value)
                if b == arm:
                    record(table, trace, t, arm, value)
                t += 1
    return total


def kernels_of(select: Kernel, learn: Kernel, **others: Kernel) -> Kernels:
    """Return the kernels of a policy that learns from the arm it pulls."""
    return Kernels(select=select, learn=learn, run=rounds(select, learn), **others)


@kernel
def corrupt(ends: Any, tape: Any, t: Any, arm: Any, reward: Any) -> Any:
    """Return the feedback of a reward in [0, 1]: 1 with probability g(reward), else 0.

    `ends` has one row for all arms alike or a row for each.
    """
    bit = reward
    if 0.0 < reward < 1.0:
        bit = 1.0 if uniform(tape, t, arm, ROUNDING) < reward else 0.0
    row = min(arm, ends.shape[0] - 1)
    return float(release_bit(tape, t, arm, NOISE, bit, ends[row, 1], 1.0 - ends[row, 0]))


def local_kernels(select: Kernel, learn_from_report: Kernel, **others: Kernel) -> Kernels:
    """Return the same for a local policy: it learns from reports, which a simulation makes of rewards.

    What the kernels are given has ``feedback``, a :class:`~tacit.arms.corruption.Feedback`.
    """

    @kernel
    def learn(params: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
        """Corrupt the reward, if private, and take the feedback in."""
        report = reward
        if params.feedback.private == 1:
            report = corrupt(params.feedback.ends, tape, t, arm, reward)
        learn_from_report(params, state, t, arm, report)

    return kernels_of(select, learn, learn_from_report=learn_from_report, **others)
