"""Metropolis-Hastings walks, which forget where they began and end anywhere with equal chance.

From node i a token moves to neighbour j with probability min(1/N_i, 1/N_j) and otherwise stays
(paper 001, eq. 2). The matrix is symmetric and its rows sum to one, so on a connected graph the
uniform distribution is the only one it keeps. The spectral gap says how fast it gets there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.core.constraints import require
from tacit.core.kernels import kernel
from tacit.graphs.components import is_bipartite, require_connected, require_undirected
from tacit.graphs.graph import Graph, import_optional

_SMALL = 400


class Transition(NamedTuple):
    """A transition matrix as kernels read it: symmetric, so rows and columns are the same."""

    indptr: NDArray[np.int64]
    """Shape (n_nodes + 1,)."""
    indices: NDArray[np.int32]
    """Shape (n_entries,): sorted within a row; the node itself is one of them."""
    probs: NDArray[np.float64]
    """Shape (n_entries,)."""


Ends = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]
"""Where each row begins, the columns of its entries, and a number for each."""


@dataclass(frozen=True)
class Walk:
    """The Metropolis-Hastings walk on a connected undirected graph.

    Parameters
    ----------
    graph : Graph
        Connected. If it is bipartite and all degrees are equal, the walk never stays and alternates
        for ever between two sides; it must then be `lazy`. (Unequal degrees make some tokens stay,
        which is enough, even on a bipartite graph.)
    lazy : bool
        Whether each step is skipped with probability one half.

    Examples
    --------
    >>> from tacit.graphs import Walk, complete
    >>> walk = Walk(complete(4))
    >>> round(walk.spectral_gap, 6)
    0.666667
    >>> walk.length(1e-3)
    7
    """

    graph: Graph
    lazy: bool = False

    def __post_init__(self) -> None:
        require_undirected(self.graph, "Walk")
        require("Walk", "n_nodes", ">= 1", self.graph.n_nodes >= 1, self.graph.n_nodes)
        require_connected(self.graph, "Walk")
        degrees = self.graph.degrees
        never_stays = not self.lazy and degrees.size > 1 and degrees.min() == degrees.max()
        if never_stays and is_bipartite(self.graph):
            raise ValueError(
                "Walk: expected a walk that settles, got a bipartite graph in which every node "
                f"has {degrees[0]} neighbours; use lazy=True"
            )

    @cached_property
    def transition(self) -> Transition:
        """The sparse transition matrix Psi, for kernels."""
        graph = self.graph
        nodes = np.arange(graph.n_nodes)
        return transition_rows(graph.indptr, graph.indices, graph.degrees, nodes, lazy=self.lazy)

    @cached_property
    def spectral_gap(self) -> float:
        """One minus the second largest absolute eigenvalue of Psi."""
        n = self.graph.n_nodes
        if n == 1:
            return 1.0
        if n <= _SMALL:
            # The constant vector carries eigenvalue one; taking it out leaves the second.
            return 1.0 - float(np.abs(np.linalg.eigvalsh(self.to_dense() - 1.0 / n)).max())
        linalg = import_optional("scipy.sparse.linalg", needed_by="Walk.spectral_gap")
        psi = self.to_scipy()
        operator = linalg.LinearOperator((n, n), matvec=lambda x: psi @ (x - x.mean()))
        start = np.random.Generator(np.random.Philox(0)).standard_normal(n)
        value = linalg.eigsh(
            operator, k=1, which="LM", v0=start, ncv=min(n, 80), return_eigenvectors=False
        )
        return 1.0 - abs(float(value[0]))

    def length(
        self, closeness: float, *, bound: Literal["spectral", "published"] = "spectral"
    ) -> int:
        """Return a number of steps after which every node has probability 1/n plus or minus this.

        Parameters
        ----------
        closeness : float
            The largest allowed difference from 1/n, anywhere, from any start.
        bound : {"spectral", "published"}
            ``spectral``: (1 - gap)^t <= closeness, which holds for every symmetric matrix.
            ``published``: the longer log(2 n / closeness) / gap of paper 001.
        """
        require("Walk.length", "closeness", "in (0, 1)", 0 < closeness < 1, closeness)
        gap = self.spectral_gap
        if bound == "published":
            return math.ceil(math.log(2 * self.graph.n_nodes / closeness) / gap)
        if gap >= 1.0:
            return 1
        return max(1, math.ceil(math.log(closeness) / math.log1p(-gap)))

    def spread(self, start: ArrayLike, steps: int) -> NDArray[np.float64]:
        """Return Psi^steps applied to a vector, or to each column of a matrix.

        A distribution over starts becomes the distribution over ends; the matrix is symmetric, so
        an average over ends is the same calculation.
        """
        require("Walk.spread", "steps", ">= 0", steps >= 0, steps)
        values = np.asarray(start, dtype=np.float64)
        rows = values.ndim in (1, 2) and values.shape[0] == self.graph.n_nodes
        require("Walk.spread", "start", f"with {self.graph.n_nodes} rows", rows, values.shape)
        here = np.array(values.reshape(self.graph.n_nodes, -1), order="C")
        there = np.empty_like(here)
        for _ in range(steps):
            _apply(*self.transition, here, there)
            here, there = there, here
        return here.reshape(values.shape)

    def ends(self, steps: int) -> Ends:
        """Return where walks of `steps` hops can end: the rows of Psi^steps, sparse and added up."""
        require("Walk.ends", "steps", ">= 1", steps >= 1, steps)
        first = rows = nonzero(*self.transition)
        for _ in range(steps - 1):
            rows = times(*first, *rows, self.graph.n_nodes)
        return added_up(*rows)

    def power(self, steps: int) -> NDArray[np.float64]:
        """Return the dense matrix Psi^steps, shape (n_nodes, n_nodes): where each walk ends."""
        require("Walk.power", "steps", ">= 0", steps >= 0, steps)
        return np.asarray(np.linalg.matrix_power(self.to_dense(), steps), dtype=np.float64)

    def to_dense(self) -> NDArray[np.float64]:
        """Return Psi, shape (n_nodes, n_nodes)."""
        n = self.graph.n_nodes
        matrix = np.zeros((n, n))
        rows = np.repeat(np.arange(n), np.diff(self.transition.indptr))
        matrix[rows, self.transition.indices] = self.transition.probs
        return matrix

    def to_scipy(self) -> Any:
        """Return Psi as a SciPy CSR array."""
        sparse = import_optional("scipy.sparse", needed_by="Walk.to_scipy")
        indptr, indices, probs = self.transition
        shape = (self.graph.n_nodes, self.graph.n_nodes)
        return sparse.csr_array((probs, indices, indptr), shape=shape)


@kernel
def metropolis_step(indptr: Any, indices: Any, node: Any, uniform: Any) -> Any:
    """Return where a token at `node` goes: eq. (2), by proposing a neighbour and accepting it.

    Parameters
    ----------
    indptr, indices : arrays
        The rows of the graph, ``graph.csr``.
    node : int
        Where the token is.
    uniform : float
        In [0, 1): its first digits choose the neighbour and the rest whether to go there.
    """
    degree = indptr[node + 1] - indptr[node]
    if degree == 0:
        return np.int64(node)
    there, rest = proposal(indices, indptr[node], float(degree), uniform)
    if rest * (indptr[there + 1] - indptr[there]) < degree:
        return np.int64(there)
    return np.int64(node)


@kernel
def proposal(indices: Any, first: Any, degree: Any, uniform: Any) -> Any:
    """Return one of `degree` neighbours, listed from `first`, and what is left of the uniform, in [0, 1).

    The token goes to neighbour j if what is left, times N_j, is below N_i.
    """
    place = uniform * degree
    which = int(place)
    return np.uint32(indices[np.uint64(first + which)]), place - which


def transition_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    degrees: NDArray[np.int64],
    nodes: NDArray[Any],
    *,
    lazy: bool = False,
) -> Transition:
    """Return rows of Psi, eq. (2): of the first of `nodes`, whose neighbours are places in `nodes`.

    Entries of a row have the order of the numbers in `nodes`, as in the matrix of the whole graph.
    """
    n = indptr.size - 1
    rows = np.repeat(np.arange(n), degrees[:n])
    move = (0.5 if lazy else 1.0) / np.maximum(degrees[rows], degrees[indices])
    stay = 1.0 - np.bincount(rows, weights=move, minlength=n)
    stay[stay < 1e-12] = 0.0  # what rounding leaves of zero
    below = np.bincount(rows, weights=nodes[indices] < nodes[rows], minlength=n)
    place = indptr[:-1] + below.astype(np.int64)
    columns = np.insert(indices, place, np.arange(n, dtype=np.int32))
    return Transition(indptr + np.arange(n + 1), columns, np.insert(move, place, stay))


def nonzero(starts: Any, columns: Any, values: Any) -> Ends:
    """Return sparse rows without the entries that are zero."""
    some = values > 0.0
    before = np.concatenate(([0], np.cumsum(some)))
    return before[starts], columns[some], values[some]


def added_up(starts: Any, columns: Any, values: Any) -> Ends:
    """Return sparse rows whose entries are added up, each row by itself."""
    totals = values.copy()
    _add_up(starts, totals)
    return starts, columns, totals


@kernel
def _add_up(starts: Any, values: Any) -> None:
    for i in range(starts.size - 1):
        for e in range(starts[i] + 1, starts[i + 1]):
            values[e] += values[e - 1]


@kernel(allocates=True)
def times(
    starts: Any,
    columns: Any,
    values: Any,
    by_starts: Any,
    by_columns: Any,
    by_values: Any,
    width: Any,
) -> Any:
    """Return sparse rows times a sparse matrix of `width` columns: rows of sums in the order of entries.

    What is not stored is exactly zero, so the sums are those of the dense product.
    """
    n = starts.size - 1
    total, seen = np.zeros(width), np.full(width, -1, np.int64)
    new_starts = np.zeros(n + 1, np.int64)
    for i in range(n):
        count = 0
        for e in range(starts[i], starts[i + 1]):
            low, high = by_starts[columns[e]], by_starts[columns[e] + 1]
            if high - low == width:
                count = width
                break
            for x in range(low, high):
                if seen[by_columns[x]] != i:
                    seen[by_columns[x]] = i
                    count += 1
        new_starts[i + 1] = new_starts[i] + count
    new_columns = np.empty(new_starts[n], np.int32)
    new_values = np.empty(new_starts[n])
    seen[:] = -1
    for i in range(n):
        first, last = new_starts[i], new_starts[i + 1]
        if last - first == width:
            for j in range(width):
                new_columns[first + j] = j
            new_values[first:last] = 0.0
            for e in range(starts[i], starts[i + 1]):
                low, high = by_starts[columns[e]], by_starts[columns[e] + 1]
                _add(values[e], by_columns[low:high], by_values[low:high], new_values[first:last])
            continue
        k = first
        for e in range(starts[i], starts[i + 1]):
            for x in range(by_starts[columns[e]], by_starts[columns[e] + 1]):
                j = by_columns[x]
                if seen[j] != i:
                    seen[j] = i
                    total[j] = 0.0
                    new_columns[k] = j
                    k += 1
                total[j] += values[e] * by_values[x]
        if 8 * (last - first) < width:
            new_columns[first:last] = np.sort(new_columns[first:last])
        else:  # so many that looking at all of them is quicker
            k = first
            for j in range(width):
                if seen[j] == i:
                    new_columns[k] = j
                    k += 1
        for k in range(first, last):
            new_values[k] = total[new_columns[k]]
    return new_starts, new_columns, new_values


@kernel
def _add(value: Any, columns: Any, values: Any, to: Any) -> None:
    """Add a multiple of a sparse row to a full one; a row that is full as well is three times as quick."""
    if columns.size == to.size:
        for j in range(to.size):
            to[j] += value * values[j]
    else:
        for k in range(columns.size):
            to[columns[k]] += value * values[k]


@kernel
def _apply(indptr: Any, indices: Any, probs: Any, here: Any, there: Any) -> None:
    for i in range(indptr.size - 1):
        there[i, :] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            for m in range(here.shape[1]):
                there[i, m] += probs[e] * here[indices[e], m]
