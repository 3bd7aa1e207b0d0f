"""Writing a file whole: beside its place, and then moved there, so a crash leaves the old or the new one."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def write_atomically(
    path: Path, write: Callable[[Path], object], *, mode: int | None = None
) -> None:
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
