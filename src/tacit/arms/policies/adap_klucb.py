"""AdaP-KLUCB: private optimism with episodes that double and forget.

Pull each arm once; then, again and again, the arm with the largest index, as often as it was pulled
before. The index looks only at the noised mean of the arm's latest episode, raised by what noise may have
taken from it, so each reward enters one release. Azize and Basu (2022), Algorithm 1 and Section 4, to
the letter, with the paper's alpha = 3.1; ties go to the lowest index. The baseline of DP-KLUCB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.blocks import (
    UNKNOWN,
    BlockPolicy,
    Blocks,
    learn,
    release_full,
    select_by_releases,
    stretches,
)
from tacit.arms.divergence import upper_root
from tacit.arms.policy import Kernels
from tacit.arms.table import Table
from tacit.core.constraints import Positive
from tacit.core.kernels import kernel


class Params(NamedTuple):
    """What the kernels need."""

    epsilon: float
    alpha: float
    all_arms: NDArray[np.int64]
    """Shape (K,)."""


class State(NamedTuple):
    """What is learned."""

    blocks: Blocks
    """Sums and counts are of the latest episode."""
    totals: NDArray[np.int64]
    """Shape (K,): N, rewards of all episodes."""


@kernel
def next_size(released: Any) -> Any:
    """Return the length of an episode: that of all earlier ones of its arm together."""
    return released


@kernel(inlined=False)
def choose(params: Any, state: Any, t: Any, eligible: Any) -> Any:
    """Lines 3 and 6: each arm once, then the largest index at t_l = t + 1."""
    blocks = state.blocks
    if blocks.now[UNKNOWN] > 0:
        for i in range(eligible.size):
            if blocks.counts[eligible[i]] == 0:
                return eligible[i]
    best, largest = eligible[0], -1.0
    bonus = params.alpha * math.log(t + 1.0)
    for i in range(eligible.size):
        a = eligible[i]
        m = blocks.counts[a]
        raised = blocks.sums[a] / m + bonus / (params.epsilon * m)
        index = upper_root(min(1.0, max(0.0, raised)), bonus / m)
        if index > largest:
            best, largest = a, index
    return best


@kernel
def release(params: Any, state: Any, tape: Any, t: Any) -> None:
    """End the episodes that are complete."""
    blocks = state.blocks
    release_full(blocks, tape, t, params.epsilon, 0, 1)
    for a in range(blocks.counts.size):
        if blocks.fresh[a]:
            state.totals[a] += blocks.counts[a]
            blocks.due[a] = next_size(state.totals[a])


select = select_by_releases(release, choose)


@dataclass(frozen=True, kw_only=True)
class AdaPKLUCB(BlockPolicy[State]):
    """Play the arm of largest private index for an episode, which doubles from time to time.

    Guarantee: pure differential privacy with `epsilon` for one round, of which one reward is seen,
    over the whole run; the server is trusted.

    Parameters
    ----------
    exploration : float, default 3.1
        alpha; the regret bound needs more than 3.

    Examples
    --------
    >>> from tacit.arms import AdaPKLUCB
    >>> AdaPKLUCB(n_arms=3, epsilon=0.5).guarantee(1000).epsilon
    0.5

    References
    ----------
    Azize, Basu. When privacy meets partial information: a refined analysis of differentially private
    bandits. NeurIPS 2022.
    """

    name: ClassVar[str] = "adap-klucb"
    summary: ClassVar[str] = "private KL-UCB in episodes that double and forget, a baseline"
    paper: ClassVar[str] = "Azize and Basu 2022, Algorithm 1"
    kernels: ClassVar[Kernels] = Kernels(
        select=select, learn=learn, run=stretches(select), next_size=next_size
    )

    exploration: Positive = 3.1

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        return Params(float(self.epsilon), float(self.exploration), np.arange(self.n_arms))

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        blocks = self.start_blocks(table)
        return State(blocks, np.zeros(self.n_arms, np.int64))
