"""Where a ledger is kept: a SQLite file, or a PostgreSQL database; both hold the same rows.

In a file, a rollback journal, emptied after each commit, holds what a crash interrupted; everything that was
committed lies in the one file. A copy of it is therefore never short of what was spent, as a copy without
its write-ahead log would be. In a database writers take turns by a lock on the entries, so that check and
charge are one step there too.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from tacit.core.errors import first_line

_APPLICATION, _VERSION = 0x7AC17, 2
_TABLES = """
CREATE TABLE caps (
    id {integer} PRIMARY KEY{counting},
    subject TEXT NOT NULL,
    period TEXT NOT NULL CHECK (period IN ('day', 'month', 'year', 'lifetime')),
    epsilon_units {integer} CHECK (epsilon_units >= 0),
    delta_units {integer} CHECK (delta_units >= 0),
    time TEXT{bytewise} NOT NULL
){strict};
CREATE INDEX caps_by_subject ON caps (subject, period, id);
CREATE TABLE entries (
    id {integer} PRIMARY KEY{counting},
    subject TEXT NOT NULL,
    key TEXT NOT NULL,
    epsilon_units {integer} NOT NULL CHECK (epsilon_units >= 0),
    delta_units {integer} NOT NULL CHECK (delta_units >= 0),
    total_epsilon_units {integer} NOT NULL CHECK (total_epsilon_units >= epsilon_units),
    total_delta_units {integer} NOT NULL CHECK (total_delta_units >= delta_units),
    note TEXT NOT NULL,
    time TEXT{bytewise} NOT NULL,
    UNIQUE (subject, key)
){strict};
CREATE INDEX entries_by_subject ON entries (subject, id);
CREATE INDEX entries_by_time ON entries (subject, time, id);
"""
_IN_A_FILE = (
    _TABLES.format(integer="INTEGER", counting=" AUTOINCREMENT", bytewise="", strict=" STRICT")
    + """
CREATE TRIGGER caps_stay BEFORE DELETE ON caps
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER caps_keep BEFORE UPDATE ON caps
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entries_keep BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""
)
_IN_A_DATABASE = (
    _TABLES.format(integer="BIGINT", counting="", bytewise=' COLLATE "C"', strict="")
    + """
CREATE TABLE tacit_ledger (
    one BOOLEAN PRIMARY KEY DEFAULT true CHECK (one), version INTEGER NOT NULL
);
CREATE FUNCTION tacit_ledger_stays() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER caps_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON caps
    FOR EACH STATEMENT EXECUTE FUNCTION tacit_ledger_stays();
CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION tacit_ledger_stays();
"""
)
_FROM_VERSION_1 = """
INSERT INTO caps (subject, period, epsilon_units, delta_units, time)
    SELECT subject, 'lifetime', micro_epsilon * 1000000, femto_delta * 1000, time
    FROM budgets ORDER BY id;
INSERT INTO entries
    SELECT id, subject, key, micro_epsilon * 1000000, femto_delta * 1000,
    total_micro_epsilon * 1000000, total_femto_delta * 1000, note, time
    FROM old_entries ORDER BY id;
DROP TABLE old_entries;
DROP TABLE budgets;
"""


class LedgerError(ValueError):
    """A charge, a budget or a file that the ledger does not accept."""


class Connection(Protocol):
    """What carries out statements with ``?`` for values."""

    def execute(self, statement: str, values: Any = (), /) -> Any:
        """Return a cursor on the rows of a statement."""


class Book(ABC):
    """The rows of a ledger, durable once `writing` is left."""

    path: Any
    """Where it is, without a password."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Connection]:
        """All that is read inside was true at one moment."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Connection]:
        """All that is written inside is one step, which no other writer interrupts."""

    @abstractmethod
    def damage(self) -> str:
        """Return what is wrong with the bytes themselves; empty if nothing is."""

    @abstractmethod
    def close(self) -> None:
        """Close it; what was written is safe without it."""


def open_book(path: str | os.PathLike[str], timeout: float) -> Book:
    """Open or create a file, or the tables of a database."""
    if os.fspath(path).startswith(("postgresql://", "postgres://")):
        return _DatabaseBook(os.fspath(path), timeout)
    return _FileBook(Path(path), timeout)


class _FileBook(Book):
    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        if str(path) == ":memory:":
            raise LedgerError(f"Ledger: expected a file on a local disk, got {path}")
        try:
            self.connection = sqlite3.connect(
                path, timeout=timeout, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise LedgerError(f"Ledger: cannot open {path}: {error}") from error
        try:
            self._prepare(timeout)
        except BaseException:
            self.connection.close()
            raise

    def _prepare(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while True:  # leaving the write-ahead log of version 1 ignores SQLite's own waiting
            try:
                mode = self.connection.execute("PRAGMA journal_mode = TRUNCATE").fetchone()[0]
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise LedgerError(f"Ledger: cannot open {self.path}: {error}") from error
                time.sleep(0.005)
            except sqlite3.DatabaseError as error:
                raise LedgerError(f"Ledger: {self.path} is not a ledger: {error}") from error
        if mode != "truncate":
            raise LedgerError(f"Ledger: expected a file on a local disk, got {self.path}")
        self.connection.execute("PRAGMA synchronous = FULL")
        self._file = self._identity()
        with self.writing() as connection:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            empty = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
            if not empty and application != _APPLICATION:
                raise LedgerError(f"Ledger: {self.path} is a database but not a ledger")
            _check_version(self.path, version)
            if version == _VERSION:
                return
            if version == 1:
                _move_aside(connection)
            for statement in _statements(_IN_A_FILE + (_FROM_VERSION_1 if version == 1 else "")):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")

    def _identity(self) -> tuple[int, int]:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            raise LedgerError(f"Ledger: {self.path} was deleted; nothing may be released") from None
        return status.st_dev, status.st_ino

    def _require_file(self) -> None:
        if self._identity() != self._file:
            raise LedgerError(
                f"Ledger: {self.path} was replaced since it was opened; open it again"
            )

    @contextlib.contextmanager
    def _inside(self, begin: str) -> Iterator[sqlite3.Connection]:
        connection = self.connection
        try:
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.ProgrammingError as error:
            raise LedgerError(f"Ledger: {self.path} is closed") from error
        except sqlite3.OperationalError as error:
            raise LedgerError(f"Ledger: {self.path}: {error}") from error

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        return self._inside("BEGIN")

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        with self._inside("BEGIN IMMEDIATE") as connection:
            self._require_file()
            yield connection
            self._require_file()

    def damage(self) -> str:
        self._require_file()
        try:
            with self.reading() as connection:
                verdict = str(connection.execute("PRAGMA integrity_check").fetchone()[0])
        except sqlite3.DatabaseError as error:
            verdict = str(error)
        return "" if verdict == "ok" else verdict

    def close(self) -> None:
        self.connection.close()


class _DatabaseBook(Book):
    def __init__(self, address: str, timeout: float) -> None:
        try:
            import psycopg
        except ImportError:
            raise LedgerError(
                "Ledger: PostgreSQL needs more parts; pip install 'tacit[postgres]'"
            ) from None
        self._psycopg, self._address, self._timeout = psycopg, address, timeout
        self._connection: Any = None
        self._closed = False
        try:
            given = psycopg.conninfo.conninfo_to_dict(address)
        except psycopg.Error:
            # What libpq says may repeat the address, and a password in it.
            raise LedgerError("Ledger: expected an address, postgresql://...") from None
        name = given.get("dbname") or given.get("user") or ""
        self.path = f"postgresql://{given.get('host') or 'localhost'}/{name}"
        self._open()

    def _open(self) -> Any:
        if self._closed:
            raise LedgerError(f"Ledger: {self.path} is closed")
        if self._connection is not None and not self._connection.closed:
            return self._connection
        try:
            connection = self._psycopg.connect(self._address, autocommit=True, connect_timeout=10)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
        except self._psycopg.Error as error:
            raise LedgerError(f"Ledger: cannot open {self.path}: {first_line(error)}") from error
        self._connection = connection
        return connection

    def _prepare(self, connection: Any) -> None:
        connection.execute(f"SET lock_timeout = {round(1000 * self._timeout)}")
        connection.execute("SET client_min_messages = warning")
        durable, lax = connection.execute(
            "SELECT current_setting('fsync') = 'on',"
            " current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')"
        ).fetchone()
        if not durable:
            raise LedgerError(f"Ledger: {self.path} has fsync off; nothing is ever durable there")
        if lax:
            connection.execute("SET synchronous_commit = on")
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (_APPLICATION,))
            ours, theirs = connection.execute(
                "SELECT to_regclass('tacit_ledger') IS NOT NULL, to_regclass('entries') IS NOT NULL"
            ).fetchone()
            if theirs and not ours:
                raise LedgerError(f"Ledger: {self.path} is a database but not a ledger")
            if ours:
                (version,) = connection.execute("SELECT version FROM tacit_ledger").fetchone()
                _check_version(self.path, version)
            else:
                connection.execute(_IN_A_DATABASE)
                connection.execute("INSERT INTO tacit_ledger (version) VALUES (%s)", (_VERSION,))

    @contextlib.contextmanager
    def _inside(self, *begin: str) -> Iterator[Connection]:
        connection = self._open()
        try:
            for statement in begin:
                connection.execute(statement)
            yield _Translated(connection)
            done = connection.execute("COMMIT")
            if done.statusmessage != "COMMIT":
                raise LedgerError(f"Ledger: {self.path}: expected a commit, got a rollback")
        except BaseException as error:
            with contextlib.suppress(self._psycopg.Error):
                connection.rollback()
            if isinstance(error, self._psycopg.Error):
                raise LedgerError(f"Ledger: {self.path}: {first_line(error)}") from error
            raise

    def reading(self) -> AbstractContextManager[Connection]:
        return self._inside("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def writing(self) -> AbstractContextManager[Connection]:
        return self._inside(
            "BEGIN ISOLATION LEVEL READ COMMITTED", "LOCK TABLE caps, entries IN EXCLUSIVE MODE"
        )

    def damage(self) -> str:
        return ""  # the database keeps checksums of its own

    def close(self) -> None:
        self._closed = True
        if self._connection is not None:
            self._connection.close()


class _Translated:
    """A connection of psycopg that takes statements as SQLite writes them."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Any = (), /) -> Any:
        return self._connection.execute(statement.replace("?", "%s").encode(), values)


def _check_version(place: Any, version: int) -> None:
    if version > _VERSION:
        raise LedgerError(f"Ledger: {place} was made by a later version (schema {version})")


def _move_aside(connection: Connection) -> None:
    """Make room for the tables of version 2, keeping the rows of version 1."""
    for name in ("budgets_stay", "budgets_keep", "entries_stay", "entries_keep"):
        connection.execute(f"DROP TRIGGER IF EXISTS {name}")
    connection.execute("DROP INDEX IF EXISTS entries_by_subject")
    connection.execute("ALTER TABLE entries RENAME TO old_entries")


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
