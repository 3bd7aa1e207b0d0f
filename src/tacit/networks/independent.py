"""Independent sets: greedy by a given order, the independence number, and a uniform draw."""

from __future__ import annotations

from typing import Any

from tacit.compiled import kernel

__all__ = ["greedy_independent_set"]


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
