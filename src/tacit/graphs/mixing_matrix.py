"""Mixing matrices: how much each agent trusts what each neighbour sends.

Entry a_jk is the weight that agent k gives to the message of agent j (paper 000, eq. 1, which calls it a
combination matrix): nonnegative,
zero unless j sends to k, and every column sums to one. Agents always listen to themselves. An arc
j -> k of the graph means that j sends to k. Stored by columns, so that a round costs as much as
there are arcs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.core.constraints import require
from tacit.core.kernels import kernel
from tacit.graphs.components import (
    require_strongly_connected,
    require_undirected,
    strong_components,
)
from tacit.graphs.graph import Graph, import_optional, read_only
from tacit.graphs.lazy import Rows

_TOLERANCE = 1e-9


class Columns(NamedTuple):
    """A mixing matrix as kernels read it: column k is the slice indptr[k]:indptr[k + 1]."""

    indptr: NDArray[np.int64]
    """Shape (n_agents + 1,)."""
    senders: NDArray[np.int32]
    """Shape (n_weights,): the j of each a_jk, sorted within a column; k itself is one of them."""
    weights: NDArray[np.float64]
    """Shape (n_weights,): the a_jk."""


class Subnetworks(NamedTuple):
    """The strongly connected parts of a network, as arrays of agents.

    A sending part hears nobody outside and can only learn from its own signals. A receiving part
    hears others; in the long run its beliefs are a mixture of those of the sending parts.
    """

    sending: tuple[NDArray[np.int64], ...]
    receiving: tuple[NDArray[np.int64], ...]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MixingMatrix:
    """A left-stochastic matrix with positive diagonal, sparse by columns.

    Parameters
    ----------
    indptr, senders, weights : arrays
        As in :class:`Columns`.

    Examples
    --------
    >>> from tacit.graphs import MixingMatrix, star
    >>> MixingMatrix.uniform(star(3)).to_dense()
    array([[0.33333333, 0.5       , 0.5       ],
           [0.33333333, 0.5       , 0.        ],
           [0.33333333, 0.        , 0.5       ]])
    """

    indptr: NDArray[np.int64]
    senders: NDArray[np.int32]
    weights: NDArray[np.float64]

    def __post_init__(self) -> None:
        indptr = np.array(self.indptr, dtype=np.int64)
        senders = np.array(self.senders, dtype=np.int32)
        weights = np.array(self.weights, dtype=np.float64)
        _check(indptr, senders, weights)
        object.__setattr__(self, "_columns", Columns(indptr, senders, weights))
        for name, array in (("indptr", indptr), ("senders", senders), ("weights", weights)):
            object.__setattr__(self, name, read_only(array))

    @classmethod
    def uniform(cls, graph: Graph) -> MixingMatrix:
        """Weigh all whom one hears, oneself included, equally."""
        heard, arcs = graph.reverse().csr
        rows = Rows(graph.n_nodes, 0, heard, arcs.astype(np.int64))
        indptr, senders, weights = slice_uniform(rows)
        return cls(indptr=indptr, senders=senders, weights=weights)

    @classmethod
    def metropolis(cls, graph: Graph) -> MixingMatrix:
        """Weigh neighbour j by 1 / max(n_j, n_k), n counting oneself; rows sum to one as well."""
        require_undirected(graph, "MixingMatrix.metropolis")
        size = 1.0 + graph.degrees
        weights = 1.0 / np.maximum(size[graph.rows], size[graph.indices])
        return cls._build(graph.rows, graph.indices, weights, _left_over(graph, weights))

    @classmethod
    def laplacian(cls, graph: Graph) -> MixingMatrix:
        """Return I - L / (1 + the largest degree), L the unweighted Laplacian; symmetric."""
        require_undirected(graph, "MixingMatrix.laplacian")
        step = 1.0 / (1.0 + graph.degrees.max(initial=0))
        weights = np.full(graph.indices.size, step)
        return cls._build(graph.rows, graph.indices, weights, _left_over(graph, weights))

    @classmethod
    def from_weights(cls, graph: Graph, *, own_weight: float = 1.0) -> MixingMatrix:
        """Weigh each sender in proportion to the weight of its arc, oneself by `own_weight`."""
        owner = "MixingMatrix.from_weights"
        require(owner, "own_weight", "> 0 and finite", 0 < own_weight < np.inf, own_weight)
        heard = graph.reverse()
        if heard.weights is None:
            raise ValueError(f"{owner}: expected a graph with weights, got {graph!r}")
        total = heard.strengths + own_weight
        weights = heard.weights / total[heard.rows]
        return cls._build(heard.rows, heard.indices, weights, own_weight / total)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike | Any) -> MixingMatrix:
        """Take a given square matrix, dense or SciPy sparse; it must already be left-stochastic."""
        if hasattr(matrix, "tocoo"):
            coo = matrix.tocoo()
            shape, j, k, values = coo.shape, coo.row, coo.col, coo.data
        else:
            dense = np.asarray(matrix, dtype=np.float64)
            shape = dense.shape
            j, k = np.nonzero(dense) if dense.ndim == 2 else (np.empty(0), np.empty(0))
            values = dense[j, k] if dense.ndim == 2 else dense
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"MixingMatrix: expected a square matrix, got shape {shape}")
        return cls._sorted(shape[0], k.astype(np.int64), j.astype(np.int64), values)

    @classmethod
    def _build(cls, k: Any, j: Any, weights: Any, own: Any) -> MixingMatrix:
        n = own.size
        agents = np.arange(n)
        return cls._sorted(
            n,
            np.concatenate((k, agents)),
            np.concatenate((j, agents)),
            np.concatenate((weights, own)),
        )

    @classmethod
    def _sorted(cls, n: int, k: Any, j: Any, weights: Any) -> MixingMatrix:
        order = np.argsort(k * n + j, kind="stable")
        indptr = np.zeros(n + 1, np.int64)
        np.cumsum(np.bincount(k, minlength=n), out=indptr[1:])
        return cls(indptr=indptr, senders=j[order], weights=weights[order])

    @property
    def columns(self) -> Columns:
        """The columns for kernels."""
        columns: Columns = self.__dict__["_columns"]
        return columns

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return self.indptr.size - 1

    def graph(self) -> Graph:
        """Return who sends to whom with a positive weight, without loops."""
        receivers = np.repeat(np.arange(self.n_agents), np.diff(self.indptr))
        arc = (receivers != self.senders) & (self.weights > 0)
        return Graph.from_edges(
            np.column_stack((self.senders[arc], receivers[arc])),
            n_nodes=self.n_agents,
            weights=self.weights[arc],
            directed=True,
        )

    def require_strongly_connected(self, owner: str = "MixingMatrix") -> None:
        """Raise ``ValueError`` that names an agent if some agent never hears of another."""
        require_strongly_connected(self.graph(), owner)

    def subnetworks(self) -> Subnetworks:
        """Split the agents into strongly connected sending and receiving parts.

        Examples
        --------
        >>> from tacit.graphs import MixingMatrix, Graph
        >>> chain = Graph.from_edges([(0, 1), (1, 0), (1, 2)], directed=True)
        >>> MixingMatrix.uniform(chain).subnetworks()
        Subnetworks(sending=(array([0, 1]),), receiving=(array([2]),))
        """
        graph = self.graph()
        part = strong_components(graph)
        n_parts = int(part.max(initial=-1)) + 1
        arcs = part[graph.edges()]
        hears = np.zeros(n_parts, bool)
        hears[arcs[arcs[:, 0] != arcs[:, 1], 1]] = True
        members = np.split(
            np.argsort(part, kind="stable"), np.cumsum(np.bincount(part, minlength=n_parts))[:-1]
        )
        return Subnetworks(
            tuple(m for m, receives in zip(members, hears, strict=True) if not receives),
            tuple(m for m, receives in zip(members, hears, strict=True) if receives),
        )

    def influence(self) -> NDArray[np.float64]:
        """Return the weight each sending part has in the long run, shape (n_sending, n_agents).

        Columns sum to one; column k says whose beliefs agent k ends up repeating if nobody had
        signals of their own.
        """
        linalg = import_optional("scipy.sparse.linalg", needed_by="MixingMatrix.influence")
        sending, receiving = self.subnetworks()
        result = np.zeros((len(sending), self.n_agents))
        for i, part in enumerate(sending):
            result[i, part] = 1.0
        if receiving:
            R = np.concatenate(receiving)
            A = self.to_scipy().tocsc()
            T_RR = A[R][:, R]
            sparse = import_optional("scipy.sparse", needed_by="MixingMatrix.influence")
            solve = linalg.splu(sparse.csc_array(sparse.eye_array(R.size) - T_RR.T)).solve
            for i, part in enumerate(sending):
                result[i, R] = solve(A[part][:, R].sum(axis=0))
        return result

    def to_dense(self) -> NDArray[np.float64]:
        """Return the matrix, shape (n_agents, n_agents)."""
        matrix = np.zeros((self.n_agents, self.n_agents))
        receivers = np.repeat(np.arange(self.n_agents), np.diff(self.indptr))
        matrix[self.senders, receivers] = self.weights
        return matrix

    def to_scipy(self) -> Any:
        """Return the matrix as a SciPy CSC array."""
        sparse = import_optional("scipy.sparse", needed_by="MixingMatrix.to_scipy")
        shape = (self.n_agents, self.n_agents)
        return sparse.csc_array((self.weights.copy(), self.senders, self.indptr), shape=shape)

    def __repr__(self) -> str:
        return f"MixingMatrix(n_agents={self.n_agents}, n_weights={self.weights.size})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.indptr, self.senders, self.weights)


def _rebuild(indptr: Any, senders: Any, weights: Any) -> MixingMatrix:
    return MixingMatrix(indptr=indptr, senders=senders, weights=weights)


def _left_over(graph: Graph, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    given = np.bincount(graph.rows, weights=weights, minlength=graph.n_nodes)
    return np.asarray(1.0 - given, dtype=np.float64)


def _check(
    indptr: NDArray[np.int64], senders: NDArray[np.int32], weights: NDArray[np.float64]
) -> None:
    n = indptr.size - 1
    shaped = indptr.ndim == senders.ndim == 1 and n >= 0 and senders.shape == weights.shape
    if not shaped or indptr[0] != 0 or indptr[-1] != senders.size or np.any(np.diff(indptr) < 0):
        raise ValueError("MixingMatrix: expected indptr to delimit columns of senders and weights")
    k = np.repeat(np.arange(n), np.diff(indptr))
    outside = (senders < 0) | (senders >= n)
    if outside.any():
        at = int(outside.argmax())
        raise ValueError(
            f"MixingMatrix: expected senders in 0..{n - 1}, got {senders[at]} in column {k[at]}"
        )
    falls = (k[1:] == k[:-1]) & (senders[1:] <= senders[:-1])
    if falls.any():
        raise ValueError(
            "MixingMatrix: expected increasing senders, got another order in column "
            f"{k[int(falls.argmax())]}"
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(
            f"MixingMatrix: expected weights >= 0, got {weights[at]} from agent {senders[at]} "
            f"to agent {k[at]}"
        )
    total = np.bincount(k, weights=weights, minlength=n)
    wrong = np.abs(total - 1.0) > _TOLERANCE
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(
            f"MixingMatrix: expected columns to sum to 1, got {total[at]} in column {at}"
        )
    own = np.bincount(k, weights=weights * (senders == k), minlength=n)
    if np.any(own <= 0):
        raise ValueError(
            "MixingMatrix: expected every agent to listen to itself, got weight 0 for agent "
            f"{int(np.argmax(own <= 0))}"
        )


def slice_uniform(rows: Rows) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the columns of ``MixingMatrix.uniform`` for some nodes, senders as in the whole graph."""
    indptr = rows.indptr + np.arange(rows.indptr.size)
    senders = np.empty(int(indptr[-1]), np.int64)
    _insert_self(rows.indptr, rows.indices, rows.first, senders)
    degrees = np.diff(rows.indptr)
    return indptr, senders, np.repeat(1.0 / (1.0 + degrees), degrees + 1)


@kernel
def _insert_self(indptr: Any, indices: Any, first: Any, senders: Any) -> None:
    k = 0
    for a in range(indptr.size - 1):
        heard = False
        for e in range(indptr[a], indptr[a + 1]):
            if not heard and indices[e] > first + a:
                senders[k] = first + a
                heard = True
                k += 1
            senders[k] = indices[e]
            k += 1
        if not heard:
            senders[k] = first + a
            k += 1
