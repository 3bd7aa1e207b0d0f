"""Databases on a PostgreSQL server, for many processes and machines."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tacit.core import processes
from tacit.core.database import Database, Schema, StoreError
from tacit.core.errors import first_line

_WORDS = {
    "identity": "INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "counted": "BIGINT PRIMARY KEY",
    "integer": "BIGINT",
    "blob": "BYTEA",
    "time": 'TEXT COLLATE "C"',
    "strict": "",
    "packed": "",
}
_COLUMN = {
    "integer": "(row->>{})::bigint",
    "text": "row->>{}",
    "blob": "decode(row->>{}, 'hex')",
}
_CONNECTION = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "tacit",
}
_SESSION = """
    SET lock_timeout = '{milliseconds}ms';
    SET default_transaction_isolation = 'read committed';
    SET tcp_keepalives_idle = 5;
    SET tcp_keepalives_interval = 2;
    SET tcp_keepalives_count = 3;
    SET client_min_messages = warning;
"""


class PostgresDatabase(Database):
    """A database or schema of its own, connected to when it is first used and after it was away.

    Parameters
    ----------
    address : str
        ``postgresql://user@host/database?sslmode=verify-full`` or what else libpq reads.
    schema : Schema
    timeout : float
        How many seconds to wait for other writers.
    pause : float
        How many seconds to try nothing after a failure.
    on_connect, on_disconnect : callable
        Called in a new session, and when one is over with the locks that it held.
    """

    def __init__(
        self,
        address: str,
        schema: Schema,
        *,
        timeout: float = 5.0,
        pause: float = 0.0,
        on_connect: Callable[[], None] = lambda: None,
        on_disconnect: Callable[[], None] = lambda: None,
    ) -> None:
        try:
            given = conninfo_to_dict(address)
        except psycopg.Error:
            # What libpq says may repeat the address, and a password in it.
            raise StoreError("expected an address of a database, postgresql://...") from None
        self.name = str(given.get("dbname") or given.get("user") or "tacit")
        super().__init__(f"postgresql://{given.get('host') or 'localhost'}/{self.name}", schema)
        chosen: dict[str, Any] = {**_CONNECTION, **given}
        self._address, self._timeout, self._pause = make_conninfo("", **chosen), timeout, pause
        self._on_connect, self._on_disconnect = on_connect, on_disconnect
        self.connection: psycopg.Connection[Any] | None = None
        self._failed_at = float("-inf")
        self._inside = self._closed = False

    # The connection

    def _using(self) -> psycopg.Connection[Any]:
        self.check_process()
        if self._closed:
            raise self.error("closed; open it again to go on")
        connection = self.connection
        if connection is not None and not connection.closed:
            return connection
        if self._inside:
            # What was done so far is rolled back; the rest must not happen alone.
            raise self.error("the connection was lost")
        self._disconnect()
        if time.monotonic() - self._failed_at < self._pause:
            raise self.error("cannot be reached")
        try:
            self.connection = connection = psycopg.connect(self._address, autocommit=True)
            processes.leave_to_parent(connection)
            self._begin_session(connection)
            if self._schema.postgres:
                self._migrate(connection)
            self._on_connect()
        except (psycopg.Error, StoreError) as error:
            self._disconnect()
            self._failed_at = time.monotonic()
            if isinstance(error, StoreError):
                raise
            raise self.error(f"cannot be reached: {first_line(error)}") from error
        return connection

    def _begin_session(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute(_SESSION.format(milliseconds=round(1000 * self._timeout)).encode())
        [(durable, standby, lax, database)] = connection.execute(
            "SELECT current_setting('fsync') = 'on', pg_is_in_recovery(),"
            " current_setting('synchronous_commit') IN ('off', 'local', 'remote_write'),"
            " (SELECT oid::bigint FROM pg_database WHERE datname = current_database())"
        ).fetchall()
        if standby:
            raise self.error("a standby, which cannot be written")
        if not durable:
            raise self.error("fsync is off, so that nothing is ever durable there")
        if lax:
            connection.execute("SET synchronous_commit = on")
        try:
            found = connection.execute("SELECT system_identifier FROM pg_control_system()")
            system = found.fetchall()[0][0]
        except psycopg.errors.InsufficientPrivilege:
            system = 0
        digest = hashlib.blake2b(f"{system} {database}".encode(), digest_size=7).digest()
        self.identity = int.from_bytes(digest, "big")

    def _migrate(self, connection: psycopg.Connection[Any]) -> None:
        schema, steps = self._schema, self._schema.postgres
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (schema.application,))
            [(ours, theirs)] = connection.execute(
                "SELECT to_regclass(%s) IS NOT NULL, to_regclass(%s) IS NOT NULL",
                (schema.version_table, schema.landmark),
            ).fetchall()
            if theirs and not ours:
                raise self.error(f"a database, but not {schema.kind}")
            version = 0
            if ours:
                found = connection.execute(f"SELECT version FROM {schema.version_table}".encode())
                version = found.fetchall()[0][0]
            self._require_known(version, steps)
            if version < len(steps):
                connection.execute("".join(steps[version:]).format_map(_WORDS).encode())
                connection.execute(
                    f"UPDATE {schema.version_table} SET version = {len(steps)}".encode()
                )

    def _disconnect(self) -> None:
        """Give up the connection, and with it whatever locks it had."""
        self._on_disconnect()
        if self.connection is not None:
            with contextlib.suppress(psycopg.Error):
                self.connection.close()
            self.connection = None

    def _explain(self, error: psycopg.Error) -> StoreError:
        if self.connection is not None and self.connection.closed:
            self._disconnect()
        return self.error(first_line(error))

    # Statements

    def query(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows of a statement."""
        try:
            with self.lock:
                return self._using().execute(_translate(statement), values).fetchall()
        except psycopg.Error as error:
            raise self._explain(error) from error

    def run(self, statement: str, *values: Any) -> None:
        """Carry out a statement that returns no rows."""
        try:
            with self.lock:
                self._using().execute(_translate(statement), values)
        except psycopg.Error as error:
            raise self._explain(error) from error

    def insert(
        self, table: str, types: Sequence[str], rows: Sequence[tuple[Any, ...]], conflict: str = ""
    ) -> None:
        """Insert many rows."""
        # One value for all rows: a tenth of the work that arrays are.
        columns = ", ".join(_COLUMN[each].format(i) for i, each in enumerate(types))
        text = json.dumps(rows, default=bytes.hex, separators=(",", ":"))
        self.run(
            f"INSERT INTO {table} SELECT {columns} FROM json_array_elements(?::json) AS row {conflict}",
            text,
        )

    def transaction(self, *tables: str) -> contextlib.AbstractContextManager[None]:
        """Make all that is done inside one step, durable once it is left."""
        lock = [f"LOCK TABLE {', '.join(tables)} IN EXCLUSIVE MODE"] if tables else []
        return self._begin("BEGIN", *lock)

    def read(self) -> contextlib.AbstractContextManager[None]:
        """Make all that is read inside true at one moment."""
        return self._begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    @contextlib.contextmanager
    def _begin(self, *begin: str) -> Iterator[None]:
        self.check_process()
        with self.lock:
            connection = self._using()
            self._inside = True
            try:
                with connection.pipeline():
                    for statement in begin:
                        connection.execute(statement.encode())
                    yield
                    done = connection.execute("COMMIT")
                # A transaction that failed is "committed" without an error, as a rollback.
                if done.statusmessage != "COMMIT":
                    raise self.error(f"expected a commit, got {done.statusmessage}")
            except BaseException as error:
                with contextlib.suppress(psycopg.Error):
                    connection.rollback()
                if isinstance(error, psycopg.Error):
                    raise self._explain(error) from error
                raise
            finally:
                self._inside = False

    def check(self) -> None:
        """Raise `StoreError` if nothing can be written now."""
        with self.transaction():
            self.run(f"UPDATE {self._schema.version_table} SET version = version")

    def close(self) -> None:
        """Give up the connection for good."""
        if not self.is_inherited:
            self._closed = True
            self._disconnect()


@lru_cache(maxsize=256)
def _translate(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()
