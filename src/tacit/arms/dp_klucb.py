"""DP-KLUCB: optimism by private confidence bounds, plain and on a feedback graph.

The index of an arm is the largest mean q that its released sum does not contradict:
n d_eps(mean, q) <= ln t. The arm with the largest index is the one to learn about, and on a feedback graph
the arm of best mean among those that show it is pulled. Blocks, releases and privacy are those of
DP-IMED. After Azize, Wu, Honda, Orabona, Ito and Basu (2025); indices are compared when something was
released, because nothing else changes but t. Of equal indices that of fewer rewards counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tacit.arms.dp_imed import Rule, next_size, release
from tacit.arms.growing_blocks import (
    CHOICE,
    FULL,
    UNKNOWN,
    Blocks,
    best_showing,
    moves_on,
    note_pull,
    play_stretch,
    shows_most_unknown,
)
from tacit.arms.growing_policy import GraphBlockPolicy
from tacit.arms.private_divergence import private_upper_root
from tacit.arms.tables import Table
from tacit.compiled import kernel

__all__ = ["DPKLUCB"]


class State(NamedTuple):
    """What is learned."""

    blocks: Blocks


@dataclass(frozen=True, kw_only=True)
class DPKLUCB(GraphBlockPolicy[State]):
    """Pull what shows the arm with the largest private upper confidence bound.

    Guarantee: as for :class:`~tacit.arms.DPIMED`.

    Parameters
    ----------
    n_arms, epsilon, unit, graph
        As in :class:`~tacit.arms.DPIMED`.

    Examples
    --------
    >>> from tacit.arms import DPKLUCB
    >>> DPKLUCB(n_arms=3, epsilon=0.5, unit="round").guarantee(1000).unit
    'round'

    References
    ----------
    Azize, Wu, Honda, Orabona, Ito, Basu. Optimal regret of Bernoulli bandits under global
    differential privacy. 2025.
    """

    name: ClassVar[str] = "dp-klucb"
    summary: ClassVar[str] = "private KL upper confidence bounds, with or without a feedback graph"
    paper: ClassVar[str] = "after Azize et al. 2025"

    @cached_property
    def rule(self) -> Rule:
        """The numbers the kernels need."""
        return Rule(float(self.epsilon), int(self.unit == "round"), np.arange(self.n_arms))

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing, on the graph of `table` or the policy's own."""
        return State(self._start(table))


@kernel(inlined=False)
def choose(rule: Any, state: Any, t: Any, eligible: Any) -> Any:
    """Return the arm to pull: what shows most unknown arms, else what shows the target."""
    blocks = state.blocks
    if blocks.now[UNKNOWN] > 0:
        arm = shows_most_unknown(blocks, eligible)
        if arm >= 0:
            return arm
    target, pull, largest = -1, eligible[0], -1.0
    log_t = math.log(t + 1.0)
    for a in range(blocks.counts.size):
        n = blocks.counts[a]
        if n > 0:
            epsilon = rule.epsilon / blocks.most[a]
            q = private_upper_root(blocks.means[a], log_t / n, epsilon)
            if q > largest or (q == largest and n < blocks.counts[target]):
                arm = best_showing(blocks, a, eligible)
                if arm >= 0:
                    target, pull, largest = a, arm, q
    return pull


@kernel
def act(rule: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Release the full blocks, if any, and return the arm of round t."""
    blocks = state.blocks
    moved = moves_on(blocks, t)
    if moved or blocks.now[FULL] > 0:
        release(rule, state, tape, t)
        blocks.now[CHOICE] = choose(rule, state, t, rule.all_arms)
    arm = blocks.now[CHOICE]
    if eligible.size < blocks.counts.size:
        arm = choose(rule, state, t, eligible)
    note_pull(blocks, t, arm)
    return arm


@kernel
def run(rule: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any) -> None:
    """Play rounds first to last - 1."""
    t = first
    while t < last:
        act(rule, state, tape, t, rule.all_arms)
        t = play_stretch(state.blocks, table, tape, trace, t, last)


DPKLUCB.act, DPKLUCB.run, DPKLUCB.next_size = act, run, next_size
