"""A copy of a store while it is in use, and going on from one.

An old copy knows less than what was answered. So it is put back by one command, which counts what was lost as
spent, discards sums that may have been released already, and writes that down; a store that was merely copied
into place is refused.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

from tacit.core.constraints import require
from tacit.core.files import write_atomically
from tacit.core.sqlite import connect_to_read, lock_file
from tacit.serving.core import Core
from tacit.serving.storage import is_database

_GONE = (
    "made after the copy, and gone with all that was decided, learned and spent in it; its devices' reports "
    "are refused, and one of the same name begins anew."
)


def back_up(store: str | os.PathLike[str], file: str | os.PathLike[str]) -> None:
    """Copy a SQLite store, in use or not, to a file that only its owner can read.

    The copy holds what the store does, rewards of central experiments included, and outlives their
    retention. The mark is not part of it, nor is the key of pseudonyms, without which no copy opens.
    """
    where = "a file (of PostgreSQL, pg_dump makes copies)"
    require("backup", "store", where, not is_database(store), "an address")
    source = Path(store)
    require("backup", "store", "a file", source.is_file(), str(source))

    def write(place: Path) -> None:
        place.chmod(0o600)
        reader = connect_to_read(source)
        with contextlib.closing(reader), contextlib.closing(sqlite3.connect(place)) as target:
            try:
                reader.backup(target)
            except sqlite3.DatabaseError as error:
                raise ValueError(f"backup: {source}: not a store ({error})") from None

    write_atomically(Path(file), write, mode=0o600)


def restore(
    store: str | os.PathLike[str],
    file: str | os.PathLike[str] | None = None,
    *,
    beside: str | os.PathLike[str] | None = None,
) -> dict[str, str]:
    """Go on from an old copy; return for each experiment that lost something what is now said about it.

    Parameters
    ----------
    store : path or address
        Of a service that is not running.
    file : path, optional
        The copy, which takes the place of a SQLite store. Without it the store is the copy already, as
        after a restored dump of PostgreSQL.
    beside : path, optional
        For a database: what the names of mark and key, outside of it, begin with.
    """
    from tacit.service.server import open_service

    gone = list[str]()
    if file is not None:
        require("restore", "file", "only with a SQLite store", not is_database(store), str(file))
        gone = _put_in_place(Path(file), Path(store))
    opened = open_service(store, restored=True, beside=beside)
    try:
        kept = opened.manager.store
        left = [name for name in kept.names() if kept.find_loss(name) is not None]
        require("restore", "experiments", "of stopped processes only", not left, left)
        said = {
            name: each.sentence()
            for name, each in opened.manager.experiments.items()
            if each.core.budget.debts
        }
        return said | dict.fromkeys(gone, _GONE)
    finally:
        opened.manager.store.close()


def _put_in_place(file: Path, store: Path) -> list[str]:
    """Replace a store by a copy; return the experiments that only the store had."""
    if not file.is_file():
        raise ValueError(f"{file}: expected a copy of a store, found none")
    try:
        kept = _names(file)
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{file}: not a copy of a store ({error})") from None
    # Whoever uses the store keeps it: then this is refused.
    lock = lock_file(store)
    try:
        gone = list[str]()
        # A store that is missing, or damaged, says nothing.
        with contextlib.suppress(sqlite3.DatabaseError):
            gone = [name for name in _names(store) if name not in kept]
        for suffix in ("-wal", "-shm"):
            Path(f"{store}{suffix}").unlink(missing_ok=True)
        write_atomically(store, lambda place: shutil.copyfile(file, place), mode=0o600)
    finally:
        os.close(lock)
    return gone


def _names(store: Path) -> list[str]:
    reader = connect_to_read(store)
    with contextlib.closing(reader):
        return [name for (name,) in reader.execute("SELECT name FROM experiments ORDER BY id")]


def reset_clocks(
    store: str | os.PathLike[str], *, beside: str | os.PathLike[str] | None = None
) -> dict[str, float]:
    """Set back the clocks of experiments that ran ahead; return by how many seconds each did.

    Parameters
    ----------
    store : path or address
        Of a service that is not running, on a machine whose clock is right again.
    beside : path, optional
        For a database: what the names of mark and key, outside of it, begin with.
    """
    from tacit.service.server import open_service

    opened = open_service(store, beside=beside)
    try:
        reset = dict[str, float]()
        for name, each in opened.manager.experiments.items():
            if lead := each.core.clock_lead(each.clock()):
                each.run(Core.reset_clock)
                reset[name] = lead / 1000
        return reset
    finally:
        opened.manager.store.close()
