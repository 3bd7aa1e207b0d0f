"""Environments with a feedback graph: pulling an arm shows its neighbours' rewards too.

Any environment of this setting gets a graph: one for all repetitions, a new Erdos-Renyi graph in each, or a
sequence of graphs of which each takes over in a given round. The graph changes what is observed and
nothing else, so policies that look at their own arm only play on the same rewards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.arms.environments.base import ArmsEnvironment, Schedule
from tacit.arms.table import Table, closed_rows
from tacit.core.constraints import Probability, check, require
from tacit.graphs import Graph, erdos_renyi


@dataclass(frozen=True, kw_only=True)
class GraphFeedback(ArmsEnvironment):
    """An environment whose feedback goes along the edges of a graph.

    Parameters
    ----------
    environment : ArmsEnvironment
        The rewards; in a study file ``{name = "bernoulli", means = [...]}``.
    graph : Graph or sequence of Graph, optional
        The feedback graph, or several that take over one after the other. In a directed graph a pull
        shows the arms that its edges lead to; GAP and GAPU need an undirected one.
    edge_prob : float, optional
        Instead of `graph`: every repetition draws Erdos-Renyi graphs with this edge probability.
    changes : sequence of int, default ()
        The first rounds of the second and later graphs.

    Examples
    --------
    >>> from tacit.arms import Bernoulli, GraphFeedback
    >>> from tacit.graphs import star
    >>> environment = GraphFeedback(environment=Bernoulli(means=(0.2, 0.8, 0.5)), graph=star(3))
    >>> environment.table(seed=0, repetition=0, horizon=10).indptr
    array([0, 3, 5, 7])
    """

    name: ClassVar[str] = "graph-feedback"
    summary: ClassVar[str] = (
        "any of these environments, with neighbours' rewards shown along a graph"
    )

    environment: ArmsEnvironment
    graph: Graph | tuple[Graph, ...] | None = None
    edge_prob: Probability | None = None
    changes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check(self)
        fits = isinstance(self.environment, ArmsEnvironment)
        require(self, "environment", "of the arms setting", fits, self.environment)
        changes = tuple(int(c) for c in self.changes)
        object.__setattr__(self, "changes", changes)
        increasing = all(a < b for a, b in zip((0, *changes), changes, strict=False))
        require(self, "changes", "increasing rounds >= 1", increasing, changes)
        one = (self.graph is None) != (self.edge_prob is None)
        given = (self.graph, self.edge_prob)
        require(self, "graph or edge_prob", "given, not both", one, given)
        if self.graph is not None:
            graphs = (self.graph,) if isinstance(self.graph, Graph) else tuple(self.graph)
            object.__setattr__(self, "graph", graphs[0] if len(graphs) == 1 else graphs)
            needed = len(changes) + 1
            require(self, "graph", f"{needed}, one a change", len(graphs) == needed, len(graphs))
            for n in (graph.n_nodes for graph in graphs):
                require(self, "graph", f"of {self.n_arms} arms", n == self.n_arms, n)

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.environment.n_arms

    def n_segments(self, horizon: int) -> int:
        """Return in how many pieces the means are constant."""
        return self.environment.n_segments(horizon)

    def variation_budget(self, horizon: int) -> float | None:
        """Return how much the means move."""
        return self.environment.variation_budget(horizon)

    def schedule(self, horizon: int, rng: np.random.Generator) -> Schedule:
        """Return the means of the environment."""
        return self.environment.schedule(horizon, rng)

    def table(self, seed: int, repetition: int, horizon: int) -> Table:
        """Return the table of one repetition."""
        if isinstance(self.graph, Graph):
            graphs: Sequence[Graph] = (self.graph,)
        elif self.graph is not None:
            graphs = self.graph
        else:
            n = len(self.changes) + 1
            graphs = [
                erdos_renyi(self.n_arms, self.edge_prob or 0.0, seed=seed, repetition=r)
                for r in range(n * repetition, n * (repetition + 1))
            ]
        rows = closed_rows(self.n_arms, graphs, self.changes)
        return self.environment.table(seed, repetition, horizon)._replace(**rows._asdict())
