"""Lazy graphs: too large for one machine, so that any rows of them are made, or read, without the rest.

Edges of a random graph are drawn independently, so how many fall into a quarter of the adjacency matrix is
binomial, and so on into quarters of quarters; every split is a draw at the position of its square. To make
some rows, go down the squares that touch them: everybody finds the same edges there. Repeated edges count
once, and loops are dropped.

Rows of consecutive nodes are numbered from 0 where they are used. Nodes elsewhere that stand in them are
the *halo*, numbered after them, in order. Rows keep the order of the whole graph, so that a sum over
neighbours is rounded as it is there.
"""

from __future__ import annotations

import gzip
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import Count, NonNegative, Probability, Whole, check, require
from tacit.core.generator import key_of, to_unit
from tacit.core.kernels import kernel
from tacit.core.samplers import binomial, block
from tacit.core.tapes import SEEDED
from tacit.graphs.graph import Graph, import_optional

_STREAM = 9
#: Squares with no more edges than this are not split: each edge is drawn by itself.
_FEW = 32
_STEPS = 1 << 16
_CHUNK = 1 << 23
_LOW16 = np.uint64(0xFFFF)


class Rows(NamedTuple):
    """The rows of the nodes from `first` on, of a graph of `n_nodes`."""

    n_nodes: int
    first: int
    indptr: NDArray[np.int64]
    """Shape (nodes here + 1,)."""
    indices: NDArray[np.int64]
    """Neighbours by their numbers in the whole graph, increasing within a row."""


class LazyGraph(ABC):
    """A graph that is described, not stored: rows are made where they are needed.

    Undirected, without weights. A study file writes ``{name = "blocks", nodes = 10_000_000, ...}``.
    """

    spec_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"name": {"enum": ["rmat", "blocks", "edges"]}},
        "required": ["name"],
        "description": "a network that is made in partitions, and its parameters",
    }

    @staticmethod
    def from_spec(value: Any) -> Any:
        """Return the lazy graph that is written, or `value` itself if it is none."""
        kinds: dict[Any, Any] = {"rmat": Rmat, "blocks": Blocks, "edges": EdgeFile}
        if not isinstance(value, Mapping) or value.get("name") not in kinds:
            return value
        parameters = dict(value)
        return kinds[parameters.pop("name")](**parameters)

    @property
    @abstractmethod
    def n_nodes(self) -> int:
        """Number of nodes."""

    @abstractmethod
    def rows(self, first: int, last: int) -> Rows:
        """Return the rows of the nodes `first` to `last` - 1, the same whatever else is made."""

    def graph(self) -> Graph:
        """Return the whole graph, for one that fits."""
        _, _, indptr, indices = self.rows(0, self.n_nodes)
        return Graph(indptr=indptr, indices=indices.astype(np.int32))


def slice_rows(network: Graph | LazyGraph, first: int, last: int) -> Rows:
    """Return the rows of the nodes `first` to `last` - 1 of a graph, stored or lazy."""
    if isinstance(network, LazyGraph):
        return network.rows(first, last)
    indptr = network.indptr[first : last + 1]
    indices = network.indices[indptr[0] : indptr[-1]].astype(np.int64)
    return Rows(network.n_nodes, first, indptr - indptr[0], indices)


def number_locally(
    nodes: NDArray[Any], first: int, last: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return nodes by their rows in the partition `first` to `last` - 1, and the nodes of its halo."""
    outside = (nodes < first) | (nodes >= last)
    halo = np.unique(nodes[outside])
    local = (nodes - first).astype(np.int32)
    local[outside] = (last - first + np.searchsorted(halo, nodes[outside])).astype(np.int32)
    return local, halo


@dataclass(frozen=True, kw_only=True)
class Rmat(LazyGraph):
    """A recursive random network (Chakrabarti, Zhan and Faloutsos 2004): few nodes have most edges.

    Parameters
    ----------
    scale : int
        There are 2^scale nodes.
    edges : int
        Edges drawn; repeated ones count once.
    a, b, c : float, default 0.57, 0.19, 0.19
        Probabilities of three quarters of the matrix, the fourth has the rest, at every step; rounded
        to 1/65,536.
    seed : int, default 0

    Examples
    --------
    >>> network = Rmat(scale=10, edges=5000)
    >>> half = network.rows(512, 1024)
    >>> bool(np.array_equal(half.indices, network.graph().indices[-half.indices.size :]))
    True
    """

    scale: Count
    edges: Whole
    a: Probability = 0.57
    b: Probability = 0.19
    c: Probability = 0.19
    seed: Whole = 0

    def __post_init__(self) -> None:
        check(self)
        require(self, "scale", "<= 31", self.scale <= 31, self.scale)
        left = 1 - self.a - self.b - self.c
        require(self, "a", "such that a + b + c <= 1", left > -1e-9, self.a)

    @property
    def n_nodes(self) -> int:
        """2^scale."""
        return 1 << self.scale

    def rows(self, first: int, last: int) -> Rows:
        """Return the rows of the nodes `first` to `last` - 1."""
        steps = [round(each * _STEPS) for each in (self.a, self.b, self.c)]
        quarters = np.array([*steps, max(0, _STEPS - sum(steps))], np.int64)
        squares = np.array([[0, self.n_nodes, self.edges]], np.int64)
        return _draw_rows(self.n_nodes, first, last, squares, quarters, self.seed)


@dataclass(frozen=True, kw_only=True)
class Blocks(LazyGraph):
    """A stochastic block network: blocks of neighbouring numbers, dense inside, thin between.

    Parameters
    ----------
    nodes, blocks : int
        Blocks have nearly equal sizes.
    within, across : float
        Mean numbers of neighbours drawn in one's own block, and anywhere.
    seed : int, default 0

    Examples
    --------
    >>> network = Blocks(nodes=1000, blocks=20, within=8, across=2)
    >>> network.rows(0, 1000).indices.size // 1000
    9
    """

    nodes: Count
    blocks: Count
    within: NonNegative
    across: NonNegative
    seed: Whole = 0

    def __post_init__(self) -> None:
        check(self)
        require(self, "nodes", "< 2^31", self.nodes < 1 << 31, self.nodes)
        require(self, "blocks", f"<= {self.nodes}", self.blocks <= self.nodes, self.blocks)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.nodes

    def rows(self, first: int, last: int) -> Rows:
        """Return the rows of the nodes `first` to `last` - 1."""
        cuts = np.arange(self.blocks + 1, dtype=np.int64) * self.nodes // self.blocks
        touched = (cuts[1:] > first) & (cuts[:-1] < last)
        low, high = cuts[:-1][touched], cuts[1:][touched]
        drawn = np.round((high - low) * self.within / 2).astype(np.int64)
        everywhere = [[0, self.nodes, round(self.nodes * self.across / 2)]]
        squares = np.concatenate((everywhere, np.column_stack((low, high, drawn))))
        return _draw_rows(self.nodes, first, last, squares, np.empty(0, np.int64), self.seed)


@dataclass(frozen=True, kw_only=True)
class EdgeFile(LazyGraph):
    """A file of edges on storage that every machine reaches: each reads it through and keeps its part.

    Text, one edge a line, two whole numbers from 0 separated by white space or a comma, lines that begin
    with ``#`` or ``%`` skipped, ``.gz`` if it is compressed; or ``.parquet``, of which the first two
    columns are read. An edge may be listed once or in both directions; loops are dropped.

    Parameters
    ----------
    path : str
    nodes : int
        Number of nodes: nobody counts them.
    """

    path: str
    nodes: Count

    def __post_init__(self) -> None:
        check(self)
        require(self, "nodes", "< 2^31", self.nodes < 1 << 31, self.nodes)
        require(self, "path", "a file", Path(self.path).is_file(), self.path)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.nodes

    def rows(self, first: int, last: int) -> Rows:
        """Return the rows of the nodes `first` to `last` - 1."""
        kept = [np.empty(0, np.int64)]
        for pairs in self._pairs():
            outside = (pairs < 0) | (pairs >= self.nodes)
            if outside.any():
                worst = pairs[outside].max() if (pairs >= self.nodes).any() else pairs.min()
                raise ValueError(f"{self.path}: expected nodes in 0..{self.nodes - 1}, got {worst}")
            for u, v in ((pairs[:, 0], pairs[:, 1]), (pairs[:, 1], pairs[:, 0])):
                mine = (u >= first) & (u < last) & (u != v)
                kept.append((u[mine] - first) * self.nodes + v[mine])
        return _sort_rows(self.nodes, first, last, np.concatenate(kept))

    def _pairs(self) -> Iterator[NDArray[np.int64]]:
        path = Path(self.path)
        if path.suffix == ".parquet":
            parquet = import_optional("pyarrow.parquet", needed_by="EdgeFile")
            file = parquet.ParquetFile(path)
            for batch in file.iter_batches(batch_size=_CHUNK // 16, columns=file.schema.names[:2]):
                yield np.column_stack([column.to_numpy() for column in batch.columns]).astype(
                    np.int64
                )
            return
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8") as file:
            while lines := file.readlines(_CHUNK):
                kept = [x.replace(",", " ") for x in lines if x[0] not in "#%" and x.strip()]
                try:
                    if kept:
                        yield np.loadtxt(kept, np.int64, comments=None, usecols=(0, 1), ndmin=2)
                except ValueError as error:
                    raise ValueError(
                        f"{self.path}: expected two nodes a line, got {error}"
                    ) from None


def _draw_rows(
    n_nodes: int,
    first: int,
    last: int,
    squares: NDArray[np.int64],
    quarters: NDArray[np.int64],
    seed: int,
) -> Rows:
    key = key_of(seed, 0, stream=_STREAM)
    return _sort_rows(n_nodes, first, last, _arcs(key, squares, quarters, first, last, n_nodes))


def _sort_rows(n_nodes: int, first: int, last: int, keys: NDArray[np.int64]) -> Rows:
    """Return rows of arcs given as (row - first) n_nodes + column, in any order, perhaps repeated."""
    keys.sort()
    new = np.ones(keys.size, bool)
    new[1:] = keys[1:] != keys[:-1]
    keys = keys[new]
    starts = np.arange(last - first + 1, dtype=np.int64) * n_nodes
    indptr = np.searchsorted(keys, starts).astype(np.int64)
    keys %= n_nodes
    return Rows(n_nodes, first, indptr, keys)


@kernel(allocates=True)
def _arcs(key: Any, squares: Any, quarters: Any, first: Any, last: Any, width: Any) -> Any:
    """Return the arcs of the rows `first` to `last` - 1 among the edges drawn in `squares`.

    A square is a range of nodes, both of rows and of columns, and how many edges are drawn in it;
    without `quarters` each of its cells is equally likely.
    """
    source = (SEEDED, key[0], key[1], np.uint64(0), np.uint64(0))
    kept = np.empty(1024, np.int64)
    size = 0
    # Where a part begins, its size either way, its edges, and how often its square was split.
    stack = np.empty((256, 6), np.int64)
    for s in range(squares.shape[0]):
        layer = 0 if s == 0 else 4
        low, side = squares[s, 0], squares[s, 1] - squares[s, 0]
        stack[0] = np.array([low, low, side, side, squares[s, 2], 0])
        depth = 1
        while depth > 0:
            depth -= 1
            r, c, height, breadth, n, level = stack[depth]
            mine = (r < last and r + height > first) or (c < last and c + breadth > first)
            if n == 0 or not mine:
                continue
            t = r * 64 + level
            if n > _FEW and (height > 1 or breadth > 1):
                _split(source, layer, t, stack, depth, quarters)
                depth += 4
                continue
            for i in range(n):
                u, v = _draw_edge(source, layer, t, i, r, c, height, breadth, quarters)
                if kept.size < size + 2:
                    more = np.empty(2 * kept.size, np.int64)
                    more[:size] = kept[:size]
                    kept = more
                if u != v and first <= u < last:
                    kept[size] = (u - first) * width + v
                    size += 1
                if u != v and first <= v < last:
                    kept[size] = (v - first) * width + u
                    size += 1
                if height == 1 and breadth == 1:
                    break
    return kept[:size].copy()


@kernel
def _split(source: Any, layer: Any, t: Any, stack: Any, depth: Any, quarters: Any) -> None:
    """Put the four quarters of a part on the stack, its edges dealt out among them."""
    r, c, height, breadth, n, level = stack[depth]
    up, left = (height + 1) // 2, (breadth + 1) // 2
    top, upper, lower = up / height, left / breadth, left / breadth
    if quarters.size > 0:
        top = (quarters[0] + quarters[1]) / _STEPS
        upper = quarters[0] / max(1, quarters[0] + quarters[1])
        lower = quarters[2] / max(1, quarters[2] + quarters[3])
    above = binomial(source, layer, t, c, n, top)
    first = binomial(source, layer + 1, t, c, above, upper)
    third = binomial(source, layer + 2, t, c, n - above, lower)
    for q in range(4):
        below, right = q >> 1, q & 1
        count = (first, above - first, third, n - above - third)[q]
        part = stack[depth + q]
        part[0] = r + up if below else r
        part[1] = c + left if right else c
        part[2] = height - up if below else up
        part[3] = breadth - left if right else left
        part[4] = count if part[2] > 0 and part[3] > 0 else 0
        part[5] = level + 1


@kernel
def _draw_edge(
    source: Any,
    layer: Any,
    t: Any,
    i: Any,
    r: Any,
    c: Any,
    height: Any,
    breadth: Any,
    quarters: Any,
) -> Any:
    """Return edge i of a part that is not split."""
    words = block(source, layer + 3, t, c, 2 * i)
    if quarters.size == 0:
        return r + int(to_unit(words[0]) * height), c + int(to_unit(words[1]) * breadth)
    step = 0
    while height > 1:
        if step == 16:
            words = block(source, layer + 3, t, c, 2 * i + 1)
        k = step & 15
        word = words[0] if k < 4 else words[1] if k < 8 else words[2] if k < 12 else words[3]
        at = np.int64((word >> np.uint64(16 * (k & 3))) & _LOW16)
        height >>= 1
        breadth >>= 1
        if at >= quarters[0] + quarters[1]:
            r += height
            at -= quarters[0] + quarters[1]
            c += breadth if at >= quarters[2] else 0
        elif at >= quarters[0]:
            c += breadth
        step += 1
    return r, c
