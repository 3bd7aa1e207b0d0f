"""A policy of the users setting at work: people with names, options that come with each decision.

Beside the policy's own arrays each person's sums are kept, of x x' and of x times the debiased report.
They are all that ridge regression needs, so that new people and changed edges rebuild the model from
them: d made-up observations with the same sums stand for everything that a person reported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.checks import require
from tacit.deciding import Choice, Decider
from tacit.device.channel import Channel as DeviceChannel
from tacit.device.facts import estimator
from tacit.device.instructions import discrete_laplace, identity, piecewise, randomized_response
from tacit.tapes import FLOOR, Tape, seeded_tape, uniform
from tacit.users.collaborative import State, learn, select
from tacit.users.policy import CollaborativePolicy
from tacit.users.privacy import Channel, PerReward

__all__ = ["UsersDecider"]

_ASKED = {"bit": randomized_response, "piecewise": piecewise, "laplace": discrete_laplace}


class Kept(NamedTuple):
    """What is learned."""

    policy: State
    gram: NDArray[np.float64]
    """Shape (N, d, d): the sum of x x' of each person."""
    response: NDArray[np.float64]
    """Shape (N, d): the sum of x times what was reported, debiased."""


class UsersDecider(Decider):
    """Offer one of several contexts to one of many people.

    Parameters
    ----------
    policy : CollaborativePolicy
        With rewards privatised one by one, or not at all. Noise on sums is noise that a device or
        server would have to keep, and cannot be told from a log.
    explore : float
        The share of decisions that are drawn evenly from what is eligible.
    graph, weights
        Who is joined to whom, where the policy needs it.
    """

    def __init__(
        self,
        policy: CollaborativePolicy,
        *,
        explore: float = 0.0,
        graph: Any = None,
        weights: Any = None,
    ) -> None:
        hidden = policy.protection
        rule = "PerReward or None: noise on sums is for simulations"
        single = hidden is None or isinstance(hidden, PerReward)
        require("Learner", "privacy", rule, single, hidden)
        require("Learner", "explore", "in [0, 1)", 0 <= explore < 1, explore)
        self.policy: CollaborativePolicy = policy
        self.n_options, self.n_people = None, policy.n_users
        self.trust = "central" if hidden is None else "local"
        self._explore = explore
        self._edges = _edges(policy, graph, weights)
        state = policy.open(**_joined(policy, self._edges))
        N, d = policy.n_users, policy.dimension
        self._state = Kept(state, np.zeros((N, d, d)), np.zeros((N, d)))
        self._rule = policy.rule
        # What comes in is debiased already, and no noise is added to it.
        self._taken = policy.rule._replace(channel=Channel(-np.inf, np.inf))
        self._tape = seeded_tape(0)
        self._device: dict[float | None, tuple[dict[str, Any], DeviceChannel, float, float]] = {}

    @property
    def state(self) -> Kept:
        """The policy's arrays, and each person's sums."""
        return self._state

    @property
    def epsilon(self) -> float:
        """What one report costs."""
        return self._asked(None)[1].epsilon

    @property
    def joined(self) -> Any:
        """Edges (u, v, weight), or None where the policy needs none."""
        return self._edges

    def asked(self, query: Mapping[str, Any]) -> tuple[int, NDArray[np.float64], NDArray[np.int64]]:
        """Return the person, the contexts that are eligible, and their numbers."""
        person, contexts = query.get("person"), query.get("contexts")
        require(self.policy, "person", "given", person is not None, None)
        require(self.policy, "contexts", "given", contexts is not None, None)
        try:
            rows = np.array(contexts, np.float64)
        except (TypeError, ValueError):
            rows = np.empty(0)
        d = self.policy.dimension
        fits = rows.ndim == 2 and rows.shape[1] == d and len(rows) > 0
        require(self.policy, "contexts", f"of shape (n, {d})", fits, rows.shape)
        require(self.policy, "contexts", "finite", bool(np.isfinite(rows).all()), "one that is not")
        numbers = np.arange(len(rows))
        eligible = query.get("eligible")
        if eligible is not None:
            numbers = np.unique(np.asarray(eligible, np.int64))
            inside = numbers.size > 0 and numbers[0] >= 0 and numbers[-1] < len(rows)
            require(self.policy, "eligible", f"some of 0..{len(rows) - 1}", bool(inside), eligible)
        return int(person or 0), np.ascontiguousarray(rows[numbers]), numbers

    def choose(self, tape: Tape, t: int, query: Any) -> Choice:
        """Offer the context with the largest upper confidence bound."""
        person, rows, numbers = query
        slot = int(select(self._rule, self._state.policy, person, rows, np.empty_like(rows)))
        chance = 1.0
        if self._explore:
            m = len(numbers)
            best = slot
            if uniform(tape, t, 0, FLOOR) < self._explore:
                slot = int(uniform(tape, t, 1, FLOOR) * m)
            chance = (1.0 - self._explore) * (slot == best) + self._explore / m
        return Choice(int(numbers[slot]), chance, [person, *rows[slot].tolist()])

    def instructions(self, option: int, record: Any, default: float | None) -> dict[str, Any]:
        """Ask for the reward, or for what the mechanism makes of it."""
        return self._asked(default)[0]

    def _asked(self, default: float | None) -> tuple[dict[str, Any], DeviceChannel, float, float]:
        made = self._device.get(default)
        if made is None:
            low, high = self.policy.reward_range
            hidden = self.policy.protection
            slope, intercept = 1.0, 0.0
            if isinstance(hidden, PerReward):
                ask: Any = _ASKED[hidden.chosen]
                told = ask(hidden.epsilon, low=low, high=high, default=default)
                slope, intercept = (float(each) for each in estimator(told))
            else:
                told = identity(low=low, high=high, default=default)
            made = self._device[default] = (told, DeviceChannel(told), slope, intercept)
        return made

    def checked(self, option: int, record: Any, value: Any) -> Any:
        """Return a value that the instructions allow."""
        channel = self._asked(None)[1]
        if not channel.possible(value):
            raise ValueError(f"report: expected a value that the instructions allow, got {value!r}")
        return float(value) if self.trust == "central" else value

    def learn(self, tape: Tape, t: int, option: int, record: Any, value: Any) -> None:
        """Take in a report: debiased, with the context that was offered."""
        _, _, slope, intercept = self._asked(None)
        person, x = int(record[0]), np.array(record[1:])
        self._take(person, x, slope * value + intercept)
        self._state.gram[person] += np.outer(x, x)
        self._state.response[person] += x * (slope * value + intercept)

    def _take(self, person: int, x: NDArray[np.float64], value: float) -> None:
        learn(self._taken, self._state.policy, self._tape, 0, person, x, value)

    def rejoined(self, n_people: int, joined: Any) -> UsersDecider:
        """Return a decider for so many people, joined anew, that learns from their sums."""
        policy = dataclasses.replace(self.policy, n_users=n_people)
        again = UsersDecider(policy, explore=self._explore, **_joined(policy, joined))
        n = self.policy.n_users
        again._state.gram[:n], again._state.response[:n] = self._state.gram, self._state.response
        for person in range(n):
            values, vectors = np.linalg.eigh(self._state.gram[person])
            for value, vector in zip(values, vectors.T, strict=True):
                if value > 1e-12 * max(values[-1], 1e-300):
                    x = np.sqrt(value) * vector
                    taught = float(vector @ self._state.response[person]) / np.sqrt(value)
                    again._take(person, np.ascontiguousarray(x), taught)
        return again

    def with_person(self, near: Sequence[int]) -> UsersDecider:
        """Return a decider for one person more."""
        edges, new = self._edges, self.policy.n_users
        if self.policy.joined_by == "weights":
            raise ValueError(
                f"{type(self.policy).__name__}: expected its weights for all people with each new one "
                "(set_edges), because they sum to one"
            )
        if edges is not None:
            edges = [
                *edges,
                *[[u, v, 1.0] for other in near for u, v in ((new, other), (other, new))],
            ]
        require(
            self.policy, "near", "nobody: it joins no people", edges is not None or not near, near
        )
        return self.rejoined(new + 1, edges)

    def retire(self, option: int) -> None:
        """Refuse: options come with each decision."""
        raise ValueError(f"{type(self.policy).__name__}: expected options with each decision")

    def discard(self) -> None:
        """Do nothing: reports are private, or nothing is."""


def _edges(policy: CollaborativePolicy, graph: Any, weights: Any) -> list[list[float]] | None:
    if not policy.joined_by:
        return None
    from tacit.users.tables import as_matrix

    given = {"weights": weights, "graph": graph}[policy.joined_by]
    require("Learner", policy.joined_by, "given", given is not None, None)
    matrix = as_matrix(policy, policy.joined_by, given).tocoo()
    rows, columns = matrix.coords
    return sorted(
        [int(u), int(v), float(w)] for u, v, w in zip(rows, columns, matrix.data, strict=True)
    )


def _joined(policy: CollaborativePolicy, edges: list[list[float]] | None) -> dict[str, Any]:
    if edges is None:
        return {}
    from scipy.sparse import coo_array

    n = policy.n_users
    table = np.array(edges, np.float64).reshape(-1, 3)
    places = (table[:, 0].astype(int), table[:, 1].astype(int))
    return {policy.joined_by: coo_array((table[:, 2], places), shape=(n, n)).tocsr()}
