"""A real policy of people with contexts, watched: which noise was put on which sums, of which visits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from serving.toy import Account
from tacit.contextual import FedUCB
from tacit.contextual.decider import BatchDecider
from tacit.privacy.mechanisms.gaussian_moments import add_moments

PEOPLE = 6
_MOST = 64


class Watched(NamedTuple):
    policy: Any
    members: Any
    """Rounds of the visits that are in the open batch, -1 where none."""


class WatchedDecider(BatchDecider):
    """As it serves, but for batches: they do not grow, so that many are released."""

    account: Account

    def __init__(self, policy: FedUCB, *, explore: float = 0.0) -> None:
        super().__init__(policy, explore=explore)
        self.members = np.full(_MOST, -1, np.int64)
        self._again()

    @property
    def state(self) -> Watched:
        return Watched(self._state, self.members)

    def _again(self) -> None:
        self._state.rounds[2] = PEOPLE

    def learn(self, tape: Any, t: int, option: int, record: Any, value: Any) -> None:
        s, params = self._state, self.policy.params
        self.members[s.rounds[1]] = t
        sums, place = s.opened.copy(), int(s.rounds[0])
        clipped = min(params.high, max(params.low, value))
        add_moments(np.array(record[1]), clipped, params.step, sums[int(record[0])])
        super().learn(tape, t, option, record, value)
        if s.rounds[1] == 0:
            rounds = tuple(self.members[self.members >= 0].tolist())
            for agent, own in enumerate(sums):
                key = tape.key[4:].tobytes()
                self.account.drawn(key, place, agent, own.tobytes(), rounds)
            self.account.told[tuple(self.latest.ravel().tolist())] = rounds
            self.members[:] = -1
            self._again()

    def unpack_release(self, data: bytes, record: Any) -> None:
        super().unpack_release(data, record)
        self.members[:] = -1
        self._again()

    def with_edges(self, n_people: int, joined: Any) -> Any:
        again: Any = super().with_edges(n_people, joined)
        again.members[:] = self.members
        return again

    def discard(self) -> None:
        super().discard()
        self.members[:] = -1


def watched(account: Account) -> WatchedDecider:
    """Return a decider for some people that writes into this account."""
    kind = type("WatchedHere", (WatchedDecider,), {"account": account})
    return kind(FedUCB(n_users=PEOPLE, dimension=1, epsilon=1.0))
