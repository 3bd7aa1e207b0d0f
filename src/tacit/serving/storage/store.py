"""What a store of experiments must do; one in memory, for tests and for the simulator of faults."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tacit.serving.core import Event


class StoreError(RuntimeError):
    """The store cannot be used, or a commit failed; what was not committed was not answered."""


class NotOwnedError(StoreError):
    """Another process owns the experiment, and is to be asked instead."""


class Snapshot(NamedTuple):
    """An experiment after its first `seq` events."""

    seq: int
    about: dict[str, Any]
    state: bytes
    decisions: Iterable[dict[str, Any]]
    """Those that are open; to be gone through once."""


class StoredExperiment(NamedTuple):
    """What a store knows of an experiment before its events are read."""

    description: dict[str, Any]
    snapshot: Snapshot | None
    seq: int
    """How many events were ever committed."""
    charged: int
    """On how many decisions devices were ever asked to report, in histories that were lost too."""
    at: int
    """When the last one was."""
    counted: int = 0
    """Since when every window is charged; before, only those of the budgets then in force were."""


class Store(ABC):
    """Events of experiments, durable once `append` returns."""

    place: str = "memory"
    """What to call it; without a password."""
    beside: Path | None = None
    """What the names of the files outside of it begin with, if it has such: its mark, its key."""
    read_only: bool = False
    """Whether another process writes it."""

    @abstractmethod
    def create(self, experiment: str, description: dict[str, Any]) -> None:
        """Make a new experiment."""

    @abstractmethod
    def acquire(self, experiment: str) -> None:
        """Take an experiment before it is loaded; then nobody else appends. Or `NotOwnedError`."""

    @abstractmethod
    def load(self, experiment: str) -> StoredExperiment | None:
        """Return what is known of an experiment; None if there is none of that name."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all experiments."""

    @abstractmethod
    def events(self, experiment: str, after: int, until: int | None = None) -> Iterator[Event]:
        """Return the events numbered `after` + 1 to `until`, in order."""

    @abstractmethod
    def append(self, experiment: str, seq: int, events: Sequence[Event]) -> None:
        """Commit events as numbers `seq` + 1 and on, with their charges: all of them or none."""

    @abstractmethod
    def find(self, experiment: str, id: str) -> list[Event]:
        """Return the events of one decision that are still kept."""

    @abstractmethod
    def spent(self, experiment: str, person: str, window: str) -> int:
        """Return what was spent on a person in a window."""

    @abstractmethod
    def amounts(self, experiment: str, window: str) -> list[int]:
        """Return what was spent in a window, one number a person, in no order."""

    @abstractmethod
    def charges(self, experiment: str) -> list[tuple[str, str, int]]:
        """Return all that was spent: person, window, amount."""

    @abstractmethod
    def save_snapshot(self, experiment: str, snapshot: Snapshot) -> None:
        """Keep a snapshot instead of the one before."""

    @abstractmethod
    def has_expired(self, experiment: str, now: int) -> bool:
        """Return whether there is something to `prune`, once a snapshot covers it."""

    @abstractmethod
    def prune(self, experiment: str, now: int, until: int, most: int) -> int:
        """Delete the events of at most so many expired decisions; return how many events went.

        Only decisions whose last event is numbered `until` or less, and that the snapshot covers.
        """

    def find_loss(self, experiment: str) -> tuple[int, int] | None:
        """Return how many charged decisions a restored copy lacks, and since when."""
        return None

    @abstractmethod
    def require_key(self, key: bytes) -> None:
        """Raise `StoreError` unless pseudonyms were made with this key; it is known from then on."""

    @abstractmethod
    def knows_people(self) -> bool:
        """Return whether pseudonyms were made for this store, so that it needs their key."""

    @abstractmethod
    def check(self) -> None:
        """Raise `StoreError` if nothing can be written now."""

    @abstractmethod
    def close(self) -> None:
        """Let others use it."""


class MemoryStore(Store):
    """A store that a crash forgets; it commits by appending to a list."""

    def __init__(self) -> None:
        self._described: dict[str, dict[str, Any]] = {}
        self._events: dict[str, dict[int, Event]] = {}
        self._ids: dict[tuple[str, str], list[int]] = {}
        self._spent: dict[tuple[str, str, str], int] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._last: dict[str, tuple[int, int, int]] = {}

    def create(self, experiment: str, description: dict[str, Any]) -> None:
        """Make a new experiment."""
        if experiment in self._described:
            raise StoreError(f"{experiment}: expected a new name, got one in use")
        self._described[experiment] = description
        self._events[experiment], self._last[experiment] = {}, (0, 0, 0)

    def acquire(self, experiment: str) -> None:
        """Do nothing: nobody else sees this memory."""

    def load(self, experiment: str) -> StoredExperiment | None:
        """Return what is known of an experiment."""
        if experiment not in self._described:
            return None
        described, snapshot = self._described[experiment], self._snapshots.get(experiment)
        return StoredExperiment(described, snapshot, *self._last[experiment])

    def names(self) -> list[str]:
        """Return the names of all experiments."""
        return list(self._described)

    def events(self, experiment: str, after: int, until: int | None = None) -> Iterator[Event]:
        """Return events in order."""
        events = self._events[experiment]
        last = self._last[experiment][0] if until is None else until
        return (events[seq] for seq in range(after + 1, last + 1) if seq in events)

    def append(self, experiment: str, seq: int, events: Sequence[Event]) -> None:
        """Commit events."""
        last, charged, at = self._last[experiment]
        if seq != last:
            raise StoreError(f"{experiment}: expected {last} events before these, got {seq}")
        for event in events:
            last += 1
            self._events[experiment][last] = event
            charged += charged_by(event)
            at = event.at
            if event.id is not None:
                self._ids.setdefault((experiment, event.id), []).append(last)
            for person, window, amount in event.charges:
                key = (experiment, person, window)
                self._spent[key] = self._spent.get(key, 0) + amount
        latest = latest_expiry(events)
        if latest is not None:
            for place, event in self._events[experiment].items():
                if event.expires is not None and event.expires > latest:
                    self._events[experiment][place] = event._replace(expires=latest)
        self._last[experiment] = last, charged, at

    def find(self, experiment: str, id: str) -> list[Event]:
        """Return the events of one decision."""
        events = self._events[experiment]
        return [events[seq] for seq in self._ids.get((experiment, id), ())]

    def spent(self, experiment: str, person: str, window: str) -> int:
        """Return what was spent on a person in a window."""
        return self._spent.get((experiment, person, window), 0)

    def amounts(self, experiment: str, window: str) -> list[int]:
        """Return what was spent in a window, one number a person."""
        return [
            amount
            for (name, _, period), amount in self._spent.items()
            if (name, period) == (experiment, window)
        ]

    def charges(self, experiment: str) -> list[tuple[str, str, int]]:
        """Return all that was spent."""
        return [
            (person, window, amount)
            for (name, person, window), amount in self._spent.items()
            if name == experiment
        ]

    def save_snapshot(self, experiment: str, snapshot: Snapshot) -> None:
        """Keep a snapshot."""
        self._snapshots[experiment] = snapshot._replace(decisions=list(snapshot.decisions))

    def has_expired(self, experiment: str, now: int) -> bool:
        """Return whether there is something to prune."""
        events = self._events[experiment].values()
        return any(event.expires is not None and event.expires <= now for event in events)

    def prune(self, experiment: str, now: int, until: int, most: int) -> int:
        """Delete what expired."""
        snapshot, events = self._snapshots.get(experiment), self._events[experiment]
        if snapshot is None:
            return 0
        last = min(until, snapshot.seq)
        expired = [
            event.id
            for seq, event in events.items()
            if seq <= last and event.expires is not None and event.expires <= now
        ]
        before = len(events)
        for id in expired[:most]:
            for seq in self._ids.pop((experiment, str(id)), ()):
                del events[seq]
        return before - len(events)

    def require_key(self, key: bytes) -> None:
        """Do nothing: no key lies beside memory."""

    def knows_people(self) -> bool:
        """Return False: it is gone with its people."""
        return False

    def check(self) -> None:
        """Do nothing: memory can always be written."""

    def close(self) -> None:
        """Do nothing."""


def latest_expiry(events: Iterable[Event]) -> int | None:
    """Return when all that is closed must be deleted, if these events set the clock back."""
    return min((event.body["expires"] for event in events if event.kind == "clock"), default=None)


def charged_by(event: Event) -> int:
    """Return how many decisions an event adds to those on which a device may report.

    An epoch adds those that were lost, so that a copy from before it is missing them too.
    """
    if event.kind == "epoch":
        return int(event.body["lost"])
    shown = event.kind == "show" or (event.kind == "decide" and bool(event.body["shown"]))
    return int(shown and not event.body.get("reason"))
