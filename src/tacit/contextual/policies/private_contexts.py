"""PrivateContexts: contexts are secret too, and each round is hidden as a whole.

The other policies of this setting take contexts as public. Here what a round tells, the context
that was chosen and its reward, enters one sum of (x x', x r), and only sums with Gaussian noise are
learned from. With a trusted server a user's rounds are cut into batches of 1, 2, 4, ... rounds, and
the sum of a batch is released when it is full: after the user's rounds 1, 3, 7, 15, ... Each round is
in one batch (joint privacy, after Shariff and Sheffet 2018, who release a tree of sums);
without one every round is released by itself, by the device (after Zheng et al. 2020). Every user
learns alone.

Departures: batches that double instead of a tree, so that a round enters one release; the
sensitivity is exact; and the ridge grows with the spectral norm of the noise, so that the matrix
stays positive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.batched_policy import BatchedPolicy, solve_estimate
from tacit.contextual.loops import Kernels, estimation_error, rounds, select_by_ucb
from tacit.core.constraints import one_of, require
from tacit.core.kernels import kernel
from tacit.core.tapes import SECURE
from tacit.privacy import Guarantee
from tacit.privacy.mechanisms.gaussian_moments import (
    add_moments,
    matrix_of_moments,
    release_moments,
)

_CHOICE = "the choice of the round itself, to whoever sees it"
_OPEN = {
    "central": ("sending", "others", "server", _CHOICE),
    "local": ("sending", "others", _CHOICE),
}
_CHOOSES = (
    "'central': with 'local' contexts never leave the device, which chooses by itself, and a learner "
    "that is to choose must see them; where contexts may be seen, LinUCB(epsilon=...) hides each "
    "reward on the device"
)


class Params(NamedTuple):
    """The numbers the kernels need."""

    low: float
    high: float
    """Rewards are clipped to [low, high]."""
    regularisation: float
    exploration: float
    doubles: int
    """1 if batches double, 0 if every round is released by itself."""
    sensitivity: float
    scale: float
    """The standard deviation of the noise; 0 for none."""
    step: float
    """Products are rounded to multiples of it on a secure tape; 0 for none."""


class State(NamedTuple):
    """What is learned; m = d (d + 3) / 2 numbers are the moments of contexts and rewards."""

    rounds: NDArray[np.int64]
    """Shape (1,): rounds so far."""
    counts: NDArray[np.int64]
    """Shape (N, 3): of each user, rounds in the open batch, rounds it will have, batches released."""
    opened: NDArray[np.float64]
    """Shape (N, m): true sums of the open batch. Secret."""
    sums: NDArray[np.float64]
    """Shape (N, m): all that was released, added up."""
    covariance: NDArray[np.float64]
    """Shape (N, d, d): the inverse of the matrix, with its ridge."""
    mean: NDArray[np.float64]
    """Shape (N, d): estimates."""
    latest: NDArray[np.float64]
    """Shape (m,): what was released last, of whomever."""


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, user: Any, x: Any, reward: Any) -> Any:
    """Add a round to the open batch, and release it when it is full."""
    state.rounds[0] += 1
    clipped = min(params.high, max(params.low, reward))
    add_moments(x, clipped, params.step if tape.kind == SECURE else 0.0, state.opened[user])
    state.counts[user, 0] += 1
    if state.counts[user, 0] < state.counts[user, 1]:
        return True
    opened, latest = state.opened[user], state.latest
    if params.scale > 0.0:
        release_moments(tape, t, opened, params.sensitivity, params.scale, latest)
    else:
        for j in range(opened.size):
            latest[j] = opened[j]
    learn_from_release(params, state, user)
    return True


@kernel
def learn_from_release(params: Any, state: Any, user: Any) -> None:
    """Learn from what was just released of a user, and begin the next batch."""
    opened, sums = state.opened[user], state.sums[user]
    for j in range(sums.size):
        sums[j] += state.latest[j]
        opened[j] = 0.0
    state.counts[user, 0] = 0
    state.counts[user, 1] *= 1 + params.doubles
    state.counts[user, 2] += 1
    _estimate(params, state, user)


@kernel(allocates=True)
def _estimate(params: Any, state: Any, user: Any) -> None:
    """Solve for the estimate; symmetric noise has a spectral norm of about scale sqrt(2 d n)."""
    d = state.mean.shape[1]
    sums, A = state.sums[user], np.zeros((d, d))
    matrix_of_moments(sums, A)
    ridge = params.regularisation + params.scale * math.sqrt(2.0 * d * state.counts[user, 2])
    for a in range(d):
        A[a, a] += ridge
    solve_estimate(A, sums, state.covariance[user], state.mean[user])


@dataclass(frozen=True, kw_only=True)
class PrivateContexts(BatchedPolicy[State]):
    """Linear upper confidence bounds for each user, contexts and rewards private.

    Guarantee: (epsilon, delta) for one visit: all contexts shown in one round, and the reward.
    With ``trust="central"`` it is joint: everything that is decided in all *other* rounds, for anybody,
    is protected; the choice of the round itself follows from its own contexts, and the server sees
    them. With ``trust="local"`` contexts stay on the device, which chooses by itself, and the server
    sees noisy moments only, as long as the choice stays there too: a learner, which chooses, serves the
    other form. Without epsilon nothing is hidden.

    Parameters
    ----------
    n_users : int
    dimension : int
        Length d of a context; contexts are no longer than 1.
    epsilon : float, optional
    delta : float, default 1e-6
    trust : {"central", "local"}
    reward_range : (float, float), default (0, 1)
        Rewards are clipped to it.
    regularisation : float, default 1
        lambda, beside what makes up for the noise.
    exploration : float, default 0.3
        The width of the confidence bound.

    Examples
    --------
    >>> from tacit.contextual import PrivateContexts
    >>> policy = PrivateContexts(n_users=10, dimension=5, epsilon=2.0)
    >>> guarantee = policy.guarantee(horizon=10_000)
    >>> round(guarantee.epsilon, 6), guarantee.delta, guarantee.unit
    (2.0, 1e-06, 'visit')

    References
    ----------
    Shariff, Sheffet. Differentially private contextual linear bandits. NeurIPS 2018.
    """

    name: ClassVar[str] = "private-contexts"
    summary: ClassVar[str] = "each user learns alone, and contexts are private as rewards are"
    protects: ClassVar[str] = "contexts and reward of each round, if epsilon is given"
    joins_nobody: ClassVar[str] = "each person learns alone"
    kernels: ClassVar[Kernels] = Kernels(
        select_by_ucb,
        learn,
        rounds(select_by_ucb, learn, estimation_error),
        learn_from_release=learn_from_release,
    )

    trust: Annotated[str, one_of("central", "local")] = "central"

    def guarantee(self, horizon: int) -> Guarantee:
        """Return what one visit is protected from: it enters one release."""
        return self.guarantee_under(self.trust)

    def guarantee_under(self, trust: str) -> Guarantee:
        """Return the guarantee where a device adds noise (local), or somebody who sees all (central)."""
        moments = self.moments
        if moments is None:
            return Guarantee.none("PrivateContexts without epsilon adds no noise", unit="visit")
        central = trust == "central"
        own = "Joint: decisions of all other rounds are protected. " if central else ""
        note = f"{own}A round enters one noisy sum of contexts and rewards"
        return self._state_guarantee(moments, trust, note, central, _OPEN[trust])

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        hidden = self.moments
        return Params(
            *self.reward_range,
            regularisation=float(self.regularisation),
            exploration=float(self.exploration),
            doubles=int(self.trust == "central" and hidden is not None),
            sensitivity=hidden.sensitivity if hidden else 1.0,
            scale=hidden.scale if hidden else 0.0,
            step=hidden.step if hidden else 0.0,
        )

    def open(self, **joined: Any) -> State:
        """Return a fresh state; whoever is joined to whom does not matter."""
        N, d = self.n_users, self.dimension
        m = d * (d + 3) // 2
        counts = np.zeros((N, 3), np.int64)
        counts[:, 1] = 1
        return State(
            rounds=np.zeros(1, np.int64),
            counts=counts,
            opened=np.zeros((N, m)),
            sums=np.zeros((N, m)),
            covariance=np.tile(np.eye(d) / self.regularisation, (N, 1, 1)),
            mean=np.zeros((N, d)),
            latest=np.zeros(m),
        )

    def require_served(self) -> None:
        """Refuse the form in which contexts stay on the device."""
        require("Learner", "trust", _CHOOSES, self.trust == "central", self.trust)

    def latest_moments(self, state: State) -> NDArray[np.float64]:
        """Return the moments of the batch that was released last, of whomever."""
        return state.latest

    def drop_unreleased(self, state: State) -> None:
        """Empty everybody's open batch, which is counted anew."""
        super().drop_unreleased(state)
        state.counts[:, 0] = 0
