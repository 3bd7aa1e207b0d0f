import itertools
from collections import Counter

import networkx as nx
import numpy as np
import pytest

from oracles.independent_sets import get_ind_set, maximal_independent_sets
from tacit import graphs as net
from tacit.graphs import Graph


def _draw(graph, uniforms, active=None):
    n = graph.n_nodes
    active = np.ones(n, bool) if active is None else active
    member, work = np.ones(n, bool), np.full(net.work_size(n), 7, np.int64)
    exact = net.uniform_independent_set(*graph.csr, active, uniforms, member, work)
    return frozenset(np.flatnonzero(member).tolist()), bool(exact)


@pytest.mark.parametrize("seed", range(20))
def test_greedy_is_the_paper_s_get_ind_set(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 15))
    graph = net.erdos_renyi(n, random.random(), seed=seed)
    active = random.random(n) < 0.7
    means = random.integers(0, 4, n) / 4  # with ties, which go to the lowest index
    order = np.argsort(-means, kind="stable")
    member = np.ones(n, bool)
    size = net.greedy_independent_set(*graph.csr, active, order, member)
    edges = set(map(tuple, graph.edges().tolist()))
    expected = get_ind_set(np.flatnonzero(active).tolist(), edges, means)
    assert set(np.flatnonzero(member).tolist()) == expected
    assert size == len(expected)


@pytest.mark.parametrize("seed", range(12))
def test_the_draw_reaches_exactly_the_maximal_sets(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 10))
    graph = net.erdos_renyi(n, random.random(), seed=seed)
    active = random.random(n) < 0.8
    sets = maximal_independent_sets(np.flatnonzero(active).tolist(), graph.edges().tolist())
    # Uniforms on a grid finer than any number of sets of a component reach every set.
    steps = (np.arange(40) + 0.5) / 40
    roots = [v for v in range(n) if active[v]]
    found = set()
    for values in itertools.islice(itertools.product(steps, repeat=min(len(roots), 2)), 1600):
        uniforms = np.full(n, values[0] if values else 0.0)
        uniforms[1::2] = values[-1] if values else 0.0
        drawn, exact = _draw(graph, uniforms, active)
        assert exact
        found.add(drawn)
    for _ in range(300):
        found.add(_draw(graph, random.random(n), active)[0])
    assert found <= set(sets)
    if len(sets) <= 12:
        assert found == set(sets)


def _chi_square(counts, sets, runs):
    expected = runs / len(sets)
    statistic = sum((counts[s] - expected) ** 2 / expected for s in sets)
    return (statistic - (len(sets) - 1)) / np.sqrt(2 * (len(sets) - 1))


def test_the_draw_is_uniform_and_random_greedy_is_not():
    """Chi-square less than 5 of its standard deviations above its mean (false alarm under 1e-4).

    Greedy in random order is the twin that must fail: it favours sets with many nodes.
    """
    runs, graph = 6000, Graph.from_edges([(0, 1), (0, 2), (0, 3), (4, 5), (5, 6)], n_nodes=8)
    sets = maximal_independent_sets(range(8), graph.edges().tolist())
    assert len(sets) == 4
    random = np.random.default_rng(0)
    uniform, greedy = Counter(), Counter()
    member = np.empty(8, bool)
    for _ in range(runs):
        uniform[_draw(graph, random.random(8))[0]] += 1
        order = random.permutation(8)
        net.greedy_independent_set(*graph.csr, np.ones(8, bool), order, member)
        greedy[frozenset(np.flatnonzero(member).tolist())] += 1
    assert _chi_square(uniform, sets, runs) < 5
    assert _chi_square(greedy, sets, runs) > 5


def test_large_components_are_taken_greedily_and_say_so():
    random = np.random.default_rng(0)
    for graph in (net.ring(63), net.erdos_renyi(150, 0.05, seed=0)):
        uniforms = random.random(graph.n_nodes)
        drawn, exact = _draw(graph, uniforms)
        assert not exact
        member = np.empty(graph.n_nodes, bool)
        everyone = np.ones(graph.n_nodes, bool)
        net.greedy_independent_set(*graph.csr, everyone, np.argsort(uniforms), member)
        assert drawn == frozenset(np.flatnonzero(member).tolist())


def test_many_small_components_stay_exact():
    triangles = Graph.from_edges(
        [(3 * i + a, 3 * i + b) for i in range(40) for a, b in ((0, 1), (1, 2), (0, 2))]
    )
    uniforms = np.zeros(120)
    uniforms[0::3] = np.repeat([0.1, 0.5, 0.9, 0.4], 10)
    drawn, exact = _draw(triangles, uniforms)
    assert exact
    assert len(drawn) == 40
    assert [v % 3 for v in sorted(drawn)] == [0] * 10 + [1] * 10 + [2] * 10 + [1] * 10


def test_too_many_sets_in_one_component():
    """A hub with 14 triangles: 3^14 sets without the hub, beyond what is enumerated."""
    edges = [(1 + 3 * i + a, 1 + 3 * i + b) for i in range(14) for a, b in ((0, 1), (1, 2), (0, 2))]
    hub = Graph.from_edges(edges + [(0, v) for v in range(1, 43)])
    assert not _draw(hub, np.linspace(0.9, 0.1, 43))[1]
    few = hub.subgraph(range(1 + 3 * 8))
    assert _draw(few, np.linspace(0.9, 0.1, 25))[1]


@pytest.mark.parametrize("seed", range(10))
def test_independence_number_of_small_graphs(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 13))
    graph = net.erdos_renyi(n, random.random(), seed=seed)
    sets = maximal_independent_sets(range(n), graph.edges().tolist())
    assert net.independence_number(graph) == (max(map(len, sets)),) * 2


@pytest.mark.parametrize(("n_nodes", "prob"), [(62, 0.08), (62, 0.15), (55, 0.3), (62, 0.7)])
def test_independence_number_of_middling_graphs(n_nodes, prob):
    graph = net.erdos_renyi(n_nodes, prob, seed=1)
    _, size = nx.max_weight_clique(nx.complement(net.to_networkx(graph)), weight=None)
    assert net.independence_number(graph) == (size, size)


@pytest.mark.parametrize(
    ("graph", "size"),
    [
        (net.star(1000), 999),
        (net.path(1001), 501),
        (net.barabasi_albert(2000, 1, seed=0), None),
        (net.complete(200), 1),
        (net.complete(1), 1),
        (Graph.from_edges([], n_nodes=9), 9),
        (net.classic("petersen"), 4),
        (net.classic("karate"), 20),
    ],
)
def test_where_bounds_meet(graph, size):
    found = net.independence_number(graph)
    assert found.exact
    if size is None:  # a tree: nodes minus a maximum matching (Koenig)
        size = graph.n_nodes - len(nx.max_weight_matching(net.to_networkx(graph), True))
    assert found.lower == size


@pytest.mark.parametrize(
    "graph", [net.grid(12, 12), net.ring(101), net.erdos_renyi(90, 0.1, seed=4)]
)
def test_bounds_hold_for_large_graphs(graph):
    lower, upper = net.independence_number(graph)
    if nx.is_bipartite(other := net.to_networkx(graph)):
        size = graph.n_nodes - len(nx.max_weight_matching(other, True))
    elif graph.n_nodes == 101:
        size = 50
    else:
        _, size = nx.max_weight_clique(nx.complement(other), weight=None)
    assert lower <= size <= upper
    assert lower >= 0.85 * size


def test_directed_graphs_are_refused():
    with pytest.raises(ValueError, match="undirected"):
        net.independence_number(Graph.from_edges([(0, 1)], directed=True))
