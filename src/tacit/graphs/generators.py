"""Random and regular graphs, each the same for the same seed and repetition.

Draws come from a counter-based generator of their own stream, so that a new feedback graph in every
repetition leaves tables and tapes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.core.constraints import require
from tacit.core.generator import key_of, philox, to_unit
from tacit.core.kernels import kernel
from tacit.graphs.graph import Graph

_GRAPH_STREAM = 7


def erdos_renyi(n_nodes: int, edge_prob: float, *, seed: int, repetition: int = 0) -> Graph:
    """Return a graph in which every pair of nodes is joined with probability `edge_prob`.

    Examples
    --------
    >>> from tacit.graphs import erdos_renyi
    >>> erdos_renyi(10, 0.2, seed=0) == erdos_renyi(10, 0.2, seed=0)
    True
    """
    require("erdos_renyi", "n_nodes", ">= 0", n_nodes >= 0, n_nodes)
    require("erdos_renyi", "edge_prob", "in [0, 1]", 0 <= edge_prob <= 1, edge_prob)
    random = _random(seed, repetition)
    chosen = _successes(random, n_nodes * (n_nodes - 1) // 2, edge_prob)
    return Graph.from_edges(_pairs_below_diagonal(chosen), n_nodes=n_nodes)


def barabasi_albert(n_nodes: int, n_links: int, *, seed: int, repetition: int = 0) -> Graph:
    """Return a graph grown by preferential attachment from a star on `n_links` + 1 nodes.

    Each new node joins `n_links` different nodes, drawn in proportion to their degree.

    Examples
    --------
    >>> barabasi_albert(100, 3, seed=0).n_edges == 3 * (100 - 3)
    True
    """
    holds = 1 <= n_links < n_nodes
    require("barabasi_albert", "n_links", f"in 1..{n_nodes - 1}", holds, n_links)
    key = key_of(seed, repetition, stream=_GRAPH_STREAM)
    return Graph.from_edges(_attach(n_nodes, n_links, key[0], key[1]), n_nodes=n_nodes)


def watts_strogatz(
    n_nodes: int, n_neighbours: int, rewire_prob: float, *, seed: int, repetition: int = 0
) -> Graph:
    """Return a ring whose nodes join their nearest neighbours, with some edges rewired.

    Parameters
    ----------
    n_nodes : int
        Number of nodes on the ring.
    n_neighbours : int
        Even number of nearest neighbours that each node joins, below `n_nodes`.
    rewire_prob : float
        Probability that an edge's far end moves to a node drawn uniformly from those that its
        near end does not know. A node that knows everybody keeps its edge.
    seed, repetition : int
        Which graph.

    Examples
    --------
    >>> watts_strogatz(20, 4, 0.1, seed=0).n_edges
    40
    """
    owner = "watts_strogatz"
    holds = n_neighbours % 2 == 0 and 0 <= n_neighbours < max(n_nodes, 1)
    require(owner, "n_neighbours", f"even and in 0..{n_nodes - 1}", holds, n_neighbours)
    require(owner, "rewire_prob", "in [0, 1]", 0 <= rewire_prob <= 1, rewire_prob)
    nodes = range(n_nodes)
    knows = [{(v + step) % n_nodes for step in _steps(n_neighbours)} for v in nodes]
    random = _random(seed, repetition)
    for step in range(1, n_neighbours // 2 + 1):
        moved = random.random(n_nodes) < rewire_prob
        for u in np.flatnonzero(moved).tolist():
            v = (u + step) % n_nodes
            if v not in knows[u] or len(knows[u]) >= n_nodes - 1:
                continue
            w = v
            while w == u or w in knows[u]:
                w = int(random.random() * n_nodes)
            knows[u].remove(v)
            knows[v].remove(u)
            knows[u].add(w)
            knows[w].add(u)
    edges = [(u, v) for u in nodes for v in sorted(knows[u]) if u < v]
    return Graph.from_edges(edges, n_nodes=n_nodes)


def stochastic_block(
    sizes: Sequence[int], probs: ArrayLike, *, seed: int, repetition: int = 0
) -> Graph:
    """Return a graph of blocks; nodes of blocks a and b are joined with probability probs[a, b].

    Examples
    --------
    >>> stochastic_block([5, 5], [[1, 0], [0, 1]], seed=0).n_edges
    20
    """
    owner = "stochastic_block"
    p = np.asarray(probs, dtype=np.float64)
    require(owner, "sizes", ">= 0", all(size >= 0 for size in sizes), sizes)
    square = p.shape == (len(sizes), len(sizes))
    require(owner, "probs", f"of shape ({len(sizes)}, {len(sizes)})", square, p.shape)
    holds = bool(np.all((p >= 0) & (p <= 1)) and np.array_equal(p, p.T))
    require(owner, "probs", "symmetric and in [0, 1]", holds, p.tolist())
    random = _random(seed, repetition)
    start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    found = [np.empty((0, 2), np.int64)]
    for a, size in enumerate(sizes):
        within = _successes(random, size * (size - 1) // 2, p[a, a])
        found.append(_pairs_below_diagonal(within) + start[a])
        for b in range(a):
            across = _successes(random, size * sizes[b], p[a, b])
            u, v = np.divmod(across, max(sizes[b], 1))
            found.append(np.column_stack((u + start[a], v + start[b])))
    return Graph.from_edges(np.concatenate(found), n_nodes=int(start[-1]))


def ring(n_nodes: int) -> Graph:
    """Return a cycle; at least three nodes."""
    require("ring", "n_nodes", ">= 3", n_nodes >= 3, n_nodes)
    v = np.arange(n_nodes)
    return Graph.from_edges(np.column_stack((v, (v + 1) % n_nodes)), n_nodes=n_nodes)


def path(n_nodes: int) -> Graph:
    """Return a path 0, 1, ..., `n_nodes` - 1."""
    require("path", "n_nodes", ">= 1", n_nodes >= 1, n_nodes)
    v = np.arange(n_nodes - 1)
    return Graph.from_edges(np.column_stack((v, v + 1)), n_nodes=n_nodes)


def star(n_nodes: int) -> Graph:
    """Return a star with node 0 in the middle."""
    require("star", "n_nodes", ">= 1", n_nodes >= 1, n_nodes)
    leaves = np.arange(1, n_nodes)
    return Graph.from_edges(np.column_stack((np.zeros_like(leaves), leaves)), n_nodes=n_nodes)


def grid(n_rows: int, n_columns: int) -> Graph:
    """Return a rectangular grid; node ``row * n_columns + column``."""
    require("grid", "n_rows", ">= 1", n_rows >= 1, n_rows)
    require("grid", "n_columns", ">= 1", n_columns >= 1, n_columns)
    v = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
    across = np.column_stack((v[:, :-1].ravel(), v[:, 1:].ravel()))
    down = np.column_stack((v[:-1].ravel(), v[1:].ravel()))
    return Graph.from_edges(np.concatenate((across, down)), n_nodes=v.size)


def complete(n_nodes: int) -> Graph:
    """Return the graph with every edge."""
    require("complete", "n_nodes", ">= 1", n_nodes >= 1, n_nodes)
    return Graph.from_edges(np.column_stack(np.triu_indices(n_nodes, 1)), n_nodes=n_nodes)


def _random(seed: int, repetition: int) -> np.random.Generator:
    key: Any = key_of(seed, repetition, stream=_GRAPH_STREAM)
    return np.random.Generator(np.random.Philox(key=key))


def _steps(n_neighbours: int) -> list[int]:
    half = n_neighbours // 2
    return [step for step in range(-half, half + 1) if step != 0]


def _successes(random: np.random.Generator, n: int, prob: float) -> NDArray[np.int64]:
    """Return which of n independent trials succeed, in time proportional to their number."""
    if prob <= 0 or n == 0:
        return np.empty(0, np.int64)
    if prob >= 1:
        return np.arange(n, dtype=np.int64)
    found, last = [np.empty(0, np.int64)], -1
    while last < n:
        expected = (n - last) * prob
        uniforms = random.random(int(expected + 4 * np.sqrt(expected)) + 8)
        gaps = np.floor(np.log1p(-uniforms) / np.log1p(-prob))
        # A jump past the end is cut, and before the cut the sum cannot leave 64 bits.
        steps = 1 + np.minimum(gaps, n).astype(np.int64)
        found.append(last + np.cumsum(steps))
        last = int(found[-1][-1])
    positions = np.concatenate(found)
    return positions[positions < n]


def _pairs_below_diagonal(position: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return pair number `position` of (1, 0), (2, 0), (2, 1), (3, 0), ..."""
    row = np.floor((1 + np.sqrt(1 + 8 * position.astype(np.float64))) / 2).astype(np.int64)
    row -= row * (row - 1) // 2 > position
    row += row * (row + 1) // 2 <= position
    return np.column_stack((row, position - row * (row - 1) // 2))


@kernel(allocates=True)
def _attach(n: Any, m: Any, key0: Any, key1: Any) -> Any:
    """Grow the graph; every end of an edge so far is one chance to be drawn."""
    edges = np.empty(((n - m) * m, 2), np.int64)
    for i in range(m):
        edges[i, 0], edges[i, 1] = 0, i + 1
    size, draw = m, 0
    for v in range(m + 1, n):
        first = size
        while size < first + m:
            word = philox(key0, key1, np.uint64(draw), np.uint64(0), np.uint64(0), np.uint64(0))[0]
            draw += 1
            end = int(to_unit(word) * 2 * first)
            u = edges[end >> 1, end & 1]
            new = True
            for i in range(first, size):
                if edges[i, 1] == u:
                    new = False
            if new:
                edges[size, 0], edges[size, 1] = v, u
                size += 1
    return edges
