"""What LinUCB, CoLin and GOBLin have in common: everything but the matrix that joins users."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import Count, Positive, Share, check, require
from tacit.policy import Policy, Program, require_secure
from tacit.privacy import Guarantee, Mechanism
from tacit.tapes import SECURE, Tape
from tacit.users.collaborative import (
    CONSTANT,
    Block,
    Rule,
    State,
    joined_pairs,
    learn,
    new_state,
    play,
    select,
)
from tacit.users.noise import NONE
from tacit.users.privacy import Channel, NoisySums, PerReward, Privacy, Published, Sizes
from tacit.users.tables import RECORDED, Rows, Table, Trace, as_matrix

if TYPE_CHECKING:
    from tacit.deciding import Decider

__all__ = ["CollaborativePolicy", "Theory"]

_QUIET_RIDGE = 0.3


@dataclass(frozen=True, kw_only=True)
class Theory:
    """The width that theory gives instead of a tuned constant; each policy has its own.

    Parameters
    ----------
    failure_prob : float, default 0.05
        With at most this probability the truth is ever outside the bounds.
    norm_bound : float, optional
        How large all parameters together may be, in the measure that the policy's theorem uses. By
        default what follows from parameters of length at most 1 for each user.
    """

    kind: ClassVar[str] = "theory"

    failure_prob: Share = 0.05
    norm_bound: Positive | None = None

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, kw_only=True)
class CollaborativePolicy(Policy[Table, State, Trace]):
    """Ridge regression for all users together; a subclass says how they are joined.

    Parameters
    ----------
    n_users : int
        Number of users N.
    dimension : int
        Length d of a context; contexts are no longer than 1.
    privacy : PerReward, NoisySums, Published or None
        How rewards are hidden; None adds no noise.
    epsilon : float, optional
        Short for ``privacy=PerReward(epsilon=...)``; only one of the two can be given.
    reward_range : (float, float), default (0, 1)
        Where noise is added, rewards are clipped to it and noise is calibrated to its width.
    regularisation : float or "auto", default "auto"
        lambda. "auto" is 0.3 or, if that is more, d v, where privatising a reward by itself adds a
        variance of v: the Bayes penalty for parameters of length 1, as the paper assumes them.
    exploration : float or Theory, default 0.3
        The width of the confidence bound: a tuned constant, or that of the policy's theorem.
    """

    setting: ClassVar[str] = "users"
    example_environment: ClassVar[str] = "fitted-users"
    protects: ClassVar[str] = "each reward, if epsilon is given (published: not as claimed)"
    paper: ClassVar[str] = "004"
    joined_by: ClassVar[str] = ""
    """What it must know about its users: nothing, ``"weights"`` or ``"graph"``."""
    width: ClassVar[int]
    """Which theorem `Theory` stands for, one of the codes of ``collaborative``."""

    n_users: Count
    dimension: Count
    privacy: PerReward | NoisySums | Published | None = None
    epsilon: Positive | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    regularisation: float | str = "auto"
    exploration: float | Theory = 0.3

    def __post_init__(self) -> None:
        check(self)
        twice = self.privacy is not None and self.epsilon is not None
        require(self, "epsilon", "not given beside privacy", not twice, self.epsilon)
        known = self.privacy is None or isinstance(self.privacy, Privacy)
        require(self, "privacy", "PerReward, NoisySums, Published or None", known, self.privacy)
        low, high = self.reward_range
        finite = -math.inf < low < high < math.inf
        require(self, "reward_range", "(low, high) with low < high", finite, (low, high))
        object.__setattr__(self, "reward_range", (float(low), float(high)))
        ridge, width = self.regularisation, self.exploration
        known = ridge == "auto" if isinstance(ridge, str) else 0 < ridge < math.inf
        require(self, "regularisation", "> 0 or 'auto'", known, ridge)
        if isinstance(width, Theory):
            self._check_theory()
        else:
            number = isinstance(width, int | float) and 0 <= width < math.inf
            require(self, "exploration", ">= 0 or Theory(...)", number, width)

    def _check_theory(self) -> None:
        hidden = self.protection
        rule = "a number with noise on sums, for which there is no theorem"
        require(self, "exploration", rule, not isinstance(hidden, NoisySums), self.exploration)
        laplace = isinstance(hidden, PerReward) and hidden.chosen == "laplace"
        rule = "a number with Laplace noise on rewards, whose tails are too heavy for the theorem"
        require(self, "exploration", rule, not laplace, self.exploration)

    @abstractmethod
    def blocks(self, joined: Any) -> Iterable[Block]:
        """Return B, whose column u says how a context of user u is spread over all users.

        It is given in blocks of users whom nothing joins to others; `joined` is the SciPy matrix
        that `joined_by` names, or None.
        """

    def size_of_parameters(self, joined: Any) -> float:
        """Return the bound on all parameters together that `Theory` uses by default."""
        return math.sqrt(self.n_users)

    @property
    def spread_over(self) -> int:
        """How many coordinates of b one reward may change."""
        return self.n_users * self.dimension

    @property
    def protection(self) -> PerReward | NoisySums | Published | None:
        """What hides rewards: `privacy`, or what `epsilon` is short for."""
        return self.privacy if self.epsilon is None else PerReward(epsilon=self.epsilon)

    @property
    def _sizes(self) -> Sizes:
        return Sizes(self.n_users, self.dimension, self.spread_over, *self.reward_range)

    @property
    def ridge(self) -> float:
        """The lambda that "auto" stands for."""
        if not isinstance(self.regularisation, str):
            return float(self.regularisation)
        hidden = self.protection
        variance = 0.0 if hidden is None else hidden.reward_variance(self._sizes)
        return max(_QUIET_RIDGE, self.dimension * variance)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The mechanism that privatises a reward, or that one stream adds to its sums."""
        hidden = self.protection
        return () if hidden is None else hidden.mechanisms(self._sizes)

    def guarantee(self, horizon: int) -> Guarantee:
        """Return what one reward is protected from over a run, whatever its length."""
        hidden = self.protection
        if hidden is None:
            return Guarantee.none(f"{type(self).__name__} without epsilon adds no noise")
        return hidden.guarantee(self._sizes)

    @cached_property
    def rule(self) -> Rule:
        """The numbers the kernels need."""
        hidden, theory = self.protection, self.exploration
        channel = Channel(-math.inf, math.inf)
        reach = 1.0
        if hidden is not None:
            channel = hidden.channel(self._sizes)
            reach = hidden.reach(self._sizes)
        return Rule(
            regularisation=self.ridge,
            width=self.width if isinstance(theory, Theory) else CONSTANT,
            exploration=0.0 if isinstance(theory, Theory) else float(theory),
            failure_prob=theory.failure_prob if isinstance(theory, Theory) else 0.5,
            reach=reach,
            channel=channel,
        )

    def start(self, table: Table) -> State:
        """Return a fresh state for the users of `table`."""
        rule = f"== {table.n_users}, as the table has"
        require(self, "n_users", rule, self.n_users == table.n_users, self.n_users)
        rule = f"== {table.features.shape[1]}, as the table has"
        fits = self.dimension == table.features.shape[1]
        require(self, "dimension", rule, fits, self.dimension)
        if self.rule.channel.stream != NONE:
            longest = float(np.sqrt(np.max(np.sum(table.features**2, axis=1))))
            require(self, "contexts", "of length <= 1", longest <= 1 + 1e-9, longest)
        return self.open(weights=_given(table.weights), graph=_given(table.graph))

    def open(self, *, weights: Any = None, graph: Any = None) -> State:
        """Return a fresh state for users who are joined, as far as the policy cares.

        Parameters
        ----------
        weights : matrix of shape (N, N), dense or sparse
            The relational matrix W; columns sum to one. CoLin needs it.
        graph : Graph or matrix of shape (N, N), dense or sparse
            Who is joined to whom. GOBLin needs it.
        """
        joined = None
        if self.joined_by:
            given = {"weights": weights, "graph": graph}[self.joined_by]
            require(self, self.joined_by, "given", given is not None, None)
            joined = as_matrix(self, self.joined_by, given)
            shape = (self.n_users, self.n_users)
            rule = f"of shape {shape}"
            require(self, self.joined_by, rule, joined.shape == shape, joined.shape)
        blocks = list(self.blocks(joined))
        lengths = np.empty(self.n_users)
        for block in blocks:
            lengths[block.members] = np.sqrt(np.sum(block.basis**2, axis=0))
        hidden, theory = self.protection, self.exploration
        scales = np.empty(0) if hidden is None else hidden.scales(self._sizes, lengths)
        bound = theory.norm_bound if isinstance(theory, Theory) else 0.0
        bound = self.size_of_parameters(joined) if bound is None else bound
        state = new_state(self.rule, blocks, self.n_users, self.dimension, scales, bound)
        if self.joined_by and self.n_users > 1 and joined_pairs(state) == 0:
            pairs = self.n_users * (self.n_users - 1) // 2
            warnings.warn(
                f"{type(self).__name__}: 0 of {pairs:,} pairs of users are joined, so that "
                "everybody learns alone, as with LinUCB",
                stacklevel=2,
            )
        return state

    def program(self, state: State, table: Table, tape: Tape, trace: Trace) -> Program:
        """Return the kernel of all of them, and its arguments."""
        self._check_tape(tape)
        shown = np.empty(table.n_shown, np.int64)
        contexts = np.empty((table.n_shown, self.dimension))
        scratch = np.empty_like(contexts)
        return play, (self.rule, state, table, tape, trace, shown, contexts, scratch)

    def play(
        self, state: State, table: Table, tape: Tape, trace: Trace, first: int, last: int
    ) -> None:
        """Play rounds `first` to `last` - 1 in compiled code, changing `state` and `trace`."""
        if table.kind == RECORDED:
            rounds = len(table.users)
            require(self, "last", f"<= {rounds}, the table's rounds", last <= rounds, last)
        super().play(state, table, tape, trace, first, last)

    def select(self, state: State, user: int, contexts: ArrayLike) -> int:
        """Return which of the rows of `contexts` to offer to `user`."""
        rows = np.ascontiguousarray(contexts, np.float64)
        fits = rows.ndim == 2 and rows.shape[1] == self.dimension and len(rows) > 0
        require(self, "contexts", f"of shape (n, {self.dimension})", fits, rows.shape)
        require(self, "contexts", "finite", bool(np.isfinite(rows).all()), "one that is not")
        require(self, "user", f"in 0..{self.n_users - 1}", 0 <= user < self.n_users, user)
        return int(select(self.rule, state, user, rows, np.empty_like(rows)))

    def update(
        self, state: State, tape: Tape, t: int, user: int, context: ArrayLike, reward: float
    ) -> None:
        """Take in the reward that `user` gave to what `context` describes, in round `t`.

        The round is where the noise is read on the tape: no two updates may share one.
        """
        self._check_tape(tape)
        x = self._context(context)
        require(self, "user", f"in 0..{self.n_users - 1}", 0 <= user < self.n_users, user)
        require(self, "reward", "a number", math.isfinite(reward), reward)
        learn(self.rule, state, tape, t, user, x, float(reward))

    def decider(self, *, explore: float = 0.0, graph: Any = None, weights: Any = None) -> Decider:
        """Return this policy at work, for :mod:`tacit.serving`."""
        from tacit.users.deciding import UsersDecider

        return UsersDecider(self, explore=explore, graph=graph, weights=weights)

    def _context(self, context: ArrayLike) -> NDArray[np.float64]:
        x = np.ascontiguousarray(context, np.float64)
        fits = x.shape == (self.dimension,)
        require(self, "context", f"of shape ({self.dimension},)", fits, x.shape)
        require(self, "context", "finite", bool(np.isfinite(x).all()), x.tolist())
        if self.rule.channel.stream != NONE:
            length = float(np.linalg.norm(x))
            require(self, "context", "of length <= 1", length <= 1 + 1e-9, length)
        return x

    def _check_tape(self, tape: Tape) -> None:
        if tape.kind == SECURE:
            require_secure(self)


def _given(rows: Rows) -> Rows | None:
    return rows if len(rows.indptr) else None
