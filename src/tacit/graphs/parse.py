"""A graph as a study file writes it: a file's name, or a generator's name and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tacit.graphs.files import read_edges
from tacit.graphs.generators import (
    barabasi_albert,
    complete,
    erdos_renyi,
    grid,
    path,
    ring,
    star,
    stochastic_block,
    watts_strogatz,
)
from tacit.graphs.graph import Graph
from tacit.graphs.named import CLASSICS, classic

_GENERATORS: tuple[Callable[..., Graph], ...] = (
    barabasi_albert,
    complete,
    erdos_renyi,
    grid,
    path,
    ring,
    star,
    stochastic_block,
    watts_strogatz,
)


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
    known = {each.__name__: each for each in _GENERATORS}
    if name in known:
        try:
            return known[name](**spec)
        except TypeError as error:
            raise ValueError(f"network {name}: {error}") from None
    if name in CLASSICS and not spec:
        return classic(str(name))
    raise ValueError(f"no network is called {name!r}; there are {', '.join([*known, *CLASSICS])}")
