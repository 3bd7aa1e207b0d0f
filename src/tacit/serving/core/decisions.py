"""The life of a decision: its states, and the steps that lead from one to the next, as one table.

>>> print(format_life())
state      decide     show       unask      report     learn      close      cancel     lose
new        unshown    .          .          .          .          .          .          .
unshown    .          awaited    unasked    .          .          lapsed     cancelled  lost
awaited    .          .          .          held       answered   silent     cancelled  lost
held       .          .          .          .          .          answered   cancelled  lost

Every other state is an end. A step is an event of the log, but for two: a decision that is shown at once is
decided and shown by one event, and it is *unasked* where its device need not report, because the policy does
not learn or because the person's budget is spent.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tacit.serving.core.events import (
    Decide,
    Event,
    Journal,
    Learn,
    Record,
    RefusedError,
    Report,
    Show,
    read_record,
    read_value,
    write_value,
)

_SPARE = 1_000
STEPS = ("decide", "show", "unask", "report", "learn", "close", "cancel", "lose")
_GIVEN_UP = {"cancel": "cancelled", "lose": "lost"}
LIFE: dict[str, dict[str, str]] = {
    "new": {"decide": "unshown"},
    "unshown": {"show": "awaited", "unask": "unasked", "close": "lapsed", **_GIVEN_UP},
    "awaited": {"report": "held", "learn": "answered", "close": "silent", **_GIVEN_UP},
    "held": {"close": "answered", **_GIVEN_UP},
}
"""For each state that is no end: the steps that are allowed, and the state after each."""


def format_life() -> str:
    """Return the table of states and steps as text."""
    lines: list[tuple[str, ...]] = [("state", *STEPS)]
    lines += [(state, *(row.get(step, ".") for step in STEPS)) for state, row in LIFE.items()]
    return "\n".join("".join(f"{word:<11}" for word in line).rstrip() for line in lines)


class Receipt(NamedTuple):
    """What became of a report."""

    id: str
    status: str
    """``learned``; ``held`` until the decision closes; ``repeated``; ``late``; ``refused``."""
    reason: str = ""


@dataclass(slots=True)
class OpenDecision:
    """A decision that waits: for being shown, for its report, or for its time; then what became of it."""

    id: str
    at: int
    round: int = -1
    """-1 where the policy was not asked."""
    option: int = 0
    chance: float | Callable[[], float] = 1.0
    """Of the option, or what works it out when it is first asked for."""
    record: Any = None
    report_at: int | None = None
    close_at: int | None = None
    shown: bool = False
    reason: str = ""
    """Why devices do not report on it: ``budget``, ``capacity``, ``frozen``, ``off``; empty if they do."""
    person: str | None = None
    digest: str | None = None
    """Of the request, to tell a repeated one from another with the same identity."""
    value: Any = None
    """What was reported, where it is learned later."""
    name: str | None = None
    """What was chosen is called, where options come with each decision."""
    would: int | None = None
    """What the policy would have chosen, where the baseline was served."""
    state: str = "new"

    @property
    def probability(self) -> float:
        """The exact chance of what was chosen."""
        if callable(self.chance):
            self.chance = self.chance()
        return float(self.chance)

    @property
    def is_open(self) -> bool:
        """Whether something may still happen to it."""
        return self.state in LIFE

    @property
    def status(self) -> str:
        """``open``, or the end that it came to."""
        return "open" if self.state in LIFE else self.state

    def after(self, step: str) -> str:
        """Return the state after a step, or raise ``RefusedError`` if the table has none."""
        state = LIFE.get(self.state, {}).get(step)
        if state is None:
            raise RefusedError(
                "closed", f"decision {self.id}: expected an open one, got {self.status}"
            )
        return state

    def begin(self, grace: int) -> None:
        """Begin to wait, unless nothing is to come."""
        self.state = self.after("decide")
        if self.reason:
            self.state = self.after("unask")
            return
        if self.shown:
            self.state = self.after("show")
        if self.report_at is not None:
            self.close_at = self.report_at + grace

    def follow(self, record: Record, grace: int) -> None:
        """Take what happened to it: live, from the log, and when it is looked up, its only way on."""
        if isinstance(record, Show):
            self.state = self.after("unask" if record.reason else "show")
            self.shown, self.reason = True, record.reason or ""
            if record.report_at is not None:
                self.report_at, self.close_at = record.report_at, record.report_at + grace
            return
        self.state = self.after(type(record).__name__.lower())
        if isinstance(record, Report | Learn):
            self.value = record.value

    def row(self, *without: str) -> dict[str, Any]:
        """Return what must be kept, for JSON; what is None is left out."""
        row = {name: getattr(self, name) for name in _KEPT if name not in without}
        row["reason"] = self.reason or None
        if type(self.value) is dict:
            row["value"] = write_value(self.value)
        row["status"] = None if self.state in LIFE else self.state
        return {name: value for name, value in row.items() if value is not None}

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> OpenDecision:
        """Return the decision that `row` was made of."""
        known = {name: row[name] for name in _KEPT if name in row and name != "probability"}
        decision = cls(**known, chance=row["probability"])
        decision.value = read_value(decision.value)
        state = "unshown" if not decision.shown else "awaited" if decision.value is None else "held"
        decision.state = row.get("status", state)
        return decision


_KEPT = (
    *("id", "at", "round", "option", "probability", "record", "report_at", "close_at", "shown"),
    *("reason", "person", "digest", "value", "name", "would"),
)


class Decisions:
    """The decisions of an experiment: those that wait, and the last that are closed."""

    def __init__(
        self, report_after: int | None, grace: int, journal: Journal | None, remember: int
    ) -> None:
        self._after, self._grace, self._journal = report_after, grace, journal
        self.open: dict[str, OpenDecision] = {}
        self.due: list[tuple[int, int, str]] = []
        """When decisions are to be closed, a heap; some were closed or put off since."""
        # Two generations: to forget the oldest of one dict takes ever longer.
        self.closed: dict[str, OpenDecision] = {}
        self.closed_before: dict[str, OpenDecision] = {}
        self.remember = remember

    def file(self, decision: OpenDecision) -> None:
        """Put a decision among those that wait, or among those that are closed."""
        if decision.state in LIFE:
            self.open[decision.id] = decision
            if decision.close_at is not None:
                heapq.heappush(self.due, (decision.close_at, decision.round, decision.id))
                if len(self.due) > 2 * len(self.open) + _SPARE:
                    self.due[:] = [due for due in self.due if due[2] in self.open]
                    heapq.heapify(self.due)
            return
        self.open.pop(decision.id, None)
        self.closed[decision.id] = decision
        if len(self.closed) >= self.remember:
            self.closed_before, self.closed = self.closed, {}

    def pop_due(self) -> OpenDecision | None:
        """Return the decision that is to be closed next; None if that was put off or done."""
        close_at, _, id = heapq.heappop(self.due)
        decision = self.open.get(id)
        return decision if decision is not None and decision.close_at == close_at else None

    def find_closed(self, id: str) -> OpenDecision | None:
        """Return a decision that is closed, if it is still known."""
        known = self.closed.get(id) or self.closed_before.get(id)
        if known is not None or self._journal is None:
            return known
        decision = None
        for event in self._journal.find(id):
            record = read_record(event)
            if isinstance(record, Decide):
                decision = self.read(record, event)
                decision.begin(self._grace)
            elif decision is not None:
                decision.follow(record, self._grace)
        return None if decision is None or decision.is_open else decision

    def read(self, record: Decide, event: Event) -> OpenDecision:
        """Return the decision that an event made, before anything else happened to it."""
        decision = OpenDecision.of({**record.row, "id": event.id, "at": event.at})
        decision.state = "new"
        if decision.report_at is None and self._after is not None:
            decision.report_at = event.at + self._after
        return decision
