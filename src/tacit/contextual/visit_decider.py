"""`PrivateContexts` and `FedUCB` at work: a trusted server hides whole visits, contexts and rewards.

What is learned changes only when a batch is released, of one person or of everybody at once, and what is
logged of a release are the noisy moments themselves: everything else follows from them.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.batched_policy import VisitsPolicy
from tacit.contextual.decider import ContextsDecider
from tacit.contextual.loops import most_promising
from tacit.contextual.policies import fed_ucb, private_contexts
from tacit.core.constraints import require
from tacit.core.tapes import Tape
from tacit.privacy import Guarantee

_CHOOSES = (
    "'central': with 'local' contexts never leave the device, which chooses by itself, and a learner "
    "that is to choose must see them; where contexts may be seen, LinUCB(epsilon=...) hides each "
    "reward on the device"
)
_SPEAKS = (
    "'corrected': 'published' decides when to release by true contexts, so that no noise hides them; "
    "it is for simulations"
)


class VisitsDecider(ContextsDecider):
    """Offer one of several contexts to one of many people, and hide each visit as a whole.

    Parameters
    ----------
    policy : VisitsPolicy
    explore : float
        The share of decisions that are drawn evenly from what is eligible.
    """

    trust = "central"
    short = True
    joins: ClassVar[str]
    """Why nobody is joined to anybody."""

    def __init__(self, policy: VisitsPolicy[Any], *, explore: float = 0.0) -> None:
        super().__init__(policy, explore)
        self.policy: VisitsPolicy[Any] = policy
        self.releases = policy.epsilon is not None
        self._state = policy.open()

    @property
    def state(self) -> Any:
        """The policy's arrays."""
        return self._state

    @property
    @abstractmethod
    def latest(self) -> NDArray[np.float64]:
        """The moments that were released last."""

    @abstractmethod
    def settle(self, person: int) -> None:
        """Learn from `latest`, which a visit of this person made due."""

    @property
    def epsilon(self) -> float:
        """What one visit costs, at the policy's delta."""
        return self.policy.guarantee(1).epsilon

    def best(self, person: int, contexts: NDArray[np.float64]) -> int:
        """Return the one with the largest upper confidence bound."""
        return int(most_promising(self.policy.params, self._state, person, contexts, contexts))

    def learn(self, tape: Tape, t: int, option: int, record: Any, value: Any) -> None:
        """Add a visit to its person's open batch, which may thereby be full."""
        self.policy.update(self._state, tape, int(record[0]), record[1], value)

    def released(self, tape: Tape, n: int, record: Any) -> list[float]:
        """Return the moments that were released."""
        values: list[float] = self.latest.ravel().tolist()
        return values

    def pack_release(self, record: Any) -> bytes:
        """Return the moments that were released."""
        return self.latest.tobytes()

    def unpack_release(self, data: bytes, record: Any) -> None:
        """Learn from moments that were released, of what is open and one visit more."""
        self._state.rounds[0] += 1
        self.latest[...] = np.frombuffer(data).reshape(self.latest.shape)
        self.settle(int(record[0]))

    def rejoined(self, n_people: int, joined: Any) -> VisitsDecider:
        """Return a decider for more people; nobody is joined to anybody."""
        require(self.policy, "graph", f"not given: {self.joins}", joined is None, joined)
        policy = dataclasses.replace(self.policy, n_users=n_people)
        again = type(self)(policy, explore=self._explore)
        known = min(n_people, self.policy.n_users)
        for mine, theirs in zip(self._state, again._state, strict=True):
            kept = known if mine.shape != theirs.shape else len(mine)
            theirs[:kept] = mine[:kept]
        return again

    def with_person(self, near: Sequence[int]) -> VisitsDecider:
        """Return a decider for one person more."""
        require(self.policy, "near", f"nobody: {self.joins}", not near, list(near))
        return self.rejoined(self.policy.n_users + 1, None)

    def discard(self) -> None:
        """Empty the open batches: a lost history may have released them."""
        self._state.opened[:] = 0.0


class AloneDecider(VisitsDecider):
    """Each person learns alone, from batches of 1, 2, 4, ... visits of the person's own.

    Parameters
    ----------
    policy : PrivateContexts
        With ``trust="central"``.
    explore : float
    """

    joins = "each person learns alone"

    def __init__(self, policy: private_contexts.PrivateContexts, *, explore: float = 0.0) -> None:
        require("Learner", "trust", _CHOOSES, policy.trust == "central", policy.trust)
        super().__init__(policy, explore=explore)

    @property
    def latest(self) -> NDArray[np.float64]:
        """The moments of the batch that was released last, of whomever."""
        released: NDArray[np.float64] = self._state.latest
        return released

    def settle(self, person: int) -> None:
        """Learn from the person's batch."""
        private_contexts.settle(self.policy.params, self._state, person)

    def discard(self) -> None:
        """Empty everybody's open batch, which is counted anew."""
        super().discard()
        self._state.counts[:, 0] = 0


class TogetherDecider(VisitsDecider):
    """All people, the agents, learn one model, from batches of everybody's visits.

    The learner stands in for every agent and for the server that adds up what they send. It sees all of it,
    so that the trust is central. Batches end after as many visits as there were agents at first, then
    twice, four times as many, and so on, whoever came; somebody new begins with the common model,
    and the ridge counts the noise that was added, not who is there now.

    Parameters
    ----------
    policy : FedUCB
        With ``variant="corrected"``.
    explore : float
    """

    joins = "all learn one model"

    def __init__(self, policy: fed_ucb.FedUCB, *, explore: float = 0.0) -> None:
        require("Learner", "variant", _SPEAKS, policy.variant == "corrected", policy.variant)
        super().__init__(policy, explore=explore)
        self._stated = policy.guarantee_under

    @property
    def latest(self) -> NDArray[np.float64]:
        """The moments of every agent's batch."""
        released: NDArray[np.float64] = self._state.released[:, 0]
        return released

    def settle(self, person: int) -> None:
        """Learn from everybody's batches."""
        fed_ucb.settle(self.policy.params, self._state)

    def guarantee(self, horizon: int) -> Guarantee:
        """Return what is protected where the learner sees what every agent sees."""
        return self._stated("central")

    def rejoined(self, n_people: int, joined: Any) -> VisitsDecider:
        """Return a decider for more people, who know what the others do."""
        again = super().rejoined(n_people, joined)
        for name in ("covariance", "mean"):
            getattr(again._state, name)[:] = getattr(self._state, name)[0]
        return again

    def discard(self) -> None:
        """Empty all open batches, which are counted anew."""
        super().discard()
        self._state.rounds[1] = 0
