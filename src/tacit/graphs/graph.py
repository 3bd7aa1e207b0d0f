"""The one graph type: feedback graphs, user graphs and agent networks.

A graph is a set of rows, one for each node, in the compressed form that kernels walk: the
neighbours of node v are ``indices[indptr[v]:indptr[v + 1]]``, sorted. An undirected graph stores
each edge in both rows. Loops are never stored; a setting whose paper has them adds them itself.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Csr(NamedTuple):
    """The rows of a graph as kernels read them; kernels never write to them."""

    indptr: NDArray[np.int64]
    """Shape (n_nodes + 1,): where each node's row starts."""
    indices: NDArray[np.int32]
    """Shape (n_arcs,): the neighbours, sorted within a row."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Graph:
    """A graph on nodes 0 to ``n_nodes - 1``, immutable and compared by content.

    Build one with :meth:`from_edges`, a generator or a reader; the constructor takes rows that are
    already in order and checks them.

    Parameters
    ----------
    indptr : array of int, shape (n_nodes + 1,)
        Where each node's row starts in `indices`.
    indices : array of int, shape (n_arcs,)
        Neighbours, strictly increasing within a row. In a directed graph the row of u lists the v
        of the arcs u -> v.
    weights : array of float, shape (n_arcs,), optional
        A finite, nonnegative weight for each entry of `indices`.
    directed : bool
        Whether an entry is an arc. If not, every edge must appear in both rows.
    labels : array, shape (n_nodes,), optional
        What the nodes were called where they came from.

    Examples
    --------
    >>> from tacit.graphs import Graph
    >>> triangle_with_tail = Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)])
    >>> triangle_with_tail
    Graph(n_nodes=4, n_edges=4)
    >>> triangle_with_tail.neighbours(2)
    array([0, 1, 3], dtype=int32)
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float64] | None = None
    directed: bool = False
    labels: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        indptr = np.array(self.indptr, dtype=np.int64)
        indices = np.array(self.indices, dtype=np.int32)
        _check_rows(indptr, indices)
        weights = None if self.weights is None else np.array(self.weights, dtype=np.float64)
        labels = None if self.labels is None else np.array(self.labels)
        n = indptr.size - 1
        if labels is not None and labels.shape != (n,):
            raise ValueError(f"Graph: expected {n} labels, got shape {labels.shape}")
        rows = np.repeat(np.arange(n, dtype=np.int64), np.diff(indptr))
        if weights is not None:
            if weights.shape != indices.shape:
                raise ValueError(f"Graph: expected {indices.size} weights, got {weights.shape}")
            _check_weights(rows, indices, weights)
        if not self.directed:
            _check_symmetric(n, rows, indices, weights)
        # Kernels get the writable arrays: numba would compile every kernel twice, once for
        # read-only rows and once for rows that a test or a restored state made itself.
        object.__setattr__(self, "_csr", Csr(indptr, indices))
        for name, array in (("indptr", indptr), ("indices", indices), ("weights", weights)):
            object.__setattr__(self, name, None if array is None else read_only(array))
        object.__setattr__(self, "labels", None if labels is None else read_only(labels))

    spec_schema: ClassVar[Mapping[str, Any]] = {
        "anyOf": [
            {"type": "string", "description": "a file of edges"},
            {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
                "description": "the name of a generator or a classic network, and its parameters",
            },
        ]
    }

    @classmethod
    def from_spec(cls, value: Any) -> Graph:
        """Return the graph of a file's name, or of ``{name = "ring", n_nodes = 10}``."""
        from tacit.graphs.named import parse_graph

        return parse_graph(value)

    @classmethod
    def from_edges(
        cls,
        edges: ArrayLike,
        *,
        n_nodes: int | None = None,
        weights: ArrayLike | None = None,
        directed: bool = False,
        labels: ArrayLike | None = None,
        loops: Literal["error", "drop"] = "error",
        duplicates: Literal["error", "merge"] = "error",
    ) -> Graph:
        """Build a graph from pairs of nodes.

        Parameters
        ----------
        edges : array of int, shape (n_edges, 2)
            An edge or, if `directed`, an arc from the first node to the second in each row.
        n_nodes : int, optional
            Number of nodes; the largest node in `edges` plus one if not given.
        weights : array of float, shape (n_edges,), optional
            Finite and nonnegative.
        directed : bool
            Whether (u, v) and (v, u) are different.
        labels : array, shape (n_nodes,), optional
            What the nodes are called.
        loops : {"error", "drop"}
            What to do with an edge (v, v).
        duplicates : {"error", "merge"}
            What to do with an edge given twice; merging needs equal weights. A file that lists an
            undirected edge in both directions needs ``"merge"``.

        Examples
        --------
        >>> Graph.from_edges([(0, 1), (1, 0)], duplicates="merge").n_edges
        1
        >>> Graph.from_edges([(0, 1), (2, 2)])
        Traceback (most recent call last):
        ValueError: Graph: expected no loops, got edge 1: (2, 2)
        """
        pairs = _as_pairs(edges)
        n = int(pairs.max(initial=-1)) + 1 if n_nodes is None else n_nodes
        _check_nodes(pairs, n)
        values = None if weights is None else np.asarray(weights, dtype=np.float64)
        if values is not None:
            if values.shape != (pairs.shape[0],):
                raise ValueError(
                    f"Graph: expected {pairs.shape[0]} weights, got shape {values.shape}"
                )
            _check_weights(pairs[:, 0], pairs[:, 1], values)
        position = np.arange(pairs.shape[0])
        is_loop = pairs[:, 0] == pairs[:, 1]
        if is_loop.any():
            if loops == "error":
                raise ValueError(f"Graph: expected no loops, got {_edge(pairs, is_loop.argmax())}")
            position = position[~is_loop]
        u, v = pairs[position, 0], pairs[position, 1]
        if not directed:
            u, v = np.minimum(u, v), np.maximum(u, v)
        key = u * n + v
        order = np.argsort(key, kind="stable")
        key, position = key[order], position[order]
        again = np.zeros(key.size, bool)
        again[1:] = key[1:] == key[:-1]
        if again.any():
            if duplicates == "error":
                raise ValueError(
                    "Graph: expected every edge once, got again "
                    f"{_edge(pairs, position[again].min())}; duplicates='merge' keeps one"
                )
            if values is not None:
                first = np.flatnonzero(~again)[np.cumsum(~again) - 1]
                differs = values[position] != values[position[first]]
                if differs.any():
                    raise ValueError(
                        "Graph: expected equal weights for a repeated edge, got another for "
                        f"{_edge(pairs, position[differs].min())}"
                    )
            key, position = key[~again], position[~again]
        u, v = key // max(n, 1), key % max(n, 1)
        values = None if values is None else values[position]
        return cls._from_arcs(n, u, v, values, directed=directed, labels=labels)

    @classmethod
    def _from_arcs(
        cls,
        n: int,
        u: NDArray[np.int64],
        v: NDArray[np.int64],
        values: NDArray[np.float64] | None,
        *,
        directed: bool,
        labels: ArrayLike | None,
    ) -> Graph:
        if not directed:
            u, v = np.concatenate((u, v)), np.concatenate((v, u))
            values = None if values is None else np.concatenate((values, values))
        order = np.argsort(u * n + v, kind="stable")
        indptr = np.zeros(n + 1, np.int64)
        np.cumsum(np.bincount(u, minlength=n), out=indptr[1:])
        return cls(
            indptr=indptr,
            indices=v[order].astype(np.int32),
            weights=None if values is None else values[order],
            directed=directed,
            labels=None if labels is None else np.asarray(labels),
        )

    @property
    def csr(self) -> Csr:
        """The rows for kernels."""
        csr: Csr = self.__dict__["_csr"]
        return csr

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.indptr.size - 1

    @property
    def n_edges(self) -> int:
        """Number of edges, or of arcs if directed."""
        return self.indices.size if self.directed else self.indices.size // 2

    @property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbours of each node (outgoing arcs if directed), shape (n_nodes,)."""
        return np.diff(self.indptr)

    @property
    def strengths(self) -> NDArray[np.float64]:
        """Total weight of each row, shape (n_nodes,); the degrees if there are no weights."""
        if self.weights is None:
            return self.degrees.astype(np.float64)
        totals = np.bincount(self.rows, weights=self.weights, minlength=self.n_nodes)
        return totals.astype(np.float64)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The node whose row each entry of `indices` belongs to, shape (n_arcs,)."""
        return np.repeat(np.arange(self.n_nodes, dtype=np.int64), self.degrees)

    def neighbours(self, node: int) -> NDArray[np.int32]:
        """Return the sorted neighbours of `node`."""
        if not 0 <= node < self.n_nodes:
            raise IndexError(f"Graph: expected node in 0..{self.n_nodes - 1}, got {node}")
        return self.indices[self.indptr[node] : self.indptr[node + 1]]

    def edges(self) -> NDArray[np.int64]:
        """Return the edges (u < v) or arcs (u -> v) in order, shape (n_edges, 2)."""
        pairs = np.column_stack((self.rows, self.indices.astype(np.int64)))
        return pairs if self.directed else pairs[pairs[:, 0] < pairs[:, 1]]

    def edge_weights(self) -> NDArray[np.float64]:
        """Return the weight of each row of :meth:`edges`; ones if there are no weights."""
        weights = np.ones(self.indices.size) if self.weights is None else self.weights
        return weights if self.directed else weights[self.rows < self.indices]

    def reverse(self) -> Graph:
        """Return the graph with every arc turned round; itself if undirected."""
        if not self.directed:
            return self
        return Graph._from_arcs(
            self.n_nodes,
            self.indices.astype(np.int64),
            self.rows,
            self.weights,
            directed=True,
            labels=self.labels,
        )

    def undirected(self) -> Graph:
        """Return the graph that joins u and v if there is an arc either way, without weights."""
        if not self.directed:
            return self
        return Graph.from_edges(
            self.edges(), n_nodes=self.n_nodes, labels=self.labels, duplicates="merge"
        )

    def subgraph(self, nodes: ArrayLike) -> Graph:
        """Return the graph on some of the nodes, renumbered in the order given."""
        chosen = np.asarray(nodes, dtype=np.int64)
        if chosen.ndim != 1 or np.unique(chosen).size != chosen.size:
            raise ValueError("Graph: expected subgraph nodes once each in a 1-d array")
        _check_nodes(chosen[:, None], self.n_nodes)
        number = np.full(self.n_nodes, -1, np.int64)
        number[chosen] = np.arange(chosen.size)
        pairs = number[self.edges()]
        inside = (pairs >= 0).all(axis=1)
        return Graph.from_edges(
            pairs[inside],
            n_nodes=chosen.size,
            weights=None if self.weights is None else self.edge_weights()[inside],
            directed=self.directed,
            labels=None if self.labels is None else self.labels[chosen],
        )

    @cached_property
    def _content(self) -> bytes:
        digest = hashlib.sha256(bytes([self.directed]))
        for array in (self.indptr, self.indices, self.weights):
            digest.update(b"|" if array is None else array.tobytes() + b"|")
        digest.update(b"" if self.labels is None else repr(self.labels.tolist()).encode())
        return digest.digest()

    def __eq__(self, other: object) -> bool:
        return self._content == other._content if isinstance(other, Graph) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content)

    def __repr__(self) -> str:
        extra = (", directed" if self.directed else "") + (
            "" if self.weights is None else ", weighted"
        )
        return f"Graph(n_nodes={self.n_nodes}, n_edges={self.n_edges}{extra})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.indptr, self.indices, self.weights, self.directed, self.labels)


def import_optional(module: str, *, needed_by: str, extra: str = "networks") -> Any:
    """Return a module that only some of Tacit needs, or say which extra of the installation brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        how = f"pip install 'tacit[{extra}]'" if extra else f"pip install {package}"
        raise ModuleNotFoundError(f"{needed_by} needs {package}: {how}", name=error.name) from error


def _rebuild(indptr: Any, indices: Any, weights: Any, directed: bool, labels: Any) -> Graph:
    return Graph(indptr=indptr, indices=indices, weights=weights, directed=directed, labels=labels)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that nobody can write through."""
    view = array.view()
    view.flags.writeable = False
    return view


def _edge(pairs: NDArray[np.int64], position: Any) -> str:
    return f"edge {position}: ({pairs[position, 0]}, {pairs[position, 1]})"


def _as_pairs(edges: ArrayLike) -> NDArray[np.int64]:
    pairs = np.asarray(edges)
    if pairs.size == 0:
        return np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"Graph: expected edges of shape (n_edges, 2), got {pairs.shape}")
    if not np.issubdtype(pairs.dtype, np.integer):
        raise ValueError(f"Graph: expected edges between integer nodes, got {pairs.dtype}")
    return pairs.astype(np.int64)


def _check_nodes(pairs: NDArray[np.int64], n: int) -> None:
    if not 0 <= n <= np.iinfo(np.int32).max:
        raise ValueError(f"Graph: expected 0 <= n_nodes < 2**31, got {n}")
    outside = ((pairs < 0) | (pairs >= n)).any(axis=1)
    if outside.any():
        position = int(outside.argmax())
        raise ValueError(
            f"Graph: expected nodes in 0..{n - 1}, got {tuple(pairs[position].tolist())} "
            f"at position {position}"
        )


def _check_weights(u: NDArray[Any], v: NDArray[Any], weights: NDArray[np.float64]) -> None:
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        position = int(bad.argmax())
        raise ValueError(
            "Graph: expected finite weights >= 0, got "
            f"{weights[position]} on edge ({u[position]}, {v[position]})"
        )


def _check_rows(indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> None:
    if indptr.ndim != 1 or indices.ndim != 1 or indptr.size == 0:
        raise ValueError("Graph: expected 1-d indptr (not empty) and indices")
    if indptr[0] != 0 or indptr[-1] != indices.size or bool(np.any(np.diff(indptr) < 0)):
        raise ValueError(
            f"Graph: expected indptr to rise from 0 to {indices.size}, got "
            f"{indptr[0]} to {indptr[-1]}"
        )
    n = indptr.size - 1
    rows = np.repeat(np.arange(n, dtype=np.int64), np.diff(indptr))
    outside = (indices < 0) | (indices >= n)
    if outside.any():
        at = int(outside.argmax())
        raise ValueError(f"Graph: expected neighbours in 0..{n - 1}, got {indices[at]}")
    loop = rows == indices
    if loop.any():
        raise ValueError(f"Graph: expected no loops, got one at node {rows[loop.argmax()]}")
    falls = (rows[1:] == rows[:-1]) & (indices[1:] <= indices[:-1])
    if falls.any():
        at = int(falls.argmax()) + 1
        raise ValueError(
            f"Graph: expected strictly increasing neighbours, got {indices[at]} after "
            f"{indices[at - 1]} in the row of node {rows[at]}"
        )


def _check_symmetric(
    n: int, rows: NDArray[np.int64], indices: NDArray[np.int32], weights: Any
) -> None:
    order = np.argsort(indices * np.int64(n) + rows, kind="stable")
    differs = (indices[order] != rows) | (rows[order] != indices)
    if differs.any():
        at = int(differs.argmax())
        there = (int(indices[order[at]]), int(rows[order[at]]))
        here = (int(rows[at]), int(indices[at]))
        u, v = min(here, there)
        raise ValueError(f"Graph: expected both directions of an undirected edge, got ({u}, {v})")
    if weights is not None:
        differs = weights[order] != weights
        if differs.any():
            at = int(differs.argmax())
            raise ValueError(
                "Graph: expected one weight for an undirected edge, got "
                f"{weights[at]} and {weights[order[at]]} for ({rows[at]}, {indices[at]})"
            )
