import itertools

import networkx as nx
import numpy as np
import pytest

from tacit import graphs as net
from tacit.graphs import Graph, Walk


def _psi(graph):
    """Equation (2) of paper 001, entry by entry."""
    other = net.to_networkx(graph)
    n = other.number_of_nodes()
    psi = np.zeros((n, n))
    for i in other:
        for j in other[i]:
            psi[i, j] = min(1 / other.degree(i), 1 / other.degree(j))
        psi[i, i] = 1 - psi[i].sum()
    return psi


CONNECTED = {
    "karate": net.classic("karate"),
    "star": net.star(7),
    "one node": net.path(1),
    "two nodes and a tail": net.path(3),
    "petersen": net.classic("petersen"),
    "random": net.largest_component(net.erdos_renyi(60, 0.06, seed=0)),
}


@pytest.mark.parametrize("name", CONNECTED)
@pytest.mark.parametrize("lazy", [False, True])
def test_the_matrix_and_what_follows_from_it(name, lazy):
    graph = CONNECTED[name]
    n = graph.n_nodes
    walk = Walk(graph, lazy=lazy)
    psi = (np.eye(n) + _psi(graph)) / 2 if lazy else _psi(graph)
    assert np.allclose(walk.to_dense(), psi, atol=1e-15)
    assert np.allclose(walk.to_scipy().toarray(), psi, atol=1e-15)
    assert np.allclose(walk.power(5), np.linalg.matrix_power(psi, 5))
    start = np.random.default_rng(0).random((n, 3))
    assert np.allclose(walk.spread(start, 7), np.linalg.matrix_power(psi, 7) @ start)
    assert np.allclose(walk.spread(start[:, 0], 2), psi @ psi @ start[:, 0])
    assert np.array_equal(walk.spread(start, 0), start)
    absolute = np.sort(np.abs(np.linalg.eigvals(psi)))[::-1]
    gap = 1 - absolute[1] if n > 1 else 1.0
    assert walk.spectral_gap == pytest.approx(gap, abs=1e-10)


def test_the_sparse_solver_agrees_with_the_dense_one():
    for graph, lazy in (
        (net.largest_component(net.erdos_renyi(900, 0.005, seed=1)), False),
        (net.watts_strogatz(500, 4, 0.05, seed=0), False),
        (net.ring(600), True),
    ):
        assert graph.n_nodes > 400
        values = np.linalg.eigvalsh(Walk(graph, lazy=lazy).to_dense())
        gap = 1 - max(abs(values[0]), values[-2])
        assert Walk(graph, lazy=lazy).spectral_gap == pytest.approx(gap, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("name", ["karate", "star", "petersen", "random"])
@pytest.mark.parametrize("closeness", [1e-2, 1e-5])
def test_the_walk_is_as_close_to_uniform_as_promised(name, closeness):
    walk = Walk(CONNECTED[name])
    n = walk.graph.n_nodes
    steps = walk.length(closeness)
    assert np.abs(walk.power(steps) - 1 / n).max() <= closeness
    assert np.abs(walk.power(max(steps // 8, 1)) - 1 / n).max() > closeness
    assert steps <= walk.length(closeness, bound="published")
    published = np.log(2 * n / closeness) / walk.spectral_gap
    assert walk.length(closeness, bound="published") == int(np.ceil(published))


def test_walks_that_never_settle_are_refused():
    for graph in (net.ring(6), net.path(2), Graph.from_edges([(0, 1)])):
        with pytest.raises(ValueError, match="bipartite graph in which every node has"):
            Walk(graph)
        assert Walk(graph, lazy=True).spectral_gap > 0
    with pytest.raises(ValueError, match="Walk: expected a connected graph, got 2 components"):
        Walk(Graph.from_edges([(0, 1)], n_nodes=3))
    with pytest.raises(ValueError, match="Walk: expected an undirected graph"):
        Walk(Graph.from_edges([(0, 1)], directed=True))
    assert nx.is_bipartite(net.to_networkx(net.path(3)))
    assert Walk(net.path(3)).spectral_gap > 0, "unequal degrees settle without being lazy"


def test_bad_arguments_name_themselves():
    walk = Walk(net.ring(5))
    with pytest.raises(ValueError, match="closeness in"):
        walk.length(0.0)
    with pytest.raises(ValueError, match="steps >= 0"):
        walk.spread(np.ones(5), -1)
    with pytest.raises(ValueError, match="start with 5 rows"):
        walk.spread(np.ones(4), 1)
    with pytest.raises(ValueError, match="steps >= 0"):
        walk.power(-1)


@pytest.mark.parametrize("name", ["karate", "star", "one node"])
def test_one_step_on_a_grid_of_uniforms_has_the_probabilities_of_the_matrix(name):
    """With m uniforms in the middle of m equal cells, each count is off by two cells at most."""
    graph, m = CONNECTED[name], 4000
    psi = _psi(graph)
    for node in range(graph.n_nodes):
        ends = [int(net.metropolis_step(*graph.csr, node, (i + 0.5) / m)) for i in range(m)]
        share = np.bincount(ends, minlength=graph.n_nodes) / m
        allowed = 2 * (1 + graph.degrees[node]) / m
        assert np.abs(share - psi[node]).max() <= allowed


def test_steps_follow_edges_or_stay():
    graph = CONNECTED["random"]
    for node, u in itertools.product(range(graph.n_nodes), (0.0, 0.3, 0.999, np.nextafter(1, 0))):
        there = int(net.metropolis_step(*graph.csr, node, u))
        assert there == node or there in graph.neighbours(node)
