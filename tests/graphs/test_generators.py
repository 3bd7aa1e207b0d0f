import networkx as nx
import numpy as np
import pytest

from tacit import graphs as net


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (net.ring(7), nx.cycle_graph(7)),
        (net.path(5), nx.path_graph(5)),
        (net.path(1), nx.path_graph(1)),
        (net.star(6), nx.star_graph(5)),
        (net.complete(6), nx.complete_graph(6)),
        (net.complete(1), nx.complete_graph(1)),
        (net.grid(3, 4), nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4))),
        (net.classic("karate"), nx.karate_club_graph()),
        (net.classic("petersen"), nx.petersen_graph()),
        (net.classic("kite"), nx.krackhardt_kite_graph()),
        (net.watts_strogatz(11, 4, 0.0, seed=0), nx.watts_strogatz_graph(11, 4, 0.0)),
    ],
)
def test_fixed_graphs_are_those_of_networkx(ours, theirs):
    assert ours == net.from_networkx(theirs)


def test_florentine_families():
    ours = net.to_networkx(net.classic("florentine"))
    assert nx.utils.edges_equal(ours.edges, nx.florentine_families_graph().edges)
    with pytest.raises(ValueError, match="got 'moebius'"):
        net.classic("moebius")


SEEDED = {
    "erdos_renyi": lambda **at: net.erdos_renyi(30, 0.2, **at),
    "barabasi_albert": lambda **at: net.barabasi_albert(30, 2, **at),
    "watts_strogatz": lambda **at: net.watts_strogatz(30, 4, 0.3, **at),
    "stochastic_block": lambda **at: net.stochastic_block([10, 20], [[0.5, 0.1], [0.1, 0.4]], **at),
}


@pytest.mark.parametrize("name", SEEDED)
def test_seed_and_repetition_decide(name):
    graphs = [SEEDED[name](seed=s, repetition=r) for s in range(4) for r in range(4)]
    again = [SEEDED[name](seed=s, repetition=r) for s in range(4) for r in range(4)]
    assert graphs == again
    assert len(set(graphs)) == 16


def _pair_counts(draw, n, runs):
    counts = np.zeros((n, n))
    for r in range(runs):
        counts += net.adjacency(draw(r))
    return counts[np.tril_indices(n, -1)]


def _worst_deviation(counts, runs, prob):
    return np.abs(counts - runs * prob).max() / np.sqrt(runs * prob * (1 - prob))


def test_every_pair_is_as_likely_as_asked():
    """45 pairs at 5 standard errors: a false alarm in 45 * 5.7e-7 = 2.6e-5 of seeds."""
    runs = 1500
    counts = _pair_counts(lambda r: net.erdos_renyi(10, 0.2, seed=1, repetition=r), 10, runs)
    assert _worst_deviation(counts, runs, 0.2) < 5
    assert _worst_deviation(counts, runs, 0.25) > 5, "the test must notice another probability"


def test_pairs_are_independent():
    """The variance of the number of edges, within 5 standard errors of a binomial's."""
    runs = 1500
    sizes = [net.erdos_renyi(10, 0.2, seed=2, repetition=r).n_edges for r in range(runs)]
    variance = 45 * 0.2 * 0.8
    assert abs(np.var(sizes) / variance - 1) < 5 * np.sqrt(2 / runs)


@pytest.mark.parametrize("n_nodes", [0, 1, 2, 50])
def test_certain_and_impossible_edges(n_nodes):
    pairs = n_nodes * (n_nodes - 1) // 2
    assert net.erdos_renyi(n_nodes, 1.0, seed=0).n_edges == pairs
    assert net.erdos_renyi(n_nodes, 0.0, seed=0).n_edges == 0
    assert net.erdos_renyi(n_nodes, 1e-300, seed=0).n_edges == 0


def test_large_sparse_graph_has_the_right_size():
    """Within 5 standard errors."""
    graph = net.erdos_renyi(200_000, 5e-6, seed=3)
    expected = 200_000 * 199_999 / 2 * 5e-6
    assert abs(graph.n_edges - expected) < 5 * np.sqrt(expected)


def test_blocks_have_their_own_probabilities():
    """Each of three counts within 5 standard errors of its mean."""
    probs = np.array([[0.3, 0.05], [0.05, 0.1]])
    block = np.repeat([0, 1], [40, 60])
    runs = 40
    counts = np.zeros((2, 2))
    for r in range(runs):
        edges = net.stochastic_block([40, 60], probs, seed=0, repetition=r).edges()
        np.add.at(counts, (block[edges[:, 0]], block[edges[:, 1]]), 1)
    for a, b, pairs in ((0, 0, 780), (1, 1, 1770), (0, 1, 2400)):
        p, n = probs[a, b], runs * pairs
        assert abs(counts[a, b] - n * p) < 5 * np.sqrt(n * p * (1 - p))


def test_preferential_attachment():
    """Node 1 of a star on two nodes, n_links=1: the third node joins either with chance one half.

    5 standard errors; and the degree of the first nodes grows far beyond a uniform choice's.
    """
    runs = 2000
    joins = sum(
        net.barabasi_albert(3, 1, seed=0, repetition=r).degrees[0] == 2 for r in range(runs)
    )
    assert abs(joins - runs / 2) < 5 * np.sqrt(runs / 4)
    # With four nodes and one link: path or star on three, then the middle has 2 of 4 ends.
    hubs = sum(
        net.barabasi_albert(4, 1, seed=1, repetition=r).degrees.max() == 3 for r in range(runs)
    )
    assert abs(hubs - runs / 2) < 5 * np.sqrt(runs / 4)
    assert abs(hubs - runs / 3) > 5 * np.sqrt(runs * 2 / 9), "a uniform choice must be noticed"
    graph = net.barabasi_albert(500, 3, seed=0)
    assert graph.n_edges == 3 * (500 - 3)
    assert graph.degrees.min() >= 1
    assert net.is_connected(graph)


def test_rewiring_moves_the_asked_share():
    """Kept edges within 5 standard errors of binomial; a moved edge seldom returns (1 in 990)."""
    original = set(map(tuple, net.watts_strogatz(1000, 6, 0, seed=0).edges().tolist()))
    graph = net.watts_strogatz(1000, 6, 0.3, seed=0)
    kept = len(original & set(map(tuple, graph.edges().tolist())))
    assert graph.n_edges == 3000
    assert abs(kept - 3000 * 0.7) < 5 * np.sqrt(3000 * 0.21) + 3
    assert net.watts_strogatz(5, 4, 1.0, seed=0) == net.complete(5)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: net.erdos_renyi(10, 1.5, seed=0), "erdos_renyi: expected edge_prob"),
        (lambda: net.erdos_renyi(10, float("nan"), seed=0), "erdos_renyi: expected edge_prob"),
        (lambda: net.erdos_renyi(-1, 0.5, seed=0), "n_nodes >= 0, got -1"),
        (lambda: net.barabasi_albert(3, 3, seed=0), r"n_links in 1\.\.2, got 3"),
        (lambda: net.watts_strogatz(9, 3, 0.1, seed=0), "n_neighbours even"),
        (lambda: net.watts_strogatz(9, 4, -0.1, seed=0), "rewire_prob"),
        (lambda: net.stochastic_block([2, 2], [[1, 0.2], [0.1, 1]], seed=0), "probs symmetric"),
        (lambda: net.stochastic_block([2, 2], [[1]], seed=0), r"probs of shape \(2, 2\)"),
        (lambda: net.ring(2), "ring: expected n_nodes >= 3, got 2"),
        (lambda: net.grid(0, 2), "grid: expected n_rows >= 1, got 0"),
    ],
)
def test_bad_parameters_name_themselves(call, says):
    with pytest.raises(ValueError, match=says):
        call()
