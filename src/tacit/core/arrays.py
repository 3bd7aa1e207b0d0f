"""Tuples of arrays: states, tables and traces, walked and written in one way.

A tree is a ``NamedTuple`` whose fields are arrays, numbers and such tuples. `leaves` names what it holds.
Three formats keep it: `pack` makes bytes for a snapshot in a store, `write_npz` NumPy's own file of
arrays by name, and `tacit.core.files.save` such a file with a description in it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

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


def change_arrays(tree: Any, change: Callable[[NDArray[Any]], Any]) -> Any:
    """Return the same tuples with what `change` returns in the place of every array."""
    if isinstance(tree, np.ndarray):
        return change(tree)
    if isinstance(tree, tuple):
        parts = [change_arrays(part, change) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return tree


def in_one_buffer(tree: Any) -> tuple[Any, NDArray[np.uint64]]:
    """Return the same tuples with all their arrays moved into one buffer."""
    arrays: list[NDArray[Any]] = []
    change_arrays(tree, arrays.append)
    offsets = np.cumsum([0] + [-(-a.nbytes // _ALIGNMENT) * _ALIGNMENT for a in arrays])
    buffer = np.zeros(int(offsets[-1]) // 8, np.uint64)
    memory = buffer.view(np.uint8)
    places = iter(offsets.tolist())

    def move(array: NDArray[Any]) -> NDArray[Any]:
        start = next(places)
        flat = memory[start : start + array.nbytes].view(array.dtype)
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        moved = flat.reshape(array.shape, order="F" if fortran else "C")
        moved[...] = array
        return moved

    return change_arrays(tree, move), buffer


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
