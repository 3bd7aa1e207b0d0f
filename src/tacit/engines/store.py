"""Where outcomes are kept until all are there: one file a job, under a name that includes the code."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

from tacit.core import json_codec
from tacit.core.arrays import read_npz, write_npz
from tacit.core.files import write_atomically

try:
    import fcntl
except ImportError:  # not on this system: two runs into one folder are then not noticed
    fcntl = None  # type: ignore[assignment]

#: What decides the outcome of a simulation, beside the settings.
_DECISIVE = [f"tacit.{each}" for each in ("core", "privacy", "graphs", "engines", "populations")]
_DECISIVE += [f"tacit.simulation.{each}" for each in ("run", "result", "study", "grid")]


class Codec(NamedTuple):
    """How an outcome becomes bytes and is read back."""

    suffix: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def _from_arrays(arrays: Any) -> bytes:
    buffer = io.BytesIO()
    write_npz(buffer, arrays)
    return buffer.getvalue()


def _to_arrays(data: bytes) -> dict[str, Any]:
    return read_npz(io.BytesIO(data))


def _from_json(outcome: Any) -> bytes:
    return json_codec.dumps(outcome).encode()


ARRAYS = Codec(".npz", _from_arrays, _to_arrays)
"""Outcomes that are arrays by name."""
JSON = Codec(".json", _from_json, json.loads)
"""Outcomes that are plain values."""


class Store:
    """A folder with one file for each finished job.

    Parameters
    ----------
    folder : path
        Made when the first outcome comes.
    codec : Codec

    Examples
    --------
    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()) / "jobs", JSON)
    >>> store.put("a", JSON.encode({"regret": 3.5}))
    >>> "a" in store, store.get("a")
    (True, {'regret': 3.5})
    """

    def __init__(self, folder: str | Path, codec: Codec) -> None:
        self.folder = Path(folder)
        self.codec = codec

    def path(self, key: str) -> Path:
        """Return where the outcome of a job is kept."""
        return self.folder / f"{key}{self.codec.suffix}"

    def __contains__(self, key: str) -> bool:
        return self.path(key).is_file()

    def put(self, key: str, encoded: bytes) -> None:
        """Keep an outcome; a crash leaves all of it or nothing."""
        write_atomically(self.path(key), lambda file: file.write_bytes(encoded))

    def get(self, key: str) -> Any:
        """Return the outcome of a job."""
        return self.codec.decode(self.path(key).read_bytes())

    def remove(self) -> None:
        """Remove the folder and everything in it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def remove_if_empty(self) -> None:
        """Remove the folder if nothing was kept."""
        with suppress(OSError):
            self.folder.rmdir()


@cache
def code_stamp(modules: tuple[str, ...] = ()) -> str:
    """Return a hash of the code that decides an outcome: one of other code is never taken for it.

    Parameters
    ----------
    modules : tuple of str
        Modules that take part beside Tacit's own and the installed settings, such as that of a policy
        of one's own; of a package, everything in it.
    """
    settings = [point.value for point in entry_points(group="tacit.settings")]
    digest = hashlib.sha256()
    for file in dict.fromkeys(_sources([*_DECISIVE, *settings, *modules])):
        digest.update(file_stamp(file).encode())
    return digest.hexdigest()


def file_stamp(file: Path) -> str:
    """Return a hash of what a file holds, which need not fit into memory."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _sources(modules: Iterable[str]) -> Iterator[Path]:
    for name in sorted(set(modules)):
        found = importlib.util.find_spec(name) if name != "__main__" else None
        if found is None:
            continue
        for folder in found.submodule_search_locations or ():
            yield from sorted(Path(folder).rglob("*.py"))
        if not found.submodule_search_locations and found.origin and Path(found.origin).is_file():
            yield Path(found.origin)


@contextmanager
def lock_run(folder: str | Path, name: str) -> Iterator[None]:
    """Let one run at a time write `name` into `folder`; another one is refused in one sentence."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f".{name}.lock"
    while fcntl is not None:
        with path.open("a+") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                handle.seek(0)
                who = handle.read().strip()
                process = f" (process {who})" if who else ""
                raise ValueError(
                    f"{folder}: another run of {name} is at work here{process}; "
                    "wait for it or choose another folder"
                ) from None
            if not (path.exists() and os.path.samestat(os.fstat(handle.fileno()), path.stat())):
                continue  # the other run removed it when it ended
            handle.truncate(0)
            handle.write(str(os.getpid()))
            handle.flush()
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return
    yield
