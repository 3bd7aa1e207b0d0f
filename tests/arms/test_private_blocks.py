"""DP-IMED, DP-KLUCB and their baselines: against oracles, as attackers see them, and by regret."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from oracles import private_blocks as oracle
from tacit.arms import (
    DPIMED,
    DPKLUCB,
    GAP,
    AdaPKLUCB,
    Bernoulli,
    GraphFeedback,
    LazyDPTS,
    Recorded,
    Switching,
    TruncatedNormal,
    asymptotic_regret,
    edit_rewards,
)
from tacit.arms.divergence import (
    private_divergence,
    private_slope,
    private_upper_root,
)
from tacit.arms.table import reward
from tacit.core.kernels import INTERPRETED, kernel
from tacit.core.samplers import beta, chooser_of
from tacit.core.tapes import CHOICE, NOISE, recorded_tape, secure_tape, seeded_tape
from tacit.graphs import Graph, complete, erdos_renyi, path, star
from tacit.privacy import audit
from tacit.privacy.mechanisms.laplace import standard_laplace
from tacit.simulation.audits import PolicyRun
from tacit_studies.lu2022.settings import graph_settings

K, ROUNDS, MANY = 5, 500, 1500
MEANS = np.array([0.8, 0.75, 0.5, 0.3, 0.1])
DIRECTED = Graph.from_edges([(0, 1), (1, 2), (2, 3), (4, 0)], n_nodes=K, directed=True)
NONE = Graph.from_edges([], n_nodes=K)
GRAPHS = {
    "path": path(K),
    "star": star(K),
    "clique": complete(K),
    "directed": DIRECTED,
    "none": NONE,
}
RULES = {"imed": DPIMED, "klucb": DPKLUCB}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
every_rule = pytest.mark.parametrize("rule", RULES)
every_length = pytest.mark.parametrize(
    "rounds", [ROUNDS, pytest.param(MANY, marks=pytest.mark.slow)]
)


def data(rounds=ROUNDS, seed=0):
    return np.clip(MEANS + np.random.default_rng(seed).normal(0, 0.2, (rounds, K)), 0, 1)


def near(graph):
    return [{a, *graph.neighbours(a).tolist()} for a in range(graph.n_nodes)]


def laplace(t, a):
    return standard_laplace(seeded_tape(1), t, a, NOISE)


def played(policy, environment, rounds, tape=None):
    table = environment.table(0, 0, rounds)
    trace = environment.trace(rounds, np.array([rounds]), record=True)
    state = policy.start(table)
    policy.play(state, table, tape or seeded_tape(1), trace, 0, rounds)
    return state, trace


@settings(max_examples=200, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 5))
def test_the_divergence_is_its_definition(x, y, epsilon):
    assert private_divergence(x, y, epsilon) == pytest.approx(
        oracle.d_eps(x, y, epsilon), rel=1e-6, abs=1e-9
    )


@settings(max_examples=100, deadline=None)
@given(st.floats(0, 0.99), st.floats(0.001, 3), st.floats(0.01, 5))
def test_its_root_is_the_largest_mean_within_a_bound(x, bound, epsilon):
    q = private_upper_root(x, bound, epsilon)
    assert private_divergence(x, q, epsilon) <= bound * (1 + 1e-9) + 1e-12
    assert q == 1.0 or private_divergence(x, min(1.0, q + 1e-6), epsilon) > bound * (1 - 1e-9)


@settings(max_examples=100, deadline=None)
@given(st.floats(0, 0.95), st.floats(0.01, 0.99), st.floats(0.01, 5))
def test_its_slope_is_the_derivative_and_bounds_it_from_below(x, y, epsilon):
    slope, step = private_slope(x, y, epsilon), 1e-6
    ahead = private_divergence(x, y + step, epsilon) - private_divergence(x, y, epsilon)
    behind = private_divergence(x, y, epsilon) - private_divergence(x, y - step, epsilon)
    assert behind / step - 1e-7 <= slope <= ahead / step + 1e-7  # convex


@every_graph
@every_rule
@pytest.mark.parametrize("unit", ["reward", pytest.param("round", marks=pytest.mark.slow)])
@every_length
def test_the_kernel_is_its_definition(graph, rule, unit, rounds):
    rewards = data(rounds)
    environment = GraphFeedback(environment=Recorded(data=rewards), graph=graph)
    state, trace = played(RULES[rule](n_arms=K, epsilon=0.5, unit=unit), environment, rounds)
    decisions, S, n = oracle.blocks(
        rewards, lambda t: near(graph), 0.5, laplace, rule=rule, unit=unit
    )
    assert trace.decisions.tolist() == decisions
    assert state.blocks.counts.tolist() == n
    np.testing.assert_allclose(state.blocks.sums, S, atol=1e-9)


@every_rule
def test_the_kernel_is_its_definition_where_the_graph_changes(rule):
    rewards, graphs = data(), (path(K), DIRECTED)
    environment = GraphFeedback(environment=Recorded(data=rewards), graph=graphs, changes=(333,))
    policy = RULES[rule](n_arms=K, epsilon=0.5, unit="round")
    _, trace = played(policy, environment, ROUNDS)
    decisions, _, _ = oracle.blocks(
        rewards, lambda t: near(graphs[t >= 333]), 0.5, laplace, rule=rule, unit="round"
    )
    assert trace.decisions.tolist() == decisions


def test_the_oracle_has_teeth():
    rewards = data()

    def run(**changes):
        given = {"rule": "imed", "unit": "reward", "epsilon": 0.5} | changes
        epsilon = given.pop("epsilon")
        return oracle.blocks(rewards, lambda t: near(path(K)), epsilon, laplace, **given)[1]

    right = run()
    for wrong in ({"rule": "klucb"}, {"unit": "round"}, {"epsilon": 0.45}):
        assert run(**wrong) != right


def test_adap_klucb_is_algorithm_1():
    rewards = data(MANY)
    environment = GraphFeedback(environment=Recorded(data=rewards), graph=complete(K))
    _, trace = played(AdaPKLUCB(n_arms=K, epsilon=0.5), environment, MANY)
    assert trace.decisions.tolist() == oracle.adap_klucb(rewards, 0.5, laplace)
    assert oracle.adap_klucb(rewards, 0.5, laplace, alpha=2.9) != trace.decisions.tolist()


@kernel
def one_beta(tape, t, arm, alpha, other):
    return beta(chooser_of(tape), CHOICE, t, arm, alpha, other)


def test_lazy_dp_ts_is_algorithm_2():
    rewards = data(600)
    tape = seeded_tape(1)

    def drawn(raised):
        def draw(t, a, alpha, other):
            return one_beta(tape, t, a, alpha + raised, other)

        return oracle.lazy_dp_ts(rewards, 0.5, laplace, draw)

    _, trace = played(LazyDPTS(n_arms=K, epsilon=0.5), Recorded(data=rewards), 600)
    assert trace.decisions.tolist() == drawn(0.0) != drawn(1.0)


@every_rule
@pytest.mark.parametrize("unit", ["reward", "round"])
def test_one_step_at_a_time_equals_play(rule, unit):
    rounds, graph = 400, erdos_renyi(K, 0.4, seed=3)
    environment = GraphFeedback(environment=TruncatedNormal(means=tuple(MEANS)), graph=graph)
    policy = RULES[rule](n_arms=K, epsilon=0.5, unit=unit)
    whole, trace = played(policy, environment, rounds)
    table, tape = environment.table(0, 0, rounds), seeded_tape(1)
    state = policy.start(table)
    for t in range(rounds):
        arm = policy.select(state, tape, t, np.arange(K))
        assert arm == trace.decisions[t]
        for b in sorted(near(graph)[arm]):
            policy.update(state, tape, t, b, tacit.arms.table.reward(table, t, b))
    for left, right in zip(state.blocks, whole.blocks, strict=True):
        assert np.asarray(left).tobytes() == np.asarray(right).tobytes()


@pytest.mark.parametrize("rewards", ["bernoulli", "truncated-normal"])
@pytest.mark.parametrize("edited", [False, True])
def test_stretches_are_steps_where_means_jump_and_rewards_are_edited(rewards, edited):
    rounds, graph = 500, complete(3)
    jumps = Switching(means=((0.8, 0.3, 0.5), (0.2, 0.9, 0.5)), breakpoints=(130,), rewards=rewards)
    table = GraphFeedback(environment=jumps, graph=graph).table(0, 0, rounds)
    if edited:
        table = edit_rewards(table, [(7, 1, 0.25), (200, 0, 0.75)])
    policy = DPIMED(n_arms=3, epsilon=0.5)
    trace = jumps.trace(rounds, np.array([rounds]), record=True)
    whole, state, tape = policy.start(table), policy.start(table), seeded_tape(1)
    policy.play(whole, table, seeded_tape(1), trace, 0, rounds)
    for t in range(rounds):
        arm = policy.select(state, tape, t, np.arange(3))
        assert arm == trace.decisions[t]
        for b in range(3):
            policy.update(state, tape, t, b, reward(table, t, b))
    for left, right in zip(state.blocks, whole.blocks, strict=True):
        assert np.asarray(left).tobytes() == np.asarray(right).tobytes()


@every_rule
def test_lost_and_late_rewards_each_enter_one_block(rule):
    rng, graph, rewards = np.random.default_rng(3), path(K), data(900)
    policy = RULES[rule](n_arms=K, epsilon=0.5, unit="round", graph=graph)
    tape = recorded_tape({NOISE: np.full((900, K), 0.5)})  # no noise: sums are what was put in
    state, waiting, given = policy.start(), [], np.zeros((2, K))
    for t in range(900):
        eligible = np.flatnonzero(rng.random(K) < 0.8)
        arm = policy.select(state, tape, t, eligible if eligible.size else np.arange(K))
        waiting += [(t, b) for b in near(graph)[arm] if rng.random() < 0.7]
        rng.shuffle(waiting)
        while len(waiting) > 20:
            when, b = waiting.pop()
            policy.update(state, tape, when, b, rewards[when, b])
            given += np.array([[rewards[when, b]], [1]]) * (np.arange(K) == b)
    blocks = state.blocks
    np.testing.assert_allclose(blocks.sums + blocks.open_sums, given[0])
    np.testing.assert_array_equal(blocks.counts + blocks.open_counts, given[1])
    assert blocks.most.max() == 3


def test_a_late_reward_brings_its_own_rounds_size():
    """A round of the hub shows five rewards, and one of them that comes later still costs a fifth."""
    policy = DPIMED(n_arms=K, epsilon=1.0, unit="round", graph=star(K))
    state, tape = policy.start(), seeded_tape(0)
    assert policy.select(state, tape, 0, np.arange(K)) == 0
    for t in range(1, 9):
        leaf = policy.select(state, tape, t, np.array([3]))
        policy.update(state, tape, t, leaf, 1.0)
    assert state.blocks.most[3] == 2
    policy.update(state, tape, 0, 3, 1.0)
    assert state.blocks.open_most[3] == K
    assert state.blocks.open_most[2] == 1


def test_a_forgotten_block_is_never_released():
    policy = DPIMED(n_arms=1, epsilon=1.0)
    tape = recorded_tape({NOISE: np.full((99, 1), 0.5)})
    state = policy.start()
    policy.select(state, tape, 0, np.arange(1))
    policy.update(state, tape, 0, 0, 1.0)
    policy.forget_unreleased(state)
    for t in range(1, 4):
        policy.select(state, tape, t, np.arange(1))
        policy.update(state, tape, t, 0, 0.0)
    assert (state.blocks.counts[0], state.blocks.sums[0]) == (2, 0.0)


def test_only_neighbours_may_be_told():
    policy = DPIMED(n_arms=3, epsilon=1.0, graph=path(3))
    with pytest.raises(ValueError, match="expected seen rewards of arms shown with arm 0"):
        policy.require_shown(0, [2])
    policy.require_shown(0, [1])


def audited(policy, claim, unit):
    """Audit on a clique of three, where each pull shows all, on tables that differ in round 1."""
    environment = GraphFeedback(environment=Bernoulli(means=(0.5,) * 3), graph=complete(3))
    pair = environment.neighbours(unit, 6)[3]
    return audit(
        PolicyRun(policy=policy, environment=environment, horizon=6, released=6),
        pair.left,
        pair.right,
        epsilon=claim,
        runs=8_000,
        alpha=1e-6,
        low_bits=False,
    )


@pytest.mark.skipif(INTERPRETED, reason="thousands of runs need compiled kernels")
@every_rule
def test_the_audit_believes_the_unit_and_no_more(rule):
    kind = RULES[rule]
    for unit in ("reward", "round"):
        honest = audited(kind(n_arms=3, epsilon=1.0, unit=unit), 1.0, unit)
        assert not honest.refuted, honest.sentence()
        cheat = audited(kind(n_arms=3, epsilon=2.0, unit=unit), 1.0, unit)
        assert cheat.refuted, cheat.sentence()
    whole = audited(kind(n_arms=3, epsilon=1.0, unit="reward"), 1.0, "round")
    assert whole.refuted, whole.sentence()


@pytest.mark.parametrize("kind", [DPIMED, DPKLUCB, AdaPKLUCB, LazyDPTS])
def test_on_a_secure_tape_sums_and_noise_lie_on_a_grid(kind):
    policy, tape = kind(n_arms=2, epsilon=0.3), secure_tape(log=4)
    environment = TruncatedNormal(means=(0.4, 0.6))
    state, _ = played(policy, environment, 300, tape=tape)
    assert (np.mod(state.blocks.open_sums * 2**20, 1) == 0).all()
    assert (np.mod(tape.log * 2**20, 1) == 0).all()
    assert policy.secure


@pytest.mark.parametrize("kind", [DPIMED, DPKLUCB, AdaPKLUCB, LazyDPTS])
def test_the_guarantee_says_what_it_leaves_open(kind):
    guarantee = kind(n_arms=4, epsilon=0.3).guarantee(1000)
    assert (guarantee.epsilon, guarantee.delta, guarantee.trust) == (0.3, 0.0, "central")
    assert guarantee.basis == "theorem"
    assert "whether and when anything is sent" in guarantee.sentence()


@pytest.mark.skipif(INTERPRETED, reason="millions of rounds need compiled kernels")
@pytest.mark.parametrize("setting", graph_settings()[1::3], ids=lambda s: str(tuple(s)))
def test_regret_is_a_fraction_of_gaps(setting):
    T, runs = 100_000, 20

    def regret(policy):
        result = tacit.simulate(
            policy, setting.environment, horizon=T, repetitions=runs, seed=9, checkpoints=1
        )
        return np.median(result.final("regret"))

    gap = regret(GAP(n_arms=10, epsilon=setting.epsilon, horizon=T))
    assert gap > 8 * regret(DPIMED(n_arms=10, epsilon=setting.epsilon))
    assert gap > 2.5 * regret(DPIMED(n_arms=10, epsilon=setting.epsilon, unit="round"))
    assert gap > 4 * regret(DPKLUCB(n_arms=10, epsilon=setting.epsilon))


def test_the_lower_bound_buys_looks_where_they_are_cheapest():
    means, T = (0.9, 0.5, 0.4), 10_000
    alone = asymptotic_regret(means, 0.1, T)
    looks = [math.log(T) / oracle.d_eps(x, 0.9, 0.1) for x in means[1:]]
    assert alone == pytest.approx(0.4 * looks[0] + 0.5 * looks[1])
    assert asymptotic_regret(means, 0.1, T, graph=NONE_OF_THREE) == pytest.approx(alone)
    # Arm 1 shows arm 2 as well, so its looks serve both.
    pair = Graph.from_edges([(1, 2)], n_nodes=3)
    assert asymptotic_regret(means, 0.1, T, graph=pair) == pytest.approx(0.4 * max(looks))
    assert asymptotic_regret(means, 0.1, T, graph=star(3)) == 0.0
    assert asymptotic_regret((0.5, 0.5), 0.1, T, graph=pair_of_two()) == 0.0
    assert asymptotic_regret(means, math.inf, T) < alone


NONE_OF_THREE = Graph.from_edges([], n_nodes=3)


def pair_of_two():
    return Graph.from_edges([(0, 1)], n_nodes=2)
