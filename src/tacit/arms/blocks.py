"""Blocks that grow with what is known of an arm: how DP-IMED, DP-KLUCB and their like learn.

Every observed reward goes into the open block of its own arm, whichever arm was pulled. When a block holds
as many rewards as its arm is due, the next decision first releases its sum (:mod:`tacit.privacy.block_sums`)
and a new block opens. Sizes follow from counts, counts from decisions, and a policy decides by released
sums alone. So one reward enters one release, and everything else is post-processing.

Where a whole round is protected, a block remembers the largest number b of rewards that any round shows
whose rewards it holds, and its noise is b times that of one reward: the rewards of a round that shows b' of
them lie in b' blocks, each of which spends at most epsilon / b' on it. A round shows what the arm shows that
was *served*, whoever chose it (`serve`).

Nothing changes between two releases, so a simulation plays whole stretches: one arm until one of
the blocks it feeds is full. ``python benchmarks/dp_imed.py --speed`` prints how fast that is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.arms.loops import steady_segment, sum_rewards
from tacit.arms.policy import ArmsPolicy, Kernel
from tacit.arms.table import FeedbackRows, Table, row_of, segment_at
from tacit.core.constraints import one_of
from tacit.core.kernels import kernel
from tacit.graphs import Graph
from tacit.privacy import Guarantee, Mechanism
from tacit.privacy.block_sums import TrustedServer, on_grid, release_sum
from tacit.privacy.mechanisms import Epsilon

_REMEMBERED = 4096
_FIRST = 2.0  # rewards of a first block, times epsilon


class Blocks(NamedTuple):
    """Open blocks, which are raw, and what was released of K arms, which is private."""

    graph_starts: NDArray[np.int64]
    """Shape (G,): the first round of each feedback graph."""
    indptr: NDArray[np.int64]
    """Shape (G (K + 1),): graph after graph, where each arm's row begins."""
    indices: NDArray[np.int64]
    """The arms shown by an arm, itself among them."""
    shown_indptr: NDArray[np.int64]
    """Shape (G (K + 1),): the same, for the arms that show an arm."""
    shown_indices: NDArray[np.int64]
    open_sums: NDArray[np.float64]
    """Shape (K,): the sum of the open block; raw."""
    open_counts: NDArray[np.int64]
    """Shape (K,): how many rewards it holds."""
    open_most: NDArray[np.int64]
    """Shape (K,): b, the most rewards of one round that it holds one of."""
    due: NDArray[np.int64]
    """Shape (K,): how many rewards end it."""
    sums: NDArray[np.float64]
    """Shape (K,): S, released."""
    counts: NDArray[np.int64]
    """Shape (K,): n, how many rewards S is of."""
    most: NDArray[np.int64]
    """Shape (K,): the largest b of a released block."""
    means: NDArray[np.float64]
    """Shape (K,): S / n, clipped to [0, 1]."""
    fresh: NDArray[np.bool_]
    """Shape (K,): what the latest decision released."""
    shown: NDArray[np.int64]
    """Shape (D,): how many rewards each of the last D rounds shows; (1,) where it does not matter."""
    now: NDArray[np.int64]
    """Shape (5,): by the names below."""


FULL = 0
"""How many open blocks are full."""
UNKNOWN = 1
"""How many arms have no release yet."""
GRAPH = 2
"""The number of the graph in force; -1 before the first round."""
CHOICE = 3
"""The arm that is pulled until the next release."""
ROUND = 4
"""The latest round."""


def new_blocks(n_arms: int, rows: FeedbackRows, *, first: int, per_round: bool) -> Blocks:
    """Return empty blocks, of which `first` rewards end each arm's first."""
    graphs, indptr, indices = rows.graph_starts.size, rows.indptr, rows.indices
    shown_indptr, shown_indices = np.empty_like(indptr), np.empty_like(indices)
    for g in range(graphs):
        graph = slice(g * (n_arms + 1), (g + 1) * (n_arms + 1))
        begin, end = indptr[graph][0], indptr[graph][-1]
        columns = indices[begin:end]
        showing = np.repeat(np.arange(n_arms), np.diff(indptr[graph]))
        shown_indices[begin:end] = showing[np.argsort(columns, kind="stable")]
        counts = np.bincount(columns, minlength=n_arms)
        shown_indptr[graph] = begin + np.concatenate(([0], np.cumsum(counts)))
    return Blocks(
        graph_starts=rows.graph_starts,
        indptr=indptr,
        indices=indices,
        shown_indptr=shown_indptr,
        shown_indices=shown_indices,
        open_sums=np.zeros(n_arms),
        open_counts=np.zeros(n_arms, np.int64),
        open_most=np.ones(n_arms, np.int64),
        due=np.full(n_arms, first),
        sums=np.zeros(n_arms),
        counts=np.zeros(n_arms, np.int64),
        most=np.ones(n_arms, np.int64),
        means=np.zeros(n_arms),
        fresh=np.zeros(n_arms, np.bool_),
        shown=np.zeros(_REMEMBERED if per_round else 1, np.int64),
        now=np.array([0, n_arms, -1, 0, -1]),
    )


def forget_open(blocks: Blocks) -> None:
    """Empty the open blocks, so that what they held is never released."""
    blocks.open_sums[:] = 0.0
    blocks.open_counts[:] = 0
    blocks.open_most[:] = 1
    blocks.now[FULL] = 0


@kernel(inlined=False)
def release_full(blocks: Any, tape: Any, t: Any, epsilon: Any, per_round: Any, forget: Any) -> None:
    """Release every full block: S and n grow by it or, if `forget`, become it."""
    unknown = 0
    for a in range(blocks.counts.size):
        blocks.fresh[a] = blocks.open_counts[a] >= blocks.due[a]
        if blocks.fresh[a]:
            b = blocks.open_most[a] if per_round == 1 else 1
            noised = release_sum(tape, t, a, blocks.open_sums[a], float(b), epsilon)
            if forget == 1:
                blocks.sums[a], blocks.counts[a] = noised, blocks.open_counts[a]
            else:
                blocks.sums[a] += noised
                blocks.counts[a] += blocks.open_counts[a]
            blocks.most[a] = max(blocks.most[a], b)
            blocks.means[a] = min(1.0, max(0.0, blocks.sums[a] / blocks.counts[a]))
            blocks.open_sums[a], blocks.open_counts[a], blocks.open_most[a] = 0.0, 0, 1
        unknown += blocks.counts[a] == 0
    blocks.now[FULL], blocks.now[UNKNOWN] = 0, unknown


@kernel
def update_graph(blocks: Any, t: Any) -> Any:
    """Note which graph is in force in round t; return whether it is another one than before."""
    graph = segment_at(blocks.graph_starts, t) if blocks.graph_starts.size > 1 else 0
    moved = graph != blocks.now[GRAPH]
    blocks.now[GRAPH] = graph
    return moved


@kernel
def record_pull(blocks: Any, t: Any, arm: Any) -> None:
    """Remember how many rewards round t shows, by the arm that was pulled in it."""
    blocks.now[ROUND] = max(blocks.now[ROUND], t)
    if blocks.shown.size > 1 and t > blocks.now[ROUND] - blocks.shown.size:
        low, high = row_of(blocks.indptr, blocks.counts.size, blocks.now[GRAPH], arm)
        blocks.shown[t % blocks.shown.size] = high - low


@kernel
def add_reward(blocks: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Put one observed reward of round t into the arm's open block."""
    b = 1
    if blocks.shown.size > 1:
        b = blocks.shown[t % blocks.shown.size]
        if t <= blocks.now[ROUND] - blocks.shown.size:
            b = blocks.counts.size  # too long ago to know; a round shows at most all arms
    blocks.open_sums[arm] += on_grid(tape, reward)
    blocks.open_counts[arm] += 1
    blocks.open_most[arm] = max(blocks.open_most[arm], b)
    if blocks.open_counts[arm] == blocks.due[arm]:
        blocks.now[FULL] += 1


@kernel
def serve(params: Any, state: Any, t: Any, arm: Any) -> None:
    """Note that somebody else chose the arm of round t."""
    record_pull(state.blocks, t, arm)


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, arm: Any, reward: Any) -> None:
    """Take in one observed reward, of the pulled arm or of a neighbour."""
    add_reward(state.blocks, tape, t, arm, reward)


@kernel(inlined=False)
def shows_most_unknown(blocks: Any, eligible: Any) -> Any:
    """Return the eligible arm that shows most arms without a release, -1 if none shows any."""
    K, g = blocks.counts.size, blocks.now[GRAPH]
    best, most = -1, 0
    for i in range(eligible.size):
        low, high = row_of(blocks.indptr, K, g, eligible[i])
        n = 0
        for e in range(low, high):
            n += blocks.counts[blocks.indices[e]] == 0
        if n > most:
            best, most = eligible[i], n
    return best


@kernel(inlined=False)
def best_showing(blocks: Any, target: Any, eligible: Any) -> Any:
    """Return the arm of largest mean among the eligible ones that show `target`, -1 if none does."""
    K, g = blocks.counts.size, blocks.now[GRAPH]
    low, high = row_of(blocks.shown_indptr, K, g, target)
    best, largest = -1, -1.0
    for e in range(low, high):
        a = blocks.shown_indices[e]
        if blocks.means[a] > largest and contains(eligible, a):
            best, largest = a, blocks.means[a]
    return best


@kernel
def contains(eligible: Any, arm: Any) -> Any:
    """Return whether `arm` is one of `eligible`, which are increasing."""
    low, high = 0, eligible.size - 1
    if arm <= high and eligible[arm] == arm:
        return True
    while low < high:
        middle = (low + high) >> 1
        if eligible[middle] < arm:
            low = middle + 1
        else:
            high = middle
    return eligible[low] == arm


@kernel(inlined=False)
def play_stretch(blocks: Any, table: Any, tape: Any, trace: Any, t: Any, last: Any) -> Any:
    """Pull the chosen arm until a block it feeds is full; return the next round."""
    K, g, arm = blocks.counts.size, blocks.now[GRAPH], blocks.now[CHOICE]
    if g + 1 < blocks.graph_starts.size:
        last = min(last, blocks.graph_starts[g + 1])
    low, high = row_of(blocks.indptr, K, g, arm)
    for e in range(low, high):
        b = blocks.indices[e]
        last = min(last, t + blocks.due[b] - blocks.open_counts[b])
    segment = steady_segment(table, t, last)
    for e in range(low, high):
        b = blocks.indices[e]
        total = blocks.open_sums[b]
        blocks.open_sums[b] = sum_rewards(total, table, tape, trace, t, last, b, arm, segment)
        blocks.open_counts[b] += last - t
        blocks.open_most[b] = max(blocks.open_most[b], high - low if blocks.shown.size > 1 else 1)
        blocks.now[FULL] += blocks.open_counts[b] == blocks.due[b]
    if blocks.shown.size > 1:
        for s in range(max(t, last - blocks.shown.size), last):
            blocks.shown[s % blocks.shown.size] = high - low
    blocks.now[ROUND] = last - 1
    return last


def select_by_releases(release: Kernel, choose: Kernel) -> Kernel:
    """Return ``select`` of a policy that chooses anew when something is released or the graph changes.

    Parameters
    ----------
    release : kernel of (params, state, tape, t)
        Releases the full blocks.
    choose : kernel of (params, state, t, eligible)
        Returns the arm to pull until then.
    """

    @kernel
    def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
        """Release the full blocks, if any, and return the arm of round t."""
        blocks = state.blocks
        moved = update_graph(blocks, t)
        if moved or blocks.now[FULL] > 0:
            release(params, state, tape, t)
            blocks.now[CHOICE] = choose(params, state, t, params.all_arms)
        arm = blocks.now[CHOICE]
        if eligible.size < blocks.counts.size:
            arm = choose(params, state, t, eligible)
        record_pull(blocks, t, arm)
        return arm

    return select


def stretches(select: Kernel) -> Kernel:
    """Return ``run`` of a policy that decides so: from one release to the next."""

    @kernel
    def run(
        params: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any
    ) -> None:
        """Play rounds first to last - 1."""
        t = first
        while t < last:
            select(params, state, tape, t, table.all_arms)
            t = play_stretch(state.blocks, table, tape, trace, t, last)

    return run


class BlockState(Protocol):
    """The state of a policy that releases sums of blocks."""

    @property
    def blocks(self) -> Blocks:
        """The blocks of all arms."""


B = TypeVar("B", bound=BlockState)


@dataclass(frozen=True, kw_only=True)
class BlockPolicy(ArmsPolicy[B]):
    """A policy that decides by noised sums of blocks, each reward in one of them.

    Parameters
    ----------
    epsilon : float
        Privacy of the protected unit: of one reward, unless a policy protects more.
    """

    protects: ClassVar[str] = "each reward; trusts the server"
    latest_only: ClassVar[bool] = False
    """Whether the size of the next block follows from the rewards of the latest one only."""

    epsilon: Epsilon

    @property
    def unit(self) -> str:
        """A round, of which one reward is seen."""
        return "round"

    @property
    def sums(self) -> TrustedServer:
        """Where the noise enters."""
        return TrustedServer(epsilon=self.epsilon, unit=self.unit)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Laplace noise on the sum of a block."""
        return (self.sums.mechanism,)

    def guarantee(self, horizon: int) -> Guarantee:
        """Return epsilon for the unit over the whole run."""
        return self.sums.guarantee()

    @property
    def first_size(self) -> int:
        """How many rewards end the first block of an arm."""
        return 1

    def block_sizes(self) -> Iterator[int]:
        """Yield how many rewards end each block of an arm, in order: when it releases.

        Examples
        --------
        >>> from itertools import islice
        >>> from tacit.arms import DPIMED
        >>> list(islice(DPIMED(n_arms=2, epsilon=0.5).block_sizes(), 6))
        [4, 2, 3, 5, 7, 11]
        """
        size, known = self.first_size, 0
        while True:
            yield size
            known = size if self.latest_only else known + size
            next_size: Any = self.kernels.next_size
            size = int(next_size(known))

    def forget_unreleased(self, state: B) -> None:
        """Empty the open blocks."""
        forget_open(state.blocks)

    def carry_over(self, state: B, larger: B) -> None:
        """Copy what was learned; the new arm has no release yet, and the next decision is made anew."""
        super().carry_over(state, larger)
        now, counts = larger.blocks.now, larger.blocks.counts
        now[UNKNOWN], now[GRAPH] = np.count_nonzero(counts == 0), -1

    def start_blocks(self, table: Table | None) -> Blocks:
        """Return empty blocks of all arms, on the graph of `table` or the policy's own."""
        rows = self.feedback_rows(table)
        shared = rows.indices.size > rows.graph_starts.size * self.n_arms
        per_round = self.unit == "round" and shared
        return new_blocks(self.n_arms, rows, first=self.first_size, per_round=per_round)


@dataclass(frozen=True, kw_only=True)
class GraphBlockPolicy(BlockPolicy[B]):
    """The same on a feedback graph, which may be directed and may change.

    Parameters
    ----------
    unit : "reward" or "round", default "reward"
        What is protected. A round multiplies the noise of a block by the largest number of rewards
        that one of its rounds shows.
    """

    protects: ClassVar[str] = "each reward, or each round; trusts the server"
    side_observations: ClassVar[bool] = True

    unit: Annotated[str, one_of("reward", "round")] = "reward"
    graph: Graph | None = None

    @property
    def first_size(self) -> int:
        """As many as make the noise half of what it can hide."""
        return math.ceil(_FIRST / self.epsilon)
