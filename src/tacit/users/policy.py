"""What LinUCB, CoLin and GOBLin have in common: everything but the matrix that joins users."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import require
from tacit.compiled import INTERPRETED
from tacit.policy import Policy, Program
from tacit.privacy import (
    BallRelease,
    Claim,
    GaussianRelease,
    Guarantee,
    L2CalibratedLaplaceRelease,
    LaplaceRelease,
    PiecewiseRelease,
    RandomizedResponseRelease,
    Release,
    compose,
    gaussian_scale,
)
from tacit.tapes import SECURE, Tape
from tacit.users.collaborative import Rule, State, learn, new_state, play, select
from tacit.users.noise import (
    GAUSSIAN,
    LAPLACE,
    NONE,
    PARAMETER,
    SCALARS,
    USER,
    VECTORS,
    best_scalar,
    scalar_variance,
    toeplitz_coefficients,
)
from tacit.users.tables import Table, Trace

__all__ = ["CollaborativePolicy"]

_QUIET_RIDGE = 0.3


@dataclass(frozen=True, kw_only=True)
class CollaborativePolicy(Policy[Table, State, Trace]):
    """Ridge regression for all users together; a subclass says how they are joined.

    Parameters
    ----------
    n_users : int
        Number of users N.
    dimension : int
        Length d of a context; contexts are no longer than 1.
    epsilon : float, optional
        Privacy of one reward; None adds no noise.
    delta : float, default 0
        Needed by Gaussian noise, which alone uses it.
    variant : {"corrected", "published"}
        The published variant calibrates Laplace noise in R^(dN) by an L2 sensitivity.
    trust : {"local", "central"}
        Whether a server may see true rewards.
    mechanism : {"auto", "laplace", "bit", "piecewise", "ball", "gaussian"}
        Of the corrected variant. The first three privatise each reward by itself: Laplace noise,
        one bit by randomized response, the piecewise mechanism. "ball" and "gaussian" are noise on
        sums of contexts times rewards. "auto" is the scalar mechanism of least variance; with a
        trusted server, "gaussian" if `delta` > 0 and "ball" if not.
    statistic : {"sums", "b"}
        Which sums get the noise of "ball" and "gaussian": each user's own, d numbers each, which
        users can keep as well as a server; or the paper's b, dN numbers that only a trusted server
        can keep. Gaussian noise on b is smaller where users are much alike.
    continual : {"tree", "toeplitz"}
        How noise on sums is correlated over time; the Toeplitz factorisation is for "gaussian".
    horizon, visits : int, optional
        Rounds in all, and rounds of one user, that noise on sums is calibrated for; rewards beyond
        are not taken in. Where `visits` is not given a user may come in every round.
    reward_range : (float, float), default (0, 1)
        Rewards are clipped to it. Sound noise is calibrated to its width.
    clip : bool, default True
        False lets rewards pass as they are, for the published variant only: nothing is protected.
    regularisation : float or "auto", default "auto"
        lambda. "auto" is 0.3 or, if that is more, d v, where privatising a reward by itself adds a
        variance of v: the Bayes penalty for parameters of length 1, as the paper assumes them.
    exploration : float or "theory", default 0.3
        The width of the confidence bound: a tuned constant, or that of Lemmas 2 and 4.
    failure_prob : float, default 0.05
        delta of Lemma 2; "theory" only.
    norm_bound : float, optional
        Bound on the length of all parameters together; "theory" only. Default sqrt(N).
    """

    setting: ClassVar[str] = "users"
    example_environment: ClassVar[str] = "fitted-users"
    protects: ClassVar[str] = "each reward, if epsilon is given (published: not as claimed)"
    paper: ClassVar[str] = "004"

    n_users: int
    dimension: int
    epsilon: float | None = None
    delta: float = 0.0
    variant: str = "corrected"
    trust: str = "local"
    mechanism: str = "auto"
    statistic: str = "sums"
    continual: str = "tree"
    horizon: int | None = None
    visits: int | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    clip: bool = True
    regularisation: float | str = "auto"
    exploration: float | str = 0.3
    failure_prob: float = 0.05
    norm_bound: float | None = None

    def __post_init__(self) -> None:
        require(self, "n_users", ">= 1", self.n_users >= 1, self.n_users)
        require(self, "dimension", ">= 1", self.dimension >= 1, self.dimension)
        ridge, width = self.regularisation, self.exploration
        known = ridge == "auto" if isinstance(ridge, str) else ridge > 0
        require(self, "regularisation", "> 0 or 'auto'", known, ridge)
        known = width == "theory" if isinstance(width, str) else width >= 0
        require(self, "exploration", ">= 0 or 'theory'", known, width)
        inside = 0 < self.failure_prob < 1
        require(self, "failure_prob", "in (0, 1)", inside, self.failure_prob)
        for name in ("horizon", "visits"):
            value = getattr(self, name)
            require(self, name, ">= 1", value is None or value >= 1, value)
        given = self.norm_bound is None or self.norm_bound > 0
        require(self, "norm_bound", "> 0", given, self.norm_bound)
        low, high = self.reward_range
        require(self, "reward_range", "(low, high) with low < high", low < high, (low, high))
        object.__setattr__(self, "reward_range", (float(low), float(high)))
        if self.epsilon is not None:
            require(self, "epsilon", "> 0", 0 < self.epsilon < math.inf, self.epsilon)
            self._check_privacy()

    def _check_privacy(self) -> None:
        require(self, "delta", "in [0, 1)", 0 <= self.delta < 1, self.delta)
        choices = {
            "variant": ("corrected", "published"),
            "trust": ("local", "central"),
            "mechanism": ("auto", *SCALARS, *VECTORS),
            "statistic": ("sums", "b"),
            "continual": ("tree", "toeplitz"),
        }
        for name, known in choices.items():
            value = getattr(self, name)
            require(self, name, f"one of {', '.join(known)}", value in known, value)
        chosen = self.chosen_mechanism
        if self.variant == "published":
            require(self, "mechanism", "'auto' where variant is 'published'",
                    self.mechanism == "auto", self.mechanism)  # fmt: skip
        else:
            require(self, "clip", "True where variant is 'corrected'", self.clip, self.clip)
            central = self.trust == "central"
            require(self, "mechanism", "'ball' or 'gaussian' where trust is 'central'",
                    not (central and chosen in SCALARS), chosen)  # fmt: skip
        if chosen == "gaussian":
            require(self, "delta", "> 0 for Gaussian noise", self.delta > 0, self.delta)
        else:
            require(self, "continual", "'tree' unless mechanism is 'gaussian'",
                    self.continual == "tree", self.continual)  # fmt: skip
        if self.statistic == "b":
            server = chosen in VECTORS and self.trust == "central"
            require(self, "statistic", "'sums' unless a trusted server adds 'ball' or 'gaussian'",
                    server, self.statistic)  # fmt: skip
        if chosen not in SCALARS:
            require(self, "horizon", "given for noise on sums", self._steps > 0, self.horizon)
        if chosen in VECTORS:
            require(self, "exploration", f"a number where mechanism is {chosen!r}",
                    self.exploration != "theory", self.exploration)  # fmt: skip

    @abstractmethod
    def basis(
        self, weights: NDArray[np.float64], adjacency: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return B, whose column u says how a context of user u is spread over all users."""

    @property
    def spread_over(self) -> int:
        """How many coordinates of b one reward may change."""
        return self.n_users * self.dimension

    @property
    def chosen_mechanism(self) -> str:
        """The mechanism that "auto" stands for; "published" for that of the paper."""
        if self.variant == "published":
            return "published"
        if self.mechanism != "auto" or self.epsilon is None:
            return self.mechanism
        if self.trust == "central":
            return "gaussian" if self.delta > 0 else "ball"
        return best_scalar(self.epsilon)

    @property
    def ridge(self) -> float:
        """The lambda that "auto" stands for."""
        if not isinstance(self.regularisation, str):
            return float(self.regularisation)
        return max(_QUIET_RIDGE, self.dimension * self._reward_variance)

    @property
    def secure(self) -> bool:
        """Whether rewards are privatised one by one; noise on sums has no exact sampler."""
        return self.rule.stream == NONE

    @property
    def _on_b(self) -> bool:
        """Whether noise is added to the paper's b, rather than to each user's sum."""
        return self.variant == "published" or self.statistic == "b"

    @property
    def _own_streams(self) -> bool:
        """Whether every user has an own stream, so that a reward touches no other."""
        return self.trust == "local" or not self._on_b

    @property
    def _steps(self) -> int:
        """How many rewards a stream is calibrated for."""
        return int((self._own_streams and self.visits) or self.horizon or 0)

    @property
    def _reward_variance(self) -> float:
        """The largest variance that privatising a reward by itself adds to it."""
        if self.epsilon is None or self.chosen_mechanism not in SCALARS:
            return 0.0
        low, high = self.reward_range
        return (high - low) ** 2 * scalar_variance(self.chosen_mechanism, self.epsilon)

    def guarantee(self, horizon: int) -> Guarantee:
        """Return what one reward is protected from over a run, whatever its length."""
        if self.epsilon is None:
            return Guarantee.none(f"{type(self).__name__} without epsilon adds no noise")
        if self.chosen_mechanism in SCALARS:
            return compose(
                [(self._scalar_release(self.epsilon), 1)],
                unit="reward",
                trust="local",
                span="run",
                note="Each reward is privatised by itself, before the server sees it.",
            )
        published = self.variant == "published"
        claim = self._claim(self.epsilon) if published else None
        if not self.clip:
            return Guarantee.none(
                "rewards are not clipped, so that one of them may change b by any amount",
                trust=self.trust,
                claim=claim,
            )
        rounds = "of a user" if self._own_streams else "in all"
        release, count, _ = self._stream(1.0)
        return compose(
            [(release, count)],
            delta=0.0 if published else self.delta,
            unit="reward",
            trust=self.trust,
            span="run",
            claim=claim,
            note="In units of the published sensitivity, for the worst relational matrix"
            if published
            else f"For up to {self._steps:,} rounds {rounds}; later rewards are not taken in",
            pooled=True,
        )

    def _claim(self, epsilon: float) -> Claim:
        local = self.trust == "local"
        return Claim(
            epsilon=epsilon,
            unit="user" if local else "reward",
            trust=self.trust,
            span="run",
            holds=False,
            why="independent Laplace noise needs the L1 sensitivity of b, and the paper uses L2"
            + ("; and one reward is protected, not a user's whole sequence" if local else ""),
        )

    def _scalar_release(self, epsilon: float) -> Release:
        low, high = self.reward_range
        if self.chosen_mechanism == "laplace":
            return LaplaceRelease(sensitivity=high - low, scale=(high - low) / epsilon)
        if self.chosen_mechanism == "bit":
            return RandomizedResponseRelease.symmetric(epsilon)
        return PiecewiseRelease(level=epsilon)

    def _stream(self, length: float) -> tuple[Release, int, float]:
        """Return release, how many touch one reward, and scale, for |x~| at most `length`."""
        epsilon = self.epsilon or math.inf
        low, high = self.reward_range
        sensitivity = (high - low) * length
        levels = self._steps.bit_length()
        if self.variant == "published":
            scale = length * math.log(max(self._steps, 2)) / epsilon
            return (
                L2CalibratedLaplaceRelease(
                    sensitivity=sensitivity,
                    scale=scale,
                    dimension=self.spread_over,
                    nodes=levels,
                ),
                1,
                scale,
            )
        dimension = self.dimension * (self.n_users if self._on_b else 1)
        if self.chosen_mechanism == "ball":
            scale = sensitivity * levels / epsilon
            ball = BallRelease(sensitivity=sensitivity, scale=scale, dimension=dimension)
            return ball, levels, scale
        if self.continual == "tree":
            together = math.sqrt(levels)
        else:
            together = float(np.linalg.norm(toeplitz_coefficients(self._steps)))
        scale = gaussian_scale(epsilon, self.delta, sensitivity * together)
        return GaussianRelease(sensitivity=sensitivity * together, scale=scale), 1, scale

    @cached_property
    def rule(self) -> Rule:
        """The numbers the kernels need."""
        private = self.epsilon is not None
        scalar = SCALARS.get(self.chosen_mechanism, NONE) if private else NONE
        stream = NONE
        if private and scalar == NONE:
            stream = VECTORS.get(self.chosen_mechanism, LAPLACE)
        toeplitz = stream == GAUSSIAN and self.continual == "toeplitz"
        low, high = self.reward_range
        bound = math.sqrt(self.n_users) if self.norm_bound is None else self.norm_bound
        return Rule(
            regularisation=self.ridge,
            exploration=-1.0 if isinstance(self.exploration, str) else float(self.exploration),
            failure_prob=float(self.failure_prob),
            norm_bound=float(bound),
            reward_spread=math.sqrt(1.0 + self._reward_variance),
            low=low if private and self.clip else -math.inf,
            high=high if private and self.clip else math.inf,
            scalar=scalar,
            epsilon=float(self.epsilon or 0.0),
            stream=stream,
            space=PARAMETER if self._on_b else USER,
            own=int(self._own_streams),
            capacity=self._steps,
            coefficients=(
                toeplitz_coefficients(self._steps)[::-1].copy() if toeplitz else np.empty(0)
            ),
        )

    def start(self, table: Any) -> State:
        """Return a fresh state for the users of `table`."""
        require(self, "n_users", f"== {len(table.weights)}, as the table has",
                self.n_users == len(table.weights), self.n_users)  # fmt: skip
        require(self, "dimension", f"== {table.features.shape[1]}, as the table has",
                self.dimension == table.features.shape[1], self.dimension)  # fmt: skip
        if self.rule.stream != NONE:
            longest = float(np.sqrt(np.max(np.sum(table.features**2, axis=1))))
            require(self, "contexts", "of length <= 1", longest <= 1 + 1e-9, longest)
        return self.open(weights=table.weights, adjacency=table.adjacency)

    def open(self, *, weights: ArrayLike, adjacency: ArrayLike) -> State:
        """Return a fresh state for users joined by a relational matrix and a graph.

        Parameters
        ----------
        weights : array of shape (N, N)
            The relational matrix W; columns sum to one. CoLin uses it.
        adjacency : array of shape (N, N)
            1 where two users are joined. GOBLin uses it.
        """
        if not INTERPRETED and find_spec("scipy") is None:
            raise ModuleNotFoundError(
                "the users setting multiplies matrices with the BLAS of SciPy: "
                "pip install 'tacit[networks]'"
            )
        matrix = np.array(weights, np.float64)
        graph = np.array(adjacency, np.float64)
        for name, value in (("weights", matrix), ("adjacency", graph)):
            shape = (self.n_users, self.n_users)
            require(self, name, f"of shape {shape}", value.shape == shape, value.shape)
        B = self.basis(matrix, graph)
        lengths = np.sqrt(np.sum(B**2, axis=0))
        scales = np.empty(0)
        if self.rule.stream != NONE:
            if not self._on_b:
                lengths = np.ones(self.n_users)
            elif not self._own_streams:
                lengths = lengths.max(keepdims=True)
            scales = np.array([self._stream(float(length))[2] for length in lengths])
        return new_state(self.rule, B, self.dimension, scales)

    def program(self, state: Any, table: Any, tape: Tape, trace: Any) -> Program:
        """Return the kernel of all of them, and its arguments."""
        self._check_tape(tape)
        shown = np.empty(table.n_shown, np.int64)
        contexts = np.empty((table.n_shown, self.dimension))
        scratch = np.empty_like(contexts)
        return play, (self.rule, state, table, tape, trace, shown, contexts, scratch)

    def select(self, state: State, user: int, contexts: ArrayLike) -> int:
        """Return which of the rows of `contexts` to offer to `user`."""
        rows = np.ascontiguousarray(contexts, np.float64)
        fits = rows.ndim == 2 and rows.shape[1] == self.dimension and len(rows) > 0
        require(self, "contexts", f"of shape (n, {self.dimension})", fits, rows.shape)
        require(self, "user", f"in 0..{self.n_users - 1}", 0 <= user < self.n_users, user)
        return int(select(self.rule, state, user, rows, np.empty_like(rows)))

    def update(
        self, state: State, tape: Tape, t: int, user: int, context: ArrayLike, reward: float
    ) -> None:
        """Take in the reward that `user` gave to what `context` describes, in round `t`.

        The round is where the noise is read on the tape: no two updates may share one.
        """
        self._check_tape(tape)
        x = np.ascontiguousarray(context, np.float64)
        fits = x.shape == (self.dimension,)
        require(self, "context", f"of shape ({self.dimension},)", fits, x.shape)
        require(self, "user", f"in 0..{self.n_users - 1}", 0 <= user < self.n_users, user)
        require(self, "reward", "a number", math.isfinite(reward), reward)
        if self.rule.stream != NONE:
            length = float(np.linalg.norm(x))
            require(self, "context", "of length <= 1", length <= 1 + 1e-9, length)
        learn(self.rule, state, tape, t, user, x, float(reward))

    def _check_tape(self, tape: Tape) -> None:
        research = tape.kind != SECURE or self.secure
        require(self, "mechanism", "laplace, bit or piecewise on a secure tape: noise on sums is "
                "floating point", research, self.chosen_mechanism)  # fmt: skip
