"""DP-TopTwo: which arm is best, from noised block sums.

The leader is the arm of largest released mean, the challenger the one that is cheapest to mistake for a
better one: the least n_l d_eps + n_c d_eps at which both could have one mean, d_eps saying how well private
sums tell means apart. Of the two the one seen less often is pulled. Blocks are those of DP-IMED: they grow
by half and nothing is forgotten. How sure the leader is says `tacit.arms.identification.released_error`.

After the top-two rules of Jourdan, Degenne, Baudry, de Heide and Kaufmann (2022) and of Azize, Jourdan,
Al Marjani and Basu (2023), who give the leader half of all pulls and drop older blocks; the error here has
a proof of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.blocks import (
    FULL,
    UNKNOWN,
    BlockPolicy,
    Blocks,
    learn,
    record_pull,
    shows_most_unknown,
    update_graph,
)
from tacit.arms.divergence import private_divergence
from tacit.arms.identification import Identifying, Named, Seen, released_error
from tacit.arms.loops import kernels_of
from tacit.arms.policies.dp_imed import Params, next_size, release
from tacit.arms.policy import Kernels
from tacit.arms.table import Table
from tacit.core.kernels import kernel

_GRID = 2.0**-20
_STEPS = 48


class State(NamedTuple):
    """What is learned."""

    blocks: Blocks
    releases: NDArray[np.int64]
    """Shape (K,): how many blocks each arm has released."""
    pair: NDArray[np.int64]
    """Shape (2,): leader and challenger among all arms."""


@kernel(inlined=False)
def confusion(blocks: Any, leader: Any, arm: Any, epsilon: Any) -> Any:
    """Return the least cost at which the leader and another arm could have one mean; convex in it."""
    low, high = blocks.means[arm], blocks.means[leader]
    n_low, n_high = blocks.counts[arm], blocks.counts[leader]
    least = 0.0
    for _ in range(_STEPS):
        third = (high - low) / 3.0
        left, right = low + third, high - third
        at_left = n_low * private_divergence(blocks.means[arm], left, epsilon)
        at_left += n_high * private_divergence(1.0 - blocks.means[leader], 1.0 - left, epsilon)
        at_right = n_low * private_divergence(blocks.means[arm], right, epsilon)
        at_right += n_high * private_divergence(1.0 - blocks.means[leader], 1.0 - right, epsilon)
        least = min(at_left, at_right)
        if at_left < at_right:
            high = right
        else:
            low = left
    return least


@kernel(inlined=False)
def duel(params: Any, blocks: Any, eligible: Any) -> Any:
    """Return the leader among the eligible arms and its challenger."""
    leader = eligible[0]
    for i in range(1, eligible.size):
        if blocks.means[eligible[i]] > blocks.means[leader]:
            leader = eligible[i]
    challenger, least = leader, math.inf
    for i in range(eligible.size):
        a = eligible[i]
        if a != leader:
            cost = confusion(blocks, leader, a, params.epsilon)
            if challenger == leader or cost < least:
                challenger, least = a, cost
    return leader, challenger


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Release full blocks; return an arm without a release, else the one of two seen less often."""
    blocks = state.blocks
    update_graph(blocks, t)
    if blocks.now[FULL] > 0:
        release(params, state, tape, t)
        for a in range(blocks.counts.size):
            state.releases[a] += blocks.fresh[a]
        state.pair[0], state.pair[1] = duel(params, blocks, params.all_arms)
    arm = shows_most_unknown(blocks, eligible) if blocks.now[UNKNOWN] > 0 else np.int64(-1)
    if arm < 0:
        leader, challenger = state.pair[0], state.pair[1]
        if eligible.size < blocks.counts.size:
            leader, challenger = duel(params, blocks, eligible)
        seen = blocks.counts[leader] + blocks.open_counts[leader]
        fewer = blocks.counts[challenger] + blocks.open_counts[challenger] < seen
        arm = challenger if fewer else leader
    record_pull(blocks, t, arm)
    return arm


@dataclass(frozen=True, kw_only=True)
class DPTopTwo(BlockPolicy[State], Identifying):
    """Pull the leader or its closest challenger, judged by noised block sums, to identify the best arm.

    Guarantee: pure differential privacy with `epsilon` for one round, of which one reward is seen,
    over the whole run, when it stops and what it names included; the server is trusted.

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import Bernoulli, DPTopTwo
    >>> found = tacit.identify(DPTopTwo(n_arms=2, epsilon=1.0), Bernoulli(means=(0.2, 0.8)))
    >>> found.arms.tolist(), bool(found.rounds.max() < 500)
    ([1], True)

    References
    ----------
    Azize, Jourdan, Al Marjani, Basu. On the complexity of differentially private best-arm
    identification with fixed confidence. 2023.
    """

    name: ClassVar[str] = "dp-top-two"
    summary: ClassVar[str] = "which arm is best: leader and challenger, from noised block sums"
    paper: ClassVar[str] = "after Azize et al. 2023"
    kernels: ClassVar[Kernels] = kernels_of(select, learn, next_size=next_size)

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        return Params(float(self.epsilon), 0, np.arange(self.n_arms))

    @property
    def first_size(self) -> int:
        """As many as make the noise half of what it can hide."""
        return math.ceil(2.0 / self.epsilon)

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        blocks = self.start_blocks(table)
        return State(blocks, np.zeros(self.n_arms, np.int64), np.zeros(2, np.int64))

    def best_arm(self, state: State) -> Named:
        """Return the leader, and how sure the released sums make it."""
        blocks = state.blocks
        if blocks.now[UNKNOWN] > 0:
            return Named(0, 1.0)
        rows = zip(blocks.sums, blocks.counts, state.releases, strict=True)
        seen = tuple(Seen(float(total), int(n), int(k)) for total, n, k in rows)
        return released_error(seen, self.epsilon, _GRID)
