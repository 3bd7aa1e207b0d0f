"""Experiments in a PostgreSQL database, for many processes and machines.

An experiment is owned by the process that holds its advisory lock. Lock and writes share one connection, with
no pool between: a connection that ends loses both, and its owner reloads from the log. Others find the
owner's address in the database. A silent owner, whose machine went away without a word, is ended after a
while, and its term is over (see `Store.acquire`).
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import NamedTuple

from tacit.core.database import NotOwnedError, Schema, StoreError, connect_postgres
from tacit.serving.core import Event
from tacit.serving.storage.experiments import SCHEMA, Store

_BEAT = 1.0
_SILENT = 10
"""Seconds after which a process that no longer says that it lives is ended."""
_RETRY = 1.0
# Stores in several schemas of one database must not share locks.
_SPACE = "('experiments'::regclass::oid::bigint & 2147483647)::integer"
_HELD = (
    f"locktype = 'advisory' AND classid::bigint = {_SPACE} AND objsubid = 2 AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
_IS_SILENT = f"seen < clock_timestamp() - make_interval(secs => {_SILENT})"


class Server(NamedTuple):
    """A process of the service, and where others reach it."""

    id: str
    address: str


class PostgresStore(Store):
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
        self._dsn = dsn
        self._heartbeat: _Heartbeat | None = None
        self._shared = database = connect_postgres(
            dsn, SCHEMA, pause=_RETRY, on_connect=self._announce, on_disconnect=self._forget
        )
        outside = Path(database.name if beside is None else beside)
        super().__init__(database, outside, restored=restored)

    def _forget(self) -> None:
        """Give up whatever this process owned, as the connection did."""
        self._terms.clear()
        self._ids.clear()

    def find(self, experiment: str, id: str) -> list[Event]:
        """Return the events of one decision."""
        # The one character that the database cannot hold.
        return [] if "\0" in id else super().find(experiment, id)

    # Ownership

    def _lock(self, id: int, experiment: str) -> None:
        for _ in range(2):
            [(taken,)] = self.database.query(f"SELECT pg_try_advisory_lock({_SPACE}, ?)", id)
            if taken:
                return
            if not self._end_silent(id):
                break
        raise NotOwnedError(f"{experiment}: owned by another process")

    def _end_silent(self, id: int) -> bool:
        """End the session of an owner that no longer says that it lives; return whether there was one."""
        ended = self.database.query(
            f"SELECT pg_terminate_backend(pid, 2000) FROM pg_locks WHERE {_HELD} AND objid::bigint = ?"
            f" AND pid IN (SELECT backend FROM servers WHERE {_IS_SILENT})",
            id,
        )
        return bool(ended)

    def announce(self, address: str) -> None:
        """Let the other processes know where this one is, now and while it lives."""
        self._heartbeat = _Heartbeat(self._dsn, Server(self.server, address))
        self._announce()
        self._heartbeat.start()

    def _announce(self) -> None:
        if self._heartbeat is not None:
            self.database.run(
                "INSERT INTO servers (id, address, backend) VALUES (?, ?, pg_backend_pid())"
                " ON CONFLICT (id) DO UPDATE SET backend = excluded.backend, seen = clock_timestamp()",
                *self._heartbeat.server,
            )

    def owner(self, experiment: str) -> Server | None:
        """Return which process took an experiment last, if it is one that others can reach."""
        found = self.database.query(
            "SELECT servers.id, address FROM experiments JOIN servers ON servers.id = owner"
            " WHERE name = ?",
            experiment,
        )
        return Server(*found[0]) if found else None

    def servers(self) -> list[Server]:
        """Return the processes that live."""
        rows = self.database.query(
            f"SELECT id, address FROM servers WHERE NOT {_IS_SILENT} ORDER BY id"
        )
        return [Server(*row) for row in rows]

    def orphans(self) -> list[str]:
        """Return the experiments that no living process owns."""
        rows = self.database.query(
            "SELECT name FROM experiments WHERE id NOT IN (SELECT objid::bigint FROM pg_locks"
            f" WHERE {_HELD} AND pid NOT IN (SELECT backend FROM servers WHERE {_IS_SILENT}))"
            " ORDER BY id"
        )
        return [name for (name,) in rows]

    @property
    def secret(self) -> bytes:
        """What the processes on one database know each other by."""
        return bytes(self.database.query("SELECT secret FROM tacit_store")[0][0])

    def close(self) -> None:
        """Let others own what this process owned."""
        if not self.database.is_inherited:
            if self._heartbeat is not None:
                self._heartbeat.stop()
            if self._shared.connection is not None:
                # The session's own end comes a moment later.
                with contextlib.suppress(StoreError):
                    self.database.run("DELETE FROM servers WHERE id = ?", self.server)
                    self.database.query("SELECT pg_advisory_unlock_all()")
        super().close()


class _Heartbeat(threading.Thread):
    """Says every second that this process lives, over a connection of its own."""

    def __init__(self, dsn: str, server: Server) -> None:
        super().__init__(daemon=True, name="heartbeat")
        self.server, self._end = server, threading.Event()
        self._database = connect_postgres(dsn, Schema(kind="a store of experiments"))

    def run(self) -> None:
        while not self._end.wait(_BEAT):
            with contextlib.suppress(StoreError):
                self._database.run(
                    "UPDATE servers SET seen = clock_timestamp() WHERE id = ?", self.server.id
                )
                self._database.run(
                    "DELETE FROM servers WHERE seen < clock_timestamp() - interval '1 day'"
                )
        self._database.close()

    def stop(self) -> None:
        self._end.set()
        self.join(timeout=2)
