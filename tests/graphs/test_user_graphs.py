import networkx as nx
import numpy as np
import pytest

from tacit import graphs as net
from tacit.graphs import Graph


def _cut_by_definition(graph, groups):
    other, total = net.to_networkx(graph), 0.0
    weight = None if graph.weights is None else "weight"
    for group in set(np.asarray(groups).tolist()):
        inside = np.flatnonzero(np.asarray(groups) == group).tolist()
        volume = nx.volume(other, inside, weight=weight)
        if volume > 0:
            total += nx.cut_size(other, inside, weight=weight) / volume
    return total


@pytest.mark.parametrize("weighted", [False, True])
def test_laplacians_are_those_of_networkx(weighted):
    graph = net.erdos_renyi(15, 0.3, seed=0)
    weights = np.random.default_rng(0).random(graph.n_edges)
    graph = Graph.from_edges(graph.edges(), n_nodes=15, weights=weights)
    name = "weight" if weighted else None
    expected = nx.laplacian_matrix(net.to_networkx(graph), weight=name).toarray()
    assert np.allclose(net.laplacian(graph, weighted=weighted), expected)
    assert np.allclose(net.sparse_laplacian(graph, weighted=weighted).toarray(), expected)


def test_laplacians_ask_for_what_they_need():
    with pytest.raises(ValueError, match="laplacian: expected an undirected graph"):
        net.laplacian(Graph.from_edges([(0, 1)], directed=True))
    with pytest.raises(ValueError, match="expected a graph with weights"):
        net.laplacian(net.ring(3), weighted=True)


def test_normalised_columns():
    W = net.column_normalised([[1.0, 2.0], [3.0, 0.0]])
    assert np.allclose(W, [[0.25, 1.0], [0.75, 0.0]])
    with pytest.raises(ValueError, match=r"got -1.0 at \(1, 0\)"):
        net.column_normalised([[1.0, 2.0], [-1.0, 0.0]])
    with pytest.raises(ValueError, match=r"got 0.0 in column 1"):
        net.column_normalised([[1.0, 0.0], [1.0, 0.0]])


@pytest.mark.parametrize("seed", range(6))
def test_cut_and_group_graph_by_the_definition(seed):
    random = np.random.default_rng(seed)
    graph = net.erdos_renyi(14, 0.3, seed=seed)
    if seed % 2:
        graph = Graph.from_edges(graph.edges(), n_nodes=14, weights=random.random(graph.n_edges))
    groups = np.concatenate(([0, 1, 2], random.integers(0, 3, 11)))
    assert net.normalised_cut(graph, groups) == pytest.approx(_cut_by_definition(graph, groups))
    other = net.to_networkx(graph)
    between = np.zeros((3, 3))
    for u, v, extra in other.edges(data=True):
        if groups[u] != groups[v]:
            between[groups[u], groups[v]] += extra.get("weight", 1.0)
    expected = between + between.T
    assert np.allclose(net.adjacency(net.group_graph(graph, groups), weighted=True), expected)


def test_groups_must_fit_the_graph():
    with pytest.raises(ValueError, match="group_graph: expected groups to be 3 integers"):
        net.group_graph(net.ring(3), [0, 1])
    with pytest.raises(ValueError, match="groups >= 0"):
        net.normalised_cut(net.ring(3), [0, -1, 0])
    with pytest.raises(ValueError, match=r"n_groups in 1\.\.3, got 4"):
        net.partition(net.ring(3), 4, seed=0)


GRAPHS = {
    "karate": net.classic("karate"),
    "star": net.star(40),
    "ring": net.ring(40),
    "apart": net.stochastic_block([10] * 4, np.eye(4) * 0.6, seed=0),
    "without edges": Graph.from_edges([], n_nodes=12),
    "without weight": Graph.from_edges([(0, 1), (2, 3), (4, 5)], weights=[0, 0, 0]),
    "isolated nodes": Graph.from_edges([(0, 1), (1, 2), (2, 0)], n_nodes=9),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_partitions_are_partitions(name):
    graph = GRAPHS[name]
    for n_groups in {1, 2, 3, 5, graph.n_nodes}:
        if n_groups > graph.n_nodes:
            continue
        groups = net.partition(graph, n_groups, seed=1)
        assert np.bincount(groups, minlength=n_groups).min() >= 1
        assert set(groups.tolist()) == set(range(n_groups))
        assert np.array_equal(groups, net.partition(graph, n_groups, seed=1))


def test_planted_groups_are_found():
    probs = np.full((5, 5), 0.01) + 0.39 * np.eye(5)
    graph = net.stochastic_block([30] * 5, probs, seed=0)
    planted = np.repeat(np.arange(5), 30)
    for seed in range(5):
        groups = net.partition(graph, 5, seed=seed)
        assert len({*zip(groups.tolist(), planted.tolist(), strict=True)}) == 5


def test_components_are_split_only_if_asked():
    graph = net.stochastic_block([12] * 4, np.eye(4) * 0.8, seed=1)
    parts = net.components(graph)
    assert int(parts.max()) == 3
    assert np.array_equal(net.partition(graph, 4, seed=0), parts)
    for n_groups in (2, 3):
        assert net.normalised_cut(graph, net.partition(graph, n_groups, seed=0)) == 0
    assert net.normalised_cut(graph, net.partition(graph, 5, seed=0)) > 0


def test_karate_club_near_the_best_bisection():
    """The best of all bisections found by local search from 40 random starts, or better."""
    graph = net.classic("karate")
    random, best = np.random.default_rng(0), np.inf
    for _ in range(40):
        groups = random.integers(0, 2, 34)
        improved = True
        while improved:
            improved = False
            for v in range(34):
                before = net.normalised_cut(graph, groups)
                groups[v] ^= 1
                if len(set(groups.tolist())) == 1 or net.normalised_cut(graph, groups) >= before:
                    groups[v] ^= 1
                else:
                    improved = True
        best = min(best, net.normalised_cut(graph, groups))
    found = net.normalised_cut(graph, net.partition(graph, 2, seed=0))
    assert found <= 1.05 * best


def test_lastfm_friends_into_a_hundred_groups(data):
    """Far below a partition at random, which cuts nearly every edge."""
    graph = net.read_edges(
        data("hetrec2011-lastfm-2k/user_friends.dat.gz"),
        header=True,
        relabel=True,
        duplicates="merge",
    )
    groups = net.partition(graph, 100, seed=0)
    assert np.bincount(groups).size == 100
    random = np.random.default_rng(0).permutation(np.arange(graph.n_nodes) % 100)
    assert net.normalised_cut(graph, groups) < 0.45 * net.normalised_cut(graph, random)
    assert net.group_graph(graph, groups).n_nodes == 100
