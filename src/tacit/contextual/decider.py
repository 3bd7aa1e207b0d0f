"""Policies of this setting at work: people with names, options that come with each decision.

What a device is asked is fixed when the decision is made and kept with it, because a question may depend
on what was predicted then. New people and changed edges make the model anew from each person's own
statistics. Of a batch of visits the noisy moments are logged; everything else follows from them.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.arguments import read_contexts
from tacit.contextual.batched_policy import BatchedPolicy
from tacit.contextual.features import relation
from tacit.contextual.model import State, ask, take
from tacit.contextual.noisy_sums import USER, Streams, Sums, remove_from_b, stream_of, use_released
from tacit.contextual.policy import CollaborativePolicy
from tacit.contextual.privacy import NoisySums, PerReward, Published, Residual
from tacit.contextual.questions import Question
from tacit.contextual.ridge import recompute
from tacit.contextual.statistics import restore, statistics_of
from tacit.contextual.table import as_matrix
from tacit.core.arrays import pack, unpack
from tacit.core.constraints import require
from tacit.core.decider import Choice, Decider
from tacit.core.tapes import FLOOR, Tape, uniform
from tacit.device import Channel
from tacit.device.instructions import identity
from tacit.graphs import Graph
from tacit.privacy import Guarantee

_KEEPS = (
    "with trust='central' for noise on sums, because a device would have to keep its rewards and "
    "its noise from one decision to the next, and keeps nothing; PerReward hides each reward there"
)

Record = Sequence[Any]
"""What is kept of a decision: the person, the context that was offered and perhaps the question."""
Edge = list[float]
"""Two people and the weight between them."""


class Visit(NamedTuple):
    """Somebody to decide for, and what may be offered."""

    person: int
    contexts: NDArray[np.float64]
    """Shape (n, d): of those that are eligible."""
    numbers: NDArray[np.int64]
    """Shape (n,): which of the options they are."""


class _Step(NamedTuple):
    """What one release made of a stream."""

    kept: NDArray[np.float64]
    """Shape (dim, 2): the two numbers of each coordinate that its memory got."""
    sums: NDArray[np.float64]
    """Shape (dim,): what was released."""


class ContextualDecider(Decider):
    """Offer one of several contexts to one of many people: what policies of this setting share."""

    policy: CollaborativePolicy | BatchedPolicy[Any]
    n_options = None
    short: bool = False
    """Whether contexts are no longer than 1, because noise is calibrated to that."""

    def __init__(self, explore: float) -> None:
        require("Learner", "explore", "in [0, 1)", 0 <= explore < 1, explore)
        self.n_people, self.reward_range = self.policy.n_users, self.policy.reward_range
        self._explore = explore

    @abstractmethod
    def best(self, person: int, contexts: NDArray[np.float64]) -> int:
        """Return which row of contexts the policy offers to a person."""

    def question(self, person: int, context: NDArray[np.float64]) -> list[Any]:
        """Return what must be kept, beside person and context, of what a device is asked."""
        return []

    def asked(self, query: Mapping[str, Any]) -> Visit:
        """Return the person, the contexts that are eligible, and their numbers."""
        person, contexts = query.get("person"), query.get("contexts")
        require(self.policy, "person", "given", person is not None, None)
        require(self.policy, "contexts", "given", contexts is not None, None)
        rows = read_contexts(self.policy, contexts, short=self.short)
        slots = np.arange(len(rows))
        eligible = query.get("eligible")
        if eligible is not None:
            slots = np.unique(np.asarray(eligible, np.int64))
            inside = slots.size > 0 and slots[0] >= 0 and slots[-1] < len(rows)
            require(self.policy, "eligible", f"some of 0..{len(rows) - 1}", bool(inside), eligible)
        return Visit(int(person or 0), np.ascontiguousarray(rows[slots]), slots)

    def offered(self, asked: Visit) -> NDArray[np.int64]:
        """Return the numbers of the contexts that are eligible."""
        return asked.numbers

    def choose(self, tape: Tape, t: int, query: Visit) -> Choice:
        """Offer the context that the policy finds best, and fix the question."""
        person, rows, numbers = query
        slot = self.best(person, rows)
        chance = 1.0
        if self._explore:
            m, best = len(numbers), slot
            if uniform(tape, t, 0, FLOOR) < self._explore:
                slot = int(uniform(tape, t, 1, FLOOR) * m)
            chance = (1.0 - self._explore) * (slot == best) + self._explore / m
        record = [person, rows[slot].tolist(), *self.question(person, rows[slot])]
        return Choice(int(numbers[slot]), chance, record)

    def instructions(self, option: int, record: Record, default: float | None) -> dict[str, Any]:
        """Ask for the reward."""
        low, high = self.reward_range
        return identity(low=low, high=high, default=default)

    def checked(self, option: int, record: Record, value: Any) -> Any:
        """Return a value that the instructions allow."""
        if not Channel(self.instructions(option, record, None)).possible(value):
            raise ValueError(f"report: expected a value that the instructions allow, got {value!r}")
        return float(value) if self.trust == "central" else value

    def retire(self, option: int) -> None:
        """Refuse: options come with each decision."""
        raise ValueError(f"{type(self.policy).__name__}: expected options with each decision")


class CollaborativeDecider(ContextualDecider):
    """Offer one of several contexts to one of many people, who learn from each other.

    Parameters
    ----------
    policy : CollaborativePolicy
        With rewards privatised one by one on devices, with noise on sums that a trusted server
        keeps, or with none. Sums that devices would have to keep are refused.
    explore : float
        The share of decisions that are drawn evenly from what is eligible.
    graph, weights
        Who is joined to whom, where the policy needs it; weights are made of a graph unless given.
    """

    policy: CollaborativePolicy
    exact_instead = (
        "NoisySums(epsilon=..., delta=1e-6, trust='central') has Gaussian noise on sums, which is, and "
        "PerReward(epsilon=...) noise on the device"
    )

    def __init__(
        self,
        policy: CollaborativePolicy,
        *,
        explore: float = 0.0,
        graph: Any = None,
        weights: Any = None,
    ) -> None:
        self.policy = policy
        super().__init__(explore)
        hidden = policy.protection
        self.trust = "local" if isinstance(hidden, PerReward | Residual) else "central"
        self.short = self.releases = isinstance(hidden, NoisySums | Published)
        if isinstance(hidden, NoisySums | Published):
            require("Learner", "privacy", _KEEPS, hidden.trust == "central", hidden)
            self.horizon = hidden.horizon
        self._edges = _list_edges(policy, graph, weights)
        self._state = policy.open(**_as_matrix(policy, self._edges))

    @property
    def state(self) -> State:
        """The policy's arrays."""
        return self._state

    @property
    def epsilon(self) -> float:
        """What one report costs."""
        hidden = self.policy.protection
        if isinstance(hidden, PerReward | Residual):
            return float(hidden.epsilon)
        return math.inf if hidden is None else self.policy.guarantee(1).epsilon

    @property
    def joined(self) -> list[Edge] | None:
        """Edges (u, v, weight), or None where the policy needs none."""
        return self._edges

    def best(self, person: int, contexts: NDArray[np.float64]) -> int:
        """Return the one with the largest upper confidence bound."""
        scratch = np.empty_like(contexts)
        return int(
            self.policy.kernels.select(self.policy.params, self._state, person, contexts, scratch)
        )

    def question(self, person: int, context: NDArray[np.float64]) -> list[Any]:
        """Return what a device is asked, where it is asked something."""
        if self.trust == "central":
            return []
        asked = self.policy.ask(self._state, person, context)
        return [[int(asked.kind), *(float(each) for each in asked[1:])]]

    def instructions(self, option: int, record: Record, default: float | None) -> dict[str, Any]:
        """Ask for the reward, or for what the mechanism makes of it."""
        if self.trust == "local":
            return self.policy.instructions(Question(*record[2]), default=default)
        return super().instructions(option, record, default)

    def learn(self, tape: Tape, t: int, option: int, record: Record, value: float) -> None:
        """Take in a report with the context that was offered and the question that was asked."""
        person, x = int(record[0]), np.array(record[1])
        if self.trust == "local":
            self.policy.take(self._state, person, x, Question(*record[2]), value)
            return
        self.policy.update(self._state, tape, person, x, value)
        if self.releases:
            self._state.work[:] = 0.0

    def full(self, record: Record) -> bool:
        """Return whether the stream of a person's sums is calibrated for no more rewards."""
        if not self.releases:
            return False
        streams, sums, s = self._stream(record)
        return int(sums.steps[s]) >= streams.stream.capacity

    def released(self, tape: Tape, n: int, record: Record) -> list[float]:
        """Return the sum of a person's stream, or of the only one."""
        _, sums, s = self._stream(record)
        values: list[float] = sums.sums[s].tolist()
        return values

    def pack_release(self, record: Record) -> bytes:
        """Return the released sum and what its stream remembers of the step."""
        streams, sums, s = self._stream(record)
        return pack(_Step(sums.memory[s][:, _places(streams, sums, s)], sums.sums[s]))

    def unpack_release(self, data: bytes, record: Record) -> None:
        """Take in the context of a reward, and the sum that was released with it."""
        state, params = self._state, self.policy.params
        streams, sums, s = self._stream(record)
        person, x = int(record[0]), np.array(record[1])
        take(params, state, person, x, ask(params, state, person, x), 0.0)
        remove_from_b(params, state, s)
        sums.steps[s] += 1
        dim = sums.sums.shape[1]
        step = _Step(np.empty((dim, 2)), np.empty(dim))
        unpack(step, data)
        sums.memory[s][:, _places(streams, sums, s)] = step.kept
        sums.sums[s] = step.sums
        use_released(params, state, state.ridge.place[person], s)
        state.work[:] = 0.0

    def _stream(self, record: Record) -> tuple[Streams, Sums, int]:
        """Return how sums are released, the sums, and the number of a person's stream."""
        streams, sums = self.policy.params.channel.streams, self._state.sums
        assert streams is not None
        assert sums is not None
        return streams, sums, int(stream_of(streams, self._state.ridge.place[int(record[0])]))

    def with_edges(self, n_people: int, joined: list[Edge] | None) -> CollaborativeDecider:
        """Return a decider for so many people, joined anew, made from each one's statistics."""
        rule = "on each person's sums: b was released for people joined as they were"
        streams = self.policy.params.channel.streams
        apart = streams is None or streams.space == USER
        require(self.policy, "privacy", rule, apart, self.policy.protection)
        policy = dataclasses.replace(self.policy, n_users=n_people)
        again = type(self)(policy, explore=self._explore, **_as_matrix(policy, joined))
        old = np.arange(n_people)
        old[old >= self.policy.n_users] = -1
        restore(policy.params, again._state, statistics_of(self._state).arranged(old))
        if self._state.sums is not None:
            known = min(n_people, self.policy.n_users)
            mine, theirs = (each._state.ridge.place[:known] for each in (self, again))
            for name in ("steps", "memory", "sums", "lift"):
                getattr(again._state.sums, name)[theirs] = getattr(self._state.sums, name)[mine]
        return again

    def with_person(self, near: Sequence[int]) -> CollaborativeDecider:
        """Return a decider for one person more; where weights sum to one, the others make room."""
        edges, new = self._edges, self.policy.n_users
        alone = edges is not None or not near
        require(self.policy, "near", "nobody: it joins no people", alone, list(near))
        if edges is None:
            return self.with_edges(new + 1, None)
        if self.policy.joined_by == "weights":
            return self.with_edges(new + 1, _make_room(edges, new, near))
        both = [[u, v, 1.0] for other in near for u, v in ((new, other), (other, new))]
        return self.with_edges(new + 1, [*edges, *both])

    def discard(self) -> None:
        """Let streams begin anew from what they released, which is known, and forget true sums.

        A sum that a lost history may have released again is then in none that is still to come.
        """
        streams, sums, ridge = (
            self.policy.params.channel.streams,
            self._state.sums,
            self._state.ridge,
        )
        if streams is None or sums is None:
            return
        if streams.space == USER:
            ridge.response[:] += sums.sums
            sums.lift[:] = 0.0
            recompute(ridge, self._state.level)
        sums.memory[:] = 0.0
        sums.sums[:] = 0.0


class BatchDecider(ContextualDecider):
    """Offer one of several contexts to one of many people, and hide each visit as a whole.

    With `PrivateContexts` each person learns alone, from batches of 1, 2, 4, ... visits of the person's own.
    With `FedUCB` all people, the agents, learn one model. The learner stands in for every agent and for the
    server that adds up what they send. It sees all of it, so that the trust is central. Batches end after as
    many visits as there were agents at first, then twice, four times as many, and so on, whoever came;
    somebody new begins with the common model, and the ridge counts the noise that was added.

    Parameters
    ----------
    policy : PrivateContexts or FedUCB
        In the form that can be served: ``trust="central"`` or ``variant="corrected"``.
    explore : float
        The share of decisions that are drawn evenly from what is eligible.
    """

    policy: BatchedPolicy[Any]
    trust = "central"
    short = True

    def __init__(self, policy: BatchedPolicy[Any], *, explore: float = 0.0) -> None:
        policy.require_served()
        self.policy = policy
        super().__init__(explore)
        self.releases = policy.epsilon is not None
        self._state = policy.open()

    @property
    def state(self) -> Any:
        """The policy's arrays."""
        return self._state

    @property
    def latest(self) -> NDArray[np.float64]:
        """The moments that were released last."""
        return self.policy.latest_moments(self._state)

    @property
    def epsilon(self) -> float:
        """What one visit costs, at the policy's delta."""
        return self.policy.guarantee(1).epsilon

    def guarantee(self, horizon: int) -> Guarantee:
        """Return what is protected where the learner sees what every person sends."""
        return self.policy.guarantee_under("central")

    def best(self, person: int, contexts: NDArray[np.float64]) -> int:
        """Return the one with the largest upper confidence bound."""
        return int(
            self.policy.kernels.select(self.policy.params, self._state, person, contexts, contexts)
        )

    def learn(self, tape: Tape, t: int, option: int, record: Record, value: float) -> None:
        """Add a visit to its person's open batch, which may thereby be full."""
        self.policy.update(self._state, tape, int(record[0]), record[1], value)

    def released(self, tape: Tape, n: int, record: Record) -> list[float]:
        """Return the moments that were released."""
        values: list[float] = self.latest.ravel().tolist()
        return values

    def pack_release(self, record: Record) -> bytes:
        """Return the moments that were released."""
        return self.latest.tobytes()

    def unpack_release(self, data: bytes, record: Record) -> None:
        """Learn from moments that were released, of what is open and one visit more."""
        self._state.rounds[0] += 1
        self.latest[...] = np.frombuffer(data).reshape(self.latest.shape)
        assert self.policy.kernels.learn_from_release is not None
        self.policy.kernels.learn_from_release(self.policy.params, self._state, int(record[0]))

    def with_edges(self, n_people: int, joined: list[Edge] | None) -> BatchDecider:
        """Return a decider for more people; nobody is joined to anybody."""
        rule = f"not given: {self.policy.joins_nobody}"
        require(self.policy, "graph", rule, joined is None, joined)
        policy = dataclasses.replace(self.policy, n_users=n_people)
        again = type(self)(policy, explore=self._explore)
        policy.copy_people(self._state, again._state)
        return again

    def with_person(self, near: Sequence[int]) -> BatchDecider:
        """Return a decider for one person more."""
        rule = f"nobody: {self.policy.joins_nobody}"
        require(self.policy, "near", rule, not near, list(near))
        return self.with_edges(self.policy.n_users + 1, None)

    def discard(self) -> None:
        """Empty the open batches: a lost history may have released them."""
        self.policy.drop_unreleased(self._state)


def _places(streams: Streams, sums: Sums, s: int) -> list[int]:
    """Return where a stream's memory has its latest step: a node's height, or the step itself."""
    k, half = int(sums.steps[s]), sums.memory.shape[2] // 2
    tree = streams.stream.coefficients.size == 0
    at = (k & -k).bit_length() - 1 if tree else k - 1
    return [at, half + at]


def _list_edges(policy: CollaborativePolicy, graph: Any, weights: Any) -> list[Edge] | None:
    if not policy.joined_by:
        return None
    if policy.joined_by == "weights" and weights is None and isinstance(graph, Graph):
        weights = relation(graph, own=1.0)
    given = {"weights": weights, "graph": graph}[policy.joined_by]
    rule = f"given, or people as a Graph, because {type(policy).__name__} learns from who is joined"
    require("Learner", policy.joined_by, rule, given is not None, None)
    matrix = as_matrix(policy, policy.joined_by, given).tocoo()
    n = policy.n_users
    require("Learner", policy.joined_by, f"of {n} people", matrix.shape == (n, n), matrix.shape)
    rows, columns = matrix.coords
    return sorted(
        [int(u), int(v), float(w)] for u, v, w in zip(rows, columns, matrix.data, strict=True)
    )


def _make_room(edges: list[Edge], new: int, near: Sequence[int]) -> list[Edge]:
    """Return weights, columns summing to one, in which a new person counts as one of equals."""
    friends = set(near)
    counted = Counter(int(v) for _, v, _ in edges)
    kept = [
        [u, v, w * counted[int(v)] / (counted[int(v)] + 1) if int(v) in friends else w]
        for u, v, w in edges
    ]
    kept += [[new, friend, 1.0 / (counted[friend] + 1)] for friend in friends]
    kept += [[u, new, 1.0 / (len(friends) + 1)] for u in (*friends, new)]
    return sorted(kept)


def _as_matrix(policy: CollaborativePolicy, edges: list[Edge] | None) -> dict[str, Any]:
    if edges is None:
        return {}
    from scipy.sparse import coo_array

    n = policy.n_users
    table = np.array(edges, np.float64).reshape(-1, 3)
    places = (table[:, 0].astype(int), table[:, 1].astype(int))
    return {policy.joined_by: coo_array((table[:, 2], places), shape=(n, n)).tocsr()}
