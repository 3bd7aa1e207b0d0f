"""What every policy of the arms setting offers: the same kernels for a simulation and for one step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.arms.table import GAUSSIAN, FeedbackRows, Table, closed_rows
from tacit.arms.trace import Trace
from tacit.core.arrays import leaves
from tacit.core.constraints import Count, check, require
from tacit.core.policy import Policy, Program, require_secure
from tacit.core.tapes import SECURE, Tape
from tacit.graphs import Graph
from tacit.privacy import Guarantee, Mechanism

if TYPE_CHECKING:
    from tacit.core.decider import Decider, Estimate

Kernel = Callable[..., Any]

S = TypeVar("S")
"""The state of a policy."""


class Kernels(NamedTuple):
    """The compiled half of a policy: the same functions for a simulation and for one step."""

    select: Kernel
    """``(params, state, tape, t, eligible)``: return an arm."""
    learn: Kernel
    """``(params, state, tape, t, arm, reward)``: take in a reward."""
    run: Kernel
    """``(params, state, table, tape, trace, first, last)``: do both for many rounds."""
    learn_from_report: Kernel | None = None
    """``(params, state, t, arm, report)``: the server's half of a local policy, whose rewards are made
    private on the device that has them: learn from what the device sent."""
    serve: Kernel | None = None
    """``(params, state, t, arm)``, where noise depends on what a round shows: before the rewards of round
    t are taken in, note which arm was served, whoever chose it."""
    probabilities: Kernel | None = None
    """``(params, state, t, eligible, out)``, where arms are drawn: right after `select`, write the
    probability that every arm had in that draw."""
    posterior: Kernel | None = None
    """``(params, state, t, eligible, out)``, in place of `probabilities` where they take long because the
    largest of several draws wins: write the two parameters of each draw, which are kept."""
    largest: Kernel | None = None
    """``(first, second, out)``: make probabilities of them when somebody asks."""
    next_size: Kernel | None = None
    """``(released)``, where sums of blocks are released: return how many rewards end the next block of
    an arm of which so many are released."""


@dataclass(frozen=True, kw_only=True)
class ArmsPolicy(Policy[Table, S, Trace]):
    """A policy that picks one of `n_arms` arms; a subclass declares its `kernels`.

    A subclass documents the parameters of its own; one that it inherits has the meaning of its base.

    Parameters
    ----------
    n_arms : int
        Number of arms K.
    horizon : int
        Number of rounds T.
    graph : Graph, optional
        The feedback graph when the policy decides on its own; in a simulation the table has it.
    """

    setting: ClassVar[str] = "arms"
    example_environment: ClassVar[str] = "bernoulli:means=[0.3,0.7]"
    side_observations: ClassVar[bool] = False
    """Whether it learns from rewards of arms that were shown but not pulled; others refuse them."""
    learns_from_any: ClassVar[bool] = True
    """Whether a reward of an arm that somebody else chose can be taken in like its own."""
    unbounded: ClassVar[bool] = False
    """Whether it takes rewards outside [0, 1]; others refuse environments that pay such."""
    kernels: ClassVar[Kernels]

    n_arms: Count

    def __post_init__(self) -> None:
        check(self)
        nodes = self.n_arms if self._graph is None else self._graph.n_nodes
        require(self, "graph", f"of {self.n_arms} arms", nodes == self.n_arms, nodes)

    @abstractmethod
    def start(self, table: Table | None = None) -> S:
        """Return a state that has seen nothing; without a table for one step at a time."""

    @property
    def params(self) -> Any:
        """The numbers that the kernels need, as a ``NamedTuple``; none unless a subclass has some."""
        return ()

    @property
    def _graph(self) -> Graph | None:
        """The feedback graph outside a simulation, if it has one."""
        graph: Graph | None = getattr(self, "graph", None)
        return graph

    @property
    def rewards_per_round(self) -> int:
        """The largest number of rewards one pull shows: a degree and one, at most K."""
        if not self.side_observations:
            return 1
        return self.n_arms if self._graph is None else int(self._graph.degrees.max()) + 1

    @property
    def reward_range(self) -> tuple[float, float]:
        """Where rewards lie, or are clipped to, when they are reported to a learner."""
        return 0.0, 1.0

    def program(self, state: S, table: Table, tape: Tape, trace: Trace) -> Program:
        """Return ``run`` and its arguments."""
        if tape.kind == SECURE:
            require_secure(self)
        fits = self.unbounded or table.kind != GAUSSIAN
        require(self, "environment", "that pays rewards in [0, 1]", fits, "unbounded ones")
        return self.kernels.run, (self.params, state, table, tape, trace)

    def feedback_rows(self, table: Table | None) -> FeedbackRows:
        """Return the arms shown with each that it learns from: on the table's graph or its own."""
        if not self.side_observations:
            return closed_rows(self.n_arms)
        if table is None:
            return closed_rows(self.n_arms, [] if self._graph is None else [self._graph])
        n = table.all_arms.size
        require(self, "n_arms", "the number of arms of the table", n == self.n_arms, self.n_arms)
        return FeedbackRows(table.graph_starts, table.indptr, table.indices)

    def select(self, state: S, tape: Tape, t: int, eligible: NDArray[np.int64]) -> int:
        """Return the arm to pull in round `t` among `eligible` (indices, increasing)."""
        return int(self.kernels.select(self.params, state, tape, t, eligible))

    def update(self, state: S, tape: Tape, t: int, arm: int, reward: float) -> None:
        """Take in the reward of the arm pulled in round `t`, at once or later."""
        self.kernels.learn(self.params, state, tape, t, arm, reward)

    def forget_unreleased(self, state: S) -> None:
        """Drop rewards that no release has told of yet, so that they never enter one."""

    def released_means(self, state: S) -> list[Estimate | None] | None:
        """Return what its releases say of each arm's mean reward; None if it releases nothing."""
        return None

    def retire(self, state: S, arm: int) -> None:
        """Prepare for never pulling an arm again."""

    def carry_over(self, state: S, larger: S) -> None:
        """Copy what was learned into the state of a policy with more arms: the leading slices."""
        for (_, old), (_, new) in zip(leaves(state), leaves(larger), strict=True):
            new[tuple(slice(n) for n in old.shape)] = old

    def decider(self, *, explore: float = 0.0) -> Decider:
        """Return this policy at work, for :mod:`tacit.serving`."""
        from tacit.arms.decider import ArmsDecider

        return ArmsDecider(self, explore=explore)

    def shown_with(self, arm: int) -> frozenset[int]:
        """Return the arms whose rewards a pull of `arm` may show, itself among them.

        Outside a simulation the graph is the policy's own; without one an arm shows itself only.
        """
        if not self.side_observations or self._graph is None:
            return frozenset({arm})
        return frozenset({arm, *self._graph.neighbours(arm).tolist()})

    def require_shown(self, arm: int, others: Iterable[int]) -> None:
        """Raise ``ValueError`` unless a pull of `arm` may show the rewards of all `others`.

        Examples
        --------
        >>> from tacit.arms import UCB1
        >>> UCB1(n_arms=3).require_shown(0, [2])
        Traceback (most recent call last):
        ValueError: UCB1: expected seen none, because it learns from the pulled arm only, got [2]
        """
        allowed = sorted(self.shown_with(arm) - {arm})
        rule = "none, because it learns from the pulled arm only"
        if self.side_observations:
            rule = f"rewards of arms shown with arm {arm} by its graph, one of {allowed}"
        require(self, "seen", rule, set(others) <= set(allowed), sorted(others))


class PlainPolicy(ArmsPolicy[S]):
    """A policy that adds no noise and protects nothing."""

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """None: no noise is added."""
        return ()

    def guarantee(self, horizon: int) -> Guarantee:
        """Return a guarantee that protects nothing."""
        return Guarantee.none(f"{type(self).__name__} adds no noise")
