"""How far each log had come, in a small file outside the store.

It is written after every commit and before anything is answered, so that an old copy of a store, put back in
its place, is behind its mark and refused. Keep it out of backups.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_RECORD = struct.Struct("<16sqqqqI")
_SLOT = 64


class Mark(NamedTuple):
    """A point of one log."""

    lineage: int
    """Changes whenever a copy is restored, so that copies of what was abandoned are told apart."""
    seq: int
    charged: int
    at: int


class Marks:
    """The marks of one store; processes that share the file take turns.

    Parameters
    ----------
    path : path
        Made if missing, readable by its owner only.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)

    def read(self, id: int, name: str) -> Mark | None:
        """Return how far the experiment with this number and name had come, if that is known."""
        record = os.pread(self._file, _RECORD.size, id * _SLOT)
        whole = len(record) == _RECORD.size
        if not whole or zlib.crc32(record[:-4]) != struct.unpack("<I", record[-4:])[0]:
            return None
        written, *mark, _ = _RECORD.unpack(record)
        return Mark(*mark) if written == _digest(name) else None

    def write(self, id: int, name: str, mark: Mark, *, durable: bool) -> None:
        """Note how far an experiment has come; a mark of the same history never goes back."""
        record = _RECORD.pack(_digest(name), *mark, 0)[:-4]
        with self._alone():
            before = self.read(id, name)
            if before is not None and before.lineage == mark.lineage and before.seq > mark.seq:
                return
            os.pwrite(self._file, record + struct.pack("<I", zlib.crc32(record)), id * _SLOT)
        if durable:
            os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)


def _digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=16).digest()
