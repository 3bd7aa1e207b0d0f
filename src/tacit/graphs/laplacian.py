"""Matrices of user graphs: adjacency, Laplacian, and columns normalised to one.

Dense, because the user kernels built from them are: K = W^T W in CoLin and (I + L)^-1 in GOBLin
(paper 004). For large graphs there is a sparse Laplacian.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.graphs.components import require_undirected
from tacit.graphs.conversion import to_scipy
from tacit.graphs.graph import Graph, import_optional


def adjacency(graph: Graph, *, weighted: bool = False) -> NDArray[np.float64]:
    """Return the matrix whose entry (u, v) is one, or the weight, if u and v are joined."""
    matrix = np.zeros((graph.n_nodes, graph.n_nodes))
    matrix[graph.rows, graph.indices] = _values(graph, weighted, "adjacency")
    return matrix


def laplacian(graph: Graph, *, weighted: bool = False) -> NDArray[np.float64]:
    """Return the graph Laplacian: degrees (or total weights) on the diagonal minus the adjacency.

    Examples
    --------
    >>> from tacit.graphs import laplacian, path
    >>> laplacian(path(3))
    array([[ 1., -1.,  0.],
           [-1.,  2., -1.],
           [ 0., -1.,  1.]])
    """
    require_undirected(graph, "laplacian")
    joined = adjacency(graph, weighted=weighted)
    matrix: NDArray[np.float64] = np.diag(joined.sum(axis=1))
    matrix[graph.rows, graph.indices] = -joined[graph.rows, graph.indices]
    return matrix


def sparse_laplacian(graph: Graph, *, weighted: bool = False) -> Any:
    """Return the graph Laplacian as a SciPy CSR array."""
    require_undirected(graph, "sparse_laplacian")
    sparse = import_optional("scipy.sparse", needed_by="sparse_laplacian")
    joined = to_scipy(graph)
    joined.data = _values(graph, weighted, "sparse_laplacian")
    return sparse.csr_array(sparse.diags_array(joined.sum(axis=1)) - joined)


def column_normalised(matrix: ArrayLike) -> NDArray[np.float64]:
    """Return the matrix with each column divided by its sum.

    The relation matrix W of CoLin: w_ij is in proportion to the influence of user i on user j.

    Examples
    --------
    >>> column_normalised([[1, 0], [3, 0]])
    Traceback (most recent call last):
    ValueError: column_normalised: expected a positive sum in every column, got 0.0 in column 1
    """
    values = np.array(matrix, dtype=np.float64)
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        i, j = np.argwhere(bad)[0].tolist()
        raise ValueError(
            f"column_normalised: expected finite entries >= 0, got {values[i, j]} at ({i}, {j})"
        )
    sums = values.sum(axis=0)
    if np.any(sums <= 0):
        j = int(np.argmax(sums <= 0))
        raise ValueError(
            "column_normalised: expected a positive sum in every column, "
            f"got {sums[j]} in column {j}"
        )
    normalised: NDArray[np.float64] = values / sums
    return normalised


def _values(graph: Graph, weighted: bool, owner: str) -> NDArray[np.float64]:
    if not weighted:
        return np.ones(graph.indices.size)
    if graph.weights is None:
        raise ValueError(f"{owner}: expected a graph with weights, got {graph!r}")
    return graph.weights.copy()
