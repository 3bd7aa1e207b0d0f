"""Where experiments are stored: events, snapshots and what was spent, in a SQLite file or in PostgreSQL."""

from tacit.core.database import NotOwnedError, StoreError, is_database
from tacit.serving.storage.experiments import (
    MemoryStore,
    Snapshot,
    SQLiteReader,
    SQLiteStore,
    Store,
    StoredExperiment,
    open_store,
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
