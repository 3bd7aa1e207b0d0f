"""Experiments in one SQLite file: one process writes, and what is committed survives a power cut.

Beside the file lies its mark, ``NAME.mark`` (see `high_water_mark`). Keep it out of backups of the file;
without it the file is refused too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tacit.serving.storage.sql import MIGRATIONS, TYPES, SQLStore
from tacit.serving.storage.store import NotOwnedError, StoreError

_APPLICATION = 0x7AC1D
_MAGIC = b"SQLite format 3\0"
_WORDS = {
    "identity": "INTEGER PRIMARY KEY",
    "integer": "INTEGER",
    "blob": "BLOB",
    "strict": " STRICT",
    "packed": " STRICT, WITHOUT ROWID",
}


class SQLiteStore(SQLStore):
    """A store in one file, on a local disk, for one process.

    Parameters
    ----------
    path : str or path
        Made if missing, readable by its owner only.
    restored : bool
        Accept a file that is behind its mark, or has none: it is an old copy. What was lost is
        reported by `find_loss`, and an experiment that goes on from it must count that as spent.
    """

    def __init__(self, path: str | os.PathLike[str], *, restored: bool = False) -> None:
        self.path = Path(path)
        super().__init__(str(self.path), self.path, restored=restored)
        if self.path.is_dir():
            raise StoreError(f"{self.path}: expected a file, got a folder")
        _require_store(self.path)
        self._lock = lock_of(self.path)
        _open.add(self)
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            self.path.chmod(0o600)
            self._opened = os.stat(self.path)
            if any(os.path.samestat(self._opened, other) for other in _inherited):
                # SQLite would take its parent's locks, which it does not have, for its own.
                why = "open before a fork in this process's parent; open it in a process of its own"
                raise StoreError(f"{self.path}: {why}")
            self._connection = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False
            )
            try:
                with self._turn:
                    self._prepare()
                    self._open_marks()
            except BaseException as error:
                self._connection.close()
                if isinstance(error, sqlite3.DatabaseError):
                    why = f"{self.path}: not a store of experiments: {error}"
                    raise StoreError(why) from error
                raise
        except BaseException:
            self._unlock()
            raise

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

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
        if version > len(MIGRATIONS):
            raise StoreError(f"{self.path}: made by a later version (schema {version})")
        if version < len(MIGRATIONS):
            steps = "".join(MIGRATIONS[version:]).format_map(_WORDS)
            db.executescript(
                f"BEGIN IMMEDIATE; {steps} PRAGMA application_id = {_APPLICATION};"
                f"PRAGMA user_version = {len(MIGRATIONS)}; COMMIT;"
            )

    def prune(self, experiment: str, now: int, until: int, most: int) -> int:
        """Delete some of what expired, and leave no bytes of it."""
        done = super().prune(experiment, now, until, most)
        self._query("PRAGMA wal_checkpoint(TRUNCATE)")
        return done

    def check(self) -> None:
        """Raise `StoreError` if nothing can be written, or the file is not the one that was opened."""
        try:
            same = os.path.samestat(os.stat(self.path), self._opened)
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}") from None
        if not same:
            raise StoreError(f"{self.path}: another file took its place while it was in use")
        with self._writing():
            # The number that it has: SQLite writes the page all the same.
            self._connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def close(self) -> None:
        """Let others use it."""
        if os.getpid() == self._process and self._lock >= 0:
            with self._turn:
                self._connection.close()
            self._marks.close()
            self._unlock()

    def _check_process(self) -> None:
        super()._check_process()
        if self._lock < 0:
            raise StoreError(f"{self.path}: closed; open it again to go on")

    def _hold(self, id: int, experiment: str) -> None:
        """Do nothing: the whole file is this process's."""

    def _query(self, statement: str, *values: Any) -> list[Any]:
        self._check_process()
        try:
            with self._turn:
                return self._connection.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            raise StoreError(f"{self.path}: {error}") from error

    def _run(self, statement: str, *values: Any) -> None:
        self._query(statement, *values)

    def _insert(self, table: str, rows: Sequence[tuple[Any, ...]], otherwise: str = "") -> None:
        places = ", ".join("?" * len(TYPES[table]))
        self._connection.executemany(f"INSERT INTO {table} VALUES ({places}) {otherwise}", rows)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._check_process()
        db = self._connection
        self._turn.acquire()
        try:
            db.execute("BEGIN IMMEDIATE")
            yield
            db.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                if db.in_transaction:
                    db.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise StoreError(f"{self.path}: {error}") from error
            raise
        finally:
            self._turn.release()


class SQLiteReader(SQLiteStore):
    """A file that another process writes, to read.

    Parameters
    ----------
    path : str or path
    """

    read_only = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        SQLStore.__init__(self, str(self.path), self.path, restored=False)
        self._lock = 0  # it holds none
        self._connection = sqlite3.connect(
            f"{self.path.resolve().as_uri()}?mode=ro",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )
        [(version,)] = self._query("PRAGMA user_version")
        if version != len(MIGRATIONS):
            raise StoreError(f"{self.path}: in use by another version (schema {version})")

    def close(self) -> None:
        """Stop reading."""
        self._connection.close()
        self._lock = -1


_open: weakref.WeakSet[SQLiteStore] = weakref.WeakSet()
_inherited: list[os.stat_result] = []


def _let_go() -> None:
    """Leave the locks to the parent: if it dies, whoever comes next must not wait for its children."""
    for store in list(_open):
        if store._lock >= 0 and hasattr(store, "_opened"):
            _inherited.append(store._opened)
        store._unlock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def _require_store(path: Path) -> None:
    """Refuse a file of another kind before anything is made beside it."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        if file.read(len(_MAGIC)) not in (b"", _MAGIC):
            raise StoreError(f"{path}: not a store of experiments: file is not a database")


def lock_of(path: Path) -> int:
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
        raise NotOwnedError(f"{path}: in use by process {owner}; only one may write") from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock
