"""Saving and restoring a state: a plain zip of arrays, no pickle.

The file is NumPy's ``.npz``: one ``.npy`` member for each field of the state (``outer.inner`` for a
nested tuple), and ``about.json`` with everything else. Any tool that reads ``.npy`` opens it. A file is
written beside its place and then moved there, so a crash leaves the old file or the new one.
"""

from __future__ import annotations

import errno
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tacit.core.arrays import leaves, rename_old

S = TypeVar("S")
FORMAT = 1


def save(path: str | Path, state: Any, about: Mapping[str, Any]) -> None:
    """Write `state` (a ``NamedTuple`` of arrays, numbers and such tuples) and `about` (JSON)."""
    arrays = {name: np.asarray(value) for name, value in leaves(state)}

    def write(file: Path) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("about.json", json.dumps({"format": FORMAT, **about}, indent=1))
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)

    write_atomically(Path(path), write, mode=0o600)


def load(path: str | Path, template: S) -> tuple[S, dict[str, Any]]:
    """Return the state saved at `path`, in the shape of `template`, and what was said about it."""
    try:
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read("about.json"))
            arrays = {}
            for name in archive.namelist():
                if name.endswith(".npy"):
                    with archive.open(name) as member:
                        arrays[name[:-4]] = np.lib.format.read_array(member, allow_pickle=False)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: not a saved state ({error})") from None
    if about.get("format") != FORMAT:
        raise ValueError(f"{path}: expected format {FORMAT}, got {about.get('format')}")
    arrays = dict(rename_old(template, arrays.items()))
    return _rebuild(template, "", arrays, str(path)), about


def _rebuild(template: Any, name: str, arrays: Mapping[str, Any], path: str) -> Any:
    if isinstance(template, tuple) and hasattr(template, "_fields"):
        dot = f"{name}." if name else ""
        return type(template)(
            *[_rebuild(getattr(template, f), dot + f, arrays, path) for f in template._fields]
        )
    if template is None:
        return None
    like = np.asarray(template)
    if name not in arrays:
        raise ValueError(f"{path}: expected an array {name!r}, found {', '.join(sorted(arrays))}")
    array = arrays[name]
    if array.dtype != like.dtype or array.shape != like.shape:
        raise ValueError(
            f"{path}: expected {name} of {like.dtype}{list(like.shape)}, "
            f"got {array.dtype}{list(array.shape)}; was it saved by another policy?"
        )
    if isinstance(template, np.ndarray):
        return np.ascontiguousarray(array)
    return array[()] if isinstance(template, np.generic) else type(template)(array[()])


def write_atomically(path: Path, write: Any, *, mode: int | None = None) -> None:
    """Call ``write(temporary)`` and move the finished file to `path`, or leave nothing behind.

    `mode` says who may read it; what the umask allows unless given.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        if mode is None:
            umask = os.umask(0)
            os.umask(umask)
            mode = 0o666 & ~umask
        temporary.chmod(mode)
        os.replace(temporary, path)
    except OSError as error:
        if error.filename is None:  # a full disk names no file
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def require_writable(folder: Path) -> None:
    """Raise ``OSError`` if files cannot be written to `folder`, which need not exist yet."""
    near = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not near.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(near))
    if not os.access(near, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(near))
