"""DP-IMED: the least private evidence decides, plain and on a feedback graph.

Each arm has a released sum S of n rewards and an open block. The arm to learn about is the one with the
least evidence n d_eps(mean, best mean) + ln n of being worse; d_eps says how well private sums tell two means
apart. On a feedback graph the arm of best mean among those that show it is pulled. A block is released
when it holds half as many rewards as are released already, and nothing is forgotten: S grows by the noised
sum. Before every arm has a release, the arm that shows most arms without one is pulled.

After Azize, Wu, Honda, Orabona, Ito and Basu (2025), whose blocks double; the graph, the unit of a round, the
growth by half and the first blocks of 2 / epsilon rewards are this project's.
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
    Blocks,
    GraphBlockPolicy,
    best_showing,
    learn,
    release_full,
    select_by_releases,
    serve,
    shows_most_unknown,
    stretches,
)
from tacit.arms.divergence import private_divergence
from tacit.arms.policy import Kernels
from tacit.arms.table import Table
from tacit.core.kernels import kernel

GROWTH = 0.5
"""A block ends when it holds this share of what is released already."""


class Params(NamedTuple):
    """What the kernels need."""

    epsilon: float
    per_round: int
    """1 if a whole round is protected, 0 if one reward is."""
    all_arms: NDArray[np.int64]
    """Shape (K,)."""


class State(NamedTuple):
    """What is learned."""

    blocks: Blocks
    evidence: NDArray[np.float64]
    """Shape (K,): n d_eps(mean, best mean) + ln n; infinite before the first release."""
    best: NDArray[np.float64]
    """Shape (1,): the best mean that the evidence is about."""


@kernel
def next_size(released: Any) -> Any:
    """Return the length of a block: half of what is released already."""
    return max(1, math.ceil(GROWTH * released))


@kernel(inlined=False)
def release(params: Any, state: Any, tape: Any, t: Any) -> None:
    """Release the full blocks and say how long the next ones are."""
    blocks = state.blocks
    release_full(blocks, tape, t, params.epsilon, params.per_round, 0)
    for a in range(blocks.counts.size):
        if blocks.fresh[a]:
            blocks.due[a] = next_size(blocks.counts[a])


@kernel(inlined=False)
def weigh(params: Any, state: Any) -> None:
    """Bring the evidence up to date: of all arms if the best mean changed, else of the fresh ones."""
    blocks = state.blocks
    best = 0.0
    for a in range(blocks.counts.size):
        if blocks.counts[a] > 0:
            best = max(best, blocks.means[a])
    changed = best != state.best[0]
    state.best[0] = best
    for a in range(blocks.counts.size):
        n = blocks.counts[a]
        if n > 0 and (changed or blocks.fresh[a]):
            epsilon = params.epsilon / blocks.most[a]
            d = private_divergence(blocks.means[a], best, epsilon)
            state.evidence[a] = n * d + math.log(n)


@kernel(inlined=False)
def choose(params: Any, state: Any, t: Any, eligible: Any) -> Any:
    """Return the arm to pull: what shows most unknown arms, else what shows the target."""
    blocks = state.blocks
    if blocks.now[UNKNOWN] > 0:
        arm = shows_most_unknown(blocks, eligible)
        if arm >= 0:
            return arm
    target, pull = -1, eligible[0]
    for a in range(blocks.counts.size):
        if target < 0 or state.evidence[a] < state.evidence[target]:
            arm = best_showing(blocks, a, eligible)
            if arm >= 0:
                target, pull = a, arm
    return pull


@kernel
def renew(params: Any, state: Any, tape: Any, t: Any) -> None:
    """Release the full blocks and weigh what they say."""
    release(params, state, tape, t)
    weigh(params, state)


select = select_by_releases(renew, choose)


@dataclass(frozen=True, kw_only=True)
class DPIMED(GraphBlockPolicy[State]):
    """Pull what shows the arm with the least evidence of being worse, judged by noised block sums.

    Guarantee: pure differential privacy with `epsilon` for one reward (one arm, one round), or with
    ``unit="round"`` for all rewards of one round, over the whole run; the server is trusted. The
    values are protected, not whether a reward arrives: rewards may be lost or late only
    independently of their value.

    Parameters
    ----------
    epsilon : float
        Privacy of the protected unit.
    unit : "reward" or "round", default "reward"
        What is protected. A round multiplies the noise of a block by the largest number of rewards
        that one of its rounds shows.

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import DPIMED, Bernoulli
    >>> policy = DPIMED(n_arms=3, epsilon=0.5)
    >>> result = tacit.simulate(policy, Bernoulli(means=(0.8, 0.5, 0.4)), horizon=10_000, repetitions=4)
    >>> bool(result.final("regret").mean() < 200)
    True
    >>> policy.guarantee(10_000).epsilon
    0.5

    References
    ----------
    Azize, Wu, Honda, Orabona, Ito, Basu. Optimal regret of Bernoulli bandits under global
    differential privacy. 2025.
    """

    name: ClassVar[str] = "dp-imed"
    summary: ClassVar[str] = (
        "private minimum empirical divergence, with or without a feedback graph"
    )
    paper: ClassVar[str] = "after Azize et al. 2025"
    kernels: ClassVar[Kernels] = Kernels(
        select=select, learn=learn, run=stretches(select), serve=serve, next_size=next_size
    )

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        return Params(float(self.epsilon), int(self.unit == "round"), np.arange(self.n_arms))

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing, on the graph of `table` or the policy's own."""
        return State(self.start_blocks(table), np.full(self.n_arms, np.inf), np.full(1, -1.0))
