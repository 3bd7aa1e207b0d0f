"""Where experiments are stored: events, snapshots and what was spent, in a SQLite file or in PostgreSQL."""

from tacit.serving.storage.opening import is_database, open_store
from tacit.serving.storage.sqlite import SQLiteReader, SQLiteStore
from tacit.serving.storage.store import (
    MemoryStore,
    NotOwnedError,
    Snapshot,
    Store,
    StoredExperiment,
    StoreError,
)

__all__ = [
    "MemoryStore",
    "NotOwnedError",
    "SQLiteReader",
    "SQLiteStore",
    "Snapshot",
    "Store",
    "StoreError",
    "StoredExperiment",
    "is_database",
    "open_store",
]
