"""`PrivateContexts` at work: a trusted server hides whole visits, contexts and rewards.

What it learns of a person changes only when one of the person's batches is released, and what is logged
of a release are the noisy moments themselves: everything else follows from them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import require
from tacit.tapes import Tape
from tacit.users.deciding import ContextsDecider
from tacit.users.private_contexts import PrivateContexts, State, settle
from tacit.users.rounds import most_promising

__all__ = ["VisitsDecider"]

_CHOOSES = (
    "'central': with 'local' contexts never leave the device, which chooses by itself, and a learner "
    "that is to choose must see them; where contexts may be seen, LinUCB(epsilon=...) hides each "
    "reward on the device"
)


class VisitsDecider(ContextsDecider):
    """Offer one of several contexts to one of many people, each of whom learns alone.

    Parameters
    ----------
    policy : PrivateContexts
        With ``trust="central"``.
    explore : float
        The share of decisions that are drawn evenly from what is eligible.
    """

    trust = "central"
    short = True

    def __init__(self, policy: PrivateContexts, *, explore: float = 0.0) -> None:
        super().__init__(policy, explore)
        require("Learner", "trust", _CHOOSES, policy.trust == "central", policy.trust)
        self.policy: PrivateContexts = policy
        self.releases = policy.epsilon is not None
        self._state = policy.open()

    @property
    def state(self) -> State:
        """The policy's arrays."""
        return self._state

    @property
    def epsilon(self) -> float:
        """What one visit costs, at the policy's delta."""
        return self.policy.guarantee(1).epsilon

    def best(self, person: int, contexts: NDArray[np.float64]) -> int:
        """Return the one with the largest upper confidence bound."""
        return int(most_promising(self.policy.rule, self._state, person, contexts, contexts))

    def learn(self, tape: Tape, t: int, option: int, record: Any, value: Any) -> None:
        """Add a visit to its person's open batch, which may thereby be full."""
        self.policy.update(self._state, tape, int(record[0]), record[1], value)

    def told(self, tape: Tape, n: int, record: Any) -> list[float]:
        """Return the moments of the batch that was released."""
        values: list[float] = self._state.latest.tolist()
        return values

    def pack_release(self, record: Any) -> bytes:
        """Return the moments that were released."""
        return self._state.latest.tobytes()

    def unpack_release(self, data: bytes, record: Any) -> None:
        """Learn from moments that were released: those of the person's open batch and one visit."""
        self._state.rounds[0] += 1
        self._state.latest[:] = np.frombuffer(data)
        settle(self.policy.rule, self._state, int(record[0]))

    def rejoined(self, n_people: int, joined: Any) -> VisitsDecider:
        """Return a decider for more people; nobody is joined to anybody."""
        require(self.policy, "graph", "not given: each person learns alone", joined is None, joined)
        policy = dataclasses.replace(self.policy, n_users=n_people)
        again = VisitsDecider(policy, explore=self._explore)
        known = min(n_people, self.policy.n_users)
        for name, mine in self._state._asdict().items():
            theirs = getattr(again._state, name)
            kept = len(mine) if name in ("rounds", "latest") else known
            theirs[:kept] = mine[:kept]
        return again

    def with_person(self, near: Sequence[int]) -> VisitsDecider:
        """Return a decider for one person more."""
        require(self.policy, "near", "nobody: each person learns alone", not near, list(near))
        return self.rejoined(self.policy.n_users + 1, None)

    def discard(self) -> None:
        """Empty the open batches: a lost history may have released them."""
        self._state.opened[:] = 0.0
        self._state.counts[:, 0] = 0
