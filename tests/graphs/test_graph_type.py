import copy
import pickle

import networkx as nx
import numpy as np
import pytest
import rustworkx
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import graphs as net
from tacit.graphs import Graph


@st.composite
def edge_lists(draw, directed):
    n = draw(st.integers(1, 12))
    pairs = [(u, v) for u in range(n) for v in range(n) if (u != v if directed else u < v)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    if not directed:
        edges = [edge[::-1] if draw(st.booleans()) else edge for edge in edges]
    weights = draw(st.lists(st.floats(0, 9), min_size=len(edges), max_size=len(edges)))
    return n, edges, weights


@pytest.mark.parametrize("directed", [False, True])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_graph_agrees_with_networkx(directed, data):
    n, edges, weights = data.draw(edge_lists(directed))
    graph = Graph.from_edges(edges, n_nodes=n, weights=weights, directed=directed)
    other = nx.DiGraph() if directed else nx.Graph()
    other.add_nodes_from(range(n))
    other.add_weighted_edges_from((u, v, w) for (u, v), w in zip(edges, weights, strict=True))
    assert graph.n_edges == other.number_of_edges()
    for v in range(n):
        assert graph.neighbours(v).tolist() == sorted(other[v])
    assert np.array_equal(net.adjacency(graph, weighted=True), nx.to_numpy_array(other))
    assert np.array_equal(net.adjacency(graph.reverse()), nx.to_numpy_array(other, weight=None).T)
    either = nx.to_numpy_array(other.to_undirected(), weight=None)
    assert np.array_equal(net.adjacency(graph.undirected()), either)
    assert net.from_networkx(net.to_networkx(graph), weight="weight") == graph
    assert net.from_rustworkx(net.to_rustworkx(graph), weighted=True) == graph
    chosen = np.random.default_rng(n).permutation(n)[: (n + 1) // 2]
    assert np.array_equal(
        net.adjacency(graph.subgraph(chosen)),
        nx.to_numpy_array(other, nodelist=chosen, weight=None),
    )


def test_order_of_edges_does_not_matter_and_content_does():
    edges = [(3, 1), (0, 2), (1, 0)]
    graph = Graph.from_edges(edges)
    assert graph == Graph.from_edges([(0, 1), (2, 0), (1, 3)])
    assert hash(graph) == hash(Graph.from_edges(edges[::-1]))
    different = [
        Graph.from_edges(edges, n_nodes=5),
        Graph.from_edges(edges, directed=True),
        Graph.from_edges(edges, weights=[1, 1, 1]),
        Graph.from_edges(edges, labels=["a", "b", "c", "d"]),
        Graph.from_edges(edges[1:], n_nodes=4),
    ]
    assert len({graph, *different}) == 6
    assert graph != edges


def test_a_graph_cannot_be_changed_and_survives_pickling():
    graph = Graph.from_edges([(0, 1), (1, 2)], weights=[1.0, 2.0], labels=["a", "b", "c"])
    for array in (graph.indptr, graph.indices, graph.weights, graph.labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        graph.directed = True
    for again in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        assert again == graph
        assert np.array_equal(again.csr.indices, graph.indices)
    source = np.array([0, 1, 2])
    graph = Graph(indptr=source, indices=[1, 0])
    source[:] = 9
    assert graph.indptr.tolist() == [0, 1, 2]


def test_scipy_round_trip():
    graph = Graph.from_edges([(0, 1), (2, 0)], weights=[0.5, 2.0], directed=True)
    assert net.from_scipy(net.to_scipy(graph), directed=True, weighted=True) == graph
    stored_zero = sp.coo_array(([1.0, 0.0], ([0, 1], [1, 2])), shape=(3, 3))
    assert net.from_scipy(stored_zero, directed=True).n_edges == 1
    with pytest.raises(ValueError, match=r"both directions .* \(0, 1\)"):
        net.from_scipy(stored_zero, directed=False)
    with pytest.raises(ValueError, match=r"square matrix, got shape \(2, 3\)"):
        net.from_scipy(sp.coo_array((2, 3)), directed=True)


def test_names_become_labels():
    graph = net.from_networkx(nx.florentine_families_graph())
    assert graph.labels[0] == "Acciaiuoli"
    assert nx.utils.graphs_equal(net.to_networkx(graph), nx.florentine_families_graph())
    mixed = nx.Graph([(1, "a"), ("a", (2, 3))])
    assert net.from_networkx(mixed).labels.tolist() == ["1", "a", "(2, 3)"]


def test_rustworkx_with_a_removed_node():
    other = rustworkx.PyGraph()
    other.add_nodes_from(range(4))
    other.add_edges_from([(0, 3, 2.5), (2, 3, 1.0)])
    other.remove_node(1)
    graph = net.from_rustworkx(other, weighted=True)
    assert graph.edges().tolist() == [[0, 2], [1, 2]]
    assert graph.edge_weights().tolist() == [2.5, 1.0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"edges": [(0, 1), (2, 2)]}, r"no loops, got edge 1: \(2, 2\)"),
        ({"edges": [(0, 1), (1, 2), (1, 0)]}, r"every edge once, got again edge 2: \(1, 0\)"),
        ({"edges": [(0, 1), (0, -1)]}, r"nodes in 0\.\.1, got \(0, -1\) at position 1"),
        ({"edges": [(0, 7)], "n_nodes": 3}, r"nodes in 0\.\.2, got \(0, 7\)"),
        (
            {"edges": [(0, 1), (1, 2)], "weights": [1, -2]},
            r"weights >= 0, got -2.0 on edge \(1, 2\)",
        ),
        ({"edges": [(0, 1)], "weights": [np.nan]}, r"weights >= 0, got nan on edge \(0, 1\)"),
        ({"edges": [(0, 1)], "weights": [1, 2]}, "expected 1 weights"),
        ({"edges": [(0, 1, 2)]}, r"shape \(n_edges, 2\), got \(1, 3\)"),
        ({"edges": [(0.5, 1)]}, "integer nodes, got float64"),
        ({"edges": [(0, 1)], "labels": ["a"]}, "expected 2 labels"),
        ({"edges": [], "n_nodes": -1}, "n_nodes < 2"),
        (
            {"edges": [(0, 1), (1, 0)], "weights": [1, 2], "duplicates": "merge"},
            r"equal weights for a repeated edge, got another for edge 1: \(1, 0\)",
        ),
    ],
)
def test_bad_edges_are_named(arguments, says):
    with pytest.raises(ValueError, match=says):
        Graph.from_edges(**arguments)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"indptr": [], "indices": []}, "not empty"),
        ({"indptr": [0, 2], "indices": [1]}, "rise from 0 to 1"),
        ({"indptr": [0, 1], "indices": [3]}, r"neighbours in 0\.\.0, got 3"),
        ({"indptr": [0, 1, 1], "indices": [0]}, "loops, got one at node 0"),
        (
            {"indptr": [0, 2, 2, 2], "indices": [2, 1], "directed": True},
            "1 after 2 in the row of node 0",
        ),
        ({"indptr": [0, 2, 2], "indices": [1, 1], "directed": True}, "1 after 1"),
        ({"indptr": [0, 1, 1], "indices": [1]}, r"both directions .*\(0, 1\)"),
        ({"indptr": [0, 1, 2], "indices": [1, 0], "weights": [1, 2]}, r"1.0 and 2.0 for \(0, 1\)"),
    ],
)
def test_bad_rows_are_named(arguments, says):
    with pytest.raises(ValueError, match=says):
        Graph(**arguments)


def test_loops_and_duplicates_on_request():
    graph = Graph.from_edges(
        [(0, 0), (0, 1), (1, 0), (2, 1)],
        weights=[9, 1, 1, 3],
        loops="drop",
        duplicates="merge",
    )
    assert graph.edges().tolist() == [[0, 1], [1, 2]]
    assert graph.edge_weights().tolist() == [1, 3]
    assert graph.strengths.tolist() == [1, 4, 3]


def test_empty_graphs():
    nothing = Graph.from_edges([])
    assert (nothing.n_nodes, nothing.n_edges) == (0, 0)
    assert net.is_connected(nothing)
    assert net.largest_component(nothing) == nothing
    assert net.independence_number(nothing) == (0, 0)
    with pytest.raises(IndexError, match="got 0"):
        nothing.neighbours(0)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("directed", [False, True])
def test_components_agree_with_networkx(seed, directed):
    graph = net.erdos_renyi(40, 0.03, seed=seed)
    if directed:
        both = np.concatenate((graph.edges(), graph.edges()[::2, ::-1]))
        graph = Graph.from_edges(both, n_nodes=40, directed=True)
    other = net.to_networkx(graph)
    weak = nx.weakly_connected_components(other) if directed else nx.connected_components(other)
    assert _groups(net.components(graph)) == {frozenset(c) for c in weak}
    if directed:
        strong = nx.strongly_connected_components(other)
        assert _groups(net.strong_components(graph)) == {frozenset(c) for c in strong}
    assert net.is_bipartite(graph) == nx.is_bipartite(other.to_undirected())
    largest = net.largest_component(graph)
    assert largest.n_nodes == np.bincount(net.components(graph)).max()
    assert net.is_connected(largest)


def _groups(labels):
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}


def test_numbers_of_components_follow_the_lowest_node():
    graph = Graph.from_edges([(4, 0), (0, 4), (1, 3), (3, 1), (4, 2)], directed=True)
    assert net.strong_components(graph).tolist() == [0, 1, 2, 1, 0]


def test_checks_name_a_node():
    apart = Graph.from_edges([(0, 1), (2, 3)], n_nodes=5)
    with pytest.raises(ValueError, match=r"GAP: .* 3 components; node 2 cannot be reached"):
        net.require_connected(apart, "GAP")
    chain = Graph.from_edges([(1, 0), (0, 1), (1, 2)], directed=True)
    with pytest.raises(ValueError, match="node 2 cannot reach node 0"):
        net.require_strongly_connected(chain, "GAP")
    with pytest.raises(ValueError, match="node 2 cannot be reached from node 0"):
        net.require_strongly_connected(chain.reverse(), "GAP")
    with pytest.raises(ValueError, match="GAP: expected an undirected graph"):
        net.require_undirected(chain, "GAP")
    whole = Graph.from_edges([(0, 1), (1, 2), (2, 0)], directed=True)
    net.require_strongly_connected(whole, "GAP")
