"""Tuples of arrays: one walk, and formats that do not change."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np
import pytest

from tacit.core.arrays import (
    change_leaves,
    in_one_buffer,
    leaves,
    pack,
    read_npz,
    unpack,
    write_npz,
)


class Inner(NamedTuple):
    sums: Any
    n: int


class Outer(NamedTuple):
    inner: Inner
    counts: Any


def tree(fill: int = 1) -> Outer:
    return Outer(Inner(np.full(2, fill / 2), 3), np.full((1, 2), fill))


def test_leaves_have_dotted_names():
    assert [name for name, _ in leaves(tree())] == ["inner.sums", "inner.n", "counts"]
    assert next(name for name, _ in leaves(tree(), "state")) == "state.inner.sums"
    assert leaves(5, "alone") == [("alone", 5)]


def test_the_bytes_of_a_snapshot_are_those_of_0_2_0():
    head = b'[["inner.sums","<f8",[2]],["counts","<i8",[1,2]]]\n'
    assert pack(tree()) == head + np.full(2, 0.5).tobytes() + np.ones(2, np.int64).tobytes()


def test_unpack_fills_a_tree_of_the_same_shape_and_no_other():
    other = tree(0)
    unpack(other, pack(tree(7)))
    assert pack(other) == pack(tree(7))
    with pytest.raises(ValueError, match="state: expected the arrays"):
        unpack(other.inner, pack(tree()))


def test_arrays_move_into_one_buffer_and_stay_the_same():
    moved, buffer = in_one_buffer((tree(4), (np.asfortranarray(np.arange(6.0).reshape(2, 3)),)))
    assert pack(moved[0]) == pack(tree(4))
    assert moved[1][0].flags.f_contiguous
    buffer[:] = 0
    assert not moved[0].counts.any()
    assert not moved[1][0].any()


def test_leaves_are_changed_in_place_of_themselves():
    names: list[str] = []
    changed = change_leaves(tree(), lambda name, leaf: names.append(name) or np.size(leaf))
    assert changed == Outer(Inner(2, 1), 2)
    assert names == [name for name, _ in leaves(tree())]


def test_objects_are_not_read():
    file = io.BytesIO()
    write_npz(file, {"a": np.arange(3), "b": np.array([{}], object)})
    file.seek(0)
    with pytest.raises(ValueError, match="allow_pickle"):
        read_npz(file)
