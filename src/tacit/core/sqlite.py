"""Databases in SQLite files: what is committed survives a power cut.

A file that several processes share has a rollback journal, emptied after each commit, so that a plain copy of
the file is never short of what was committed. A file of one process has a write-ahead log and a lock beside
it, ``NAME.lock``.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

from tacit.core.database import Database, NotOwnedError, Schema, StoreError
from tacit.core.processes import in_child

_MAGIC = b"SQLite format 3\0"
_WORDS = {
    "identity": "INTEGER PRIMARY KEY",
    "counted": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "integer": "INTEGER",
    "blob": "BLOB",
    "time": "TEXT",
    "strict": " STRICT",
    "packed": " STRICT, WITHOUT ROWID",
}


class SQLiteDatabase(Database):
    """A database in one file on a local disk, or in memory.

    Parameters
    ----------
    path : path or None
        Made if missing, readable by its owner only. None for memory, which a crash forgets.
    schema : Schema
    exclusive : bool
        Let no other process write it; `NotOwnedError` if one does.
    read_only : bool
        Read what another process writes.
    timeout : float
        How many seconds to wait for other writers.
    """

    def __init__(
        self,
        path: Path | None,
        schema: Schema,
        *,
        exclusive: bool = False,
        read_only: bool = False,
        timeout: float = 10.0,
    ) -> None:
        super().__init__("memory" if path is None else str(path), schema)
        self.path, self._timeout = path, timeout
        self._file: os.stat_result | None = None
        self._lock_file = -1
        self.connection: sqlite3.Connection | None = None
        try:
            if path is not None and read_only:
                self._open_to_read(path)
            else:
                self._open(path, exclusive)
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.OperationalError):
                raise self.error(f"cannot open it: {error}") from error
            if isinstance(error, sqlite3.DatabaseError):
                raise self.error(f"not {schema.kind}: {error}") from error
            raise

    # Opening

    def _open_to_read(self, path: Path) -> None:
        self.connection = connect_to_read(path)
        version = self._pragma("user_version")
        if version != len(self._schema.sqlite):
            raise self.error(f"in use by another version (schema {version})")

    def _open(self, path: Path | None, exclusive: bool) -> None:
        if path is not None:
            self._require_database(path)
            if exclusive:
                self._lock_file = lock_file(path)
                _exclusive.add(self)
            self._create(path, exclusive)
        self.connection = sqlite3.connect(
            ":memory:" if path is None else path,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        with self.lock:
            self._recognise()
            self._set_journal("wal" if exclusive else "truncate")
            self.connection.execute("PRAGMA synchronous = FULL")
            # What is replaced or deleted does not stay in the file.
            self.connection.execute("PRAGMA secure_delete = ON")
            with self.transaction():
                self._migrate()

    def _require_database(self, path: Path) -> None:
        """Refuse what is no database before anything is made beside it."""
        if path.is_dir():
            raise self.error("expected a file, got a folder")
        with contextlib.suppress(OSError), path.open("rb") as file:
            if file.read(len(_MAGIC)) not in (b"", _MAGIC):
                raise self.error(f"not {self._schema.kind}: file is not a database")

    def _create(self, path: Path, exclusive: bool) -> None:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise self.error(f"cannot open it: {error.strerror}") from None
        self._file = file = os.stat(path)
        if exclusive:
            path.chmod(0o600)
            if any(os.path.samestat(file, other) for other in _inherited):
                # SQLite would take its parent's locks, which it does not have, for its own.
                why = "open before a fork in this process's parent; open it in a process of its own"
                raise self.error(why)

    def _recognise(self) -> None:
        known = self._pragma("application_id") == self._schema.application
        if not known and self._using().execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
            raise self.error(f"a database, but not {self._schema.kind}")

    def _pragma(self, name: str) -> Any:
        return self._using().execute(f"PRAGMA {name}").fetchone()[0]

    def _set_journal(self, mode: str) -> None:
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                found = self._pragma(f"journal_mode = {mode}")
                break
            except sqlite3.OperationalError as error:
                # SQLite does not wait for others here.
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.005)
        if found != mode and self.path is not None:
            raise self.error("expected a file on a local disk")

    def _migrate(self) -> None:
        steps, connection = self._schema.sqlite, self._using()
        self._recognise()
        version = self._pragma("user_version")
        self._require_known(version, steps)
        if version < len(steps):
            for statement in _statements("".join(steps[version:]).format_map(_WORDS)):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {self._schema.application}")
            connection.execute(f"PRAGMA user_version = {len(steps)}")

    # Statements

    def _using(self) -> sqlite3.Connection:
        self.check_process()
        if self.connection is None:
            raise self.error("closed; open it again to go on")
        return self.connection

    def query(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows of a statement."""
        try:
            with self.lock:
                return self._using().execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def run(self, statement: str, *values: Any) -> None:
        """Carry out a statement that returns no rows."""
        self.query(statement, *values)

    def insert(
        self, table: str, types: Sequence[str], rows: Sequence[tuple[Any, ...]], conflict: str = ""
    ) -> None:
        """Insert many rows."""
        values = ", ".join("?" * len(types))
        self._using().executemany(f"INSERT INTO {table} VALUES ({values}) {conflict}", rows)

    @contextlib.contextmanager
    def transaction(self, *tables: str) -> Iterator[None]:
        """Make all that is done inside one step, durable once it is left."""
        with self._begin("BEGIN IMMEDIATE"):
            self._require_file()
            yield
            self._require_file()

    def read(self) -> contextlib.AbstractContextManager[None]:
        """Make all that is read inside true at one moment."""
        return self._begin("BEGIN")

    @contextlib.contextmanager
    def _begin(self, begin: str) -> Iterator[None]:
        self.check_process()
        with self.lock:
            connection = self._using()
            try:
                connection.execute(begin)
                yield
                connection.execute("COMMIT")
            except BaseException as error:
                with contextlib.suppress(sqlite3.Error):
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise self._explain(error) from error
                raise

    def _explain(self, error: sqlite3.Error) -> StoreError:
        try:
            # What SQLite says of a file that is gone helps nobody.
            self._require_file()
        except StoreError as gone:
            return gone
        return self.error(str(error))

    def _require_file(self) -> None:
        if self._file is None:
            return
        try:
            file = os.stat(self.place)
        except FileNotFoundError:
            raise self.error("was deleted; nothing may be released") from None
        except OSError as error:
            raise self.error(str(error.strerror)) from None
        if not os.path.samestat(file, self._file):
            raise self.error("was replaced since it was opened; open it again")

    def check(self) -> None:
        """Raise `StoreError` if nothing can be written now, or another file took its place."""
        with self.transaction():
            # The number that it has: SQLite writes the page all the same.
            self.run(f"PRAGMA user_version = {len(self._schema.sqlite)}")

    def find_damage(self) -> str:
        """Return what is wrong with the bytes of the file; empty if nothing is."""
        self._require_file()
        verdict = str(self.query("PRAGMA integrity_check")[0][0])
        return "" if verdict == "ok" else verdict

    def close(self) -> None:
        """Let others use it."""
        if self.is_inherited:
            return
        with self.lock:
            if self.connection is not None:
                self.connection.close()
                self.connection = None
        self._unlock()

    def _unlock(self) -> None:
        if self._lock_file >= 0:
            os.close(self._lock_file)
            self._lock_file = -1


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Return a connection that cannot write, whether or not others do."""
    return sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=ro",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
    )


def lock_file(path: Path) -> int:
    """Return the descriptor of a lock that this process holds as long as it is open."""
    if fcntl is None:
        raise StoreError(f"{path}: cannot be locked on Windows; use Linux, macOS or WSL")
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


_exclusive: weakref.WeakSet[SQLiteDatabase] = weakref.WeakSet()
_inherited: list[os.stat_result] = []


def _leave_locks() -> None:
    """Leave the locks to the parent: if it dies, whoever comes next must not wait for its children."""
    for database in list(_exclusive):
        if database._lock_file >= 0 and database._file is not None:
            _inherited.append(database._file)
        database._unlock()


in_child(_leave_locks)


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
