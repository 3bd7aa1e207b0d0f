"""A graph as a study file writes it: a file's name, or a generator's name and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.networks import generators
from tacit.networks.classics import CLASSICS, classic
from tacit.networks.files import read_edges
from tacit.networks.graph import Graph

__all__ = ["graph_of"]


def graph_of(value: str | Mapping[str, Any]) -> Graph:
    """Return the graph that was written.

    Examples
    --------
    >>> graph_of({"name": "ring", "n_nodes": 10})
    Graph(n_nodes=10, n_edges=10)
    """
    if isinstance(value, str):
        return read_edges(value)
    spec = dict(value)
    name = spec.pop("name", None)
    known = {each: getattr(generators, each) for each in generators.__all__}
    if name in known:
        try:
            graph: Graph = known[name](**spec)
        except TypeError as error:
            raise ValueError(f"network {name}: {error}") from None
        return graph
    if name in CLASSICS and not spec:
        return classic(str(name))
    raise ValueError(f"no network is called {name!r}; there are {', '.join([*known, *CLASSICS])}")
