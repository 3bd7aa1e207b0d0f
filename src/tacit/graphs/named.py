"""Graphs by name: small ones that everybody knows, and what a study file writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tacit.graphs import generators
from tacit.graphs.files import read_edges
from tacit.graphs.graph import Graph

# Zachary (1977): for each member, the members with a higher number seen with him outside the club.
_KARATE = (
    "1 2 3 4 5 6 7 8 10 11 12 13 17 19 21 31/2 3 7 13 17 19 21 30/3 7 8 9 13 27 28 32/7 12 13/"
    "6 10/6 10 16/16//30 32 33/33////33/32 33/32 33///32 33/33/32 33//32 33/25 27 29 32 33/"
    "25 27 31/31/29 33/33/31 33/32 33/32 33/32 33/33"
)
# Padgett and Ansell (1993): marriages between families of Florence; Pucci married into none.
_FLORENTINE = (
    "Acciaiuoli-Medici Albizzi-Ginori Albizzi-Guadagni Albizzi-Medici Barbadori-Castellani "
    "Barbadori-Medici Bischeri-Guadagni Bischeri-Peruzzi Bischeri-Strozzi Castellani-Peruzzi "
    "Castellani-Strozzi Guadagni-Lamberteschi Guadagni-Tornabuoni Medici-Ridolfi Medici-Salviati "
    "Medici-Tornabuoni Pazzi-Salviati Peruzzi-Strozzi Ridolfi-Strozzi Ridolfi-Tornabuoni"
)
# Krackhardt (1990): degree, closeness and betweenness each have another winner.
_KITE = "1 2 3 5/3 4 6/3 5/4 5 6/6/6 7/7/8/9"
_PETERSEN = "1 4 5/2 6/3 7/4 8/9/7 8/8 9/9"

#: The names that :func:`classic` knows, and the generators that a study file may name.
CLASSICS = ("florentine", "karate", "kite", "petersen")
_GENERATORS = (
    *("barabasi_albert", "complete", "erdos_renyi", "grid", "path", "ring", "star"),
    *("stochastic_block", "watts_strogatz"),
)


def classic(name: str) -> Graph:
    """Return a small well-known graph by its name.

    ``florentine`` (15 families, labelled), ``karate`` (34 members of Zachary's club), ``kite``
    (Krackhardt's 10 people), ``petersen`` (10 nodes, every one with three neighbours).

    Examples
    --------
    >>> from tacit.graphs import classic
    >>> classic("karate")
    Graph(n_nodes=34, n_edges=78)
    """
    if name == "florentine":
        pairs = [marriage.split("-") for marriage in _FLORENTINE.split()]
        families = sorted({family for pair in pairs for family in pair})
        edges = [(families.index(a), families.index(b)) for a, b in pairs]
        return Graph.from_edges(edges, labels=families)
    rows = {"karate": _KARATE, "kite": _KITE, "petersen": _PETERSEN}.get(name)
    if rows is None:
        raise ValueError(f"classic: expected name in {CLASSICS}, got {name!r}")
    return Graph.from_edges(
        [(u, int(v)) for u, row in enumerate(rows.split("/")) for v in row.split()]
    )


def parse_graph(value: str | Mapping[str, Any]) -> Graph:
    """Return the graph that was written: a file's name, or a generator's or classic's name and parameters.

    Examples
    --------
    >>> parse_graph({"name": "ring", "n_nodes": 10})
    Graph(n_nodes=10, n_edges=10)
    """
    if isinstance(value, str):
        return read_edges(value)
    spec = dict(value)
    name = spec.pop("name", None)
    if name in _GENERATORS:
        make: Callable[..., Graph] = getattr(generators, name)
        try:
            return make(**spec)
        except TypeError as error:
            raise ValueError(f"network {name}: {error}") from None
    if name in CLASSICS and not spec:
        return classic(str(name))
    known = ", ".join([*_GENERATORS, *CLASSICS])
    raise ValueError(f"no network is called {name!r}; there are {known}")
