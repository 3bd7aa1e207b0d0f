"""Independent sets: greedy by a given order, a uniform draw, and the independence number.

A set of nodes is independent if no two of them are joined, and maximal if no node can be added.
Arm elimination on a feedback graph (paper 002) plays a maximal independent set of the active arms:
by descending empirical mean in GAP, drawn uniformly in GAPU. Exact work is done one connected
component at a time, on the bits of an integer, for components of up to 62 nodes.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from tacit.core.kernels import kernel
from tacit.graphs.components import take_component
from tacit.graphs.graph import Graph

_LARGEST_EXACT = 62
_MOST_SETS = 100_000


class IndependenceNumber(NamedTuple):
    """Bounds on the size of the largest independent set, equal where it is known."""

    lower: int
    upper: int

    @property
    def exact(self) -> bool:
        """Whether the bounds meet."""
        return self.lower == self.upper


def independence_number(graph: Graph) -> IndependenceNumber:
    """Return the size of the largest independent set, or bounds on it.

    Nodes with at most one neighbour are taken first, which loses nothing. What is left is solved
    by branch and bound in each component of up to 62 nodes; in a larger one the lower bound is the
    greedy set by least remaining degree and the upper bound a greedy cover by cliques.

    Examples
    --------
    >>> from tacit.graphs import classic, independence_number
    >>> independence_number(classic("petersen"))
    IndependenceNumber(lower=4, upper=4)
    """
    if graph.directed:
        raise ValueError("independence_number: expected an undirected graph; see Graph.undirected")
    lower, upper = _independence_bounds(*graph.csr)
    return IndependenceNumber(int(lower), int(upper))


@kernel
def greedy_independent_set(indptr: Any, indices: Any, active: Any, order: Any, member: Any) -> Any:
    """Mark in `member` a maximal independent set of the active subgraph; return its size.

    Nodes are taken in the order given unless inactive or next to one already taken. Nothing is
    allocated; the graph is undirected.

    Parameters
    ----------
    indptr, indices : arrays
        The rows of the graph, ``graph.csr``.
    active : array of bool, shape (n_nodes,)
        Which nodes the subgraph has.
    order : array of int
        Nodes in the order in which to try them; every active node once.
    member : array of bool, shape (n_nodes,)
        Overwritten with the set.
    """
    member[:] = False
    return _take_in_order(indptr, indices, active, order, member)


@kernel
def uniform_independent_set(
    indptr: Any, indices: Any, active: Any, uniforms: Any, member: Any, work: Any
) -> Any:
    """Draw into `member` one of the maximal independent sets of the active subgraph.

    The sets of each connected component are enumerated (Bron and Kerbosch 1973, with pivots, on
    the complement) and one is picked by the uniform of the component's lowest node; a set of the
    whole is one of each part, so the draw is uniform. A component of more than 62 nodes, or with
    more than 100,000 maximal sets, is instead taken greedily in ascending order of its uniforms:
    every maximal set is then possible, but they are not equally likely. Nothing is allocated.

    Parameters
    ----------
    indptr, indices : arrays
        The rows of the graph, ``graph.csr``; undirected.
    active : array of bool, shape (n_nodes,)
        Which nodes the subgraph has.
    uniforms : array of float, shape (n_nodes,)
        Independent uniforms in [0, 1).
    member : array of bool, shape (n_nodes,)
        Overwritten with the set.
    work : array of int64, shape (work_size(n_nodes),)
        Overwritten; room to work in.

    Returns
    -------
    bool
        Whether the draw was exactly uniform.
    """
    n = active.size
    left, queue, number = work[:n], work[n : 2 * n], work[2 * n : 3 * n]
    rivals, stacks = work[3 * n : 3 * n + _LARGEST_EXACT], work[3 * n + _LARGEST_EXACT :]
    for v in range(n):
        left[v] = active[v]
        member[v] = False
    exact = True
    for root in range(n):
        if left[root] == 0:
            continue
        size = take_component(indptr, indices, left, root, queue)
        nodes = queue[:size]
        n_sets = 0
        if size <= _LARGEST_EXACT:
            _fill_masks(indptr, indices, active, nodes, number, rivals)
            n_sets, _ = _nth_maximal_set(rivals, size, _MOST_SETS, stacks)
        if 0 < n_sets <= _MOST_SETS:
            _, chosen = _nth_maximal_set(rivals, size, int(uniforms[root] * n_sets), stacks)
            for i in range(size):
                member[nodes[i]] = (chosen >> i) & 1 == 1
        else:
            exact = False
            _sort_by(nodes, uniforms)
            _take_in_order(indptr, indices, active, nodes, member)
    return exact


def work_size(n_nodes: int) -> int:
    """Return the length of the `work` array of :func:`uniform_independent_set`."""
    return 3 * n_nodes + _LARGEST_EXACT + 4 * (_LARGEST_EXACT + 1)


@kernel
def _take_in_order(indptr: Any, indices: Any, active: Any, order: Any, member: Any) -> Any:
    size = 0
    for v in order:
        free = active[v]
        for e in range(indptr[v], indptr[v + 1]):
            if member[indices[e]]:
                free = False
                break
        if free:
            member[v] = True
            size += 1
    return size


@kernel
def _sort_by(nodes: Any, uniforms: Any) -> None:
    """Sort nodes by their uniforms, then by number, in place (Shell 1959, gaps of 2^k - 1)."""
    gap = 1
    while 2 * gap + 1 < nodes.size:
        gap = 2 * gap + 1
    while gap > 0:
        for i in range(gap, nodes.size):
            v, j = nodes[i], i
            while j >= gap and (uniforms[v], v) < (uniforms[nodes[j - gap]], nodes[j - gap]):
                nodes[j] = nodes[j - gap]
                j -= gap
            nodes[j] = v
        gap //= 2


@kernel
def _fill_masks(
    indptr: Any, indices: Any, active: Any, nodes: Any, number: Any, rivals: Any
) -> None:
    """Set bit j of rivals[i] if nodes[i] and nodes[j], of one active component, are joined."""
    for i in range(nodes.size):
        number[nodes[i]] = i
    for i in range(nodes.size):
        mask = 0
        for e in range(indptr[nodes[i]], indptr[nodes[i] + 1]):
            if active[indices[e]]:
                mask |= 1 << number[indices[e]]
        rivals[i] = mask


@kernel
def _n_bits(mask: Any) -> Any:
    n = 0
    while mask != 0:
        mask &= mask - 1
        n += 1
    return n


@kernel
def _lowest(mask: Any) -> Any:
    return _n_bits((mask & -mask) - 1)


@kernel
def _nth_maximal_set(rivals: Any, n: Any, wanted: Any, stacks: Any) -> Any:
    """Enumerate maximal independent sets up to number `wanted`; return how many and the last.

    A set that grows is R; nodes that may still join it are P, and X are those whose sets have all
    been listed. Only branches that avoid a pivot's friends are followed.
    """
    R, P = stacks[: n + 1], stacks[n + 1 : 2 * n + 2]
    X, branches = stacks[2 * n + 2 : 3 * n + 3], stacks[3 * n + 3 : 4 * n + 4]
    R[0], X[0] = 0, 0
    P[0] = (1 << n) - 1
    branches[0] = _branches(P[0], X[0], rivals)
    count, depth = 0, 0
    while depth >= 0:
        if P[depth] | X[depth] == 0:
            count += 1
            if count > wanted:
                return count, R[depth]
            depth -= 1
            continue
        if branches[depth] == 0:
            depth -= 1
            continue
        v = _lowest(branches[depth])
        bit = 1 << v
        friends = ~(rivals[v] | bit)
        R[depth + 1] = R[depth] | bit
        P[depth + 1] = P[depth] & friends
        X[depth + 1] = X[depth] & friends
        branches[depth] &= ~bit
        P[depth] &= ~bit
        X[depth] |= bit
        depth += 1
        branches[depth] = _branches(P[depth], X[depth], rivals)
    return count, R[0]


@kernel
def _branches(P: Any, X: Any, rivals: Any) -> Any:
    best, fewest = P, _LARGEST_EXACT + 1
    pivots = P | X
    while pivots != 0:
        u = _lowest(pivots)
        pivots &= pivots - 1
        candidates = P & (rivals[u] | (1 << u))
        n = _n_bits(candidates)
        if n < fewest:
            best, fewest = candidates, n
    return best


@kernel(allocates=True)
def _independence_bounds(indptr: Any, indices: Any) -> Any:
    n = indptr.size - 1
    alive = np.ones(n, np.bool_)
    lower = _peel(indptr, indices, alive)
    upper = lower
    left = alive.astype(np.int64)
    queue = np.empty(n, np.int64)
    number = np.empty(n, np.int64)
    rivals = np.empty(_LARGEST_EXACT, np.int64)
    for root in range(n):
        if not left[root]:
            continue
        size = take_component(indptr, indices, left, root, queue)
        nodes = queue[:size]
        if size <= _LARGEST_EXACT:
            _fill_masks(indptr, indices, alive, nodes, number, rivals)
            largest = _largest_set(rivals, size)
            lower += largest
            upper += largest
        else:
            upper += _clique_cover(indptr, indices, alive, nodes)
            lower += _greedy_by_degree(indptr, indices, alive, nodes)
    return lower, upper


@kernel(allocates=True)
def _peel(indptr: Any, indices: Any, alive: Any) -> Any:
    """Take nodes with at most one neighbour alive until there are none; return how many."""
    n = alive.size
    degree = np.empty(n, np.int64)
    stack: list[Any] = [0]
    stack.pop()
    for v in range(n):
        degree[v] = indptr[v + 1] - indptr[v]
        if degree[v] <= 1:
            stack.append(v)
    taken = 0
    while len(stack) > 0:
        v = stack.pop()
        if not alive[v]:
            continue
        alive[v] = False
        taken += 1
        for e in range(indptr[v], indptr[v + 1]):
            u = indices[e]
            if alive[u]:
                alive[u] = False
                for f in range(indptr[u], indptr[u + 1]):
                    w = indices[f]
                    degree[w] -= 1
                    if alive[w] and degree[w] <= 1:
                        stack.append(np.int64(w))
    return taken


@kernel(allocates=True)
def _greedy_by_degree(indptr: Any, indices: Any, alive: Any, nodes: Any) -> Any:
    """Take the node of least remaining degree until none is left; clear `alive`, return the size.

    The heap holds degree * n + node; an entry whose degree is out of date is skipped.
    """
    n = alive.size
    degree = np.zeros(n, np.int64)
    heap: list[Any] = [0]
    heap.pop()
    for v in nodes:
        for e in range(indptr[v], indptr[v + 1]):
            degree[v] += alive[indices[e]]
        heap.append(degree[v] * n + v)
    heapq.heapify(heap)
    size = 0
    while len(heap) > 0:
        entry = heapq.heappop(heap)
        v = entry % n
        if not alive[v] or degree[v] != entry // n:
            continue
        size += 1
        alive[v] = False
        for e in range(indptr[v], indptr[v + 1]):
            u = indices[e]
            if alive[u]:
                alive[u] = False
                for f in range(indptr[u], indptr[u + 1]):
                    w = np.int64(indices[f])
                    if alive[w]:
                        degree[w] -= 1
                        heapq.heappush(heap, degree[w] * n + w)
    return size


@kernel(allocates=True)
def _clique_cover(indptr: Any, indices: Any, alive: Any, nodes: Any) -> Any:
    """Cover `nodes` by cliques, each grown greedily; return how many. One node of each at most."""
    covered = ~alive
    met = np.zeros(alive.size, np.int64)
    clique = np.empty(nodes.size, np.int64)
    n_cliques = 0
    for v in nodes:
        if covered[v]:
            continue
        n_cliques += 1
        covered[v] = True
        clique[0] = v
        size = 1
        _add(indptr, indices, v, met, 1)
        for e in range(indptr[v], indptr[v + 1]):
            u = indices[e]
            if not covered[u] and met[u] == size:
                covered[u] = True
                clique[size] = u
                size += 1
                _add(indptr, indices, u, met, 1)
        for i in range(size):
            _add(indptr, indices, clique[i], met, -1)
    return n_cliques


@kernel
def _add(indptr: Any, indices: Any, v: Any, met: Any, amount: Any) -> None:
    for e in range(indptr[v], indptr[v + 1]):
        met[indices[e]] += amount


@kernel(allocates=True)
def _largest_set(rivals: Any, n: Any) -> Any:
    """Return the independence number by branching on the node with the most rivals left."""
    rest = np.empty(2 * n + 2, np.int64)
    sizes = np.empty(2 * n + 2, np.int64)
    rest[0], sizes[0] = (1 << n) - 1, 0
    top, best = 1, 0
    while top > 0:
        top -= 1
        P, size = rest[top], sizes[top]
        best = max(best, size)
        if size + _clique_bound(P, rivals) <= best:
            continue
        v, most = 0, -1
        nodes = P
        while nodes != 0:
            u = _lowest(nodes)
            nodes &= nodes - 1
            degree = _n_bits(P & rivals[u])
            if degree <= 1:
                v, most = u, -1
                break
            if degree > most:
                v, most = u, degree
        if most >= 0:
            rest[top], sizes[top] = P & ~(1 << v), size
            top += 1
        rest[top], sizes[top] = P & ~(rivals[v] | (1 << v)), size + 1
        top += 1
    return best


@kernel
def _clique_bound(P: Any, rivals: Any) -> Any:
    n_cliques = 0
    while P != 0:
        v = _lowest(P)
        P &= P - 1
        candidates = P & rivals[v]
        while candidates != 0:
            u = _lowest(candidates)
            P &= ~(1 << u)
            candidates &= rivals[u] & P
        n_cliques += 1
    return n_cliques
