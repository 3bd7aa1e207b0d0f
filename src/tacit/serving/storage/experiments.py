"""Experiments in the tables of a database: logs, snapshots, what was spent, and who may append.

Whoever appends to an experiment took it with `Store.acquire`, which gives it a new *term*. Every transaction
checks its term, so that a former owner, however late it wakes, commits nothing. Outside the database lie a
high-water mark, ``NAME.mark``, without which a database is refused, and the key of pseudonyms, ``NAME.key``.
Keep the mark out of backups.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tacit.core.database import Database, Schema, StoreError, is_database
from tacit.core.sqlite import SQLiteDatabase
from tacit.serving.core import Event
from tacit.serving.storage.high_water_mark import Mark, Marks

_TABLES = """
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
"""
_TERMS = """
    ALTER TABLE experiments ADD COLUMN term {integer} NOT NULL DEFAULT 0;
    ALTER TABLE experiments ADD COLUMN owner TEXT;
"""
_KEYS = """
    ALTER TABLE experiments ADD COLUMN counted {integer} NOT NULL DEFAULT 0;
    UPDATE experiments SET counted = at;
    CREATE TABLE keys (name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL){packed};
"""
_LIFETIME = """
    UPDATE spending SET period = 'lifetime' WHERE period = 'ever';
    UPDATE experiments SET description =
        replace(description, '"window": "ever"', '"window": "lifetime"');
"""
_STORE_ROW = """
    CREATE TABLE tacit_store (
        one BOOLEAN PRIMARY KEY DEFAULT true CHECK (one), version INTEGER NOT NULL, secret BYTEA NOT NULL
    );
    INSERT INTO tacit_store (version, secret) SELECT 0,
        decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex');
"""
_CLUSTER = """
    CREATE TABLE servers (
        id TEXT PRIMARY KEY, address TEXT NOT NULL, backend INTEGER NOT NULL,
        seen TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
    );
    CREATE TABLE tokens (name TEXT PRIMARY KEY, body TEXT NOT NULL);
    ALTER TABLE tacit_store ADD COLUMN pseudonyms TEXT;
"""
_SHARED_KEYS = """
    INSERT INTO keys (name, fingerprint)
        SELECT 'pseudonyms', pseudonyms FROM tacit_store WHERE pseudonyms IS NOT NULL;
    ALTER TABLE tacit_store DROP COLUMN pseudonyms;
"""
SCHEMA = Schema(
    kind="a store of experiments",
    application=0x7AC1D,
    sqlite=(_TABLES, _TERMS, _KEYS, _LIFETIME),
    postgres=(_STORE_ROW + _TABLES, _TERMS + _CLUSTER, _KEYS + _SHARED_KEYS, _LIFETIME),
    version_table="tacit_store",
    landmark="experiments",
)
_EVENTS = ("integer", "integer", "text", "integer", "text", "text", "blob", "integer")
_SPENDING = ("integer", "text", "text", "integer")
_OPEN_DECISIONS = ("integer", "text", "text")
_COLUMNS = "kind, at, decision, body, state, expires"
_POINT = "lineage, seq, charged, at"
_CHUNK = 10_000
_UNKNOWN = 2**50


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


class Store:
    """Events of experiments, durable once `append` returns.

    Parameters
    ----------
    database : Database
        With the tables of `SCHEMA`.
    beside : path, optional
        What the names of the files outside of it begin with; it has none unless given.
    restored : bool
        Accept a database that is behind its marks, or has none: it is an old copy. `find_loss` says what
        was lost, and an experiment that goes on from it must count that as spent.
    """

    read_only = False
    """Whether another process writes it."""

    def __init__(self, database: Database, beside: Path | None, *, restored: bool = False) -> None:
        self.database, self.beside, self.place = database, beside, database.place
        self.server = secrets.token_hex(8)
        self._ids: dict[str, int] = {}
        self._terms: dict[str, int] = {}
        self._lost: dict[str, tuple[int, int]] = {}
        self._marks: Marks | None = None
        if beside is not None and not self.read_only:
            try:
                self._open_marks(Path(f"{beside}.mark"), restored)
            except BaseException:
                self.close()
                raise

    # Old copies

    def _open_marks(self, place: Path, restored: bool) -> None:
        """Hold every log against its mark."""
        known = self.database.query("SELECT id, name, seq FROM experiments ORDER BY id")
        begun = any(seq > 0 for _, _, seq in known)
        if not place.exists() and begun and not restored:
            raise StoreError(
                f"{self.place}: expected {place} outside of it, found none; if this is a copy, open it "
                "as restored, which counts what may have been lost as spent"
            )
        self._marks = Marks(place)
        for id, name, _ in known:
            # Twice, and the mark first: another process may commit in between.
            if self._find_gap(id, name) and (loss := self._find_gap(id, name)):
                if not restored:
                    raise StoreError(self._refusal(name))
                self._lost[name] = loss

    def _find_gap(self, id: int, name: str) -> tuple[int, int] | None:
        mark = self._read_mark(id, name)
        [row] = self.database.query(f"SELECT {_POINT} FROM experiments WHERE id = ?", id)
        return self._compare(mark, row)

    def _compare(self, mark: Mark | None, row: Sequence[int]) -> tuple[int, int] | None:
        """Return how many charged decisions a log lacks, and since when, if it is behind its mark."""
        log = self._mark_of(row)
        if self.beside is None or (log.seq == 0 and mark is None):
            return None
        if mark is not None and mark.seq <= log.seq and mark.lineage == log.lineage:
            return None
        return _UNKNOWN if mark is None else max(0, mark.charged - log.charged), log.at

    def _refusal(self, name: str) -> str:
        return (
            f"{self.place}: events of {name!r} are missing, or it is a copy of another: an old copy; "
            "open it as restored, which counts what was lost as spent"
        )

    def _mark_of(self, row: Sequence[int]) -> Mark:
        lineage, seq, charged, at = row
        return Mark(lineage ^ self.database.identity, seq, charged, at)

    def _read_mark(self, id: int, name: str) -> Mark | None:
        return None if self._marks is None else self._marks.read(id, name)

    def _write_mark(self, experiment: str, row: Sequence[int], *, durable: bool) -> None:
        if self._marks is not None:
            mark = self._mark_of(row)
            self._marks.write(self._id(experiment), experiment, mark, durable=durable)

    def find_loss(self, experiment: str) -> tuple[int, int] | None:
        """Return how many charged decisions a restored copy lacks, and since when."""
        return self._lost.get(experiment)

    # Ownership

    def _lock(self, id: int, experiment: str) -> None:
        """Make sure that no other process writes this experiment, or raise `NotOwnedError`."""

    def acquire(self, experiment: str) -> None:
        """Begin a new term, in which only this process appends; or raise `NotOwnedError`."""
        id = self._id(experiment)
        self._terms.pop(experiment, None)
        self._lock(id, experiment)
        mark = self._read_mark(id, experiment)
        with self.database.transaction():
            [(term, *row)] = self.database.query(
                "UPDATE experiments SET term = term + 1, owner = ? WHERE id = ?"
                f" RETURNING term, {_POINT}",
                self.server,
                id,
            )
        if experiment not in self._lost and self._compare(mark, row) is not None:
            raise StoreError(self._refusal(experiment))
        self._terms[experiment] = term
        if mark is None and self._mark_of(row).seq == 0:
            # Whoever created it was killed before it wrote a mark.
            self._write_mark(experiment, row, durable=True)

    def is_owner(self, experiment: str) -> bool:
        """Return whether this process took an experiment and, as far as it knows, still has it."""
        return experiment in self._terms

    def _check_term(self, experiment: str, id: int) -> None:
        [(term,)] = self.database.query("SELECT term FROM experiments WHERE id = ?", id)
        if term != self._terms.get(experiment, -1):
            raise StoreError(f"{experiment}: owned by another process since then")

    def _id(self, experiment: str) -> int:
        self.database.check_process()
        id = self._ids.get(experiment)
        if id is None:
            found = self.database.query("SELECT id FROM experiments WHERE name = ?", experiment)
            if not found:
                raise StoreError(f"{self.place}: expected an experiment, got {experiment!r}")
            id = self._ids[experiment] = int(found[0][0])
        return id

    # The log

    def create(self, experiment: str, description: dict[str, Any]) -> None:
        """Make a new experiment."""
        lineage = _draw_lineage()
        with self.database.transaction():
            made = self.database.query(
                "INSERT INTO experiments (name, description, lineage, seq, charged, at)"
                " VALUES (?, ?, ?, 0, 0, 0) ON CONFLICT (name) DO NOTHING RETURNING id",
                experiment,
                json.dumps(description),
                lineage,
            )
            if not made:
                raise StoreError(f"{experiment}: expected a new name, got one in use")
            # While nobody else sees it yet.
            self._lock(made[0][0], experiment)
        self._ids[experiment] = made[0][0]
        # From the start: the first event's commit may be the last thing that this process does.
        self._write_mark(experiment, (lineage, 0, 0, 0), durable=True)

    def load(self, experiment: str) -> StoredExperiment | None:
        """Return what is known of an experiment; None if there is none of that name."""
        found = self.database.query(
            "SELECT id, description, seq, charged, at, counted FROM experiments WHERE name = ?",
            experiment,
        )
        if not found:
            return None
        [(id, description, *point)] = found
        snapshot = None
        rows = self.database.query(
            "SELECT seq, about, state FROM snapshots WHERE experiment = ?", id
        )
        for seq, about, state in rows:
            bodies = self.database.query("SELECT body FROM open_decisions WHERE experiment = ?", id)
            decisions = (json.loads(body) for (body,) in bodies)
            snapshot = Snapshot(seq, json.loads(about), state, decisions)
        return StoredExperiment(json.loads(description), snapshot, *point)

    def names(self) -> list[str]:
        """Return the names of all experiments."""
        return [name for (name,) in self.database.query("SELECT name FROM experiments ORDER BY id")]

    def events(self, experiment: str, after: int, until: int | None = None) -> Iterator[Event]:
        """Return the events numbered `after` + 1 to `until`, in order."""
        id, last = self._id(experiment), 2**62 if until is None else until
        while True:
            rows = self.database.query(
                f"SELECT {_COLUMNS}, seq FROM events WHERE experiment = ? AND seq > ? AND seq <= ?"
                f" ORDER BY seq LIMIT {_CHUNK}",
                id,
                after,
                last,
            )
            yield from map(_read_event, rows)
            if len(rows) < _CHUNK:
                return
            after = rows[-1][-1]

    def append(self, experiment: str, seq: int, events: Sequence[Event]) -> None:
        """Commit events as numbers `seq` + 1 and on, with their charges: all of them or none."""
        id, last = self._id(experiment), seq + len(events)
        rows = [
            (id, seq + i, e.kind, e.at, e.id, _to_text(e.body), e.state, e.expires)
            for i, e in enumerate(events, 1)
        ]
        epoch = any(event.kind == "epoch" for event in events)
        with self.database.transaction():
            done = self.database.query(
                "UPDATE experiments SET seq = ?, charged = charged + ?, at = ?,"
                " lineage = coalesce(?, lineage) WHERE id = ? AND seq = ? AND term = ?"
                f" RETURNING {_POINT}",
                last,
                sum(map(_count_charged, events)),
                events[-1].at,
                _draw_lineage() if epoch else None,
                id,
                seq,
                self._terms.get(experiment, -1),
            )
            if not done:
                raise StoreError(
                    f"{experiment}: expected {seq} events before these; another writer?"
                )
            self.database.insert("events", _EVENTS, rows)
            charges = _add_up(charge for event in events for charge in event.charges)
            if charges:
                self.database.insert(
                    "spending",
                    _SPENDING,
                    [(id, *charge) for charge in charges],
                    "ON CONFLICT (experiment, person, period) DO UPDATE"
                    " SET amount = spending.amount + excluded.amount",
                )
            # Where these events set the clock back, all that is closed must be deleted by then.
            clocks = [event.body["expires"] for event in events if event.kind == "clock"]
            if clocks:
                self.database.run(
                    "UPDATE events SET expires = ? WHERE experiment = ? AND expires > ?",
                    min(clocks),
                    id,
                    min(clocks),
                )
        released = any(event.state is not None for event in events)
        self._write_mark(experiment, done[0], durable=released or epoch)
        if epoch:
            self._lost.pop(experiment, None)

    def find(self, experiment: str, id: str) -> list[Event]:
        """Return the events of one decision that are still kept."""
        rows = self.database.query(
            f"SELECT {_COLUMNS} FROM events WHERE experiment = ? AND decision = ? ORDER BY seq",
            self._id(experiment),
            id,
        )
        return [_read_event(row) for row in rows]

    # What was spent

    def spent(self, experiment: str, person: str, window: str) -> int:
        """Return what was spent on a person in a window."""
        rows = self.database.query(
            "SELECT amount FROM spending WHERE experiment = ? AND person = ? AND period = ?",
            self._id(experiment),
            person,
            window,
        )
        return int(rows[0][0]) if rows else 0

    def amounts(self, experiment: str, window: str) -> list[int]:
        """Return what was spent in a window, one number a person."""
        rows = self.database.query(
            "SELECT amount FROM spending WHERE experiment = ? AND period = ? ORDER BY amount",
            self._id(experiment),
            window,
        )
        return [int(amount) for (amount,) in rows]

    def charges(self, experiment: str) -> list[tuple[str, str, int]]:
        """Return all that was spent: person, window, amount."""
        rows = self.database.query(
            "SELECT person, period, amount FROM spending WHERE experiment = ?",
            self._id(experiment),
        )
        return [(person, window, int(amount)) for person, window, amount in rows]

    # The key of pseudonyms

    def require_key(self, key: bytes) -> None:
        """Raise `StoreError` unless pseudonyms were made with this key; it is known from then on.

        With another key everybody would be somebody new, whose budget is whole.
        """
        fingerprint = hashlib.blake2b(b"pseudonyms", key=key, digest_size=16).hexdigest()
        if not self.read_only:
            with self.database.transaction():
                self.database.run(
                    "INSERT INTO keys (name, fingerprint) VALUES ('pseudonyms', ?)"
                    " ON CONFLICT (name) DO NOTHING",
                    fingerprint,
                )
        known = self.database.query("SELECT fingerprint FROM keys WHERE name = 'pseudonyms'")
        if any(each != fingerprint for (each,) in known):
            raise StoreError(
                f"{self.place}: expected the key of pseudonyms that it was used with "
                f"({self.beside}.key, or TACIT_PSEUDONYM_KEY), got another"
            )

    def knows_people(self) -> bool:
        """Return whether pseudonyms were made for this store, so that it needs their key."""
        found = self.database.query(
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM keys) OR EXISTS (SELECT 1 FROM spending)"
            " OR EXISTS (SELECT 1 FROM experiments WHERE description LIKE ?)"
            " OR EXISTS (SELECT 1 FROM snapshots WHERE about LIKE ?)"
            " OR EXISTS (SELECT 1 FROM events WHERE body LIKE ?)",
            '%"people": ["%',
            '%"people": ["%',
            '%"person":"%',
        )
        return bool(found)

    # Snapshots

    def save_snapshot(self, experiment: str, snapshot: Snapshot) -> None:
        """Keep a snapshot instead of the one before."""
        id, database = self._id(experiment), self.database
        with database.transaction():
            self._check_term(experiment, id)
            database.run("DELETE FROM snapshots WHERE experiment = ?", id)
            database.run(
                "INSERT INTO snapshots (experiment, seq, about, state) VALUES (?, ?, ?, ?)",
                id,
                snapshot.seq,
                json.dumps(snapshot.about),
                snapshot.state,
            )
            database.run("DELETE FROM open_decisions WHERE experiment = ?", id)
            rows = ((id, row["id"], _to_text(row)) for row in snapshot.decisions)
            while some := list(islice(rows, _CHUNK)):
                database.insert("open_decisions", _OPEN_DECISIONS, some)

    def has_expired(self, experiment: str, now: int) -> bool:
        """Return whether there is something to `prune`, once a snapshot covers it."""
        found = self.database.query(
            "SELECT 1 FROM events WHERE experiment = ? AND expires <= ? LIMIT 1",
            self._id(experiment),
            now,
        )
        return bool(found)

    def prune(self, experiment: str, now: int, until: int, most: int) -> int:
        """Delete the events of at most so many expired decisions; return how many events went.

        Only decisions whose last event is numbered `until` or less, and that the snapshot covers.
        """
        id = self._id(experiment)
        with self.database.transaction():
            self._check_term(experiment, id)
            done = self.database.query(
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

    def check(self) -> None:
        """Raise `StoreError` if nothing can be written now."""
        self.database.check()

    def close(self) -> None:
        """Let others use it; after a fork it is the parent's to close."""
        if not self.database.is_inherited:
            self.database.close()
            if self._marks is not None:
                self._marks.close()
                self._marks = None


class MemoryStore(Store):
    """A store that a crash forgets, for tests and for the simulator of faults."""

    def __init__(self) -> None:
        super().__init__(SQLiteDatabase(None, SCHEMA), None)


class SQLiteStore(Store):
    """A store in one file, on a local disk, for one process.

    Parameters
    ----------
    path : str or path
        Made if missing, readable by its owner only.
    restored : bool
        Accept an old copy: what was lost counts as spent.
    """

    def __init__(self, path: str | os.PathLike[str], *, restored: bool = False) -> None:
        self.path = Path(path)
        database = SQLiteDatabase(self.path, SCHEMA, exclusive=True)
        super().__init__(database, self.path, restored=restored)

    def prune(self, experiment: str, now: int, until: int, most: int) -> int:
        """Delete some of what expired, and leave no bytes of it."""
        done = super().prune(experiment, now, until, most)
        self.database.query("PRAGMA wal_checkpoint(TRUNCATE)")
        return done


class SQLiteReader(Store):
    """A file that another process writes, to read.

    Parameters
    ----------
    path : str or path
    """

    read_only = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        super().__init__(SQLiteDatabase(self.path, SCHEMA, read_only=True), self.path)


def open_store(
    address: str | os.PathLike[str],
    *,
    beside: str | os.PathLike[str] | None = None,
    restored: bool = False,
) -> Store:
    """Open a store, or make one.

    Parameters
    ----------
    address : str or path
        A SQLite file, or ``postgresql://...``.
    beside : path, optional
        For a database: what the names of its files outside of it begin with.
    restored : bool
        Accept an old copy: what was lost counts as spent.
    """
    if not is_database(address):
        return SQLiteStore(address, restored=restored)
    from tacit.serving.storage.postgres import PostgresStore

    return PostgresStore(os.fspath(address), beside=beside, restored=restored)


def _count_charged(event: Event) -> int:
    """Return how many decisions an event adds to those on which a device may report.

    An epoch adds those that were lost, so that a copy from before it is missing them too.
    """
    if event.kind == "epoch":
        return int(event.body["lost"])
    shown = event.kind == "show" or (event.kind == "decide" and bool(event.body["shown"]))
    return int(shown and not event.body.get("reason"))


def _add_up(charges: Iterable[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    """Return one charge for each person and window."""
    totals: dict[tuple[str, str], int] = {}
    for person, window, amount in charges:
        totals[person, window] = totals.get((person, window), 0) + amount
    return [(*key, amount) for key, amount in totals.items()]


def _draw_lineage() -> int:
    return int.from_bytes(os.urandom(7), "big")


def _read_event(row: Any) -> Event:
    kind, at, id, body, state, expires = row[:6]
    return Event(kind, at, id, json.loads(body), state, expires)


def _to_text(body: dict[str, Any]) -> str:
    return json.dumps(body, separators=(",", ":"))
