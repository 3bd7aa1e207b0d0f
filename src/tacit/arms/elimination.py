"""What the policies that drop arms share: parameters, guarantee, and the state of a phase.

Where a whole round is protected, the noise of a reward is multiplied by a number that is public. All rewards
of a round are shown by one pulled arm, and each moves the mean of its own arm by at most 1 / o, where o
counts that arm's observations in the phase. With noise made for 1 / L, a round costs the sum of L / o over
the active arms shown, at most; with noise made for 1 / o, their number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.arms.policy import ArmsPolicy
from tacit.arms.table import Table, row_of, undirected
from tacit.core.constraints import Count, Share, one_of, require
from tacit.core.decider import ALPHA, Estimate
from tacit.core.kernels import kernel
from tacit.graphs import Graph
from tacit.privacy import Claim, Guarantee, Mechanism
from tacit.privacy.block_sums import TrustedServer
from tacit.privacy.mechanisms import Epsilon


class ActiveState(Protocol):
    """The state of a policy that drops arms."""

    @property
    def active(self) -> NDArray[np.bool_]:
        """Shape (K,): arms not dropped."""


A = TypeVar("A", bound=ActiveState)


@dataclass(frozen=True, kw_only=True)
class Elimination(Generic[A]):
    """What every policy that drops arms shares, beside its kind of policy.

    Parameters
    ----------
    horizon : int
        Number of rounds T, for the failure probability.
    failure_prob : float, optional
        Probability with which the confidence bounds may fail; 1/T if not given.
    """

    learns_from_any: ClassVar[bool] = False

    horizon: Count
    failure_prob: Share | None = None

    @property
    def confidence_loss(self) -> float:
        """The failure probability in force: 1/T unless given."""
        return 1.0 / self.horizon if self.failure_prob is None else float(self.failure_prob)

    def retire(self, state: A, arm: int) -> None:
        """Drop the arm."""
        others = state.active.sum() - state.active[arm]
        require(self, "arms", "left that are not dropped", bool(others > 0), others)
        state.active[arm] = False


class Params(NamedTuple):
    """What the kernels of GAP, GAPU and DP-SE need."""

    epsilon: float
    failure_prob: float
    per_round: int
    """1 if a whole round is protected, 0 if one reward is."""
    tight: int
    """1 if the noise of a mean shrinks with its own count, 0 if with L."""
    extra: int
    """Observations of each arm beyond L (DP-SE asks for one)."""


class State(NamedTuple):
    """What is learned. Sums and counts are raw: only `means` and what follows from them is private."""

    graph_starts: NDArray[np.int64]
    """Shape (G,): the first round of each feedback graph."""
    indptr: NDArray[np.int64]
    """Shape (G (K + 1),): graph after graph, where each arm's row begins."""
    indices: NDArray[np.int64]
    """The arms observed with an arm, itself among them."""
    active: NDArray[np.bool_]
    """Shape (K,): the set A."""
    means: NDArray[np.float64]
    """Shape (K,): the noised means of the last phase."""
    counts: NDArray[np.int64]
    """Shape (K,): o, observations in this phase."""
    sums: NDArray[np.float64]
    """Shape (K,): c, their sums."""
    pulls: NDArray[np.int64]
    """Shape (K,): n, pulls in this phase."""
    chosen: NDArray[np.bool_]
    """Shape (K,): the independent set Omega as a mask."""
    members: NDArray[np.int64]
    """Shape (K,): its arms in increasing order, `SIZE` of them; also the order they are tried in."""
    now: NDArray[np.int64]
    """Shape (8,): where the phase stands, by the names below."""
    work: NDArray[np.int64]
    """Room to work in for GAPU; (0,) for others."""

    @property
    def dropped(self) -> tuple[str, ...]:
        """What 0.2 stored beside these."""
        return ("near",)


SIZE = 0
"""The size of Omega."""
CURSOR = 1
"""The first member among those pulled LEAST times."""
LEAST = 2
PHASE = 3
"""tau, from 1; 0 before the first round."""
FIRST = 4
"""The round the phase began in; rewards of earlier rounds are ignored."""
GRAPH = 5
"""The number of the graph in force."""
WANTED = 6
"""L, the observations that every active arm needs."""
LACKING = 7
"""How many active arms have fewer; the phase ends at 0."""


@dataclass(frozen=True, kw_only=True)
class PrivateElimination(Elimination[State], ArmsPolicy[State]):
    """What GAP, GAPU and DP-SE share: phases of elimination by noised means.

    The block of an arm is a phase: a reward enters the noised mean of one arm in one phase only.

    Parameters
    ----------
    epsilon : float
        Privacy of the protected unit.
    """

    why: ClassVar[str]
    """Why the paper's claim holds."""
    extra: ClassVar[int] = 0
    """Observations of each arm beyond those that the paper of GAP asks for."""

    epsilon: Epsilon = 1.0

    @property
    def unit(self) -> str:
        """What is protected: one reward, or all rewards of one round."""
        return "round"

    @property
    def noise(self) -> str:
        """Whether the noise of a mean shrinks with L, as published, or with its own count."""
        return "published"

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        return Params(
            epsilon=float(self.epsilon),
            failure_prob=self.confidence_loss,
            per_round=int(self.unit == "round"),
            tight=int(self.noise == "tight"),
            extra=self.extra,
        )

    @property
    def blocks(self) -> TrustedServer:
        """Where the noise enters."""
        return TrustedServer(epsilon=self.epsilon, unit=self.unit)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Laplace noise on the sum of a phase."""
        return (self.blocks.mechanism,)

    def guarantee(self, horizon: int) -> Guarantee:
        """Return epsilon for the unit over the whole run."""
        claim = Claim(
            epsilon=self.epsilon,
            unit="reward",
            trust="central",
            span="run",
            holds=True,
            why=self.why,
        )
        return self.blocks.guarantee(claim)

    def forget_unreleased(self, state: State) -> None:
        """Begin the open phase anew at the next round, on other rewards; nothing is released."""
        if state.now[PHASE] > 0:
            state.counts[:] = 0
            state.sums[:] = 0.0
            state.now[LACKING], state.now[GRAPH], state.now[FIRST] = 1, -1, 1 << 62

    def released_means(self, state: State) -> list[Estimate | None]:
        """Return the noised means of the last complete phase, of the arms that were not dropped.

        A phase of number tau asks for so many observations that sampling and noise together move a
        mean by at most 2^-(2 + tau), in all phases but for `failure_prob`: None for all if that is more
        than an interval may fail.
        """
        if self.confidence_loss > ALPHA:
            return [None] * self.n_arms
        radius = 2.0 ** -(1.0 + float(state.now[PHASE]))
        return [
            Estimate(
                min(1.0, max(0.0, mean)), max(0.0, mean - radius), min(1.0, max(0.0, mean + radius))
            )
            if active and state.now[PHASE] > 1 and not math.isnan(mean)
            else None
            for active, mean in zip(state.active.tolist(), state.means.tolist(), strict=True)
        ]

    def retire(self, state: State, arm: int) -> None:
        """Drop the arm, and begin the open phase anew without it."""
        super().retire(state, arm)
        self.forget_unreleased(state)

    def carry_over(self, state: State, larger: State) -> None:
        """Keep which arms were dropped and how precise the phases are; begin the open one anew."""
        K = self.n_arms
        larger.active[:K], larger.means[:K] = state.active, state.means
        larger.means[K:] = np.nan
        larger.now[PHASE] = state.now[PHASE]
        self.forget_unreleased(larger)

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        K, rows = self.n_arms, self.feedback_rows(table)
        return State(
            graph_starts=rows.graph_starts,
            indptr=rows.indptr,
            indices=rows.indices,
            active=np.ones(K, np.bool_),
            means=np.zeros(K),
            counts=np.zeros(K, np.int64),
            sums=np.zeros(K),
            pulls=np.zeros(K, np.int64),
            chosen=np.zeros(K, np.bool_),
            members=np.zeros(K, np.int64),
            now=np.zeros(8, np.int64),
            work=np.zeros(0, np.int64),
        )


@dataclass(frozen=True, kw_only=True)
class GraphElimination(PrivateElimination):
    """What GAP and GAPU share: parameters about the graph and the unit of protection."""

    protects: ClassVar[str] = "each reward, or each round; trusts the server"
    side_observations: ClassVar[bool] = True
    why: ClassVar[str] = (
        "every active arm is observed at least L times, and a reward enters one mean only"
    )

    unit: Annotated[str, one_of("reward", "round")] = "reward"
    noise: Annotated[str, one_of("published", "tight")] = "published"
    graph: Graph | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.graph is not None:
            require(self, "graph", "undirected", not self.graph.directed, self.graph)

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing, on the graph of `table` or the policy's own."""
        rows = self.feedback_rows(table)
        require(self, "graph", "undirected", undirected(self.n_arms, rows), "a directed one")
        return super().start(table)


@kernel
def serve(params: Any, state: Any, t: Any, arm: Any) -> None:
    """Count the arm of round t among those pulled in this phase, whose rounds the noise must hide."""
    if t >= state.now[FIRST]:
        state.pulls[arm] = max(state.pulls[arm], 1)


@kernel(inlined=False)
def planned_factor(tight: Any, state: Any, graph: Any) -> Any:
    """Return the factor if every chosen arm is pulled equally often."""
    K = state.active.size
    largest = 1.0
    for a in range(K):
        if state.chosen[a]:
            total = 0.0
            low, high = row_of(state.indptr, K, graph, a)
            for e in range(low, high):
                b = state.indices[e]
                if state.active[b]:
                    seen_by = 0
                    low_b, high_b = row_of(state.indptr, K, graph, b)
                    for f in range(low_b, high_b):
                        seen_by += state.chosen[state.indices[f]]
                    total += 1.0 if tight == 1 else 1.0 / seen_by
            largest = max(largest, total)
    return largest


@kernel(inlined=False)
def round_factor(tight: Any, state: Any, graph: Any, L: Any) -> Any:
    """Return the factor, given how often every arm was observed."""
    K = state.active.size
    largest = 1.0
    for a in range(K):
        if state.pulls[a] > 0:
            total = 0.0
            low, high = row_of(state.indptr, K, graph, a)
            for e in range(low, high):
                b = state.indices[e]
                if state.active[b]:
                    total += 1.0 if tight == 1 else L / state.counts[b]
            largest = max(largest, total)
    return largest
