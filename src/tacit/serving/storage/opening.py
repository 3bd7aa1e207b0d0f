"""Which kind of store an address means."""

from __future__ import annotations

import os

from tacit.serving.storage.sqlite import SQLiteStore
from tacit.serving.storage.store import Store, StoreError


def is_database(address: str | os.PathLike[str]) -> bool:
    """Return whether an address is that of a PostgreSQL database, and not a file's."""
    return os.fspath(address).startswith(("postgresql://", "postgres://"))


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
    try:
        from tacit.serving.storage.postgres import PostgresStore
    except ImportError as error:
        raise StoreError(
            f"PostgreSQL needs more parts ({error.name}); pip install 'tacit[postgres]'"
        ) from None
    return PostgresStore(os.fspath(address), beside=beside, restored=restored)
