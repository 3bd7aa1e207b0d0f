import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from tacit import graphs as net
from tacit.graphs import Graph, MixingMatrix

WEAKLY_CONNECTED = Graph.from_edges(
    # 0-1-2 and 3-4 send; 5-6 hear both; 7 hears 6 only.
    [(0, 1), (1, 2), (2, 0), (3, 4), (4, 3), (1, 5), (4, 6), (5, 6), (6, 5), (6, 7)],
    directed=True,
)


def _arcs(seed, n=12):
    random = np.random.default_rng(seed)
    dense = (random.random((n, n)) < 0.3) & ~np.eye(n, dtype=bool)
    edges = np.argwhere(dense)
    return Graph.from_edges(edges, n_nodes=n, weights=random.random(len(edges)), directed=True)


@pytest.mark.parametrize("seed", range(5))
def test_uniform_and_weighted_by_the_definition(seed):
    graph = _arcs(seed)
    A = net.adjacency(graph) + np.eye(12)
    assert np.allclose(MixingMatrix.uniform(graph).to_dense(), A / A.sum(axis=0))
    W = net.adjacency(graph, weighted=True) + 0.7 * np.eye(12)
    found = MixingMatrix.from_weights(graph, own_weight=0.7).to_dense()
    assert np.allclose(found, W / W.sum(axis=0))


@pytest.mark.parametrize("seed", range(5))
def test_metropolis_and_laplacian_by_the_definition(seed):
    graph = net.erdos_renyi(12, 0.3, seed=seed)
    other = net.to_networkx(graph)
    n = [other.degree(v) + 1 for v in range(12)]
    expected = np.zeros((12, 12))
    for j, k in other.edges:
        expected[j, k] = expected[k, j] = 1 / max(n[j], n[k])
    expected += np.diag(1 - expected.sum(axis=0))
    assert np.allclose(MixingMatrix.metropolis(graph).to_dense(), expected)
    L = nx.laplacian_matrix(other, nodelist=range(12)).toarray()
    assert np.allclose(MixingMatrix.laplacian(graph).to_dense(), np.eye(12) - L / max(n))


def test_undirected_weights_are_heard_both_ways():
    graph = Graph.from_edges([(0, 1), (1, 2)], weights=[1.0, 3.0])
    W = net.adjacency(graph, weighted=True) + np.eye(3)
    assert np.allclose(MixingMatrix.from_weights(graph).to_dense(), W / W.sum(axis=0))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array, sp.coo_array])
def test_given_matrices_round_trip(kind):
    A = np.array([[0.5, 0.0, 0.2], [0.5, 0.9, 0.0], [0.0, 0.1, 0.8]])
    matrix = MixingMatrix.from_matrix(kind(A))
    assert np.array_equal(matrix.to_dense(), A)
    assert np.array_equal(matrix.to_scipy().toarray(), A)
    assert np.array_equal(pickle.loads(pickle.dumps(matrix)).to_dense(), A)


def test_who_sends_to_whom():
    A = np.array([[0.5, 0.0, 0.2], [0.5, 0.9, 0.0], [0.0, 0.1, 0.8]])
    assert MixingMatrix.from_matrix(A).graph().edges().tolist() == [[0, 2], [1, 0], [2, 1]]
    graph = _arcs(3)
    assert np.array_equal(MixingMatrix.uniform(graph).graph().edges(), graph.edges())


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        ([[0.5, 0.0], [0.4, 1.0]], r"sum to 1, got 0.9 in column 0"),
        ([[1.0, 1.5], [0.0, -0.5]], "got -0.5 from agent 1 to agent 1"),
        ([[1.0, np.nan], [0.0, 1.0]], "got nan from agent 0 to agent 1"),
        ([[1.0, 1.0], [0.0, 0.0]], "listen to itself, got weight 0 for agent 1"),
        ([[1.0, 0.0]], r"square matrix, got shape \(1, 2\)"),
        ([1.0], r"square matrix, got shape \(1,\)"),
    ],
)
def test_bad_matrices_name_the_column(matrix, says):
    with pytest.raises(ValueError, match=says):
        MixingMatrix.from_matrix(matrix)


def test_bad_columns_are_named():
    with pytest.raises(ValueError, match="increasing senders, got another order in column 0"):
        MixingMatrix(indptr=[0, 2, 3], senders=[1, 0, 1], weights=[0.5, 0.5, 1.0])
    with pytest.raises(ValueError, match=r"senders in 0\.\.1, got 2 in column 1"):
        MixingMatrix(indptr=[0, 1, 2], senders=[0, 2], weights=[1.0, 1.0])
    with pytest.raises(ValueError, match="delimit columns"):
        MixingMatrix(indptr=[0, 1, 3], senders=[0, 1], weights=[1.0, 1.0])


def test_rules_that_need_another_graph():
    directed = Graph.from_edges([(0, 1)], directed=True)
    for rule in (MixingMatrix.metropolis, MixingMatrix.laplacian):
        with pytest.raises(ValueError, match="expected an undirected graph"):
            rule(directed)
    with pytest.raises(ValueError, match="expected a graph with weights"):
        MixingMatrix.from_weights(directed)
    with pytest.raises(ValueError, match="own_weight > 0"):
        MixingMatrix.from_weights(_arcs(0), own_weight=0.0)


def test_strong_connection_names_an_agent():
    MixingMatrix.uniform(net.ring(5)).require_strongly_connected()
    with pytest.raises(ValueError, match=r"Agents: .* node 3 cannot be reached from node 0"):
        MixingMatrix.uniform(WEAKLY_CONNECTED).require_strongly_connected("Agents")
    silent = MixingMatrix.from_matrix([[1.0, 0.5], [0.0, 0.5]])
    with pytest.raises(ValueError, match="node 1 cannot reach node 0"):
        silent.require_strongly_connected()


def test_sending_and_receiving_parts():
    sending, receiving = MixingMatrix.uniform(WEAKLY_CONNECTED).subnetworks()
    assert [part.tolist() for part in sending] == [[0, 1, 2], [3, 4]]
    assert [part.tolist() for part in receiving] == [[5, 6], [7]]
    alone = MixingMatrix.uniform(Graph.from_edges([], n_nodes=3)).subnetworks()
    assert [part.tolist() for part in alone.sending] == [[0], [1], [2]]
    assert alone.receiving == ()


def test_influence_is_the_limit_of_repeated_combination():
    matrix = MixingMatrix.uniform(WEAKLY_CONNECTED)
    limit = np.linalg.matrix_power(matrix.to_dense(), 2000)
    found = matrix.influence()
    assert np.allclose(found[0], limit[[0, 1, 2]].sum(axis=0), atol=1e-12)
    assert np.allclose(found[1], limit[[3, 4]].sum(axis=0), atol=1e-12)
    assert np.allclose(found.sum(axis=0), 1.0)
    assert np.allclose(MixingMatrix.uniform(net.ring(4)).influence(), np.ones((1, 4)))
