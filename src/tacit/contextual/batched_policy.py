"""What policies share that hide a visit as a whole: its contexts and its reward enter one sum with noise.

What is learned changes only when a batch of visits is released, of one person or of everybody at once.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

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
from tacit.contextual.learned_prior import solve
from tacit.contextual.loops import Kernels, make_program
from tacit.contextual.table import Table
from tacit.contextual.trace import Trace
from tacit.core.arrays import leaves
from tacit.core.constraints import Count, NonNegative, Positive, Share, check
from tacit.core.kernels import kernel
from tacit.core.policy import Policy, Program
from tacit.core.tapes import Tape
from tacit.privacy import GaussianMoments, Guarantee, Mechanism, compose
from tacit.privacy.mechanisms import Epsilon

if TYPE_CHECKING:
    from tacit.core.decider import Decider


class BatchState(Protocol):
    """What every state of such a policy has."""

    @property
    def rounds(self) -> NDArray[np.int64]:
        """Shape (n,): rounds so far come first."""

    @property
    def opened(self) -> NDArray[np.float64]:
        """Shape (N, m): true sums of the open batches. Secret."""


S = TypeVar("S", bound=BatchState)


@dataclass(frozen=True, kw_only=True)
class BatchedPolicy(Policy[Table, S, Trace]):
    """Upper confidence bounds from noisy moments of contexts and rewards."""

    setting: ClassVar[str] = "users"
    paper: ClassVar[str] = "beside 004"
    example_environment: ClassVar[str] = "fitted-users"
    kernels: ClassVar[Kernels]
    joins_nobody: ClassVar[str]
    """Why nobody is joined to anybody."""

    n_users: Count
    dimension: Count
    epsilon: Epsilon | None = None
    delta: Share = 1e-6
    reward_range: tuple[float, float] = (0.0, 1.0)
    regularisation: Positive = 1.0
    exploration: NonNegative = 0.3

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "reward_range", read_range(self))

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

    @abstractmethod
    def guarantee_under(self, trust: str) -> Guarantee:
        """Return what one visit is protected from where noise is added locally, or by who sees all."""

    def _state_guarantee(
        self, moments: GaussianMoments, trust: str, note: str, pooled: bool, left: tuple[str, ...]
    ) -> Guarantee:
        """Return the guarantee of a visit, which enters one release."""
        if moments.secure:
            power = math.frexp(moments.step)[1] - 1
            note += f". On a secure tape products are rounded to multiples of 2^{power}"
        return compose(
            [(moments.release, 1)],
            delta=self.delta,
            unit="visit",
            trust=trust,
            span="run",
            note=note,
            pooled=pooled,
            not_protected=left,
        )

    @property
    @abstractmethod
    def params(self) -> Any:
        """The numbers the kernels need."""

    @abstractmethod
    def open(self, **joined: Any) -> S:
        """Return a fresh state; whoever is joined to whom does not matter."""

    @abstractmethod
    def require_served(self) -> None:
        """Refuse to be served in a form that is for simulations or devices."""

    @abstractmethod
    def latest_moments(self, state: S) -> NDArray[np.float64]:
        """Return the moments that were released last, a view."""

    def drop_unreleased(self, state: S) -> None:
        """Empty the open batches: a lost history may have released them."""
        state.opened[:] = 0.0

    def copy_people(self, old: S, new: S) -> None:
        """Let a fresh state, of more people perhaps, know what an old one does."""
        known = min(len(old.opened), len(new.opened))
        arrays: Any = zip(leaves(old), leaves(new), strict=True)
        for (_, mine), (_, theirs) in arrays:
            kept = known if mine.shape != theirs.shape else len(mine)
            theirs[:kept] = mine[:kept]

    def start(self, table: Table) -> S:
        """Return a fresh state for the users of `table`."""
        require_fit(self, table, short=True)
        return self.open()

    def program(self, state: S, table: Table, tape: Tape, trace: Trace) -> Program:
        """Return the kernel and its arguments."""
        require_tape(self, tape)
        return make_program(self.kernels.run, self.params, state, table, tape, trace)

    def play(self, state: S, table: Table, tape: Tape, trace: Trace, first: int, last: int) -> None:
        """Play rounds `first` to `last` - 1 in compiled code, changing `state` and `trace`."""
        require_rounds(self, table, last)
        super().play(state, table, tape, trace, first, last)

    def select(self, state: S, user: int, contexts: ArrayLike) -> int:
        """Return which of the rows of `contexts` to offer to `user`."""
        rows = read_contexts(self, contexts)
        require_person(self, user)
        return int(self.kernels.select(self.params, state, user, rows, rows))

    def update(self, state: S, tape: Tape, user: int, context: ArrayLike, reward: float) -> None:
        """Take in the true reward that `user` gave to what `context` describes."""
        require_tape(self, tape)
        x = read_context(self, context, short=True)
        require_person(self, user)
        t, value = int(state.rounds[0]), read_reward(self, reward)
        self.kernels.learn(self.params, state, tape, t, user, x, value)

    def decider(self, *, explore: float = 0.0) -> Decider:
        """Return this policy at work, for :mod:`tacit.serving`."""
        from tacit.contextual.decider import BatchDecider

        return BatchDecider(self, explore=explore)


@kernel(allocates=True)
def solve_estimate(A: Any, sums: Any, covariance: Any, mean: Any) -> None:
    """Write the inverse of A, which is lost, and the estimate from sums of contexts and rewards."""
    d = mean.size
    C = np.eye(d)
    solve(A, C)
    for a in range(d):
        mean[a] = 0.0
        for b in range(d):
            covariance[a, b] = C[a, b]
            mean[a] += C[a, b] * sums[sums.size - d + b]
