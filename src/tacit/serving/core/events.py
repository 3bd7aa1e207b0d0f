"""What came of each command: a typed record, and the row in which a log keeps it.

The name of a record in the log is its class in small letters. Its meaning never changes: a new meaning is
a new record. What version 0.2 wrote otherwise, `read_record` returns as it would be written today.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

Charges = tuple[tuple[str, str, int], ...]
"""Who pays: person, window, amount."""


class RefusedError(ValueError):
    """A command that was not carried out, and why; nothing changed."""

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason
        """One word for programs: ``unknown``, ``closed``, ``answered``, ``conflict``, ``full`` ..."""


class BrokenError(RuntimeError):
    """Something failed half-way: the core must be built anew from its log."""


class Event(NamedTuple):
    """A row of the log."""

    kind: str
    at: int
    """Milliseconds since 1970."""
    id: str | None
    """The decision it belongs to."""
    body: dict[str, Any]
    """For JSON: the fields of the record, and what was ``released``."""
    state: bytes | None = None
    """The policy's arrays afterwards, if something was released: what was released stays so."""
    expires: int | None = None
    """When all rows of the decision may be deleted; set by what closes it."""
    charges: Charges = ()


class Decide(NamedTuple):
    """A decision was made."""

    row: dict[str, Any]
    """What is kept of it, but for its id and time and what follows from them."""
    query: Mapping[str, Any] | None = None


class Show(NamedTuple):
    """A decision was shown."""

    reason: str | None = None
    """Why its device is not asked."""
    report_at: int | None = None
    """Where it counts from now; logs of 0.2.0 have none, there it counted from the decision."""


class Report(NamedTuple):
    """A device reported what is learned later."""

    value: Any
    """One value, or a dict of one for each option."""


class Learn(NamedTuple):
    """A device reported, and the policy learned from it."""

    value: Any


class Close(NamedTuple):
    """The time of a decision was over."""

    complete: bool | None = None
    """Whether shown options without a reward counted as the default; in logs of 0.2.0 never."""


class Cancel(NamedTuple):
    """The caller gave a decision up."""


class Lose(NamedTuple):
    """A decision was closed because nobody knows what became of its report."""


class Late(NamedTuple):
    """A report came after its decision was closed; nobody needs to know which."""


class Change(NamedTuple):
    """The experiment was changed, in one or several ways at once."""

    options: Sequence[str] | None = None
    people: Sequence[Sequence[Any]] | None = None
    """New ones: pseudonym, and the places of the people they are joined to."""
    retire: Sequence[int] | None = None
    mode: str | None = None
    allowances: Mapping[str, float] | None = None
    joined: Any = None


class Clock(NamedTuple):
    """The clock was set back."""

    from_: int
    expires: int
    """When all that is closed must be deleted at the latest."""


class Epoch(NamedTuple):
    """An old copy was restored."""

    since: int
    debt: int
    """What every person counts as having spent in what was lost."""
    lost: int
    """How many charged decisions that were."""


Record = Decide | Show | Report | Learn | Close | Cancel | Lose | Late | Change | Clock | Epoch
_KINDS: dict[str, Any] = {
    kind.__name__.lower(): kind
    for kind in (Show, Report, Learn, Close, Cancel, Lose, Late, Change, Clock, Epoch)
}
_OLD: dict[str, Callable[[dict[str, Any]], Change]] = {
    "mode": lambda body: Change(mode=body["mode"]),
    "option": lambda body: Change(options=[body["name"]]),
    "retire": lambda body: Change(retire=[body["option"]]),
    "person": lambda body: Change(people=[[body["person"], body["near"]]]),
    "edges": lambda body: Change(joined=body["joined"]),
    "allowances": lambda body: Change(allowances=body["each"]),
}
"""Version 0.2 logged every part of a change by itself."""


def read_record(event: Event) -> Record:
    """Return what a row of the log says."""
    body = event.body
    if event.kind == "decide":
        row = {name: body[name] for name in body if name not in ("query", "released")}
        return Decide(row, body.get("query"))
    if event.kind in _OLD:
        return _OLD[event.kind](body)
    kind = _KINDS[event.kind]
    if "value" in body:
        body = {**body, "value": read_value(body["value"])}
    record: Record = kind(*(body.get(name.rstrip("_")) for name in kind._fields))
    return record


def write_body(record: Record) -> dict[str, Any]:
    """Return a record for JSON; fields that are None are left out."""
    if isinstance(record, Decide):
        return {**record.row, "query": dict(record.query)} if record.query else dict(record.row)
    fields = zip(record._fields, record, strict=True)
    body = {name.rstrip("_"): value for name, value in fields if value is not None}
    if isinstance(record, Report | Learn) and type(record.value) is dict:
        body["value"] = write_value(record.value)
    return body


def write_value(value: Any) -> Any:
    """Return what was reported, for JSON: one value, or one for each option."""
    return {"each": list(value.items())} if type(value) is dict else value


def read_value(plain: Any) -> Any:
    """Return what `write_value` was given."""
    return {int(arm): reward for arm, reward in plain["each"]} if type(plain) is dict else plain


class Journal(Protocol):
    """What a core may ask of the store that keeps it: what is committed."""

    def find(self, id: str) -> list[Event]:
        """Return the events of a decision, in order."""

    def spent(self, person: str, window: str) -> int:
        """Return what was spent on a person in a window."""

    def charges(self) -> Iterable[tuple[str, str, int]]:
        """Return all that was spent: person, window, amount."""
