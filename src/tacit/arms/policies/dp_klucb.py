"""DP-KLUCB: optimism by private confidence bounds, plain and on a feedback graph.

The index of an arm is the largest mean q that its released sum does not contradict:
n d_eps(mean, q) <= ln t. The arm with the largest index is the one to learn about, and on a feedback graph
the arm of best mean among those that show it is pulled. Blocks, releases and privacy are those of
DP-IMED. After Azize, Wu, Honda, Orabona, Ito and Basu (2025); indices are compared when something was
released, because nothing else changes but t. Of equal indices that of fewer rewards counts.

Hardly any index is solved: d_eps is convex in q, so that an index which was q0 at ln t0 has grown by at
most (ln t - ln t0) / (n d_eps'(mean, q0)) since, and most cannot have become the largest.
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
    select_by_releases,
    serve,
    shows_most_unknown,
    stretches,
)
from tacit.arms.divergence import private_slope, private_upper_root
from tacit.arms.policies.dp_imed import Params, next_size, release
from tacit.arms.policy import Kernels
from tacit.arms.table import Table
from tacit.core.kernels import kernel

_ROUNDING = 1e-9  # indices are exact to far less


class State(NamedTuple):
    """What is learned."""

    blocks: Blocks
    indices: NDArray[np.float64]
    """Shape (K,): an arm's index when it was last solved; infinite if its sum has changed since."""
    solved_at: NDArray[np.float64]
    """Shape (K,): ln t then."""
    growth: NDArray[np.float64]
    """Shape (K,): at most so much has it grown for each unit of ln t since."""
    target: NDArray[np.int64]
    """Shape (1,): the arm whose index was the largest, -1 at first."""


@kernel(inlined=False)
def choose(params: Any, state: Any, t: Any, eligible: Any) -> Any:
    """Return the arm to pull: what shows most unknown arms, else what shows the target."""
    blocks = state.blocks
    if blocks.now[UNKNOWN] > 0:
        arm = shows_most_unknown(blocks, eligible)
        if arm >= 0:
            return arm
    target, pull, largest = -1, eligible[0], -1.0
    log_t = math.log(t + 1.0)
    bar = -1.0
    if state.target[0] >= 0 and best_showing(blocks, state.target[0], eligible) >= 0:
        bar = solved(params, state, state.target[0], log_t)  # the largest is no less
    for a in range(blocks.counts.size):
        n = blocks.counts[a]
        most = state.indices[a] + state.growth[a] * (log_t - state.solved_at[a])
        if n > 0 and not most < max(bar, largest) - _ROUNDING:
            q = solved(params, state, a, log_t)
            if q > largest or (q == largest and n < blocks.counts[target]):
                arm = best_showing(blocks, a, eligible)
                if arm >= 0:
                    target, pull, largest = a, arm, q
    state.target[0] = target
    return pull


@kernel(inlined=False)
def solved(params: Any, state: Any, a: Any, log_t: Any) -> Any:
    """Return max{q: n d_eps(mean, q) <= ln t} of an arm, and note how fast it may grow."""
    n, mean = state.blocks.counts[a], state.blocks.means[a]
    epsilon = params.epsilon / state.blocks.most[a]
    q = private_upper_root(mean, log_t / n, epsilon)
    slope = private_slope(mean, q, epsilon) if q < 1.0 else math.inf
    state.indices[a], state.solved_at[a] = q, log_t
    state.growth[a] = 1.0 / (n * slope) if slope > 0.0 else math.inf
    return q


@kernel
def renew(params: Any, state: Any, tape: Any, t: Any) -> None:
    """Release the full blocks; the indices of their arms are to be solved anew."""
    release(params, state, tape, t)
    for a in range(state.indices.size):
        if state.blocks.fresh[a]:
            state.indices[a], state.growth[a] = math.inf, 0.0


select = select_by_releases(renew, choose)


@dataclass(frozen=True, kw_only=True)
class DPKLUCB(GraphBlockPolicy[State]):
    """Pull what shows the arm with the largest private upper confidence bound.

    Guarantee: as for :class:`~tacit.arms.DPIMED`.

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
    kernels: ClassVar[Kernels] = Kernels(
        select=select, learn=learn, run=stretches(select), serve=serve, next_size=next_size
    )

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        return Params(float(self.epsilon), int(self.unit == "round"), np.arange(self.n_arms))

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing, on the graph of `table` or the policy's own."""
        infinite = np.full(self.n_arms, np.inf)
        zeros = np.zeros((2, self.n_arms))
        return State(self.start_blocks(table), infinite, zeros[0], zeros[1], np.array([-1]))
