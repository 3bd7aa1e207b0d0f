"""Experiments in one SQLite file: one process writes, and what is committed survives a power cut.

Beside the file lies a mark, ``NAME.mark``: how far the log had come. It is written after every commit and
before anything is answered, so that an old copy of the file, put back in place, is behind its mark and
refused. Keep it out of backups of the file; without it the file is refused too.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import sqlite3
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tacit.serving.core import Event
from tacit.serving.store import Kept, Snapshot, Store, StoreError, charged_by

__all__ = ["SQLiteStore"]

_APPLICATION = 0x7AC1D
_MIGRATIONS = (
    """
    CREATE TABLE experiments (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, description TEXT NOT NULL,
        seq INTEGER NOT NULL, charged INTEGER NOT NULL, at INTEGER NOT NULL, lineage INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE events (
        experiment INTEGER NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, at INTEGER NOT NULL,
        decision TEXT, body TEXT NOT NULL, state BLOB, expires INTEGER,
        PRIMARY KEY (experiment, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX events_by_decision ON events (experiment, decision) WHERE decision IS NOT NULL;
    CREATE INDEX events_by_expiry ON events (experiment, expires) WHERE expires IS NOT NULL;
    CREATE TABLE spending (
        experiment INTEGER NOT NULL, person TEXT NOT NULL, period TEXT NOT NULL,
        amount INTEGER NOT NULL CHECK (amount >= 0), PRIMARY KEY (experiment, person, period)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE snapshots (
        experiment INTEGER PRIMARY KEY, seq INTEGER NOT NULL, about TEXT NOT NULL, state BLOB NOT NULL
    ) STRICT;
    CREATE TABLE open_decisions (
        experiment INTEGER NOT NULL, decision TEXT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (experiment, decision)
    ) STRICT, WITHOUT ROWID;
    """,
)
_COLUMNS = "kind, at, decision, body, state, expires"
_MARK = struct.Struct("<16sqqqqI")
_SLOT = 64
_UNKNOWN = 2**50


class _Mark(NamedTuple):
    lineage: int
    """Changes whenever a copy is restored, so that copies of what was abandoned are told apart."""
    seq: int
    charged: int
    at: int


class SQLiteStore(Store):
    """A store in one file, on a local disk, for one process.

    Parameters
    ----------
    path : str or path
        Made if missing, readable by its owner only.
    restored : bool
        Accept a file that is behind its mark, or has none: it is an old copy. What was lost is
        reported by `lost`, and an experiment that goes on from it must count that as spent.
    """

    def __init__(self, path: str | os.PathLike[str], *, restored: bool = False) -> None:
        self.path = Path(path)
        self.restored = restored
        self._process = os.getpid()
        self._ids: dict[str, int] = {}
        self._lock = _own(self.path)
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            self.path.chmod(0o600)
            self._opened = os.stat(self.path)
            self._connection = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
                self._mark = self._open_mark()
            except sqlite3.DatabaseError as error:
                raise StoreError(f"{self.path}: not a store of experiments: {error}") from error
            except BaseException:
                self._connection.close()
                raise
        except BaseException:
            os.close(self._lock)
            raise

    def _prepare(self) -> None:
        db = self._connection
        if db.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise StoreError(f"{self.path}: expected a file on a local disk")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA secure_delete = ON")
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = db.execute("PRAGMA user_version").fetchone()[0]
        empty = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
        if not empty and application != _APPLICATION:
            raise StoreError(f"{self.path}: a database, but not a store of experiments")
        if version > len(_MIGRATIONS):
            raise StoreError(f"{self.path}: made by a later version (schema {version})")
        for number in range(version, len(_MIGRATIONS)):
            db.executescript(
                f"BEGIN IMMEDIATE; {_MIGRATIONS[number]}"
                f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {number + 1}; COMMIT;"
            )

    def _open_mark(self) -> int:
        place = Path(f"{self.path}.mark")
        known = self._connection.execute(
            "SELECT id, name, lineage, seq, charged, at FROM experiments WHERE seq > 0"
        ).fetchall()
        if not place.exists() and known and not self.restored:
            raise StoreError(
                f"{self.path}: expected {place.name} beside it, found none; if this is a copy, open it "
                "as restored, which counts what may have been lost as spent"
            )
        mark = os.open(place, os.O_CREAT | os.O_RDWR, 0o600)
        self._lost: dict[str, tuple[int, int]] = {}
        for id, name, *row in known:
            kept, reached = _Mark(*row), _read_mark(mark, id, name)
            if reached is None or reached.seq > kept.seq or reached.lineage != kept.lineage:
                if not self.restored:
                    os.close(mark)
                    raise StoreError(
                        f"{self.path}: events of {name!r} are missing, so this is an old copy; open it "
                        "as restored, which counts what was lost as spent"
                    )
                lost = _UNKNOWN if reached is None else max(0, reached.charged - kept.charged)
                self._lost[name] = (lost, kept.at)
        return mark

    def lost(self, experiment: str) -> tuple[int, int] | None:
        """Return how many charged decisions a restored copy lacks, and since when."""
        return self._lost.get(experiment)

    def create(self, experiment: str, description: dict[str, Any]) -> None:
        """Make a new experiment."""
        lineage = _lineage()
        with self._writing() as db:
            try:
                db.execute(
                    "INSERT INTO experiments (name, description, lineage, seq, charged, at)"
                    " VALUES (?, ?, ?, 0, 0, 0)",
                    (experiment, json.dumps(description), lineage),
                )
            except sqlite3.IntegrityError:
                raise StoreError(f"{experiment}: expected a new name, got one in use") from None
        # From the start: the first event's commit may be the last thing that this process does.
        self._write_mark(experiment, _Mark(lineage, 0, 0, 0))
        os.fsync(self._mark)

    def load(self, experiment: str) -> Kept | None:
        """Return what is known of an experiment."""
        db = self._using()
        row = db.execute(
            "SELECT id, description, seq, charged, at FROM experiments WHERE name = ?",
            (experiment,),
        ).fetchone()
        if row is None:
            return None
        id, description, seq, charged, at = row
        kept = db.execute(
            "SELECT seq, about, state FROM snapshots WHERE experiment = ?", (id,)
        ).fetchone()
        snapshot = None
        if kept is not None:
            rows = db.execute("SELECT body FROM open_decisions WHERE experiment = ?", (id,))
            decisions = [json.loads(body) for (body,) in rows]
            snapshot = Snapshot(kept[0], json.loads(kept[1]), kept[2], decisions)
        return Kept(json.loads(description), snapshot, seq, charged, at)

    def names(self) -> list[str]:
        """Return the names of all experiments."""
        return [
            name for (name,) in self._using().execute("SELECT name FROM experiments ORDER BY id")
        ]

    def events(self, experiment: str, after: int, until: int | None = None) -> Iterator[Event]:
        """Return events in order."""
        rows = self._using().execute(
            f"SELECT {_COLUMNS} FROM events WHERE experiment = ? AND seq > ? AND seq <= ? ORDER BY seq",
            (self._id(experiment), after, 2**62 if until is None else until),
        )
        return (_event(row) for row in rows)

    def append(self, experiment: str, seq: int, events: Sequence[Event]) -> None:
        """Commit events, and write the mark."""
        id, last = self._id(experiment), seq + len(events)
        rows = [
            (id, seq + i, e.kind, e.at, e.id, _text(e.body), e.state, e.expires)
            for i, e in enumerate(events, 1)
        ]
        charges = [(id, *charge) for event in events for charge in event.charges]
        charged = sum(map(charged_by, events))
        with self._writing() as db:
            lineage = _lineage() if any(event.kind == "epoch" for event in events) else None
            done = db.execute(
                "UPDATE experiments SET seq = ?, charged = charged + ?, at = ?,"
                " lineage = ifnull(?, lineage) WHERE id = ? AND seq = ?"
                " RETURNING lineage, seq, charged, at",
                (last, charged, events[-1].at, lineage, id, seq),
            ).fetchone()
            if done is None:
                raise StoreError(
                    f"{experiment}: expected {seq} events before these; another writer?"
                )
            db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            if charges:
                db.executemany(
                    "INSERT INTO spending VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
                    " SET amount = amount + excluded.amount",
                    charges,
                )
        self._write_mark(experiment, _Mark(*done))
        if any(event.state is not None for event in events):
            os.fsync(self._mark)

    def find(self, experiment: str, id: str) -> list[Event]:
        """Return the events of one decision."""
        rows = self._using().execute(
            f"SELECT {_COLUMNS} FROM events WHERE experiment = ? AND decision = ? ORDER BY seq",
            (self._id(experiment), id),
        )
        return [_event(row) for row in rows]

    def spent(self, experiment: str, person: str, window: str) -> int:
        """Return what was spent on a person in a window."""
        row = (
            self._using()
            .execute(
                "SELECT amount FROM spending WHERE experiment = ? AND person = ? AND period = ?",
                (self._id(experiment), person, window),
            )
            .fetchone()
        )
        return 0 if row is None else int(row[0])

    def amounts(self, experiment: str, window: str) -> list[int]:
        """Return what was spent in a window, one number a person."""
        rows = self._using().execute(
            "SELECT amount FROM spending WHERE experiment = ? AND period = ? ORDER BY amount",
            (self._id(experiment), window),
        )
        return [int(amount) for (amount,) in rows]

    def keep(self, experiment: str, snapshot: Snapshot) -> None:
        """Keep a snapshot instead of the one before."""
        id = self._id(experiment)
        with self._writing() as db:
            db.execute(
                "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)",
                (id, snapshot.seq, json.dumps(snapshot.about), snapshot.state),
            )
            db.execute("DELETE FROM open_decisions WHERE experiment = ?", (id,))
            db.executemany(
                "INSERT INTO open_decisions VALUES (?, ?, ?)",
                [(id, row["id"], _text(row)) for row in snapshot.decisions],
            )

    def prune(self, experiment: str, now: int) -> int:
        """Delete what expired, and leave no bytes of it."""
        id = self._id(experiment)
        with self._writing() as db:
            done = db.execute(
                "DELETE FROM events WHERE experiment = :id AND decision IN (SELECT decision FROM events"
                " WHERE experiment = :id AND expires <= :now AND seq <="
                " (SELECT seq FROM snapshots WHERE experiment = :id))",
                {"id": id, "now": now},
            )
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return done.rowcount

    def check(self) -> None:
        """Raise `StoreError` if nothing can be written, or the file is not the one that was opened."""
        try:
            same = os.path.samestat(os.stat(self.path), self._opened)
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}") from None
        if not same:
            raise StoreError(f"{self.path}: another file took its place while it was in use")
        with self._writing():
            pass

    def close(self) -> None:
        """Let others use it."""
        if os.getpid() == self._process and self._lock >= 0:
            self._connection.close()
            os.close(self._mark)
            os.close(self._lock)
            self._lock = -1

    def _id(self, experiment: str) -> int:
        id = self._ids.get(experiment)
        if id is None:
            row = self._using().execute("SELECT id FROM experiments WHERE name = ?", (experiment,))
            found = row.fetchone()
            if found is None:
                raise StoreError(f"{self.path}: expected an experiment, got {experiment!r}")
            id = self._ids[experiment] = int(found[0])
        return id

    def _using(self) -> sqlite3.Connection:
        if os.getpid() != self._process:
            raise StoreError(f"{self.path}: opened before a fork; its owner is another process")
        return self._connection

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        db = self._using()
        try:
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                if db.in_transaction:
                    db.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise StoreError(f"{self.path}: {error}") from error
            raise

    def _write_mark(self, experiment: str, mark: _Mark) -> None:
        record = _MARK.pack(_name(experiment), *mark, 0)[:-4]
        whole = record + struct.pack("<I", zlib.crc32(record))
        os.pwrite(self._mark, whole, self._id(experiment) * _SLOT)


def _read_mark(file: int, id: int, name: str) -> _Mark | None:
    record = os.pread(file, _MARK.size, id * _SLOT)
    if len(record) < _MARK.size or zlib.crc32(record[:-4]) != struct.unpack("<I", record[-4:])[0]:
        return None
    written, *mark, _ = _MARK.unpack(record)
    return _Mark(*mark) if written == _name(name) else None


def _lineage() -> int:
    return int.from_bytes(os.urandom(7), "big")


def _name(experiment: str) -> bytes:
    return hashlib.blake2b(experiment.encode(), digest_size=16).digest()


def _own(path: Path) -> int:
    """Return the descriptor of a lock that this process holds as long as it is open."""
    try:
        lock = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise StoreError(f"{path}: cannot be made there: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.pread(lock, 32, 0).decode(errors="replace").strip()
        os.close(lock)
        raise StoreError(f"{path}: in use by process {owner}; only one may write") from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def _event(row: Any) -> Event:
    kind, at, id, body, state, expires = row
    return Event(kind, at, id, json.loads(body), state, expires)


def _text(body: dict[str, Any]) -> str:
    return json.dumps(body, separators=(",", ":"))
