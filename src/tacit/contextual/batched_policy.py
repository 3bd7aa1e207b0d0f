"""What policies share that hide a visit as a whole: its contexts and its reward enter one sum with noise."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.contextual.learned_prior import solve
from tacit.contextual.loops import most_promising
from tacit.contextual.table import Table, require_fit
from tacit.contextual.trace import Trace
from tacit.core.constraints import Count, NonNegative, Positive, Share, check, require
from tacit.core.kernels import kernel
from tacit.core.policy import Policy, Program, require_secure
from tacit.core.tapes import SECURE, Tape
from tacit.privacy import GaussianMoments, Mechanism
from tacit.privacy.mechanisms import Epsilon


class _Learned(Protocol):
    @property
    def rounds(self) -> NDArray[np.int64]: ...


S = TypeVar("S", bound=_Learned)


@dataclass(frozen=True, kw_only=True)
class VisitsPolicy(Policy[Table, S, Trace]):
    """Upper confidence bounds from noisy moments of contexts and rewards."""

    setting: ClassVar[str] = "users"
    paper: ClassVar[str] = "beside 004"
    example_environment: ClassVar[str] = "fitted-users"
    play_rounds: ClassVar[Callable[..., None]]
    learn_visit: ClassVar[Callable[..., Any]]

    n_users: Count
    dimension: Count
    epsilon: Epsilon | None = None
    delta: Share = 1e-6
    reward_range: tuple[float, float] = (0.0, 1.0)
    regularisation: Positive = 1.0
    exploration: NonNegative = 0.3

    def __post_init__(self) -> None:
        check(self)
        low, high = self.reward_range
        finite = -math.inf < low < high < math.inf
        require(self, "reward_range", "(low, high) with low < high", finite, (low, high))
        object.__setattr__(self, "reward_range", (float(low), float(high)))

    @property
    def moments(self) -> GaussianMoments | None:
        """The exact noise on the moments of a batch."""
        if self.epsilon is None:
            return None
        return GaussianMoments(
            epsilon=self.epsilon,
            delta=self.delta,
            dimension=self.dimension,
            largest=max(abs(end) for end in self.reward_range),
        )

    @property
    def mechanisms(self) -> tuple[Mechanism, ...] | None:
        """Noise on the moments of a batch."""
        return () if self.moments is None else (self.moments,)

    @property
    @abstractmethod
    def params(self) -> Any:
        """The numbers the kernels need."""

    @abstractmethod
    def open(self, **joined: Any) -> S:
        """Return a fresh state; whoever is joined to whom does not matter."""

    def start(self, table: Table) -> S:
        """Return a fresh state for the users of `table`."""
        require_fit(self, table, self.n_users, self.dimension, short=True)
        return self.open()

    def program(self, state: S, table: Table, tape: Tape, trace: Trace) -> Program:
        """Return the kernel and its arguments."""
        self._check_tape(tape)
        shown = np.empty(table.n_shown, np.int64)
        contexts = np.empty((table.n_shown, self.dimension))
        arguments = (self.params, state, table, tape, trace, shown, contexts, contexts)
        return type(self).play_rounds, arguments

    def select(self, state: S, user: int, contexts: ArrayLike) -> int:
        """Return which of the rows of `contexts` to offer to `user`."""
        rows = np.ascontiguousarray(contexts, np.float64)
        fits = rows.ndim == 2 and rows.shape[1] == self.dimension and len(rows) > 0
        require(self, "contexts", f"of shape (n, {self.dimension})", fits, rows.shape)
        self._check_user(user)
        return int(most_promising(self.params, state, user, rows, rows))

    def update(self, state: S, tape: Tape, user: int, context: ArrayLike, reward: float) -> None:
        """Take in the true reward that `user` gave to what `context` describes."""
        self._check_tape(tape)
        x = np.ascontiguousarray(context, np.float64)
        fits = x.shape == (self.dimension,) and bool(np.linalg.norm(x) <= 1 + 1e-9)
        require(self, "context", f"of shape ({self.dimension},) and length <= 1", fits, x.tolist())
        self._check_user(user)
        require(self, "reward", "a number", math.isfinite(reward), reward)
        type(self).learn_visit(
            self.params, state, tape, int(state.rounds[0]), user, x, float(reward)
        )

    def _check_user(self, user: int) -> None:
        require(self, "user", f"in 0..{self.n_users - 1}", 0 <= user < self.n_users, user)

    def _check_tape(self, tape: Tape) -> None:
        if tape.kind == SECURE:
            require_secure(self)


@kernel(allocates=True)
def believe(A: Any, sums: Any, covariance: Any, mean: Any) -> None:
    """Write the inverse of A, which is lost, and the estimate from sums of contexts and rewards."""
    d = mean.size
    C = np.eye(d)
    solve(A, C)
    for a in range(d):
        mean[a] = 0.0
        for b in range(d):
            covariance[a, b] = C[a, b]
            mean[a] += C[a, b] * sums[sums.size - d + b]
