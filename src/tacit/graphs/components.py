"""What hangs together: components, strong components, two-colourings, and the checks on them.

The checks raise an error that names a node, in the words of whoever asks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.kernels import kernel
from tacit.graphs.graph import Graph


def components(graph: Graph) -> NDArray[np.int64]:
    """Return the component of each node, numbered by lowest node; directions are ignored."""
    labels: NDArray[np.int64] = _weak(*graph.undirected().csr)
    return labels


def strong_components(graph: Graph) -> NDArray[np.int64]:
    """Return the strongly connected component of each node, numbered by lowest node."""
    if not graph.directed:
        return components(graph)
    return numbered_by_lowest_node(_strong(*graph.csr))


def numbered_by_lowest_node(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the same groups of nodes, numbered in the order of their lowest nodes."""
    _, first, labels = np.unique(groups, return_index=True, return_inverse=True)
    rank = np.empty(first.size, np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[labels]


def is_connected(graph: Graph) -> bool:
    """Return whether there is one component, directions ignored."""
    return graph.n_nodes <= 1 or int(components(graph).max()) == 0


def is_bipartite(graph: Graph) -> bool:
    """Return whether two colours suffice for no edge to join its own colour."""
    return bool(_two_colours(*graph.undirected().csr))


def largest_component(graph: Graph) -> Graph:
    """Return the subgraph on the largest component; the first of equals."""
    if graph.n_nodes == 0:
        return graph
    labels = components(graph)
    return graph.subgraph(np.flatnonzero(labels == np.bincount(labels).argmax()))


def require_undirected(graph: Graph, owner: str) -> None:
    """Raise ``ValueError`` in the name of `owner` if the graph is directed."""
    if graph.directed:
        raise ValueError(f"{owner}: expected an undirected graph, got {graph!r}")


def require_connected(graph: Graph, owner: str) -> None:
    """Raise ``ValueError`` in the name of `owner` if the graph falls apart."""
    if not is_connected(graph):
        labels = components(graph)
        raise ValueError(
            f"{owner}: expected a connected graph, got {int(labels.max()) + 1} components; "
            f"node {int(np.argmax(labels != 0))} cannot be reached from node 0"
        )


def require_strongly_connected(graph: Graph, owner: str) -> None:
    """Raise ``ValueError`` in the name of `owner` if some node cannot reach another."""
    if not graph.directed:
        require_connected(graph, owner)
        return
    if graph.n_nodes == 0:
        return
    for rows, says in ((graph, "be reached from node 0"), (graph.reverse(), "reach node 0")):
        reached = _reached(*rows.csr)
        if not reached.all():
            raise ValueError(
                f"{owner}: expected a strongly connected graph, but node "
                f"{int(np.argmin(reached))} cannot {says}"
            )


@kernel(allocates=True)
def _reached(indptr: Any, indices: Any) -> Any:
    """Mark the nodes that node 0 reaches."""
    left = np.ones(indptr.size - 1, np.int64)
    take_component(indptr, indices, left, 0, np.empty(left.size, np.int64))
    return left == 0


@kernel
def take_component(indptr: Any, indices: Any, left: Any, root: Any, queue: Any) -> Any:
    """Write the nodes that root reaches in `left` to `queue`, clear them there, return their number."""
    queue[0] = root
    left[root] = 0
    size, head = 1, 0
    while head < size:
        v = queue[head]
        head += 1
        for e in range(indptr[v], indptr[v + 1]):
            w = indices[e]
            if left[w] != 0:
                left[w] = 0
                queue[size] = w
                size += 1
    return size


@kernel(allocates=True)
def _weak(indptr: Any, indices: Any) -> Any:
    n = indptr.size - 1
    left, queue, labels = np.ones(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    number = 0
    for root in range(n):
        if left[root] != 0:
            for i in range(take_component(indptr, indices, left, root, queue)):
                labels[queue[i]] = number
            number += 1
    return labels


@kernel(allocates=True)
def _two_colours(indptr: Any, indices: Any) -> Any:
    n = indptr.size - 1
    colour = np.full(n, -1, np.int8)
    queue = np.empty(n, np.int64)
    for root in range(n):
        if colour[root] >= 0:
            continue
        colour[root] = 0
        queue[0] = root
        head, size = 0, 1
        while head < size:
            v = queue[head]
            head += 1
            for e in range(indptr[v], indptr[v + 1]):
                w = indices[e]
                if colour[w] < 0:
                    colour[w] = 1 - colour[v]
                    queue[size] = w
                    size += 1
                elif colour[w] == colour[v]:
                    return False
    return True


@kernel(allocates=True)
def _strong(indptr: Any, indices: Any) -> Any:
    """Tarjan (1972), with the recursion kept in `path` and `edge`."""
    n = indptr.size - 1
    labels = np.full(n, -1, np.int64)
    found = np.full(n, -1, np.int64)
    low = np.empty(n, np.int64)
    edge = np.empty(n, np.int64)
    path = np.empty(n, np.int64)
    open_nodes = np.empty(n, np.int64)
    time, number, n_open = 0, 0, 0
    for root in range(n):
        if found[root] >= 0:
            continue
        path[0], depth = root, 0
        while depth >= 0:
            v = path[depth]
            if found[v] < 0:
                found[v] = low[v] = time
                edge[v] = indptr[v]
                open_nodes[n_open] = v
                time += 1
                n_open += 1
            descended = False
            while edge[v] < indptr[v + 1]:
                w = indices[edge[v]]
                if found[w] < 0:
                    depth += 1
                    path[depth] = w
                    descended = True
                    break
                if labels[w] < 0:
                    low[v] = min(low[v], low[w])
                edge[v] += 1
            if descended:
                continue
            if low[v] == found[v]:
                while labels[v] < 0:
                    n_open -= 1
                    labels[open_nodes[n_open]] = number
                number += 1
            depth -= 1
    return labels
