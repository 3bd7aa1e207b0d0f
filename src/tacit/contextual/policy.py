"""What the policies of users have in common: everything but the matrix that joins users."""

from __future__ import annotations

import dataclasses
import math
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.contextual.arguments import (
    read_context,
    read_contexts,
    read_range,
    read_reward,
    require_fit,
    require_person,
    require_rounds,
    require_tape,
)
from tacit.contextual.features import relation
from tacit.contextual.learned_prior import GIVEN
from tacit.contextual.loops import Kernels, make_program
from tacit.contextual.model import (
    CONSTANT,
    Fade,
    Params,
    Prior,
    State,
    ask,
    learn,
    new_state,
    play,
    select,
    take,
)
from tacit.contextual.privacy import (
    Channel,
    NoisySums,
    PerReward,
    Privacy,
    Published,
    Residual,
    Sizes,
)
from tacit.contextual.questions import BIN, NEAR, VALUE, Question, cuts_of
from tacit.contextual.ridge import Block, merge_blocks, require_size
from tacit.contextual.statistics import Statistics, restore
from tacit.contextual.table import Rows, Table, as_matrix
from tacit.contextual.trace import Trace
from tacit.core.arrays import load, save
from tacit.core.constraints import Count, NonNegative, Positive, Share, check, one_of, require
from tacit.core.policy import Policy, Program
from tacit.core.tapes import Tape
from tacit.device import Channel as Reporting
from tacit.graphs import Graph
from tacit.privacy import Guarantee, Mechanism
from tacit.privacy.mechanisms import Epsilon, debias, open_channel

if TYPE_CHECKING:
    from tacit.core.decider import Decider

MOST_BYTES = 1 << 34
"""Of the matrices of a state."""
_QUIET_RIDGE = 0.3
_FADES = 8
"""In so many steps an answer loses half its weight."""


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
        Short for a value of `privacy` that suits the kind of `reward`: ``PerReward(epsilon=...)`` for
        bounded ones, told by one bit and centred for binary ones, ``Residual(epsilon=...)`` for
        symmetric ones. Only one of the two can be given.
    reward : {"bounded", "binary", "symmetric"}
        What is known of rewards: that they lie in a range; that they are one of its ends; or that
        their noise is symmetric about their mean, which `Residual` needs.
    reward_range : (float, float), default (0, 1)
        Where noise is added, rewards are clipped to it and noise is calibrated to its width.
    regularisation : float or "auto", default "auto"
        lambda. "auto" is 0.3 or, if that is more, d v, where privatising a reward by itself adds a
        variance of v: the Bayes penalty for parameters of length 1, as the paper assumes them. With
        `Residual`, whose reports have a variance of their own, it is d.
    exploration : float or Theory, optional
        The width of the confidence bound: a tuned constant, by default 0.3 (with `Residual` 0.5, in
        posterior standard deviations), or that of the policy's theorem.
    shared : float, optional
        How much all users are expected to have in common, whoever joins them: K becomes
        K + shared 11'. By default 1 with `Residual` where anything joins users, else 0.
    half_life : int, optional
        For preferences that drift: after so many rounds, of all users together, an answer counts
        half. What is forgotten was private already, so that the guarantee stays as it is.
    """

    setting: ClassVar[str] = "users"
    example_environment: ClassVar[str] = "fitted-users"
    protects: ClassVar[str] = "each reward, if epsilon is given (published: not as claimed)"
    paper: ClassVar[str] = "004"
    joined_by: ClassVar[str] = ""
    """What it must know about its users: nothing, ``"weights"`` or ``"graph"``."""
    learns: ClassVar[int] = GIVEN
    """What is learned of the prior, one of the codes of ``learned_prior``; then all users are one block."""
    kernels: ClassVar[Kernels] = Kernels(select, learn, play, learn_from_report=take)
    width: ClassVar[int]
    """Which theorem `Theory` stands for, one of the codes of ``model``."""

    n_users: Count
    dimension: Count
    privacy: PerReward | Residual | NoisySums | Published | None = None
    epsilon: Epsilon | None = None
    reward: Annotated[str, one_of("bounded", "binary", "symmetric")] = "bounded"
    reward_range: tuple[float, float] = (0.0, 1.0)
    regularisation: float | str = "auto"
    exploration: float | Theory | None = None
    shared: NonNegative | None = None
    half_life: Count | None = None

    def __post_init__(self) -> None:
        check(self)
        twice = self.privacy is not None and self.epsilon is not None
        require(self, "epsilon", "not given beside privacy", not twice, self.epsilon)
        known = self.privacy is None or isinstance(self.privacy, Privacy)
        rule = "PerReward, Residual, NoisySums, Published or None"
        require(self, "privacy", rule, known, self.privacy)
        fits = self.reward == "symmetric" or not isinstance(self.privacy, Residual)
        require(self, "reward", "'symmetric' where privacy is Residual", fits, self.reward)
        object.__setattr__(self, "reward_range", read_range(self))
        ridge, width = self.regularisation, self.exploration
        known = ridge == "auto" if isinstance(ridge, str) else 0 < ridge < math.inf
        require(self, "regularisation", "> 0 or 'auto'", known, ridge)
        on_b = isinstance(self.privacy, NoisySums | Published) and self.privacy.on_b
        alone = not (on_b and self.shared)
        require(self, "shared", "0 where noise is added to the paper's b", alone, self.shared)
        sums = isinstance(self.privacy, NoisySums | Published)
        alone = not (sums and self.half_life)
        require(self, "half_life", "None with noise on sums", alone, self.half_life)
        if isinstance(width, Theory):
            self._check_theory()
        elif width is not None:
            number = isinstance(width, int | float) and 0 <= width < math.inf
            require(self, "exploration", ">= 0 or Theory(...)", number, width)

    def _check_theory(self) -> None:
        hidden = self.protection
        rule = "a number with NoisySums or Residual, for which there is no theorem"
        known = not isinstance(hidden, NoisySums | Residual)
        require(self, "exploration", rule, known, self.exploration)
        steady = self.half_life is None
        rule = "a number with half_life, for which there is no theorem"
        require(self, "exploration", rule, steady, self.exploration)
        laplace = isinstance(hidden, PerReward) and hidden.chosen == "laplace"
        rule = "a number with Laplace noise on rewards, whose tails are too heavy for the theorem"
        require(self, "exploration", rule, not laplace, self.exploration)

    @abstractmethod
    def groups(self, joined: Any) -> Sequence[NDArray[np.int64]]:
        """Return the users in groups that nothing joins to others.

        `joined` is the SciPy matrix that `joined_by` names, or None; a wrong one is refused here.
        """

    @abstractmethod
    def block(self, joined: Any, members: NDArray[np.int64]) -> Block:
        """Return the columns of B of one group: column u spreads a context of user u over all users."""

    def size_of_parameters(self, joined: Any) -> float:
        """Return the bound on all parameters together that `Theory` uses by default."""
        return math.sqrt(self.n_users)

    @property
    def spread_over(self) -> int:
        """How many coordinates of b one reward may change."""
        return self.n_users * self.dimension

    @property
    def protection(self) -> PerReward | Residual | NoisySums | Published | None:
        """What hides rewards: `privacy`, or what `epsilon` is short for."""
        if self.epsilon is None:
            return self.privacy
        if self.reward == "symmetric":
            return Residual(epsilon=self.epsilon)
        if self.reward == "binary":
            return PerReward(epsilon=self.epsilon, mechanism="bit", centred=True)
        return PerReward(epsilon=self.epsilon)

    @property
    def _sizes(self) -> Sizes:
        return Sizes(self.n_users, self.dimension, self.spread_over, *self.reward_range)

    @property
    def ridge(self) -> float:
        """The lambda that "auto" stands for."""
        if not isinstance(self.regularisation, str):
            return float(self.regularisation)
        hidden = self.protection
        if isinstance(hidden, Residual):
            return float(self.dimension)
        variance = 0.0 if hidden is None else hidden.reward_variance(self._sizes)
        return max(_QUIET_RIDGE, self.dimension * variance)

    @property
    def in_common(self) -> float:
        """The weight of 11' that `shared` stands for."""
        if self.shared is not None:
            return float(self.shared)
        return float(self.joined_by != "" and isinstance(self.protection, Residual))

    @property
    def factors(self) -> int:
        """Of how many factors parameters are made; 0 for any number."""
        return 0

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

    @property
    def _constant(self) -> float:
        """The constant width; unused where theory has another."""
        if isinstance(self.exploration, int | float):
            return float(self.exploration)
        return 0.5 if isinstance(self.protection, Residual) else 0.3

    @property
    def _fade(self) -> Fade | None:
        """How answers are forgotten, in steps."""
        if self.half_life is None:
            return None
        every = -(-self.half_life // _FADES)
        return Fade(every, float(0.5 ** (every / self.half_life)))

    @property
    def _prior(self) -> Prior | None:
        """What is learned of the prior."""
        if self.learns == GIVEN:
            return None
        alike = not isinstance(self.protection, Residual)
        return Prior(self.learns, self.factors, self.ridge / self.dimension if alike else 1.0)

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        hidden, theory = self.protection, self.exploration
        channel = Channel(-math.inf, math.inf, open_channel())
        reach = 1.0
        if hidden is not None:
            channel = hidden.channel(self._sizes)
            reach = hidden.reach(self._sizes)
        return Params(
            regularisation=self.ridge,
            width=self.width if isinstance(theory, Theory) else CONSTANT,
            exploration=self._constant,
            failure_prob=theory.failure_prob if isinstance(theory, Theory) else 0.5,
            reach=reach,
            channel=channel,
            fade=self._fade,
            prior=self._prior,
        )

    def start(self, table: Table) -> State:
        """Return a fresh state for the users of `table`."""
        require_fit(self, table, short=self._short)
        return self.open(weights=_given(table.weights), graph=_given(table.graph))

    def open(self, *, weights: Any = None, graph: Any = None) -> State:
        """Return a fresh state for users who are joined, as far as the policy cares.

        Parameters
        ----------
        weights : matrix of shape (N, N), dense or sparse
            The relational matrix W; columns sum to one. CoLin needs it, or a Graph to make it of.
        graph : Graph or matrix of shape (N, N), dense or sparse
            Who is joined to whom. GOBLin needs it.
        """
        joined, groups = self._join(weights, graph, MOST_BYTES)
        pairs = sum(len(members) * (len(members) - 1) // 2 for members in groups)
        blocks = [self.block(joined, members) for members in groups]
        if self.in_common > 0:
            blocks = merge_blocks(blocks, self.in_common)
        lengths = np.empty(self.n_users)
        for block in blocks:
            lengths[block.members] = np.sqrt(np.sum(block.basis**2, axis=0))
        hidden, theory = self.protection, self.exploration
        scales = np.empty((0, 4)) if hidden is None else hidden.scales(self._sizes, lengths)
        bound = theory.norm_bound if isinstance(theory, Theory) else 0.0
        bound = self.size_of_parameters(joined) if bound is None else bound
        state = new_state(self.params, blocks, self.n_users, self.dimension, scales, bound)
        if self.joined_by and self.n_users > 1 and pairs == 0:
            warnings.warn(
                f"{type(self).__name__}: 0 of {self.n_users * (self.n_users - 1) // 2:,} pairs of "
                "users are joined, so that nobody learns from anybody else by name",
                stacklevel=2,
            )
        return state

    def require_size(self, most: int, **given: Any) -> None:
        """Refuse users whose state would take more than so many bytes, before anything is built."""
        if given or not self.joined_by:
            self._join(given.get("weights"), given.get("graph"), most)

    def _join(self, weights: Any, graph: Any, most: int) -> tuple[Any, Sequence[NDArray[np.int64]]]:
        """Return the matrix that joins users, or None, and their groups, if their state fits."""
        joined = None
        if self.joined_by == "weights" and weights is None and isinstance(graph, Graph):
            weights = relation(graph, own=1.0)
        if self.joined_by:
            given = {"weights": weights, "graph": graph}[self.joined_by]
            require(self, self.joined_by, "given", given is not None, None)
            joined = as_matrix(self, self.joined_by, given)
            shape = (self.n_users, self.n_users)
            rule = f"of shape {shape}"
            require(self, self.joined_by, rule, joined.shape == shape, joined.shape)
        groups = self.groups(joined)
        sizes = [self.n_users] if self.in_common > 0 else [len(members) for members in groups]
        require_size(self, sizes, self.dimension, most)
        return joined, groups

    def program(self, state: State, table: Table, tape: Tape, trace: Trace) -> Program:
        """Return the kernel and its arguments."""
        require_tape(self, tape)
        return make_program(self.kernels.run, self.params, state, table, tape, trace)

    def play(
        self, state: State, table: Table, tape: Tape, trace: Trace, first: int, last: int
    ) -> None:
        """Play rounds `first` to `last` - 1 in compiled code, changing `state` and `trace`."""
        require_rounds(self, table, last)
        super().play(state, table, tape, trace, first, last)

    def select(self, state: State, user: int, contexts: ArrayLike) -> int:
        """Return which of the rows of `contexts` to offer to `user`."""
        rows = read_contexts(self, contexts)
        require_person(self, user)
        return int(self.kernels.select(self.params, state, user, rows, np.empty_like(rows)))

    def update(
        self, state: State, tape: Tape, user: int, context: ArrayLike, reward: float
    ) -> None:
        """Take in the true reward that `user` gave to what `context` describes.

        Device and server in one, for simulations and for a trusted server. The state counts the
        rounds, so that no two updates read the same noise; a tape belongs to one state.
        """
        require_tape(self, tape)
        x = read_context(self, context, short=self._short)
        require_person(self, user)
        t, value = int(state.rounds[0]), read_reward(self, reward)
        self.kernels.learn(self.params, state, tape, t, user, x, value)

    def decider(self, *, explore: float = 0.0, graph: Any = None, weights: Any = None) -> Decider:
        """Return this policy at work, for :mod:`tacit.serving`."""
        from tacit.contextual.decider import CollaborativeDecider

        return CollaborativeDecider(self, explore=explore, graph=graph, weights=weights)

    def ask(self, state: State, user: int, context: ArrayLike) -> Question:
        """Return what a device is asked about the reward of an offer, once, when it is made.

        Keep it with the decision: the answer is taken in with it, however late.
        """
        self._check_local()
        x = read_context(self, context, short=self._short)
        require_person(self, user)
        return Question(*ask(self.params, state, user, x))

    def instructions(self, question: Question, *, default: float | None = None) -> dict[str, Any]:
        """Return what a device is told, in the format of ``tacit.device``.

        Parameters
        ----------
        question : Question
            Of `ask`.
        default : float, optional
            The reward that stands for a missing one; the low end of the range unless given.
        """
        self._check_local()
        hidden, (low, high) = self.protection, self.reward_range
        missing = low if default is None else float(default)
        mechanisms = self.mechanisms
        if isinstance(hidden, Residual) and self.params.channel.bins is not None:
            response = mechanisms[0] if question.kind == BIN else mechanisms[-1]
            made = response.instructions(default=0.0)
            made["default"] = missing
            made["question"] = {
                "cuts": cuts_of(self.params.channel.bins, question),
                "labels": [0, 1, 0] if question.kind == NEAR else list(range(hidden.bins)),
            }
            Reporting(made)
            return made
        return mechanisms[0].instructions(low=low, high=high, default=missing)

    def take(
        self, state: State, user: int, context: ArrayLike, question: Question, report: float
    ) -> None:
        """Take in what a device reported about the reward of an offer: the server's half.

        Parameters
        ----------
        state : State
        user : int
        context : array of shape (d,)
            That of the offer.
        question : Question
            What `ask` returned for it.
        report : int
            What the device sent: the symbol, not an estimate.
        """
        x = read_context(self, context, short=self._short)
        require_person(self, user)
        possible = Reporting(self.instructions(question)).possible(report)
        require(self, "report", "one that the device can send", possible, report)
        reported = float(report)
        if question.kind == VALUE:
            reported = float(debias(self.params.channel.report, reported))
        assert self.kernels.learn_from_report is not None
        self.kernels.learn_from_report(self.params, state, user, x, question, reported)

    def state_of(self, statistics: Statistics, *, weights: Any = None, graph: Any = None) -> State:
        """Return the state of users who are joined otherwise now, or of more of them.

        Parameters
        ----------
        statistics : Statistics
            Of as many users as this policy has; see `Statistics.arranged` for new ones.
        weights, graph
            As for `open`.
        """
        self._check_local()
        shape = (self.n_users, self.dimension)
        fits = statistics.response.shape == shape
        require(self, "statistics", f"of shape {shape}", fits, statistics.response.shape)
        return restore(self.params, self.open(weights=weights, graph=graph), statistics)

    def save(self, path: str | Path, state: State) -> None:
        """Write a state to a file, with what made it; a central policy's holds raw sums."""
        save(path, state, {"policy": self.name, "parameters": _written(self)})

    def load(self, path: str | Path, *, weights: Any = None, graph: Any = None) -> State:
        """Return the state that `save` wrote, if it was the same policy for users joined alike."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fresh = self.open(weights=weights, graph=graph)
        state, about = load(path, fresh)
        same = about.get("policy") == self.name and about.get("parameters") == _written(self)
        require(self, "file", "of the same policy", same, f"{about.get('policy')} in {path}")
        alike = self.learns != GIVEN or np.array_equal(state.ridge.kernel, fresh.ridge.kernel)
        require(self, "file", "of users who are joined alike", alike, str(path))
        return state

    def _check_local(self) -> None:
        local = isinstance(self.protection, PerReward | Residual)
        rule = "PerReward or Residual, for a device to answer"
        require(self, "privacy", rule, local, self.protection)

    @property
    def _short(self) -> bool:
        """Whether contexts are no longer than 1, because noise is calibrated to that."""
        return self.params.channel.streams is not None


def _written(description: Any) -> dict[str, Any]:
    """Return the parameters of a dataclass as JSON has them."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(description):
        value = getattr(description, field.name)
        if dataclasses.is_dataclass(value):
            value = {"kind": getattr(value, "kind", ""), **_written(value)}
        found[field.name] = list(value) if isinstance(value, tuple) else value
    return found


def _given(rows: Rows) -> Rows | None:
    return rows if len(rows.indptr) else None
