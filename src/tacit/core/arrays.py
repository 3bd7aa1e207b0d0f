"""Tuples of arrays: states, tables and traces, walked and written in one way.

A tree is a ``NamedTuple`` whose fields are arrays, numbers and such tuples. `leaves` names what it holds.
Three formats keep it: `pack` makes bytes for a snapshot in a store, `write_npz` NumPy's own file of
arrays by name, and `save` such a file with a description in it, ``about.json``. None of them uses pickle.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from tacit.core.files import write_atomically

S = TypeVar("S")
FORMAT = 1
_ALIGNMENT = 64


def leaves(tree: Any, name: str = "") -> list[tuple[str, Any]]:
    """Return what a tree holds, each with its name, ``outer.inner`` in a tuple within a tuple.

    Parameters
    ----------
    tree : NamedTuple, or anything else, which is a leaf
    name : str
        Of the tree itself, where it is part of something.
    """
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        dot = f"{name}." if name else ""
        fields = zip(tree._fields, tree, strict=True)
        return [leaf for field, value in fields for leaf in leaves(value, dot + field)]
    # None is a part that this tree has no use for.
    return [] if tree is None else [(name, tree)]


def change_leaves(tree: Any, change: Callable[[str, Any], Any], name: str = "") -> Any:
    """Return the same tuples with ``change(name, leaf)`` in the place of every leaf that is not None."""
    if not isinstance(tree, tuple):
        return None if tree is None else change(name, tree)
    dot = f"{name}." if name else ""
    names = getattr(tree, "_fields", range(len(tree)))
    parts = [change_leaves(v, change, f"{dot}{n}") for n, v in zip(names, tree, strict=True)]
    return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)


def in_one_buffer(tree: Any) -> tuple[Any, NDArray[np.uint64]]:
    """Return the same tuples with all their arrays moved into one buffer."""
    sizes = []

    def measure(_: str, leaf: Any) -> None:
        if isinstance(leaf, np.ndarray):
            sizes.append(-(-leaf.nbytes // _ALIGNMENT) * _ALIGNMENT)

    change_leaves(tree, measure)
    offsets = np.cumsum([0, *sizes])
    buffer = np.zeros(int(offsets[-1]) // 8, np.uint64)
    memory = buffer.view(np.uint8)
    places = iter(offsets.tolist())

    def move(_: str, leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return leaf
        start = next(places)
        flat = memory[start : start + leaf.nbytes].view(leaf.dtype)
        fortran = leaf.flags.f_contiguous and not leaf.flags.c_contiguous
        moved = flat.reshape(leaf.shape, order="F" if fortran else "C")
        moved[...] = leaf
        return moved

    return change_leaves(tree, move), buffer


def pack(tree: Any) -> bytes:
    """Return a tree's arrays as bytes: a line of JSON that names them, then their contents."""
    arrays = _arrays(tree)
    line = json.dumps(_head(arrays), separators=(",", ":")).encode() + b"\n"
    return line + b"".join(np.ascontiguousarray(value).tobytes() for _, value in arrays)


def unpack(tree: Any, data: bytes) -> None:
    """Copy what `pack` returned into a tree of the same shape, in place.

    Arrays that an older version stored and this one has no use for are left out: the tree names
    them in ``dropped``, and in ``formerly`` the arrays that have another name now.
    """
    line, _, rest = data.partition(b"\n")
    head, at = rename_old(tree, json.loads(line)), 0
    arrays, dropped = dict(_arrays(tree)), getattr(tree, "dropped", ())
    mine = _head(list(arrays.items()))
    if sorted(each for each in head if each[0] not in dropped) != sorted(mine):
        raise ValueError(f"state: expected the arrays {mine}, got {head}")
    for name, dtype, shape in head:
        size = np.dtype(dtype).itemsize * math.prod(shape)
        if name in arrays:
            arrays[name][...] = np.frombuffer(rest[at : at + size], dtype).reshape(shape)
        at += size


def rename_old(tree: Any, entries: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Return entries (name, ...) under the names that a tree has today for what ``formerly`` lists."""
    formerly = getattr(tree, "formerly", {})
    return [[formerly.get(name, name), *rest] for name, *rest in entries]


def _arrays(tree: Any) -> list[tuple[str, NDArray[Any]]]:
    return [(name, value) for name, value in leaves(tree) if isinstance(value, np.ndarray)]


def _head(arrays: list[tuple[str, NDArray[Any]]]) -> list[list[Any]]:
    return [[name, value.dtype.str, list(value.shape)] for name, value in arrays]


def write_npz(file: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays by name, as NumPy does."""
    np.savez(file, **cast(Any, arrays))


def read_npz(file: str | Path | IO[bytes]) -> dict[str, NDArray[Any]]:
    """Return arrays by name; objects are refused, because reading them runs code."""
    with np.load(file, allow_pickle=False) as kept:
        return dict(kept)


def save(path: str | Path, state: Any, about: Mapping[str, Any]) -> None:
    """Write `state`, a tree, and `about`, JSON, to a file that any tool that reads ``.npy`` opens."""
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

    def read(name: str, like: Any) -> Any:
        if name not in arrays:
            found = ", ".join(sorted(arrays))
            raise ValueError(f"{path}: expected an array {name!r}, found {found}")
        array, mine = arrays[name], np.asarray(like)
        if array.dtype != mine.dtype or array.shape != mine.shape:
            raise ValueError(
                f"{path}: expected {name} of {mine.dtype}{list(mine.shape)}, "
                f"got {array.dtype}{list(array.shape)}; was it saved by another policy?"
            )
        if isinstance(like, np.ndarray):
            return np.ascontiguousarray(array)
        return array[()] if isinstance(like, np.generic) else type(like)(array[()])

    return change_leaves(template, read), about
