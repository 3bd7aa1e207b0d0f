"""Lazy-DP-TS: private Thompson sampling on epochs that double and are dropped.

Each arm's posterior comes from the noised sum of its latest epoch of 2^r rewards alone; older ones are
dropped, so that a reward enters one release. The mean is raised by 3 ln t / (epsilon 2^r), which outweighs
the noise, and clipped to [0, 1]; each round draws a plausible mean of every arm from a beta posterior and
pulls the arm with the largest. After Hu and Hegde (2022), read from a summary of their Algorithm 2 and not
from the paper itself; each arm is pulled once first. A baseline.
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
    release_full,
    update_graph,
)
from tacit.arms.largest_draw import largest_beta
from tacit.arms.loops import kernels_of
from tacit.arms.policy import Kernels
from tacit.arms.table import Table
from tacit.core.kernels import kernel
from tacit.core.samplers import beta, chooser_of
from tacit.core.tapes import CHOICE


class Params(NamedTuple):
    """What the kernels need."""

    epsilon: float
    all_arms: NDArray[np.int64]
    """Shape (K,)."""


class State(NamedTuple):
    """What is learned."""

    blocks: Blocks
    """Sums and counts are of the latest epoch."""


@kernel
def next_size(latest: Any) -> Any:
    """Return the length of an epoch: twice that of the latest one of its arm."""
    return 2 * latest


@kernel
def _raise(params: Any, t: Any) -> Any:
    """Return by how much a sum is raised in round t, whatever its epoch."""
    return 3.0 * math.log(t + 1.0) / params.epsilon


@kernel
def _ones(blocks: Any, raised: Any, arm: Any) -> Any:
    """Return the optimistic number of ones in an arm's latest epoch."""
    return min(float(blocks.counts[arm]), max(0.0, blocks.sums[arm] + raised))


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Release full epochs, then return the arm with the largest draw from its posterior."""
    blocks = state.blocks
    K = blocks.counts.size
    update_graph(blocks, t)
    if blocks.now[FULL] > 0:
        release_full(blocks, tape, t, params.epsilon, 0, 1)
        for a in range(K):
            if blocks.fresh[a]:
                blocks.due[a] = next_size(blocks.counts[a])
    chooser, raised = chooser_of(tape), _raise(params, t)
    best, largest = eligible[0], -1.0
    for i in range(eligible.size):
        a = eligible[i]
        n = blocks.counts[a]
        if n == 0 and blocks.now[UNKNOWN] > 0 and blocks.open_counts[a] == 0:
            record_pull(blocks, t, a)
            return a
        draw = 1.0
        if n > 0:
            ones = _ones(blocks, raised, a)
            draw = beta(chooser, CHOICE, t, a, ones + 1.0, n - ones + 1.0)
            tape.reads[0] += 1
        if draw > largest:
            best, largest = a, draw
    record_pull(blocks, t, best)
    return best


@kernel
def posterior(params: Any, state: Any, t: Any, eligible: Any, out: Any) -> None:
    """Write alpha and beta of each eligible arm; of one that is pulled for certain alpha is infinite."""
    blocks, raised, certain, known = state.blocks, _raise(params, t), -1, 2
    for i in range(eligible.size):
        a = eligible[i]
        n, ones = blocks.counts[a], _ones(blocks, raised, a)
        out[0, i], out[1, i] = ones + 1.0, n - ones + 1.0
        # First one that was never pulled, then one that nothing is known of.
        first = 0 if blocks.open_counts[a] == 0 else 1
        if n == 0 and first < known:
            certain, known = i, first
    if certain >= 0:
        out[0, certain] = np.inf


@kernel
def largest(alphas: Any, betas: Any, out: Any) -> None:
    """Write the probability that each arm has the largest draw."""
    for i in range(out.size):
        out[i] = 0.0
    for i in range(out.size):
        if alphas[i] == np.inf:
            out[i] = 1.0
            return
    largest_beta(alphas, betas, out)


@dataclass(frozen=True, kw_only=True)
class LazyDPTS(BlockPolicy[State]):
    """Draw a plausible mean of every arm from its private, optimistic posterior; pull the largest.

    Guarantee: pure differential privacy with `epsilon` for one round, of which one reward is seen,
    over the whole run; the server is trusted.

    Examples
    --------
    >>> from tacit.arms import LazyDPTS
    >>> LazyDPTS(n_arms=3, epsilon=0.5).guarantee(1000).epsilon
    0.5

    References
    ----------
    Hu, Hegde. Near-optimal Thompson sampling-based algorithms for differentially private stochastic
    bandits. UAI 2022.
    """

    name: ClassVar[str] = "lazy-dp-ts"
    summary: ClassVar[str] = "private Thompson sampling on epochs that double, a baseline"
    paper: ClassVar[str] = "after Hu and Hegde 2022"
    latest_only: ClassVar[bool] = True
    kernels: ClassVar[Kernels] = kernels_of(
        select, learn, posterior=posterior, largest=largest, next_size=next_size
    )

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        return Params(float(self.epsilon), np.arange(self.n_arms))

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        return State(self.start_blocks(table))
