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

from tacit.arms.graph_environments import closed_rows
from tacit.arms.growing_blocks import (
    FULL,
    UNKNOWN,
    Blocks,
    learn,
    moves_on,
    note_pull,
    release_full,
)
from tacit.arms.growing_policy import BlockPolicy
from tacit.arms.largest_draw import largest_beta
from tacit.arms.rounds import rounds
from tacit.arms.tables import Table
from tacit.compiled import kernel
from tacit.generator import inverse_normal
from tacit.tapes import CHOICE, uniform

__all__ = ["LazyDPTS"]

_LEAST = 2.0**-54


class Rule(NamedTuple):
    """What the kernels need."""

    epsilon: float
    all_arms: NDArray[np.int64]
    """Shape (K,)."""


class State(NamedTuple):
    """What is learned."""

    blocks: Blocks
    """Sums and counts are of the latest epoch."""


@dataclass(frozen=True, kw_only=True)
class LazyDPTS(BlockPolicy[State]):
    """Draw a plausible mean of every arm from its private, optimistic posterior; pull the largest.

    Guarantee: pure differential privacy with `epsilon` for one round, of which one reward is seen,
    over the whole run; the server is trusted.

    Parameters
    ----------
    n_arms : int
        Number of arms K.
    epsilon : float
        Privacy of one reward.

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
    chances_later: ClassVar[bool] = True

    @cached_property
    def rule(self) -> Rule:
        """The numbers the kernels need."""
        return Rule(float(self.epsilon), np.arange(self.n_arms))

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        return State(self._blocks(closed_rows(self.n_arms)))


@kernel
def next_size(latest: Any) -> Any:
    """Return the length of an epoch: twice that of the latest one of its arm."""
    return 2 * latest


@kernel
def _gamma(tape: Any, t: Any, arm: Any, n_arms: Any, k: Any, shape: Any) -> Any:
    # Marsaglia and Tsang (2000), shape >= 1; reads the draws k, k + 2, k + 4, ... of the arm.
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        u = uniform(tape, t, arm + n_arms * k, CHOICE)
        x = inverse_normal(u * (1.0 - 2.0 * _LEAST) + _LEAST)
        v = (1.0 + c * x) ** 3
        if v > 0.0:
            u = max(uniform(tape, t, arm + n_arms * (k + 2), CHOICE), _LEAST)
            if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                return d * v
        k += 4


@kernel(inlined=False)
def beta_draw(tape: Any, t: Any, arm: Any, n_arms: Any, alpha: Any, beta: Any) -> Any:
    """Return a beta variate for an arm and round; both parameters are at least 1."""
    x = _gamma(tape, t, arm, n_arms, 0, alpha)
    y = _gamma(tape, t, arm, n_arms, 1, beta)
    return x / (x + y)


@kernel
def raised(rule: Any, blocks: Any, t: Any, arm: Any) -> Any:
    """Return the optimistic mean of an arm's latest epoch."""
    n = blocks.counts[arm]
    mean = blocks.sums[arm] / n + 3.0 * math.log(t + 1.0) / (rule.epsilon * n)
    return min(1.0, max(0.0, mean))


@kernel
def act(rule: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Release full epochs, then return the arm with the largest draw from its posterior."""
    blocks = state.blocks
    K = blocks.counts.size
    moves_on(blocks, t)
    if blocks.now[FULL] > 0:
        release_full(blocks, tape, t, rule.epsilon, 0, 1)
        for a in range(K):
            if blocks.fresh[a]:
                blocks.due[a] = next_size(blocks.counts[a])
    best, largest = eligible[0], -1.0
    for i in range(eligible.size):
        a = eligible[i]
        n = blocks.counts[a]
        if n == 0 and blocks.now[UNKNOWN] > 0 and blocks.open_counts[a] == 0:
            note_pull(blocks, t, a)
            return a
        draw = 1.0
        if n > 0:
            mean = raised(rule, blocks, t, a)
            draw = beta_draw(tape, t, a, K, mean * n + 1.0, (1.0 - mean) * n + 1.0)
        if draw > largest:
            best, largest = a, draw
    note_pull(blocks, t, best)
    return best


@kernel(allocates=True)
def chances(rule: Any, state: Any, t: Any, eligible: Any, out: Any) -> None:
    """Write the probability that each arm has the largest draw; one that is not known is certain."""
    blocks, m = state.blocks, eligible.size
    certain = -1
    for i in range(m - 1, -1, -1):
        if blocks.counts[eligible[i]] == 0:
            certain = eligible[i]
    for i in range(m - 1, -1, -1):
        if blocks.counts[eligible[i]] == 0 and blocks.open_counts[eligible[i]] == 0:
            certain = eligible[i]
    for a in range(out.size):
        out[a] = 1.0 if a == certain else 0.0
    if certain >= 0:
        return
    alphas, betas, best = np.empty(m), np.empty(m), np.empty(m)
    for i in range(m):
        n, mean = blocks.counts[eligible[i]], raised(rule, blocks, t, eligible[i])
        alphas[i], betas[i] = mean * n + 1.0, (1.0 - mean) * n + 1.0
    largest_beta(alphas, betas, best)
    for i in range(m):
        out[eligible[i]] = best[i]


LazyDPTS.chances = chances
LazyDPTS.act, LazyDPTS.next_size = act, next_size
LazyDPTS.run = rounds(act, learn)
