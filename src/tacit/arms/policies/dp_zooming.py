"""DP-Zooming: arms on a line whose means are alike where they are close, by a tree of cells.

Paper 002 leaves Lipschitz arms to future work. Arm i of n lies at (i + 1/2) / n, and the means of two arms
differ by at most `lipschitz` times their distance. A cell is a range of arms, tried at its middle; cells that
may hold the best arm are halved again and again, so that learning is fine where rewards are large and coarse
elsewhere. The leaves of the tree divide the line, and every observed reward goes into the open block of the
leaf its arm lies in: one reward enters one release, and everything else is post-processing.

The bound of a cell is what its released sum does not contradict, max{q: n d_eps(mean, q) <= ln t}, plus
`lipschitz` times the distance of its farthest arm from the middle; no cell's bound is larger than those of
the cells it is part of. The leaf with the largest bound is tried until its block is full. When its sum tells
its mean more precisely than its width tells its means, it is halved. Blocks are those of DP-IMED. The cells
are those of HOO (Bubeck, Munos, Stoltz and Szepesvari 2011), the rule for halving is that of zooming
(Kleinberg, Slivkins and Upfal 2008), the private bound is DP-KLUCB's; together they are this project's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.blocks import (
    CHOICE,
    FULL,
    BlockPolicy,
    Blocks,
    add_reward,
    new_blocks,
    release_full,
    update_graph,
)
from tacit.arms.divergence import private_upper_root
from tacit.arms.loops import kernels_of
from tacit.arms.policies.dp_imed import next_size
from tacit.arms.policy import Kernels
from tacit.arms.table import Table, closed_rows
from tacit.core.constraints import Positive, require
from tacit.core.kernels import kernel

SOONER = 0.5
"""A leaf is halved when it knows its mean to this many times its reach."""


class Params(NamedTuple):
    """What the kernels need of C cells; the halves of cell v are 2 v + 1 and 2 v + 2."""

    epsilon: float
    low: NDArray[np.int64]
    """Shape (C,): the first arm of each cell; -1 where there is no cell."""
    high: NDArray[np.int64]
    """Shape (C,): the arm after the last."""
    reach: NDArray[np.float64]
    """Shape (C,): by how much a mean of the cell may differ from that of its middle."""
    all_arms: NDArray[np.int64]
    """Shape (K,)."""


class State(NamedTuple):
    """What is learned."""

    blocks: Blocks
    """One a cell instead of one an arm."""
    leaf_of: NDArray[np.int64]
    """Shape (K,): the leaf that each arm lies in."""
    bounds: NDArray[np.float64]
    """Shape (C,): the bound of each cell at the latest release; 0 for what is neither leaf nor halved."""


@kernel(inlined=False)
def bound_of(params: Any, state: Any, v: Any, log_t: Any) -> Any:
    """Return what no mean of a cell exceeds, by its own sum and by those of the cells around it."""
    blocks, bound = state.blocks, 1.0
    while v >= 0:
        n = blocks.counts[v]
        if n > 0:
            q = private_upper_root(blocks.means[v], log_t / n, params.epsilon)
            bound = min(bound, q + params.reach[v])
        v = (v + 1) // 2 - 1
    return bound


@kernel(inlined=False)
def release(params: Any, state: Any, tape: Any, t: Any) -> None:
    """Release the full blocks; halve the leaves that know their mean better than their width allows."""
    blocks, log_t = state.blocks, math.log(t + 1.0)
    release_full(blocks, tape, t, params.epsilon, 0, 0)
    for v in range(blocks.counts.size):
        if blocks.fresh[v]:
            n, mean = blocks.counts[v], blocks.means[v]
            blocks.due[v] = next_size(n)
            is_leaf = state.leaf_of[params.low[v]] == v
            radius = private_upper_root(mean, log_t / n, params.epsilon) - mean
            if (
                is_leaf
                and params.high[v] - params.low[v] > 1
                and radius <= SOONER * params.reach[v]
            ):
                for half in range(2 * v + 1, 2 * v + 3):
                    for a in range(params.low[half], params.high[half]):
                        state.leaf_of[a] = half


@kernel(inlined=False)
def choose(params: Any, state: Any, t: Any, eligible: Any) -> Any:
    """Return the arm nearest the middle of the leaf with the largest bound that has eligible arms."""
    log_t = math.log(t + 1.0)
    best, largest, before = eligible[0], -1.0, np.int64(-1)
    fewest = np.int64(0)
    for i in range(eligible.size):
        a = eligible[i]
        v = state.leaf_of[a]
        if v != before:
            before = v
            state.bounds[v] = bound_of(params, state, v, log_t)
        bound, n = state.bounds[v], state.blocks.counts[v]
        if bound > largest or (bound == largest and n < fewest):
            best, largest, fewest = a, bound, n
        elif v == state.leaf_of[best]:
            middle = (params.low[v] + params.high[v]) // 2
            if abs(a - middle) < abs(best - middle):
                best = a
    return best


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Release full blocks, if any, and return the arm of round t."""
    blocks = state.blocks
    begun = update_graph(blocks, t)
    if begun or blocks.now[FULL] > 0:
        release(params, state, tape, t)
        blocks.now[CHOICE] = choose(params, state, t, params.all_arms)
    if eligible.size < params.all_arms.size:
        return choose(params, state, t, eligible)
    return blocks.now[CHOICE]


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Put the reward into the block of the leaf its arm lies in."""
    add_reward(state.blocks, tape, t, state.leaf_of[arm], reward)


@dataclass(frozen=True, kw_only=True)
class DPZooming(BlockPolicy[State]):
    """Learn finely where rewards are large, by noised sums of cells of arms on a line.

    Guarantee: pure differential privacy with `epsilon` for one round, of which one reward is seen,
    over the whole run; the server is trusted.

    Parameters
    ----------
    n_arms : int
        Number of arms K, evenly spaced on the line from 0 to 1.
    lipschitz : float, default 1
        By how much means may differ, times the distance of their arms.

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import DPZooming, Lipschitz
    >>> policy = DPZooming(n_arms=256, epsilon=1.0, lipschitz=2.0)
    >>> result = tacit.simulate(policy, Lipschitz(n_arms=256), horizon=5000, repetitions=4)
    >>> bool(result.final("regret").mean() < 600)
    True
    >>> policy.guarantee(5000).epsilon
    1.0

    References
    ----------
    Bubeck, Munos, Stoltz, Szepesvari. X-armed bandits. JMLR 2011.
    Kleinberg, Slivkins, Upfal. Multi-armed bandits in metric spaces. STOC 2008.
    """

    name: ClassVar[str] = "dp-zooming"
    summary: ClassVar[str] = "arms on a line with a smooth mean, private tree of cells"
    paper: ClassVar[str] = "Tacit's own, for the future work of 002"
    kernels: ClassVar[Kernels] = kernels_of(select, learn, next_size=next_size)

    lipschitz: Positive = 1.0

    @property
    def first_size(self) -> int:
        """As many as make the noise half of what it can hide."""
        return math.ceil(2.0 / self.epsilon)

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        K = self.n_arms
        cells = 2 ** (math.ceil(math.log2(K)) + 1) - 1
        low, high = np.full(cells, -1), np.full(cells, -1)
        low[0], high[0] = 0, K
        for v in range(cells // 2):
            if high[v] - low[v] > 1:
                half = (low[v] + high[v]) // 2
                low[2 * v + 1], high[2 * v + 1] = low[v], half
                low[2 * v + 2], high[2 * v + 2] = half, high[v]
        middle = (low + high) // 2
        farthest = np.maximum(middle - low, high - 1 - middle)
        return Params(
            epsilon=float(self.epsilon),
            low=low,
            high=high,
            reach=self.lipschitz * farthest / K,
            all_arms=np.arange(K),
        )

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing: one cell."""
        cells = self.params.low.size
        alone = closed_rows(cells)
        return State(
            blocks=new_blocks(cells, alone, first=self.first_size, per_round=False),
            leaf_of=np.zeros(self.n_arms, np.int64),
            bounds=np.zeros(cells),
        )

    def carry_over(self, state: State, larger: State) -> None:
        """Refuse: another arm would move all others on the line."""
        require(self, "n_arms", "unchanged, because arms are places on a line", False, self.n_arms)
