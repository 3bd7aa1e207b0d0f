"""One way to connect to a database, check that it is durable, migrate it, and guard it in forks.

SQLite files (`tacit.core.sqlite`) and PostgreSQL databases (`tacit.core.postgres`) take the same statements,
with ``?`` for values. Stores of experiments, the ledger, the tokens of a service and the outbox of a device
stand on this layer. It lies in the core and imports only the standard library, because the ledger and the
outbox may not import the package that serves.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.core import processes

if TYPE_CHECKING:
    from tacit.core.postgres import PostgresDatabase


class StoreError(RuntimeError):
    """A store cannot be used, or a commit failed; what was not committed did not happen."""


class NotOwnedError(StoreError):
    """Another process owns the file or the experiment, and is to be asked instead."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The tables of a database: how to recognise them, and the steps that lead to their present form.

    Steps are numbered from 1, and a database knows how many it has taken. They are written with a dialect's
    words in braces, such as ``{integer}``. Without steps nothing is checked or changed.
    """

    kind: str
    """What it is, for errors: ``a ledger``."""
    application: int = 0
    """SQLite's ``application_id``; in PostgreSQL the lock under which tables are made."""
    sqlite: tuple[str, ...] = ()
    postgres: tuple[str, ...] = ()
    version_table: str = ""
    """In PostgreSQL: the table whose one row has the version; the first steps make it."""
    landmark: str = ""
    """In PostgreSQL: a table that, without the version table, belongs to somebody else."""


class Database(ABC):
    """A connection to a database, for the threads of one process.

    Threads take turns by `lock`. A fork waits for it, and the child is refused.

    Parameters
    ----------
    place : str
        What to call it in errors; without a password.
    schema : Schema
    """

    identity = 0
    """Which database this is, where a copy of it can be told from it."""

    def __init__(self, place: str, schema: Schema) -> None:
        self.place, self._schema = place, schema
        self._owner, self.lock = processes.Owner(), threading.RLock()
        processes.wait_for(self, self.lock)

    @property
    def is_inherited(self) -> bool:
        """Whether a process opened it from which this one was forked."""
        return self._owner.is_inherited

    def error(self, why: str) -> StoreError:
        """Return an error that names this database."""
        return StoreError(f"{self.place}: {why}")

    def check_process(self) -> None:
        """Raise `StoreError` in a forked process."""
        if self._owner.is_inherited:
            raise self.error("opened before a fork; its owner is another process")

    @abstractmethod
    def query(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows of a statement."""

    @abstractmethod
    def run(self, statement: str, *values: Any) -> None:
        """Carry out a statement that returns no rows."""

    @abstractmethod
    def insert(
        self, table: str, types: Sequence[str], rows: Sequence[tuple[Any, ...]], conflict: str = ""
    ) -> None:
        """Insert many rows; `types` of the columns are ``integer``, ``text`` and ``blob``."""

    @abstractmethod
    def transaction(self, *tables: str) -> AbstractContextManager[None]:
        """Make all that is done inside one step, durable once it is left; or raise `StoreError`.

        Nobody else writes `tables` meanwhile; in SQLite nobody writes any.
        """

    @abstractmethod
    def read(self) -> AbstractContextManager[None]:
        """Make all that is read inside true at one moment."""

    @abstractmethod
    def check(self) -> None:
        """Raise `StoreError` if nothing can be written now."""

    def find_damage(self) -> str:
        """Return what is wrong with the bytes themselves; empty if nothing is."""
        return ""

    @abstractmethod
    def close(self) -> None:
        """Close it; one that was inherited in a fork is its owner's to close."""

    def _require_known(self, version: int, steps: Sequence[str]) -> None:
        if version > len(steps):
            raise self.error(f"made by a later version (schema {version})")


def is_database(address: str | os.PathLike[str]) -> bool:
    """Return whether an address is that of a PostgreSQL database, and not a file's."""
    return os.fspath(address).startswith(("postgresql://", "postgres://"))


def connect_postgres(address: str, schema: Schema, **how: Any) -> PostgresDatabase:
    """Return a database that is connected to when it is first used; see `PostgresDatabase`."""
    try:
        from tacit.core.postgres import PostgresDatabase
    except ImportError as error:
        raise StoreError(
            f"PostgreSQL needs more parts ({error.name}); pip install 'tacit[postgres]'"
        ) from None
    return PostgresDatabase(address, schema, **how)
