"""Graph cuts: users into groups with few edges between them, and the graph of the groups.

The measure is the normalised cut: for every group, the weight of the edges that leave it divided by
the total degree inside it, summed. As in Dhillon, Guan and Kulis (2007), which paper 004 uses, the
graph is coarsened step by step, and the groups are refined by moving nodes on the way back; no
eigenvectors. Here coarsening goes on until as many nodes are left as groups are wanted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.core.constraints import require
from tacit.core.generator import key_of
from tacit.core.kernels import kernel
from tacit.graphs.components import numbered_by_lowest_node, require_undirected
from tacit.graphs.graph import Graph

_PARTITION_STREAM = 8
_MOST_PASSES = 30


def partition(graph: Graph, n_groups: int, *, seed: int) -> NDArray[np.int64]:
    """Return the group of each node, 0 to `n_groups` - 1, none empty, by a small normalised cut.

    Weights count if the graph has them. Components need not be joined: a component is only split,
    or put together with another, when the number of groups asks for it.

    Parameters
    ----------
    graph : Graph
        Undirected.
    n_groups : int
        From 1 to ``n_nodes``.
    seed : int
        Breaks ties between equally heavy nodes.

    Examples
    --------
    >>> from tacit.graphs import Graph, partition
    >>> two_triangles = Graph.from_edges([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)])
    >>> partition(two_triangles, 2, seed=0)
    array([0, 0, 0, 1, 1, 1])
    """
    require_undirected(graph, "partition")
    holds = 1 <= n_groups <= graph.n_nodes
    require("partition", "n_groups", f"in 1..{graph.n_nodes}", holds, n_groups)
    key: Any = key_of(seed, 0, stream=_PARTITION_STREAM)
    random = np.random.Generator(np.random.Philox(key=key))
    fine = [(graph, graph.strengths)]
    maps: list[NDArray[np.int64]] = []
    largest = 1.5 * float(fine[0][1].sum()) / n_groups
    while fine[-1][0].n_nodes > n_groups:
        level, mass = fine[-1]
        order = np.lexsort((random.random(level.n_nodes), mass))
        weights = _weights(level)
        if weights.any():
            joined = _cluster(*level.csr, weights, mass, order, n_groups, largest)
            coarse = numbered_by_lowest_node(joined)
        else:
            coarse = _lightest_together(mass, n_groups)
        if int(coarse.max()) + 1 == level.n_nodes:
            largest *= 2.0
            continue
        maps.append(coarse)
        total = np.bincount(coarse, weights=mass).astype(np.float64)
        fine.append((group_graph(level, coarse), total))
    group: NDArray[np.int64] = np.arange(n_groups, dtype=np.int64)
    for (level, mass), coarse in zip(fine[-2::-1], maps[::-1], strict=True):
        group = group[coarse]
        _refine(*level.csr, _weights(level), mass, group, n_groups, _MOST_PASSES)
    return numbered_by_lowest_node(group)


def normalised_cut(graph: Graph, groups: ArrayLike) -> float:
    """Return the sum over groups of the weight that leaves a group divided by its total degree.

    Examples
    --------
    >>> from tacit.graphs import normalised_cut, path
    >>> round(normalised_cut(path(4), [0, 0, 1, 1]), 6)
    0.666667
    """
    group = _checked_groups(graph, groups, "normalised_cut")
    n_groups = int(group.max(initial=-1)) + 1
    leaves = group[graph.rows] != group[graph.indices]
    weights = _weights(graph)
    cut = np.bincount(group[graph.rows[leaves]], weights=weights[leaves], minlength=n_groups)
    mass = np.bincount(group, weights=graph.strengths, minlength=n_groups)
    return float(np.sum(cut[mass > 0] / mass[mass > 0]))


def group_graph(graph: Graph, groups: ArrayLike) -> Graph:
    """Return the graph of the groups, joined by the total weight (or number) of edges between.

    Edges inside a group are not in it. Group labels must be 0 to ``n_groups`` - 1.

    Examples
    --------
    >>> from tacit.graphs import group_graph, ring
    >>> group_graph(ring(6), [0, 0, 0, 1, 1, 1]).weights
    array([2., 2.])
    """
    require_undirected(graph, "group_graph")
    group = _checked_groups(graph, groups, "group_graph")
    n_groups = int(group.max(initial=-1)) + 1
    ends = np.sort(group[graph.edges()], axis=1)
    between = ends[:, 0] != ends[:, 1]
    key = ends[between, 0] * n_groups + ends[between, 1]
    pairs, which = np.unique(key, return_inverse=True)
    totals = np.bincount(which, weights=graph.edge_weights()[between], minlength=pairs.size)
    return Graph.from_edges(
        np.column_stack(np.divmod(pairs, max(n_groups, 1))), n_nodes=n_groups, weights=totals
    )


def _checked_groups(graph: Graph, groups: ArrayLike, owner: str) -> NDArray[np.int64]:
    group = np.asarray(groups)
    fits = group.shape == (graph.n_nodes,) and np.issubdtype(group.dtype, np.integer)
    require(owner, "groups", f"to be {graph.n_nodes} integers", bool(fits), group.shape)
    require(owner, "groups", ">= 0", not bool(np.any(group < 0)), group.min(initial=0))
    return group.astype(np.int64)


def _weights(graph: Graph) -> NDArray[np.float64]:
    return np.ones(graph.indices.size) if graph.weights is None else graph.weights.copy()


def _lightest_together(mass: NDArray[np.float64], n_groups: int) -> NDArray[np.int64]:
    """Deal out parts that no edge joins: the heaviest first, each to the lightest group."""
    group = np.empty(mass.size, np.int64)
    total = np.zeros(n_groups)
    size = np.zeros(n_groups)
    for v in np.argsort(-mass, kind="stable"):
        g = np.lexsort((size, total))[0]
        group[v] = g
        total[g] += mass[v]
        size[g] += 1
    return group


@kernel(allocates=True)
def _cluster(
    indptr: Any, indices: Any, weights: Any, mass: Any, order: Any, n_groups: Any, largest: Any
) -> Any:
    """Let each node that is still alone join the neighbouring cluster it is closest to.

    Closeness is the joining weight divided by the mass of either side, summed; no cluster grows
    beyond `largest`, and there are never fewer than `n_groups`.
    """
    n = indptr.size - 1
    cluster = np.arange(n)
    total = mass.copy()
    size = np.ones(n, np.int64)
    link = np.zeros(n)
    left = n
    for v in order:
        if left == n_groups:
            break
        if size[cluster[v]] > 1:
            continue
        for e in range(indptr[v], indptr[v + 1]):
            link[cluster[indices[e]]] += weights[e]
        best, closest = -1, 0.0
        for e in range(indptr[v], indptr[v + 1]):
            c = cluster[indices[e]]
            if link[c] > 0.0 and mass[v] + total[c] <= largest:
                closeness = link[c] / mass[v] + link[c] / total[c]
                if closeness > closest:
                    best, closest = c, closeness
            link[c] = 0.0
        if best >= 0:
            cluster[v] = best
            total[best] += mass[v]
            size[best] += 1
            left -= 1
    return cluster


@kernel(allocates=True)
def _refine(
    indptr: Any,
    indices: Any,
    weights: Any,
    mass: Any,
    group: Any,
    n_groups: Any,
    most_passes: Any,
) -> None:
    """Move nodes between groups while the normalised cut falls; never empty a group."""
    n = indptr.size - 1
    total = np.zeros(n_groups)
    cut = np.zeros(n_groups)
    size = np.zeros(n_groups, np.int64)
    link = np.zeros(n_groups)
    for v in range(n):
        total[group[v]] += mass[v]
        size[group[v]] += 1
        for e in range(indptr[v], indptr[v + 1]):
            if group[indices[e]] != group[v]:
                cut[group[v]] += weights[e]
    for _ in range(most_passes):
        moved = False
        for v in range(n):
            a = group[v]
            if size[a] == 1 or mass[v] <= 0.0 or mass[v] >= total[a]:
                continue
            reach = 0.0
            for e in range(indptr[v], indptr[v + 1]):
                link[group[indices[e]]] += weights[e]
                reach += weights[e]
            cut_a = cut[a] - reach + 2.0 * link[a]
            loss = cut_a / (total[a] - mass[v]) - cut[a] / total[a]
            best, least = -1, -1e-12
            for e in range(indptr[v], indptr[v + 1]):
                b = group[indices[e]]
                if b != a and link[b] > 0.0:
                    cut_b = cut[b] + reach - 2.0 * link[b]
                    change = loss + cut_b / (total[b] + mass[v])
                    if total[b] > 0.0:
                        change -= cut[b] / total[b]
                    if change < least:
                        best, least = b, change
            if best >= 0:
                cut[a] = cut_a
                cut[best] += reach - 2.0 * link[best]
                total[a] -= mass[v]
                total[best] += mass[v]
                size[a] -= 1
                size[best] += 1
                moved = True
            for e in range(indptr[v], indptr[v + 1]):
                link[group[indices[e]]] = 0.0
            if best >= 0:
                group[v] = best
        if not moved:
            break
