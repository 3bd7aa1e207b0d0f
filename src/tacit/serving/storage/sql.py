"""What stores behind SQL share: the tables, the log and its charges, who may append, and marks.

A store of a kind says how statements reach its database and who else may write there; all rules stand here.
Whoever appends to an experiment took it with `acquire`, which gives it a new *term*. Every transaction checks
its term, so that a former owner, however late it wakes, commits nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Any

from tacit.core.processes import wait_for
from tacit.serving.core import Event
from tacit.serving.storage.high_water_mark import Mark, Marks
from tacit.serving.storage.store import (
    Snapshot,
    Store,
    StoredExperiment,
    StoreError,
    charged_by,
    latest_expiry,
)

MIGRATIONS = (
    """
    CREATE TABLE experiments (
        id {identity}, name TEXT NOT NULL UNIQUE, description TEXT NOT NULL,
        seq {integer} NOT NULL, charged {integer} NOT NULL, at {integer} NOT NULL,
        lineage {integer} NOT NULL
    ){strict};
    CREATE TABLE events (
        experiment {integer} NOT NULL, seq {integer} NOT NULL, kind TEXT NOT NULL,
        at {integer} NOT NULL, decision TEXT, body TEXT NOT NULL, state {blob}, expires {integer},
        PRIMARY KEY (experiment, seq)
    ){packed};
    CREATE INDEX events_by_decision ON events (experiment, decision) WHERE decision IS NOT NULL;
    CREATE INDEX events_by_expiry ON events (experiment, expires) WHERE expires IS NOT NULL;
    CREATE TABLE spending (
        experiment {integer} NOT NULL, person TEXT NOT NULL, period TEXT NOT NULL,
        amount {integer} NOT NULL CHECK (amount >= 0), PRIMARY KEY (experiment, person, period)
    ){packed};
    CREATE TABLE snapshots (
        experiment {integer} PRIMARY KEY, seq {integer} NOT NULL, about TEXT NOT NULL,
        state {blob} NOT NULL
    ){strict};
    CREATE TABLE open_decisions (
        experiment {integer} NOT NULL, decision TEXT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (experiment, decision)
    ){packed};
    """,
    """
    ALTER TABLE experiments ADD COLUMN term {integer} NOT NULL DEFAULT 0;
    ALTER TABLE experiments ADD COLUMN owner TEXT;
    """,
    """
    ALTER TABLE experiments ADD COLUMN counted {integer} NOT NULL DEFAULT 0;
    UPDATE experiments SET counted = at;
    CREATE TABLE keys (name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL){packed};
    """,
)
"""The steps from an empty database to the present tables, in a dialect's words for types."""

TYPES = {
    "events": ["integer", "integer", "text", "integer", "text", "text", "blob", "integer"],
    "spending": ["integer", "text", "text", "integer"],
    "open_decisions": ["integer", "text", "text"],
}
_COLUMNS = "kind, at, decision, body, state, expires"
_POINT = "lineage, seq, charged, at"
_CHUNK = 10_000
_UNKNOWN = 2**50


class SQLStore(Store):
    """Experiments in the tables of a database.

    Parameters
    ----------
    place : str
        What to call it in errors.
    beside : path
        What the names of the files outside of it begin with: ``.mark``, ``.key``.
    restored : bool
        Accept a database that is behind its marks, or has none: it is an old copy.
    """

    identity = 0
    """Which database this is, where a copy of it can be told from it; part of every mark."""

    def __init__(self, place: str, beside: Path, *, restored: bool) -> None:
        self.place, self.beside, self.restored = place, beside, restored
        self._process = os.getpid()
        self._turn = threading.RLock()
        """Whose turn it is: experiments of several threads may share one connection."""
        wait_for(self, self._turn)
        self.server = secrets.token_hex(8)
        self._ids: dict[str, int] = {}
        self._terms: dict[str, int] = {}
        self._lost: dict[str, tuple[int, int]] = {}

    # What a database is asked, in its own way

    @abstractmethod
    def _query(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows of a statement with ``?`` for values; raise `StoreError` on failure."""

    @abstractmethod
    def _run(self, statement: str, *values: Any) -> None:
        """Carry out a statement that returns no rows."""

    @abstractmethod
    def _insert(self, table: str, rows: Sequence[tuple[Any, ...]], otherwise: str = "") -> None:
        """Insert many rows."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Any]:
        """Make what is done inside one transaction, durable once it is left; else `StoreError`."""

    @abstractmethod
    def _hold(self, id: int, experiment: str) -> None:
        """Make sure that no other process writes this experiment, or raise `NotOwnedError`."""

    # Opening

    def _open_marks(self) -> None:
        """Hold every log against its mark, from outside the store."""
        place = Path(f"{self.beside}.mark")
        known = self._query("SELECT id, name, seq FROM experiments ORDER BY id")
        begun = any(seq > 0 for _, _, seq in known)
        if not place.exists() and begun and not self.restored:
            raise StoreError(
                f"{self.place}: expected {place} outside of it, found none; if this is a copy, open it "
                "as restored, which counts what may have been lost as spent"
            )
        self._marks = Marks(place)
        try:
            for id, name, _ in known:
                lost = self._missing(id, name) and self._missing(id, name)
                if lost is not None:
                    if not self.restored:
                        raise StoreError(self._refusal(name))
                    self._lost[name] = lost
        except BaseException:
            self._marks.close()
            raise

    def _missing(self, id: int, name: str) -> tuple[int, int] | None:
        """Return how many charged decisions a log lacks, and since when, if it is an old copy."""
        # The mark first: another process may commit in between.
        reached = self._marks.read(id, name)
        row = self._query(f"SELECT {_POINT} FROM experiments WHERE id = ?", id)[0]
        return self._behind(reached, row)

    def _behind(self, reached: Mark | None, row: Sequence[int]) -> tuple[int, int] | None:
        kept = self._mark(row)
        if kept.seq == 0 and reached is None:
            return None
        if reached is not None and reached.seq <= kept.seq and reached.lineage == kept.lineage:
            return None
        lost = _UNKNOWN if reached is None else max(0, reached.charged - kept.charged)
        return lost, kept.at

    def _refusal(self, name: str) -> str:
        return (
            f"{self.place}: events of {name!r} are missing, or it is a copy of another: an old copy; "
            "open it as restored, which counts what was lost as spent"
        )

    def is_owner(self, experiment: str) -> bool:
        """Return whether this process took an experiment and, as far as it knows, still has it."""
        return experiment in self._terms

    def find_loss(self, experiment: str) -> tuple[int, int] | None:
        """Return how many charged decisions a restored copy lacks, and since when."""
        return self._lost.get(experiment)

    # The log

    def create(self, experiment: str, description: dict[str, Any]) -> None:
        """Make a new experiment."""
        lineage = _lineage()
        with self._writing():
            made = self._query(
                "INSERT INTO experiments (name, description, lineage, seq, charged, at)"
                " VALUES (?, ?, ?, 0, 0, 0) ON CONFLICT (name) DO NOTHING RETURNING id",
                experiment,
                json.dumps(description),
                lineage,
            )
            if not made:
                raise StoreError(f"{experiment}: expected a new name, got one in use")
            # While nobody else sees it yet.
            self._hold(made[0][0], experiment)
        self._ids[experiment] = made[0][0]
        # From the start: the first event's commit may be the last thing that this process does.
        self._write_mark(experiment, (lineage, 0, 0, 0), durable=True)

    def acquire(self, experiment: str) -> None:
        """Begin a new term, in which only this process appends."""
        self._check_process()
        id = self._id(experiment)
        self._terms.pop(experiment, None)
        self._hold(id, experiment)
        reached = self._marks.read(id, experiment)
        with self._writing():
            (term, *row) = self._query(
                "UPDATE experiments SET term = term + 1, owner = ? WHERE id = ?"
                f" RETURNING term, {_POINT}",
                self.server,
                id,
            )[0]
        if experiment not in self._lost and self._behind(reached, row) is not None:
            raise StoreError(self._refusal(experiment))
        self._terms[experiment] = term
        if reached is None and self._mark(row).seq == 0:
            # Whoever created it was killed before it wrote a mark.
            self._write_mark(experiment, row, durable=True)

    def load(self, experiment: str) -> StoredExperiment | None:
        """Return what is known of an experiment."""
        found = self._query(
            "SELECT id, description, seq, charged, at, counted FROM experiments WHERE name = ?",
            experiment,
        )
        if not found:
            return None
        id, description, *point = found[0]
        kept = self._query("SELECT seq, about, state FROM snapshots WHERE experiment = ?", id)
        snapshot = None
        if kept:
            rows = self._query("SELECT body FROM open_decisions WHERE experiment = ?", id)
            decisions = (json.loads(body) for (body,) in rows)
            snapshot = Snapshot(kept[0][0], json.loads(kept[0][1]), kept[0][2], decisions)
        return StoredExperiment(json.loads(description), snapshot, *point)

    def names(self) -> list[str]:
        """Return the names of all experiments."""
        return [name for (name,) in self._query("SELECT name FROM experiments ORDER BY id")]

    def events(self, experiment: str, after: int, until: int | None = None) -> Iterator[Event]:
        """Return events in order."""
        id, last = self._id(experiment), 2**62 if until is None else until
        while True:
            rows = self._query(
                f"SELECT {_COLUMNS}, seq FROM events WHERE experiment = ? AND seq > ? AND seq <= ?"
                " ORDER BY seq LIMIT ?",
                id,
                after,
                last,
                _CHUNK,
            )
            yield from map(_event, rows)
            if len(rows) < _CHUNK:
                return
            after = rows[-1][-1]

    def append(self, experiment: str, seq: int, events: Sequence[Event]) -> None:
        """Commit events, and write the mark."""
        id, last = self._id(experiment), seq + len(events)
        rows = [
            (id, seq + i, e.kind, e.at, e.id, _text(e.body), e.state, e.expires)
            for i, e in enumerate(events, 1)
        ]
        charged = sum(map(charged_by, events))
        epoch = any(event.kind == "epoch" for event in events)
        with self._writing():
            done = self._query(
                "UPDATE experiments SET seq = ?, charged = charged + ?, at = ?,"
                " lineage = coalesce(?, lineage) WHERE id = ? AND seq = ? AND term = ?"
                f" RETURNING {_POINT}",
                last,
                charged,
                events[-1].at,
                _lineage() if epoch else None,
                id,
                seq,
                self._terms.get(experiment, -1),
            )
            if not done:
                raise StoreError(
                    f"{experiment}: expected {seq} events before these; another writer?"
                )
            self._insert("events", rows)
            charges = _sums(charge for event in events for charge in event.charges)
            if charges:
                self._insert(
                    "spending",
                    [(id, *charge) for charge in charges],
                    "ON CONFLICT (experiment, person, period) DO UPDATE"
                    " SET amount = spending.amount + excluded.amount",
                )
            latest = latest_expiry(events)
            if latest is not None:
                self._run(
                    "UPDATE events SET expires = ? WHERE experiment = ? AND expires > ?",
                    latest,
                    id,
                    latest,
                )
        released = any(event.state is not None for event in events)
        self._write_mark(experiment, done[0], durable=released or epoch)
        if epoch:
            self._lost.pop(experiment, None)

    def find(self, experiment: str, id: str) -> list[Event]:
        """Return the events of one decision."""
        rows = self._query(
            f"SELECT {_COLUMNS} FROM events WHERE experiment = ? AND decision = ? ORDER BY seq",
            self._id(experiment),
            id,
        )
        return [_event(row) for row in rows]

    def spent(self, experiment: str, person: str, window: str) -> int:
        """Return what was spent on a person in a window."""
        rows = self._query(
            "SELECT amount FROM spending WHERE experiment = ? AND person = ? AND period = ?",
            self._id(experiment),
            person,
            window,
        )
        return int(rows[0][0]) if rows else 0

    def amounts(self, experiment: str, window: str) -> list[int]:
        """Return what was spent in a window, one number a person."""
        rows = self._query(
            "SELECT amount FROM spending WHERE experiment = ? AND period = ? ORDER BY amount",
            self._id(experiment),
            window,
        )
        return [int(amount) for (amount,) in rows]

    def charges(self, experiment: str) -> list[tuple[str, str, int]]:
        """Return all that was spent."""
        rows = self._query(
            "SELECT person, period, amount FROM spending WHERE experiment = ?",
            self._id(experiment),
        )
        return [(person, window, int(amount)) for person, window, amount in rows]

    def require_key(self, key: bytes) -> None:
        """Raise `StoreError` unless pseudonyms were made with this key; it is known from then on.

        With another key everybody would be somebody new, whose budget is whole.
        """
        mine = hashlib.blake2b(b"pseudonyms", key=key, digest_size=16).hexdigest()
        if not self.read_only:
            with self._writing():
                self._run(
                    "INSERT INTO keys (name, fingerprint) VALUES ('pseudonyms', ?)"
                    " ON CONFLICT (name) DO NOTHING",
                    mine,
                )
        known = self._query("SELECT fingerprint FROM keys WHERE name = 'pseudonyms'")
        if any(fingerprint != mine for (fingerprint,) in known):
            raise StoreError(
                f"{self.place}: expected the key of pseudonyms that it was used with "
                f"({self.beside}.key, or TACIT_PSEUDONYM_KEY), got another"
            )

    def knows_people(self) -> bool:
        """Return whether pseudonyms were made for this store, so that it needs their key."""
        found = self._query(
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM keys) OR EXISTS (SELECT 1 FROM spending)"
            " OR EXISTS (SELECT 1 FROM experiments WHERE description LIKE ?)"
            " OR EXISTS (SELECT 1 FROM snapshots WHERE about LIKE ?)"
            " OR EXISTS (SELECT 1 FROM events WHERE body LIKE ?)",
            '%"people": ["%',
            '%"people": ["%',
            '%"person":"%',
        )
        return bool(found)

    def save_snapshot(self, experiment: str, snapshot: Snapshot) -> None:
        """Keep a snapshot instead of the one before."""
        id = self._id(experiment)
        with self._writing():
            self._check_term(experiment, id)
            self._run("DELETE FROM snapshots WHERE experiment = ?", id)
            self._run(
                "INSERT INTO snapshots (experiment, seq, about, state) VALUES (?, ?, ?, ?)",
                id,
                snapshot.seq,
                json.dumps(snapshot.about),
                snapshot.state,
            )
            self._run("DELETE FROM open_decisions WHERE experiment = ?", id)
            rows = ((id, row["id"], _text(row)) for row in snapshot.decisions)
            while some := list(islice(rows, _CHUNK)):
                self._insert("open_decisions", some)

    def has_expired(self, experiment: str, now: int) -> bool:
        """Return whether there is something to prune."""
        found = self._query(
            "SELECT 1 FROM events WHERE experiment = ? AND expires <= ? LIMIT 1",
            self._id(experiment),
            now,
        )
        return bool(found)

    def prune(self, experiment: str, now: int, until: int, most: int) -> int:
        """Delete some of what expired."""
        id = self._id(experiment)
        with self._writing():
            self._check_term(experiment, id)
            done = self._query(
                "DELETE FROM events WHERE experiment = ? AND decision IN (SELECT decision FROM events"
                " WHERE experiment = ? AND expires <= ? AND seq <= ? AND seq <="
                " (SELECT seq FROM snapshots WHERE experiment = ?) ORDER BY expires LIMIT ?)"
                " RETURNING seq",
                id,
                id,
                now,
                until,
                id,
                most,
            )
        return len(done)

    # Inside

    def _check_term(self, experiment: str, id: int) -> None:
        found = self._query("SELECT term FROM experiments WHERE id = ?", id)
        if found[0][0] != self._terms.get(experiment, -1):
            raise StoreError(f"{experiment}: owned by another process since then")

    def _id(self, experiment: str) -> int:
        id = self._ids.get(experiment)
        if id is None:
            found = self._query("SELECT id FROM experiments WHERE name = ?", experiment)
            if not found:
                raise StoreError(f"{self.place}: expected an experiment, got {experiment!r}")
            id = self._ids[experiment] = int(found[0][0])
        return id

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise StoreError(f"{self.place}: opened before a fork; its owner is another process")

    def _mark(self, row: Sequence[int]) -> Mark:
        lineage, seq, charged, at = row
        return Mark(lineage ^ self.identity, seq, charged, at)

    def _write_mark(self, experiment: str, row: Sequence[int], *, durable: bool) -> None:
        self._marks.write(self._id(experiment), experiment, self._mark(row), durable=durable)


def _sums(charges: Iterable[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    """Return one charge for each person and window."""
    totals: dict[tuple[str, str], int] = {}
    for person, window, amount in charges:
        totals[person, window] = totals.get((person, window), 0) + amount
    return [(*key, amount) for key, amount in totals.items()]


def _lineage() -> int:
    return int.from_bytes(os.urandom(7), "big")


def _event(row: Any) -> Event:
    kind, at, id, body, state, expires = row[:6]
    return Event(kind, at, id, json.loads(body), state, expires)


def _text(body: dict[str, Any]) -> str:
    return json.dumps(body, separators=(",", ":"))
