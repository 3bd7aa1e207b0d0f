"""Experiments in a PostgreSQL database, for many processes and machines.

An experiment is owned by the process that holds its advisory lock. Lock and writes share one connection, with
no pool between: a connection that ends loses both, and its owner begins anew from the log. Others find the
owner's address in the database. A silent owner, whose machine went away without a word, is ended after a
while, and its term is over (see `tacit.serving.storage.sql`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tacit.core import processes
from tacit.serving.core import Event
from tacit.serving.storage.sql import MIGRATIONS, TYPES, SQLStore
from tacit.serving.storage.store import NotOwnedError, StoreError

_WORDS = {
    "identity": "INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "integer": "BIGINT",
    "blob": "BYTEA",
    "strict": "",
    "packed": "",
}
_COLUMN = {
    "integer": "(row->>{})::bigint",
    "text": "row->>{}",
    "blob": "decode(row->>{}, 'hex')",
}
_CLUSTER = """
    CREATE TABLE servers (
        id TEXT PRIMARY KEY, address TEXT NOT NULL, backend INTEGER NOT NULL,
        seen TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
    );
    CREATE TABLE tokens (name TEXT PRIMARY KEY, body TEXT NOT NULL);
    ALTER TABLE tacit_store ADD COLUMN pseudonyms TEXT;
"""
_VERSION = """
    CREATE TABLE tacit_store (
        one BOOLEAN PRIMARY KEY DEFAULT true CHECK (one), version INTEGER NOT NULL, secret BYTEA NOT NULL
    );
"""
_KEYS = """
    INSERT INTO keys (name, fingerprint)
        SELECT 'pseudonyms', pseudonyms FROM tacit_store WHERE pseudonyms IS NOT NULL;
    ALTER TABLE tacit_store DROP COLUMN pseudonyms;
"""
_MIGRATIONS = (
    MIGRATIONS[0],
    MIGRATIONS[1] + _CLUSTER,
    MIGRATIONS[2] + _KEYS,
    *MIGRATIONS[3:],
)
_APPLICATION = 0x7AC1D
_PATIENCE = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "tacit",
}
_SESSION = """
    SET lock_timeout = '5s';
    SET default_transaction_isolation = 'read committed';
    SET tcp_keepalives_idle = 5;
    SET tcp_keepalives_interval = 2;
    SET tcp_keepalives_count = 3;
    SET client_min_messages = warning;
"""
_BEAT = 1.0
_SILENT = 10
"""Seconds after which a process that no longer says that it lives is ended."""
_AGAIN = 1.0
_HELD = (
    "locktype = 'advisory' AND classid::bigint = ? AND objsubid = 2 AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
_IS_SILENT = "seen < clock_timestamp() - make_interval(secs => ?)"


class Server(NamedTuple):
    """A process of the service, and where others reach it."""

    id: str
    address: str


class PostgresStore(SQLStore):
    """A store in a database, which several processes may open.

    Parameters
    ----------
    dsn : str
        Where it is: ``postgresql://user@host/database?sslmode=verify-full`` or what else libpq reads.
        The database or schema is its own; tables are made if there are none.
    beside : path, optional
        What the names of the files outside the database begin with; its name unless given. All
        processes share them, or have the same.
    restored : bool
        Accept a database that is behind its marks, has none, or is a copy of another one.
    """

    def __init__(
        self, dsn: str, *, beside: str | os.PathLike[str] | None = None, restored: bool = False
    ) -> None:
        try:
            given = conninfo_to_dict(dsn)
        except psycopg.Error:
            # What libpq says may repeat the address, and a password in it.
            raise StoreError("expected an address of a database, postgresql://...") from None
        chosen: dict[str, Any] = {**_PATIENCE, **given}
        self._dsn = make_conninfo("", **chosen)
        self._connection: psycopg.Connection[Any] | None = None
        self._failed_at = float("-inf")
        self._beats: _Beats | None = None
        self._closed = False
        self._space = 0
        name = given.get("dbname") or given.get("user") or "tacit"
        place = f"postgresql://{given.get('host') or 'localhost'}/{name}"
        super().__init__(place, Path(str(name) if beside is None else beside), restored=restored)
        try:
            self._open_marks()
        except BaseException:
            self._drop()
            raise

    # The connection

    def _using(self) -> psycopg.Connection[Any]:
        self._check_process()
        if self._closed:
            raise StoreError(f"{self.place}: closed")
        connection = self._connection
        if connection is not None and not connection.closed:
            return connection
        self._drop()
        if time.monotonic() - self._failed_at < _AGAIN:
            raise StoreError(f"{self.place}: cannot be reached")
        try:
            connection = psycopg.connect(self._dsn, autocommit=True)
            processes.leave_to_parent(connection)
            self._connection = connection
            self._begin_session(connection)
            self._prepare(connection)
            self._announce()
        except (psycopg.Error, StoreError) as error:
            self._drop()
            self._failed_at = time.monotonic()
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{self.place}: cannot be reached: {_line(error)}") from error
        return connection

    def _begin_session(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute(_SESSION)
        row = connection.execute(
            "SELECT current_setting('fsync') = 'on', pg_is_in_recovery(),"
            " current_setting('synchronous_commit') IN ('off', 'local', 'remote_write'),"
            " (SELECT oid::bigint FROM pg_database WHERE datname = current_database())"
        ).fetchone()
        assert row is not None
        durable, standby, lax, database = row
        if standby:
            raise StoreError(f"{self.place}: a standby, which cannot be written")
        if not durable:
            raise StoreError(f"{self.place}: fsync is off, so that nothing is ever durable there")
        if lax:
            connection.execute("SET synchronous_commit = on")
        try:
            found = connection.execute("SELECT system_identifier FROM pg_control_system()")
            system = found.fetchall()[0][0]
        except psycopg.errors.InsufficientPrivilege:
            system = 0
        digest = hashlib.blake2b(f"{system} {database}".encode(), digest_size=7).digest()
        self.identity = int.from_bytes(digest, "big")

    def _drop(self) -> None:
        """Give up the connection, and with it whatever this process owned."""
        self._terms.clear()
        self._ids.clear()
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _broken(self, error: psycopg.Error) -> StoreError:
        if self._connection is not None and self._connection.closed:
            self._drop()
        return StoreError(f"{self.place}: {_line(error)}")

    def _prepare(self, connection: psycopg.Connection[Any]) -> None:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (_APPLICATION,))
            (ours, theirs) = connection.execute(
                "SELECT to_regclass('tacit_store') IS NOT NULL, to_regclass('experiments') IS NOT NULL"
            ).fetchall()[0]
            if theirs and not ours:
                raise StoreError(f"{self.place}: a database, but not a store of experiments")
            version = 0
            if ours:
                version = connection.execute("SELECT version FROM tacit_store").fetchall()[0][0]
            if version > len(_MIGRATIONS):
                raise StoreError(f"{self.place}: made by a later version (schema {version})")
            if not ours:
                connection.execute(_VERSION)
                connection.execute(
                    "INSERT INTO tacit_store (version, secret) VALUES (0, %s)",
                    (secrets.token_bytes(32),),
                )
            if version < len(_MIGRATIONS):
                steps = "".join(_MIGRATIONS[version:]).format_map(_WORDS)
                connection.execute(steps.encode())
                connection.execute("UPDATE tacit_store SET version = %s", (len(_MIGRATIONS),))
            # Stores in several schemas of one database must not share locks.
            found = connection.execute("SELECT 'experiments'::regclass::oid::bigint").fetchall()
            self._space = found[0][0] % 2**31

    # Statements

    def _query(self, statement: str, *values: Any) -> list[Any]:
        try:
            with self._turn:
                return self._using().execute(_dialect(statement), values).fetchall()
        except psycopg.Error as error:
            raise self._broken(error) from error

    def _run(self, statement: str, *values: Any) -> None:
        try:
            with self._turn:
                self._using().execute(_dialect(statement), values)
        except psycopg.Error as error:
            raise self._broken(error) from error

    def _insert(self, table: str, rows: Sequence[tuple[Any, ...]], otherwise: str = "") -> None:
        # One value for all rows: a tenth of the work that arrays are.
        columns = ", ".join(_COLUMN[each].format(i) for i, each in enumerate(TYPES[table]))
        text = json.dumps(rows, default=bytes.hex, separators=(",", ":"))
        self._run(
            f"INSERT INTO {table} SELECT {columns} FROM json_array_elements(?::json) AS row {otherwise}",
            text,
        )

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._check_process()
        self._turn.acquire()
        connection = None
        try:
            connection = self._using()
            with connection.pipeline():
                connection.execute("BEGIN")
                yield
                done = connection.execute("COMMIT")
            # A transaction that failed is "committed" without an error, as a rollback.
            if done.statusmessage != "COMMIT":
                raise StoreError(f"{self.place}: expected a commit, got {done.statusmessage}")
        except BaseException as error:
            if connection is not None:
                with contextlib.suppress(psycopg.Error):
                    connection.rollback()
            if isinstance(error, psycopg.Error):
                raise self._broken(error) from error
            raise
        finally:
            self._turn.release()

    def find(self, experiment: str, id: str) -> list[Event]:
        """Return the events of one decision."""
        # The one character that the database cannot hold.
        return [] if "\0" in id else super().find(experiment, id)

    # Ownership

    def _hold(self, id: int, experiment: str) -> None:
        for _ in range(2):
            if self._query("SELECT pg_try_advisory_lock(?, ?)", self._space, id)[0][0]:
                return
            if not self._end_silent(id):
                break
        raise NotOwnedError(f"{experiment}: owned by another process")

    def _end_silent(self, id: int) -> bool:
        """End the session of an owner that no longer says that it lives; return whether there was one."""
        ended = self._query(
            f"SELECT pg_terminate_backend(pid, 2000) FROM pg_locks WHERE {_HELD} AND objid::bigint = ?"
            f" AND pid IN (SELECT backend FROM servers WHERE {_IS_SILENT})",
            self._space,
            id,
            _SILENT,
        )
        return bool(ended)

    def announce(self, address: str) -> None:
        """Let the other processes know where this one is, now and while it lives."""
        self._beats = _Beats(self._dsn, Server(self.server, address))
        self._announce()
        self._beats.start()

    def _announce(self) -> None:
        if self._beats is not None and self._connection is not None:
            self._connection.execute(
                "INSERT INTO servers (id, address, backend) VALUES (%s, %s, pg_backend_pid())"
                " ON CONFLICT (id) DO UPDATE SET backend = excluded.backend, seen = clock_timestamp()",
                self._beats.server,
            )

    def owner(self, experiment: str) -> Server | None:
        """Return which process took an experiment last, if it is one that others can reach."""
        found = self._query(
            "SELECT servers.id, address FROM experiments JOIN servers ON servers.id = owner"
            " WHERE name = ?",
            experiment,
        )
        return Server(*found[0]) if found else None

    def servers(self) -> list[Server]:
        """Return the processes that live."""
        rows = self._query(
            f"SELECT id, address FROM servers WHERE NOT {_IS_SILENT} ORDER BY id", _SILENT
        )
        return [Server(*row) for row in rows]

    def orphans(self) -> list[str]:
        """Return the experiments that no living process owns."""
        rows = self._query(
            "SELECT name FROM experiments WHERE id NOT IN (SELECT objid::bigint FROM pg_locks"
            f" WHERE {_HELD} AND pid NOT IN (SELECT backend FROM servers WHERE {_IS_SILENT}))"
            " ORDER BY id",
            self._space,
            _SILENT,
        )
        return [name for (name,) in rows]

    @property
    def secret(self) -> bytes:
        """What the processes on one database know each other by."""
        return bytes(self._query("SELECT secret FROM tacit_store")[0][0])

    # The end

    def check(self) -> None:
        """Raise `StoreError` if nothing can be written."""
        with self._writing():
            self._run("UPDATE tacit_store SET version = version")

    def close(self) -> None:
        """Let others own what this process owned."""
        if os.getpid() != self._process or self._closed:
            return
        if self._beats is not None:
            self._beats.stop()
        if self._connection is not None:
            # The session's own end comes a moment later.
            with contextlib.suppress(StoreError):
                self._run("DELETE FROM servers WHERE id = ?", self.server)
                self._query("SELECT pg_advisory_unlock_all()")
        self._closed = True
        self._drop()
        self._marks.close()


class _Beats(threading.Thread):
    """Says every second that this process lives, over a connection of its own."""

    def __init__(self, dsn: str, server: Server) -> None:
        super().__init__(daemon=True, name="heartbeat")
        self.server, self._dsn = server, dsn
        self._end = threading.Event()

    def run(self) -> None:
        while not self._end.is_set():
            with contextlib.suppress(psycopg.Error), psycopg.connect(self._dsn) as connection:
                processes.leave_to_parent(connection)
                connection.autocommit = True
                while not self._end.wait(_BEAT):
                    connection.execute(
                        "UPDATE servers SET seen = clock_timestamp() WHERE id = %s",
                        (self.server.id,),
                    )
                    connection.execute(
                        "DELETE FROM servers WHERE seen < clock_timestamp() - interval '1 day'"
                    )
            self._end.wait(_BEAT)

    def stop(self) -> None:
        self._end.set()
        self.join(timeout=2)


@lru_cache(maxsize=256)
def _dialect(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
