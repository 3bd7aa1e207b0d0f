"""What policies that decide by released block sums share: parameters, guarantee, mechanisms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol, TypeVar

import numpy as np

from tacit.arms.blocks import (
    GRAPH,
    UNKNOWN,
    Blocks,
    forget_open,
    new_blocks,
)
from tacit.arms.environments.graph_feedback import Feedback, check_graph, closed_rows
from tacit.arms.policy import ArmsPolicy
from tacit.arms.table import Table
from tacit.core.constraints import Count, check, one_of, require
from tacit.graphs import Graph
from tacit.privacy import Guarantee, Mechanism
from tacit.privacy.block_sums import TrustedServer
from tacit.privacy.mechanisms import Epsilon

_FIRST = 2.0  # rewards of a first block, times epsilon


class HasBlocks(Protocol):
    """A state of such a policy."""

    @property
    def blocks(self) -> Blocks:
        """The blocks of all arms."""


B = TypeVar("B", bound=HasBlocks)


@dataclass(frozen=True, kw_only=True)
class BlockPolicy(ArmsPolicy[B]):
    """A policy that decides by noised sums of blocks, each reward in one of them."""

    protects: ClassVar[str] = "each reward; trusts the server"
    latest_only: ClassVar[bool] = False
    """Whether the size of the next block follows from the rewards of the latest one only."""

    n_arms: Count
    epsilon: Epsilon

    def __post_init__(self) -> None:
        check(self)

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

    def _blocks(self, feedback: Table | Feedback) -> Blocks:
        fits = feedback.indptr.size == feedback.graph_starts.size * (self.n_arms + 1)
        require(self, "n_arms", "the number of arms of the table", fits, self.n_arms)
        rows = Feedback(feedback.graph_starts, feedback.indptr, feedback.indices)
        shared = rows.indices.size > rows.graph_starts.size * self.n_arms
        per_round = self.unit == "round" and shared
        return new_blocks(self.n_arms, rows, first=self.first_size, per_round=per_round)


@dataclass(frozen=True, kw_only=True)
class GraphBlockPolicy(BlockPolicy[B]):
    """The same on a feedback graph, which may be directed and may change."""

    protects: ClassVar[str] = "each reward, or each round; trusts the server"
    side_observations: ClassVar[bool] = True

    unit: Annotated[str, one_of("reward", "round")] = "reward"
    graph: Graph | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_graph(self, self.graph)

    @property
    def rewards_per_round(self) -> int:
        """The largest number of rewards one pull shows: a degree and one, at most K."""
        return self.n_arms if self.graph is None else int(self.graph.degrees.max()) + 1

    @property
    def first_size(self) -> int:
        """As many as make the noise half of what it can hide."""
        return math.ceil(_FIRST / self.epsilon)

    def _start(self, table: Table | None) -> Blocks:
        if table is None:
            return self._blocks(
                closed_rows(self.n_arms, [] if self.graph is None else [self.graph])
            )
        return self._blocks(table)
