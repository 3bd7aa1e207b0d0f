"""Graphs from and to networkx, rustworkx and SciPy.

Nodes keep the order they have there; networkx names become labels unless they are 0, 1, 2, ...
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.graphs.graph import Graph, import_optional


def from_networkx(graph: Any, *, weight: str | None = None) -> Graph:
    """Return a graph from a networkx one.

    Parameters
    ----------
    graph : networkx.Graph or networkx.DiGraph
        Without loops; a multigraph must have no parallel edges.
    weight : str, optional
        The edge attribute that holds the weight; every edge must have it.
    """
    names = list(graph.nodes)
    number = {name: i for i, name in enumerate(names)}
    edges, weights = [], []
    for u, v, data in graph.edges(data=True):
        edges.append((number[u], number[v]))
        if weight is not None:
            if weight not in data:
                raise ValueError(f"from_networkx: expected {weight!r} on edge ({u!r}, {v!r})")
            weights.append(float(data[weight]))
    return Graph.from_edges(
        np.array(edges, np.int64).reshape(-1, 2),
        n_nodes=len(names),
        weights=None if weight is None else weights,
        directed=graph.is_directed(),
        labels=None if names == list(range(len(names))) else _labels(names),
    )


def to_networkx(graph: Graph) -> Any:
    """Return a networkx graph, its nodes named by the labels if there are any."""
    networkx = import_optional("networkx", needed_by="to_networkx")
    result = networkx.DiGraph() if graph.directed else networkx.Graph()
    names = range(graph.n_nodes) if graph.labels is None else graph.labels.tolist()
    result.add_nodes_from(names)
    if graph.weights is None:
        result.add_edges_from((names[u], names[v]) for u, v in graph.edges().tolist())
    else:
        result.add_weighted_edges_from(
            (names[u], names[v], w)
            for (u, v), w in zip(graph.edges().tolist(), graph.edge_weights(), strict=True)
        )
    return result


def from_rustworkx(graph: Any, *, weighted: bool = False) -> Graph:
    """Return a graph from a rustworkx one; if `weighted`, edge payloads are the weights."""
    number = {index: i for i, index in enumerate(graph.node_indices())}
    listed = graph.weighted_edge_list()
    return Graph.from_edges(
        np.array([(number[u], number[v]) for u, v, _ in listed], np.int64).reshape(-1, 2),
        n_nodes=len(number),
        weights=[float(w) for _, _, w in listed] if weighted else None,
        directed=type(graph).__name__ == "PyDiGraph",
    )


def to_rustworkx(graph: Graph) -> Any:
    """Return a rustworkx graph: payloads are labels (or numbers) and weights (or None)."""
    rustworkx = import_optional("rustworkx", needed_by="to_rustworkx", extra="")
    result = rustworkx.PyDiGraph() if graph.directed else rustworkx.PyGraph()
    names = range(graph.n_nodes) if graph.labels is None else graph.labels.tolist()
    result.add_nodes_from(list(names))
    weights = [None] * graph.n_edges if graph.weights is None else graph.edge_weights().tolist()
    result.add_edges_from(
        [(u, v, w) for (u, v), w in zip(graph.edges().tolist(), weights, strict=True)]
    )
    return result


def from_scipy(matrix: Any, *, directed: bool, weighted: bool = False) -> Graph:
    """Return a graph from a square SciPy sparse matrix: entry (u, v) is the arc u -> v.

    Parameters
    ----------
    matrix : sparse matrix or array
        Stored zeros are no edges. Without loops; symmetric unless `directed`.
    directed : bool
        Whether entry (u, v) is an arc.
    weighted : bool
        Whether to keep the entries as weights.
    """
    coo = matrix.tocoo()
    if coo.shape[0] != coo.shape[1]:
        raise ValueError(f"from_scipy: expected a square matrix, got shape {coo.shape}")
    kept = coo.data != 0
    u, v = coo.row[kept].astype(np.int64), coo.col[kept].astype(np.int64)
    graph = Graph.from_edges(
        np.column_stack((u, v)),
        n_nodes=coo.shape[0],
        weights=coo.data[kept] if weighted else None,
        directed=True,
    )
    if directed:
        return graph
    return Graph(indptr=graph.indptr, indices=graph.indices, weights=graph.weights)


def to_scipy(graph: Graph) -> Any:
    """Return the SciPy sparse array whose entry (u, v) is the weight of the edge, or one."""
    sparse = import_optional("scipy.sparse", needed_by="to_scipy")
    values = np.ones(graph.indices.size) if graph.weights is None else graph.weights
    shape = (graph.n_nodes, graph.n_nodes)
    return sparse.csr_array((values.copy(), graph.indices, graph.indptr), shape=shape)


def _labels(names: list[Any]) -> Any:
    labels = np.array(names) if all(isinstance(name, int | str) for name in names) else None
    if labels is None or labels.tolist() != names:
        return np.array([str(name) for name in names])
    return labels
