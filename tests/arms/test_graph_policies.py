"""The policies on feedback graphs against oracles written from the papers, and their own rules."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oracles import graph_feedback as oracle
from tacit.arms import (
    AAE,
    DPSE,
    GAP,
    GAPU,
    TSN,
    UCBN,
    AlphaSample,
    Bernoulli,
    GraphFeedback,
    Recorded,
    TruncatedNormal,
)
from tacit.arms.elimination import FIRST, LACKING, PHASE, WANTED
from tacit.arms.table import reward
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import CHOICE, NOISE, recorded_tape, seeded_tape, uniform
from tacit.graphs import Graph, complete, erdos_renyi, path, star
from tacit.privacy.mechanisms.laplace import standard_laplace

K = 5
ROUNDS = 9_000 if INTERPRETED else 40_000
MEANS = np.array([0.8, 0.75, 0.5, 0.3, 0.1])


def rewards(rounds=ROUNDS, seed=0):
    return np.clip(MEANS + np.random.default_rng(seed).normal(0, 0.2, (rounds, K)), 0, 1)


def near(graph: Graph):
    return [{a, *graph.neighbours(a).tolist()} for a in range(graph.n_nodes)]


def played(policy, environment, horizon, *, tape=None, first=0):
    table = environment.table(0, 0, horizon)
    trace = environment.trace(horizon, np.array([horizon]), record=True)
    state = policy.start(table)
    policy.play(state, table, tape or seeded_tape(1), trace, first, horizon)
    return state, trace


def laplace(t, a):
    return standard_laplace(seeded_tape(1), t, a, NOISE)


GRAPHS = [
    path(K),
    star(K),
    complete(K),
    erdos_renyi(K, 0.3, seed=2),
    Graph.from_edges([], n_nodes=K),
]


@pytest.mark.parametrize("graph", GRAPHS, ids=["path", "star", "clique", "random", "no edges"])
@pytest.mark.parametrize("unit", ["reward", "round"])
@pytest.mark.parametrize("noise", ["published", "tight"])
def test_gap_is_algorithm_1(graph, unit, noise):
    data = rewards()
    policy = GAP(n_arms=K, epsilon=0.5, horizon=ROUNDS, failure_prob=0.9, unit=unit, noise=noise)
    state, trace = played(
        policy, GraphFeedback(environment=Recorded(data=data), graph=graph), ROUNDS
    )
    decisions, phases = oracle.gap(
        data, near(graph), 0.5, 0.9, laplace, unit=unit, tight=noise == "tight"
    )
    np.testing.assert_array_equal(trace.decisions, decisions)
    assert len(phases) >= 1
    assert state.now[PHASE] == len(phases) + 1
    for a, mean in phases[-1]["mean"].items():
        assert state.means[a] == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("environment", [Bernoulli, TruncatedNormal])
def test_gap_is_algorithm_1_on_virtual_tables(environment):
    # Four rounds at a time: rounds that share an arm's random words are played together.
    for graph in GRAPHS[2:4]:
        rounds = 3_000 if INTERPRETED else 12_000
        feedback = GraphFeedback(environment=environment(means=tuple(MEANS)), graph=graph)
        table = feedback.table(0, 0, rounds)
        data = np.array([[reward(table, t, a) for a in range(K)] for t in range(rounds)])
        policy = GAP(n_arms=K, epsilon=0.5, horizon=rounds, failure_prob=0.9)
        _, trace = played(policy, feedback, rounds)
        decisions, phases = oracle.gap(data, near(graph), 0.5, 0.9, laplace)
        np.testing.assert_array_equal(trace.decisions, decisions)
        np.testing.assert_array_equal(trace.rewards, data[np.arange(rounds), decisions])
        assert len(phases) >= 1


def test_gap_oracle_has_teeth():
    data, graph = rewards(), path(K)
    decisions, _ = oracle.gap(data, near(graph), 0.5, 0.9, laplace)
    for wrong in ({"unit": "round"}, {"tight": True}):
        _, phases = oracle.gap(data, near(graph), 0.5, 0.9, laplace, **wrong)
        right = oracle.gap(data, near(graph), 0.5, 0.9, laplace)[1]
        assert phases[0]["mean"] != right[0]["mean"]
    quiet, _ = oracle.gap(data, near(graph), 0.5, 0.9, lambda t, a: 400.0 * (a == 4))
    assert not np.array_equal(quiet, decisions)


def test_a_round_costs_what_claims_say():
    # Ten arms: a clique costs ten times one reward, a graph without edges once.
    for graph, factor in ((complete(10), 10.0), (Graph.from_edges([], n_nodes=10), 1.0)):
        data = np.full((60_000, 10), 0.5)
        _, phases = oracle.gap(data, near(graph), 1.0, 0.9, lambda t, a: 0.0, unit="round")
        assert phases[0]["factor"] == factor
        environment = GraphFeedback(environment=Recorded(data=data[:20_000]), graph=graph)
        policy = GAP(n_arms=10, epsilon=1.0, horizon=20_000, failure_prob=0.9, unit="round")
        state, _ = played(policy, environment, 1)
        assert state.now[WANTED] == phases[0]["L"]


def test_gapu_plays_maximal_sets_and_is_gap_otherwise():
    graph, data = erdos_renyi(K, 0.4, seed=5), rewards()
    environment = GraphFeedback(environment=Recorded(data=data), graph=graph)
    policy = GAPU(n_arms=K, epsilon=0.5, horizon=ROUNDS, failure_prob=0.9)
    table, tape = environment.table(0, 0, ROUNDS), seeded_tape(1)
    state = policy.start(table)
    trace = environment.trace(ROUNDS, np.array([ROUNDS]), record=True)
    chosen = {}
    for first in range(0, ROUNDS, 500):
        policy.play(state, table, tape, trace, first, min(first + 500, ROUNDS))
        omega = frozenset(np.flatnonzero(state.chosen).tolist())
        assert omega in oracle.maximal_sets(np.flatnonzero(state.active).tolist(), near(graph))
        chosen[int(state.now[FIRST])] = omega
    decisions, phases = oracle.gap(
        data, near(graph), 0.5, 0.9, laplace, choose=lambda t, active, mean: chosen[t]
    )
    assert len(phases) >= 1
    np.testing.assert_array_equal(trace.decisions, decisions)


def first_sets(policy, table, n):
    found = []
    for i in range(n):
        state = policy.start(table)
        policy.select(state, seeded_tape(9, i), 0, np.arange(policy.n_arms))
        found.append(frozenset(np.flatnonzero(state.chosen).tolist()))
    return found


def farthest(found, sets):
    n = len(found)
    p = 1 / len(sets)
    return max(abs(found.count(s) - n * p) / math.sqrt(n * p * (1 - p)) for s in sets)


def test_gapu_draws_uniformly():
    # 5 standard errors for each of 3 sets: a false alarm once in half a million runs.
    graph, n = path(4), 600 if INTERPRETED else 3000
    table = GraphFeedback(environment=Bernoulli(means=(0.5,) * 4), graph=graph).table(0, 0, 1)
    sets = oracle.maximal_sets(range(4), near(graph))
    assert len(sets) == 3
    assert farthest(first_sets(GAPU(n_arms=4, horizon=1), table, n), sets) < 5
    rng = np.random.default_rng(0)
    by_order = [
        frozenset(oracle.greedy_set(range(4), dict(enumerate(rng.random(4))), near(graph)))
        for _ in range(n)
    ]
    assert farthest(by_order, sets) > 5


def test_dpse_is_algorithm_2():
    data = rewards()
    environment = GraphFeedback(environment=Recorded(data=data), graph=complete(K))
    _, trace = played(
        DPSE(n_arms=K, epsilon=0.5, horizon=ROUNDS, failure_prob=0.9), environment, ROUNDS
    )
    expected = oracle.dpse(data, 0.5, 0.9, laplace)
    np.testing.assert_array_equal(trace.decisions, expected)
    assert len(set(expected[-100:].tolist())) < K


def test_dpse_stops_noising_when_one_arm_is_left():
    data = np.zeros((20_000, 2))
    data[:, 1] = 1.0
    policy = DPSE(n_arms=2, epsilon=1.0, horizon=20_000, failure_prob=0.9)
    tape = seeded_tape(1)
    state, trace = played(policy, Recorded(data=data), 20_000, tape=tape)
    assert state.active.tolist() == [False, True]
    assert (trace.decisions[-15_000:] == 1).all()
    assert tape.reads[1] == 2


def test_aae_is_successive_elimination():
    data = rewards()
    environment = GraphFeedback(environment=Recorded(data=data), graph=complete(K))
    state, trace = played(AAE(n_arms=K, horizon=ROUNDS, failure_prob=0.1), environment, ROUNDS)
    np.testing.assert_array_equal(trace.decisions, oracle.aae(data, 0.1))
    assert 0 < state.active.sum() < K


def test_alpha_sample_needs_no_graph():
    data, graph = rewards(), erdos_renyi(K, 0.4, seed=3)
    policy = AlphaSample(n_arms=K, horizon=ROUNDS, failure_prob=0.2)
    state, trace = played(
        policy, GraphFeedback(environment=Recorded(data=data), graph=graph), ROUNDS
    )
    expected = oracle.alpha_sample(
        data,
        near(graph),
        lambda r: math.ceil(8 * math.log(1 / 0.2) * 4**r),
        lambda r: 2.0**-r,
        lambda t, j: uniform(seeded_tape(1), t, j, CHOICE),
    )
    np.testing.assert_array_equal(trace.decisions, expected)
    assert 0 < state.active.sum() < K


def test_ucb_n_and_ts_n_learn_from_neighbours():
    data, graph = rewards(1500, seed=4), erdos_renyi(K, 0.4, seed=3)
    environment = GraphFeedback(environment=Recorded(data=data), graph=graph)
    _, trace = played(UCBN(n_arms=K), environment, 1500)
    np.testing.assert_array_equal(trace.decisions, oracle.ucb_n(data, near(graph)))
    draws = np.random.default_rng(8).random((1500, K))
    _, trace = played(TSN(n_arms=K), environment, 1500, tape=recorded_tape({CHOICE: draws}))
    expected = oracle.ts_n(data, near(graph), lambda t, a: draws[t, a])
    np.testing.assert_array_equal(trace.decisions, expected)
    alone = oracle.ts_n(data, [{a} for a in range(K)], lambda t, a: draws[t, a])
    assert not np.array_equal(expected, alone)


@pytest.mark.parametrize("kind", [GAP, GAPU, AlphaSample, UCBN, TSN])
def test_one_step_at_a_time_equals_play(kind):
    rounds = 3000
    graph = erdos_renyi(K, 0.4, seed=3)
    environment = GraphFeedback(environment=Bernoulli(means=tuple(MEANS)), graph=graph)
    given = {} if kind in (UCBN, TSN) else {"horizon": rounds, "failure_prob": 0.9}
    policy = kind(n_arms=K, **given)
    whole, trace = played(policy, environment, rounds)
    table, tape = environment.table(0, 0, rounds), seeded_tape(1)
    state = policy.start(table)
    for t in range(rounds):
        arm = policy.select(state, tape, t, np.arange(K))
        assert arm == trace.decisions[t]
        for b in sorted(near(graph)[arm]):
            policy.update(state, tape, t, b, reward(table, t, b))
    for left, right in zip(state, whole, strict=True):
        assert np.asarray(left).tobytes() == np.asarray(right).tobytes()


def test_a_policy_on_its_own_uses_its_own_graph():
    policy = GAP(n_arms=4, horizon=100, graph=star(4))
    assert policy.select(state := policy.start(), seeded_tape(0), 0, np.arange(4)) == 0
    assert state.chosen.tolist() == [True, False, False, False]
    with pytest.raises(ValueError, match=r"GAP: expected graph of 5 arms, got 4"):
        GAP(n_arms=5, horizon=100, graph=star(4))


def test_lost_rewards_and_missing_arms_never_end_a_phase_early():
    rounds = 1500 if INTERPRETED else 6000
    rng, graph = np.random.default_rng(3), erdos_renyi(K, 0.4, seed=3)
    data = rewards(rounds)
    policy = GAP(n_arms=K, epsilon=1.0, horizon=rounds, failure_prob=0.9, graph=graph)
    state, tape, ends = policy.start(), seeded_tape(1), 0
    for t in range(rounds):
        before = (int(state.now[PHASE]), state.counts.copy(), state.active.copy())
        wanted = int(state.now[WANTED])
        eligible = np.flatnonzero(rng.random(K) < 0.8)
        arm = policy.select(state, tape, t, eligible if eligible.size else np.arange(K))
        if before[0] and state.now[PHASE] > before[0]:
            ends += 1
            assert (before[1][before[2]] >= wanted).all()
        for b in near(graph)[arm]:
            if rng.random() < 0.7:
                policy.update(state, tape, t, b, data[t, b])
    assert ends >= 1 or INTERPRETED


def test_late_rewards_of_an_earlier_phase_are_ignored():
    policy = GAP(n_arms=1, horizon=100, failure_prob=0.9)
    state, tape = policy.start(), seeded_tape(1)
    t = 0
    while state.now[PHASE] < 2:
        policy.select(state, tape, t, np.arange(1))
        if state.now[PHASE] < 2:
            policy.update(state, tape, t, 0, 1.0)
        t += 1
    policy.update(state, tape, t - 2, 0, 1.0)
    assert state.counts[0] == 0
    policy.update(state, tape, t - 1, 0, 1.0)
    assert state.counts[0] == 1


def test_a_graph_that_changes_between_phases():
    data, before, after = rewards(), path(K), star(K)
    policy = GAP(n_arms=K, epsilon=0.5, horizon=ROUNDS, failure_prob=0.9)
    _, phases = oracle.gap(data, near(before), 0.5, 0.9, laplace)
    end = phases[0]["L"] * len(phases[0]["omega"])
    environment = GraphFeedback(
        environment=Recorded(data=data), graph=(before, after), changes=(end,)
    )
    _, trace = played(policy, environment, ROUNDS)

    class Near:
        now = near(before)

        def __getitem__(self, a):
            return self.now[a]

    moving = Near()

    def choose(t, active, mean):
        moving.now = near(before if t < end else after)
        return oracle.greedy_set(active, mean, moving)

    decisions, _ = oracle.gap(data, moving, 0.5, 0.9, laplace, choose=choose)
    np.testing.assert_array_equal(trace.decisions, decisions)
    assert (decisions[:end] != oracle.gap(data, near(after), 0.5, 0.9, laplace)[0][:end]).any()


def test_a_graph_that_changes_within_a_phase_begins_it_again():
    environment = GraphFeedback(
        environment=Bernoulli(means=tuple(MEANS)), graph=(complete(K), path(K)), changes=(100,)
    )
    policy = GAP(n_arms=K, horizon=1000)
    state, trace = played(policy, environment, 101)
    assert (state.now[PHASE], state.now[FIRST], state.counts.sum()) == (1, 100, 2)
    assert state.now[LACKING] == K
    assert np.flatnonzero(state.chosen).tolist() == [0, 2, 4]
    assert (trace.decisions[:100] == 0).all()


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (GAP, {"epsilon": -1.0}, "GAP: expected epsilon between 1e-9 and 30, got -1.0"),
        (GAPU, {"epsilon": math.inf}, "GAPU: expected epsilon between 1e-9 and 30, got inf"),
        (GAP, {"unit": "user"}, "GAP: expected unit one of reward, round, got 'user'"),
        (GAP, {"noise": "none"}, "GAP: expected noise one of published, tight, got 'none'"),
        (DPSE, {"failure_prob": 1.0}, r"DPSE: expected failure_prob in \(0, 1\), got 1.0"),
        (AAE, {"horizon": 0}, "AAE: expected horizon >= 1, got 0"),
        (AlphaSample, {"n_arms": 0}, "AlphaSample: expected n_arms >= 1, got 0"),
    ],
)
def test_bad_parameters_name_themselves(kind, given, message):
    with pytest.raises(ValueError, match=message):
        kind(**{"n_arms": 3, "horizon": 10} | given)


def test_a_table_of_other_arms_is_refused():
    environment = Bernoulli(means=(0.5, 0.5))
    with pytest.raises(ValueError, match="GAP: expected n_arms the number of arms of the table"):
        GAP(n_arms=3, horizon=10).start(environment.table(0, 0, 10))
