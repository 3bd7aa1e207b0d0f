"""What a client asks and when, without sockets: the sync and the async client play these flows.

A flow is a generator that yields requests and is sent the answers, so that both clients have the same
behaviour because they run the same code.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from tacit.client.outbox import Outbox
from tacit.device import Reporter

T = TypeVar("T")
_RETRY = 30.0


class Ask(NamedTuple):
    """A POST of JSON below the experiment's address."""

    path: str
    body: Mapping[str, Any]


class Answer(NamedTuple):
    """A status and a body; status 0 if nothing came back."""

    status: int
    body: Any

    @property
    def ok(self) -> bool:
        """Whether it was done."""
        return 200 <= self.status < 300

    @property
    def unsure(self) -> bool:
        """Whether the same request may still succeed later."""
        return self.status == 0 or self.status >= 500 or self.status in (408, 429)


Flow = Generator[Ask, Answer, T]


class ServiceError(Exception):
    """The service could not be asked, or refused."""


@dataclass(kw_only=True)
class Decision:
    """What the service decided.

    Parameters
    ----------
    id : str
    option : str
    probability : float
        The chance with which this option was chosen.
    report_at : float or None
        When the report goes out, in seconds since 1970; None if none will be sent. It is fixed when the
        decision is shown: before that, it is when the report would go out if it were shown at once.
    epsilon : float
        What the report will cost; 0 if none will be sent.
    reason : str
        What the service said, or why no report will be sent.
    """

    id: str
    option: str
    probability: float
    report_at: float | None
    epsilon: float
    reason: str


class Flows:
    """The behaviour of a client for one experiment."""

    def __init__(
        self,
        place: str,
        outbox: Outbox,
        max_epsilon: float | None,
        clock: Callable[[], float] = time.time,
        on_late: Callable[[Decision], None] | None = None,
    ) -> None:
        if max_epsilon is not None and not max_epsilon > 0:
            raise ValueError(f"Client: expected max_epsilon > 0 or None, got {max_epsilon!r}")
        self._place, self._outbox, self._max_epsilon = place, outbox, max_epsilon
        self.clock, self._on_late = clock, on_late
        self._asked: dict[str, tuple[Reporter, float]] = {}
        # In memory only: in the outbox it would tell who had a reward.
        self._rewarded: set[str] = set()

    def decide(
        self,
        person: str | None,
        eligible: Sequence[str] | None,
        contexts: Mapping[str, Sequence[float]] | None,
    ) -> Flow[Decision]:
        """Ask for a decision, once more under the same id if the answer was lost."""
        given = {"person": person, "eligible": eligible, "contexts": contexts}
        id = secrets.token_hex(16)
        body = {"id": id, **{name: each for name, each in given.items() if each is not None}}
        answer = yield Ask("/decisions", body)
        if answer.unsure:
            answer = yield Ask("/decisions", body)
        if not answer.ok:
            detail = answer.body.get("detail", "") if isinstance(answer.body, dict) else ""
            status = answer.status or "nothing"
            raise ServiceError(f"the service answered {status}{f': {detail}' if detail else ''}")
        return self._decision(id, answer.body)

    def _decision(self, id: str, said: Any) -> Decision:
        decision = Decision(
            id=id,
            option=said["option"],
            probability=said["probability"],
            report_at=None,
            epsilon=0.0,
            reason=said.get("reason", ""),
        )
        if said.get("instructions") is None:
            return decision
        try:
            reporter = Reporter(
                said["instructions"],
                id=id,
                max_epsilon=self._max_epsilon,
                report_at=said["report_at"],
                random=self._outbox.random,
            )
        except ValueError as error:
            return replace(decision, reason=str(error))
        if reporter.report_at is None:
            return replace(decision, reason="the service named no time for the report")
        self._asked[id] = (reporter, self.clock())
        return replace(decision, report_at=reporter.report_at, epsilon=reporter.epsilon)

    def shown(self, decision: Decision) -> Flow[bool]:
        """Owe a report from here on; False if none will be sent."""
        if decision.id not in self._asked or decision.report_at is None:
            return False
        reporter, decided = self._asked[decision.id]
        # Its time counts from here, by this clock: an answer that is lost must not change it.
        reporter.report_at = due = decision.report_at + self.clock() - decided
        if not self._outbox.add(self._place, reporter, due):
            return False
        del self._asked[decision.id]
        decision.report_at = due
        yield from self._announce(decision.id)
        return True

    def reward(self, decision: Decision, value: float) -> bool:
        """Draw the report anew for a reward; return whether it counts. Nothing is sent now."""
        id = decision.id
        if decision.report_at is None or id in self._asked or id in self._rewarded:
            return False
        if self._outbox.replace(self._place, id, value, self.clock):
            self._rewarded.add(id)
            return True
        if self._on_late is not None and self.clock() >= decision.report_at:
            self._on_late(decision)
        return False

    def flush(self) -> Flow[float | None]:
        """Send what is due; return when to come again, None if nothing is owed."""
        again: list[float] = []
        for owed in self._outbox.pending(self._place):
            if owed.due > self.clock():
                again.append(owed.due)
                continue
            if not owed.confirmed and not (yield from self._announce(owed.id)):
                again += [self.clock() + _RETRY] if self._owes(owed.id) else []
                continue
            # From here to sending nothing is drawn or written: a reward was written when it came.
            report = self._outbox.report(self._place, owed.id)
            if report is None:
                continue
            answer = yield Ask("/reports", report)
            if answer.unsure:
                again.append(self.clock() + _RETRY)
                self._outbox.mark_sent(self._place, owed.id)
            else:
                self._forget(owed.id)
        return min(again, default=None)

    def _announce(self, id: str) -> Flow[bool]:
        answer = yield Ask(f"/decisions/{id}/shown", {})
        # No time means no report: the person's budget was used up in the meantime, or the mode changed.
        wanted = answer.ok and answer.body["report_at"] is not None
        if wanted:
            self._outbox.confirm(self._place, id)
        elif not answer.unsure:
            self._forget(id)
        return wanted

    def _forget(self, id: str) -> None:
        self._outbox.forget(self._place, id)
        self._rewarded.discard(id)

    def _owes(self, id: str) -> bool:
        return any(owed.id == id for owed in self._outbox.pending(self._place))
