"""Where a store lies: a file, or a schema of a database. The same tests run on both."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tacit
from tacit.serving import SQLiteStore, StoreError

SCHEMAS = Path(__file__).parent / "schemas"


def steps(kind: str, version: int) -> str:
    """Return what made a store of an earlier version, step by step."""
    return "".join((SCHEMAS / f"{kind}-{n}.sql").read_text() for n in range(1, version + 1))


class Place:
    """What both have."""

    kind: Any
    beside: Path

    def open(self, kind: Any = None, **how: Any) -> Any:
        """Open the store, perhaps as a subclass of its kind."""
        raise NotImplementedError

    @contextlib.contextmanager
    def learner(self, policy: Any, *, restored: bool = False, **given: Any) -> Iterator[Any]:
        """A learner on this store; both are closed afterwards."""
        store = self.open(restored=restored)
        try:
            learner = tacit.Learner(policy, store=store, **given)
            yield learner
            learner.close()
        finally:
            store.close()

    @property
    def mark(self) -> Path:
        return Path(f"{self.beside}.mark")


class FilePlace(Place):
    """A SQLite file."""

    kind = SQLiteStore

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.beside = self.path = folder / "x.db"
        self.address = str(self.path)

    def open(self, kind: Any = None, **how: Any) -> Any:
        return (kind or SQLiteStore)(self.path, **how)

    def run(self, statement: str) -> list[Any]:
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as db:
            return db.execute(statement).fetchall()

    def make(self, version: int) -> None:
        """Make the store that an earlier version left."""
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            db.executescript(steps("sqlite", version))

    @property
    def version(self) -> int:
        return self.run("PRAGMA user_version")[0][0]

    @version.setter
    def version(self, value: int) -> None:
        self.run(f"PRAGMA user_version = {value}")

    def copy(self, name: str = "copy") -> None:
        with (
            contextlib.closing(sqlite3.connect(self.path)) as source,
            contextlib.closing(sqlite3.connect(self.folder / name)) as target,
        ):
            source.backup(target)

    def put_back(self, name: str = "copy") -> None:
        for suffix in ("-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        shutil.copy(self.folder / name, self.path)

    def bytes(self) -> bytes:
        """Return everything that a thief of the store would have."""
        files = [file for file in self.folder.iterdir() if file.suffix != ".key"]
        return b"".join(file.read_bytes() for file in files)


class DatabasePlace(Place):
    """A schema of a PostgreSQL database."""

    def __init__(self, folder: Path, server: Any) -> None:
        from tacit.serving.storage.postgres import PostgresStore

        self.kind = PostgresStore
        self.folder, self.server, self.schema = folder, server, server.fresh()
        self.address = server.address(self.schema)
        self.beside = folder / "outside"

    def open(self, kind: Any = None, **how: Any) -> Any:
        return (kind or self.kind)(self.address, beside=self.beside, **how)

    def run(self, statement: str) -> list[Any]:
        with self.server.connect(self.schema) as db:
            done = db.execute(statement)
            return done.fetchall() if done.description else []

    def make(self, version: int) -> None:
        self.run(steps("postgres", version))

    @property
    def version(self) -> int:
        return self.run("SELECT version FROM tacit_store")[0][0]

    @version.setter
    def version(self, value: int) -> None:
        self.run(f"UPDATE tacit_store SET version = {value}")

    def copy(self, name: str = "copy") -> None:
        self.server.dump(self.schema, self.folder / name)

    def put_back(self, name: str = "copy") -> None:
        self.server.put_back(self.schema, self.folder / name)

    def bytes(self) -> bytes:
        self.copy("all of it")
        return (self.folder / "all of it").read_bytes() + self.mark.read_bytes()


class Disk:
    """The place of a simulation: a store that fails when it is told to, and one copy of it."""

    def __init__(self, place: Place, faulty: Any) -> None:
        self.place, self._copied = place, False
        self._kind = type("Faulty", (faulty, place.kind), {})
        self.store = place.open(self._kind)

    def reopen(self) -> None:
        self.store.close()
        self.store = self.place.open(self._kind)

    def copy(self) -> None:
        self.place.copy()
        self._copied = True

    def put_back(self) -> tuple[int, int] | None:
        if not self._copied:
            return None
        self.store.close()
        self.place.put_back()
        try:
            self.store = self.place.open(self._kind)
        except StoreError:
            self.store = self.place.open(self._kind, restored=True)
        return self.store.find_loss("x")
