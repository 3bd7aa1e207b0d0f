"""Environments with a feedback graph: the graph changes what is shown and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.arms import GAP, GAPU, Bernoulli, GraphFeedback, Recorded, TruncatedNormal
from tacit.arms.table import reward
from tacit.core.registry import build
from tacit.graphs import Graph, complete, erdos_renyi, path, star
from tacit_studies.lu2022.settings import graph_settings

FOUR = Bernoulli(means=(0.1, 0.2, 0.3, 0.4))


def rows(table, graph=0):
    K = table.means.shape[1]
    indptr = table.indptr[graph * (K + 1) : (graph + 1) * (K + 1)]
    return [set(table.indices[indptr[a] : indptr[a + 1]].tolist()) for a in range(K)]


@pytest.mark.parametrize(
    "environment",
    [FOUR, TruncatedNormal(means=(0.5, 0.9)), Recorded(data=[[0.1, 0.2], [0.3, 1.0]])],
    ids=lambda environment: environment.name,
)
def test_rewards_are_those_of_the_world(environment):
    table = GraphFeedback(environment=environment, graph=complete(environment.n_arms)).table(
        3, 1, 2
    )
    plain = environment.table(3, 1, 2)
    for t in range(2):
        for a in range(environment.n_arms):
            assert reward(table, t, a) == reward(plain, t, a)
    assert rows(table) == [set(range(environment.n_arms))] * environment.n_arms
    assert rows(plain) == [{a} for a in range(environment.n_arms)]


def test_every_repetition_draws_its_own_graph():
    environment = GraphFeedback(environment=Bernoulli(means=(0.5,) * 10), edge_prob=0.3)
    for repetition in range(3):
        graph = erdos_renyi(10, 0.3, seed=4, repetition=repetition)
        expected = [{a, *graph.neighbours(a).tolist()} for a in range(10)]
        assert rows(environment.table(4, repetition, 5)) == expected
    assert rows(environment.table(4, 0, 5)) != rows(environment.table(4, 1, 5))


def test_graphs_take_over_in_their_rounds():
    environment = GraphFeedback(environment=FOUR, graph=(path(4), star(4)), changes=(10,))
    table = environment.table(0, 0, 20)
    assert table.graph_starts.tolist() == [0, 10]
    assert rows(table, 0)[1] == {0, 1, 2}
    assert rows(table, 1) == [{0, 1, 2, 3}, {0, 1}, {0, 2}, {0, 3}]
    drawn = GraphFeedback(environment=FOUR, edge_prob=0.5, changes=(10,))
    every = [rows(drawn.table(0, r, 20), g) for r in range(2) for g in range(2)]
    assert len({str(one) for one in every}) > 1


def test_a_study_file_may_name_the_environment():
    inner = {"name": "bernoulli", "means": [0.1, 0.9]}
    named = build(GraphFeedback, {}, {"environment": inner, "edge_prob": 0.0})
    assert named == GraphFeedback(environment=Bernoulli(means=(0.1, 0.9)), edge_prob=0.0)
    with pytest.raises(ValueError, match="nowhere"):
        build(GraphFeedback, {}, {"environment": {"name": "nowhere"}, "edge_prob": 0.1})
    with pytest.raises(ValueError, match="expected environment of the arms setting"):
        GraphFeedback(environment=inner, edge_prob=0.1)


def test_a_directed_graph_shows_where_its_edges_lead_and_gap_refuses_it():
    directed = Graph.from_edges([(0, 1), (1, 2), (3, 2)], n_nodes=4, directed=True)
    table = GraphFeedback(environment=FOUR, graph=directed).table(0, 0, 10)
    rows = np.split(table.indices, table.indptr[1:-1])
    assert [row.tolist() for row in rows] == [[0, 1], [1, 2], [2], [2, 3]]
    with pytest.raises(ValueError, match="GAP: expected graph undirected"):
        GAP(n_arms=4, horizon=10).start(table)
    with pytest.raises(ValueError, match="GAPU: expected graph undirected"):
        GAPU(n_arms=4, horizon=10, graph=directed)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "graph or edge_prob given, not both"),
        ({"graph": path(4), "edge_prob": 0.1}, "graph or edge_prob given, not both"),
        ({"edge_prob": 1.5}, r"edge_prob in \[0, 1\], got 1.5"),
        ({"graph": path(3)}, "graph of 4 arms, got 3"),
        ({"graph": path(4), "changes": (5,)}, "graph 2, one a change, got 1"),
        ({"edge_prob": 0.1, "changes": (5, 5)}, "changes increasing"),
    ],
)
def test_bad_worlds_name_themselves(given, message):
    with pytest.raises(ValueError, match=f"GraphFeedback: expected {message}"):
        GraphFeedback(environment=FOUR, **given)


def test_the_nine_settings_of_the_paper():
    settings = graph_settings()
    assert len({s[1:] for s in settings}) == 9
    assert [s.figure for s in settings] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    environment = settings[4].environment
    np.testing.assert_allclose(
        environment.environment.means, [0.9, 0.9, *(0.8 - 0.05 * k for k in range(8))]
    )
    assert (environment.edge_prob, settings[4].epsilon, environment.environment.spread) == (
        0.2,
        0.1,
        0.1,
    )
