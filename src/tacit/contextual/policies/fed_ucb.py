"""FedUCB: agents who learn one model together, each hiding the contexts and rewards it has seen.

Every agent sums (x x', x r) of its own rounds. Now and then all agents send what they have, with
noise, to a server that adds it up and sends the total back (Dubey and Pentland 2020). Published, an
agent calls for such a synchronisation when the determinant of its matrix, which has its own rounds in it
as they are, has grown enough: *when* agents speak tells of contexts what no noise hides. Then
sums over all synchronisations so far are released by a binary tree, and the agent also decides with its own
rounds before they are released.

Corrected, agents synchronise after N, 2 N, 4 N, ... rounds whatever they have seen, a round enters one
release, whose noise is exact, and everybody decides with what was released and nothing else.

Departures: an agent is a user who arrives; the scale of the published noise is that of the code its authors
published, with B = rho = 1; the growth that calls for a synchronisation is a parameter, whose default is
ours; and in both variants the ridge grows with the spectral norm of the noise,
less than the authors shift their matrix by.
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
from tacit.core.constraints import Count, Positive, one_of, require
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE, SECURE
from tacit.privacy import Claim, Guarantee, Mechanism
from tacit.privacy.mechanisms.gaussian import release_gaussian
from tacit.privacy.mechanisms.gaussian_moments import add_moments, matrix_of_moments

_CHOICE = "the choice of the round itself, to whoever sees it"
_OPEN = {
    "central": ("sending", "others", "server", _CHOICE),
    "local": ("others", "the agent, which sees its own rounds as they are", _CHOICE),
}
_MADE = {
    "central": "A round enters one noisy sum, that of its agent, and sums are released after numbers of "
    "rounds that are fixed beforehand",
    "local": "A round enters one noisy sum, which the agent makes that saw it, and agents speak in rounds "
    "that are fixed beforehand",
}
_WHY = (
    "an agent asks for a synchronisation when the determinant of its true contexts has grown, so that the "
    "round in which it does tells two neighbouring histories apart with certainty"
)
_SPEAKS = (
    "'corrected': 'published' decides when to release by true contexts, so that no noise hides them; "
    "it is for simulations"
)


class Params(NamedTuple):
    """The numbers the kernels need."""

    low: float
    high: float
    """Rewards are clipped to [low, high]."""
    regularisation: float
    exploration: float
    threshold: float
    """How much growth of the log determinant, times rounds, calls for a synchronisation; 0: never."""
    sensitivity: float
    step: float
    """Products are rounded to multiples of it on a secure tape; 0 for none."""
    matrix_scale: float
    vector_scale: float
    """Standard deviations of the noise; 0 for none."""


class State(NamedTuple):
    """What is learned; m = d (d + 3) / 2 numbers are the moments of contexts and rewards."""

    rounds: NDArray[np.int64]
    """Shape (5,): rounds so far; those since the last synchronisation, and how many make the next
    where that is fixed; synchronisations; noisy sums of agents that all that was released adds up."""
    opened: NDArray[np.float64]
    """Shape (N, m): true sums of each agent since the last synchronisation. Secret."""
    nodes: NDArray[np.float64]
    """Shape (N, depth, m): true sums of the open nodes of each agent's tree, published. Secret."""
    released: NDArray[np.float64]
    """Shape (N, depth, m): what was released of them; corrected, of each agent's last batch."""
    sums: NDArray[np.float64]
    """Shape (m,): all that was released, added up."""
    volume: NDArray[np.float64]
    """Shape (1,): log determinant of the common matrix at the last synchronisation."""
    covariance: NDArray[np.float64]
    """Shape (N, d, d): the inverse of each agent's matrix."""
    mean: NDArray[np.float64]
    """Shape (N, d): each agent's estimate."""
    work: NDArray[np.float64]
    """Shape (m,): scratch."""


def published_scale(epsilon: float, delta: float, horizon: int) -> float:
    """Return the standard deviation of a node's noise, as the authors' code has it, B = rho = 1."""
    depth = 1 + math.ceil(math.log(max(horizon, 2)))
    return math.sqrt(16 * depth * (2 + 1 + 2)) * math.log(10 / delta) / epsilon


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, user: Any, x: Any, reward: Any) -> Any:
    """Add a round to the agent's sums, and synchronise all agents when it is time."""
    clipped = min(params.high, max(params.low, reward))
    add_moments(x, clipped, params.step if tape.kind == SECURE else 0.0, state.opened[user])
    state.rounds[0] += 1
    state.rounds[1] += 1
    if params.threshold > 0.0:
        volume = _estimate(params, state, user, 1.0)
        growth = volume - state.volume[0] if volume > -np.inf else 0.0
        speak = growth * state.rounds[1] > params.threshold
    else:
        speak = state.rounds[1] == state.rounds[2]
    if speak:
        _synchronise(params, state, tape, t)
    return True


@kernel(inlined=False)
def _synchronise(params: Any, state: Any, tape: Any, t: Any) -> None:
    """Every agent releases its sums; corrected those of its batch, published the next node of its tree."""
    N, m = state.opened.shape
    d = state.mean.shape[1]
    rank = _rank(params, state.rounds[3] + 1)
    for user in range(N):
        nodes, released, opened = state.nodes[user], state.released[user], state.opened[user]
        for j in range(m):
            for k in range(rank):
                opened[j] += nodes[k, j]
            released[rank, j] = opened[j]
            scale = params.matrix_scale if j < m - d else params.vector_scale
            if scale > 0.0:
                index = user * m + j
                released[rank, j] = release_gaussian(
                    tape, t, index, NOISE, opened[j], params.sensitivity, scale, m
                )
    learn_from_release(params, state, 0)


@kernel
def _rank(params: Any, n: Any) -> Any:
    """Return the level of the node that the n-th synchronisation closes; corrected, 0."""
    rank = 0
    if params.threshold > 0.0:
        while (n >> rank) & 1 == 0:
            rank += 1
    return rank


@kernel(inlined=False)
def learn_from_release(params: Any, state: Any, user: Any) -> None:
    """Learn from what every agent has just released, whoever made it due, and begin the next batch."""
    N, m = state.opened.shape
    state.rounds[1] = 0
    state.rounds[2] *= 2
    state.rounds[3] += 1
    rank = _rank(params, state.rounds[3])
    state.rounds[4] += N * (1 - rank)
    for agent in range(N):
        nodes, released, opened = state.nodes[agent], state.released[agent], state.opened[agent]
        for j in range(m):
            for k in range(rank):
                state.sums[j] -= released[k, j]
                nodes[k, j] = released[k, j] = 0.0
            if params.threshold > 0.0:
                nodes[rank, j] = opened[j]
            state.sums[j] += released[rank, j]
            opened[j] = 0.0
    for agent in range(N):
        state.volume[0] = _estimate(params, state, agent, 0.0)


@kernel(allocates=True, inlined=False)
def _estimate(params: Any, state: Any, user: Any, own: Any) -> Any:
    """Solve for the agent's estimate from what was released and, published, from its own rounds.

    Return the log determinant. Noise of n releases, of all agents together, has a spectral norm of
    about scale sqrt(2 d n); published, those of nodes that are open.
    """
    d = state.mean.shape[1]
    m = state.sums.size
    total, A = state.work, np.zeros((d, d))
    for j in range(m):
        total[j] = state.sums[j] + own * state.opened[user, j]
    matrix_of_moments(total, A)
    ridge = params.regularisation + params.matrix_scale * math.sqrt(2.0 * d * state.rounds[4])
    for a in range(d):
        A[a, a] += ridge
    volume = _log_determinant(A.copy())
    solve_estimate(A, total, state.covariance[user], state.mean[user])
    return volume


@kernel
def _log_determinant(A: Any) -> Any:
    """Return the logarithm of the determinant of a positive matrix, which is lost; -inf for others."""
    total = 0.0
    for k in range(A.shape[0]):
        if A[k, k] <= 0.0:
            return -np.inf
        total += math.log(A[k, k])
        for i in range(k + 1, A.shape[0]):
            share = A[i, k] / A[k, k]
            for j in range(k, A.shape[0]):
                A[i, j] -= share * A[k, j]
    return total


@dataclass(frozen=True, kw_only=True)
class FedUCB(BatchedPolicy[State]):
    """Linear upper confidence bounds of agents who share one model and synchronise now and then.

    Guarantee: corrected, (epsilon, delta) for one visit, all contexts shown in one round and its
    reward: from whoever sees everything that agents send and all decisions of all *other* rounds.
    No server is trusted, an agent is. A learner, which stands in for all agents and the server, sees
    everything: there the trust is central, the rest the same. Published, none: see `guarantee`. It
    is for simulations.

    Parameters
    ----------
    n_users : int
        Number of agents N, who should have the same preferences.
    dimension : int
        Length d of a context; contexts are no longer than 1.
    epsilon : float, optional
        Without it nothing is hidden.
    delta : float, default 1e-6
    variant : {"corrected", "published"}
    horizon : int, optional
        Rounds in all; published noise needs it.
    threshold : float, default 4
        Published: an agent asks for a synchronisation when the log determinant of its matrix has grown
        by more than this over the number of rounds since the last one.
    reward_range : (float, float), default (0, 1)
        Rewards are clipped to it.
    regularisation : float, default 1
        lambda, beside what makes up for the noise.
    exploration : float, default 0.3
        The width of the confidence bound.

    Examples
    --------
    >>> from tacit.contextual import FedUCB
    >>> policy = FedUCB(n_users=10, dimension=5, epsilon=2.0)
    >>> guarantee = policy.guarantee(horizon=10_000)
    >>> round(guarantee.epsilon, 6), guarantee.delta, guarantee.unit, guarantee.trust
    (2.0, 1e-06, 'visit', 'local')

    References
    ----------
    Dubey, Pentland. Differentially-private federated linear bandits. NeurIPS 2020.
    Zhou, Chowdhury. On differentially private federated linear contextual bandits. ICLR 2024.
    """

    name: ClassVar[str] = "fed-ucb"
    summary: ClassVar[str] = "agents learn one model together, contexts and rewards private"
    protects: ClassVar[str] = (
        "contexts and reward of each round, if epsilon is given (published: nothing)"
    )
    joins_nobody: ClassVar[str] = "all learn one model"
    kernels: ClassVar[Kernels] = Kernels(
        select_by_ucb,
        learn,
        rounds(select_by_ucb, learn, estimation_error),
        learn_from_release=learn_from_release,
    )

    variant: Annotated[str, one_of("corrected", "published")] = "corrected"
    horizon: Count | None = None
    threshold: Positive = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        known = self.horizon is not None or not self._published or self.epsilon is None
        require(self, "horizon", "given for published noise", known, self.horizon)

    @property
    def _published(self) -> bool:
        return self.variant == "published"

    @property
    def _depth(self) -> int:
        """How many levels a tree of at most `horizon` synchronisations has."""
        return int(self.horizon or 1).bit_length() if self._published else 1

    @property
    def mechanisms(self) -> tuple[Mechanism, ...] | None:
        """Noise on the moments of a batch; the published noise is no mechanism of this project."""
        return None if self._published and self.moments else super().mechanisms

    def guarantee(self, horizon: int) -> Guarantee:
        """Return what one visit is protected from; published, what is claimed and why it fails."""
        return self.guarantee_under("local")

    def guarantee_under(self, trust: str) -> Guarantee:
        """Return the guarantee where agents add noise (local), or somebody who sees all (central)."""
        if self.moments is None:
            return Guarantee.none("FedUCB without epsilon adds no noise", unit="visit")
        if self._published:
            claim = Claim(
                epsilon=float(self.epsilon or 0.0),
                delta=self.delta,
                unit="visit",
                trust="local",
                span="run",
                holds=False,
                why=_WHY,
            )
            return Guarantee.none(_WHY, unit="visit", claim=claim)
        note = f"Joint: decisions of all other rounds are protected. {_MADE[trust]}"
        return self._state_guarantee(self.moments, trust, note, True, _OPEN[trust])

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        moments = self.moments
        matrix = vector = moments.scale if moments else 0.0
        if moments and self._published:
            vector = published_scale(moments.epsilon, self.delta, int(self.horizon or 1))
            matrix = math.sqrt(2) * vector
        return Params(
            *self.reward_range,
            regularisation=float(self.regularisation),
            exploration=float(self.exploration),
            threshold=float(self.threshold) if self._published else 0.0,
            sensitivity=moments.sensitivity if moments else 1.0,
            step=moments.step if moments else 0.0,
            matrix_scale=matrix,
            vector_scale=vector,
        )

    def open(self, **joined: Any) -> State:
        """Return a fresh state; whoever is joined to whom does not matter."""
        N, d = self.n_users, self.dimension
        m = d * (d + 3) // 2
        return State(
            rounds=np.array([0, 0, N, 0, 0], np.int64),
            opened=np.zeros((N, m)),
            nodes=np.zeros((N, self._depth if self._published else 0, m)),
            released=np.zeros((N, self._depth, m)),
            sums=np.zeros(m),
            volume=np.array([d * math.log(self.regularisation)]),
            covariance=np.tile(np.eye(d) / self.regularisation, (N, 1, 1)),
            mean=np.zeros((N, d)),
            work=np.zeros(m),
        )

    def require_served(self) -> None:
        """Refuse the published form."""
        require("Learner", "variant", _SPEAKS, not self._published, self.variant)

    def latest_moments(self, state: State) -> NDArray[np.float64]:
        """Return the moments of every agent's batch."""
        return state.released[:, 0]

    def drop_unreleased(self, state: State) -> None:
        """Empty all open batches, which are counted anew."""
        super().drop_unreleased(state)
        state.rounds[1] = 0

    def copy_people(self, old: State, new: State) -> None:
        """Let everybody, new people too, know what the others do."""
        super().copy_people(old, new)
        new.covariance[:], new.mean[:] = old.covariance[0], old.mean[0]
