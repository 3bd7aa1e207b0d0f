"""What comes from outside is checked where it enters; and what a state can be made from."""

from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np
import pytest

from tacit.contextual import (
    CoLin,
    Fitted,
    GOBLin,
    LinUCB,
    NoisySums,
    PerReward,
    Synthetic,
    Theory,
    model,
    recorded_table,
    statistics_of,
)
from tacit.contextual.model import EQUATION_5, LEMMA_2
from tacit.core.arrays import leaves
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import seeded_tape
from tacit.graphs import Graph

slow = pytest.mark.skipif(INTERPRETED, reason="thousands of rounds need compiled kernels")


def log(**changes):
    rng = np.random.default_rng(0)
    whole = {
        "users": [0, 1, 0],
        "contexts": rng.random((3, 2, 2)) / 2,
        "rewards": rng.random((3, 2)),
        "weights": np.full((2, 2), 0.5),
    }
    whole |= changes
    return recorded_table(whole.pop("users"), whole.pop("contexts"), whole.pop("rewards"), **whole)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"users": [0, 1, 2]}, r"users whole numbers in 0\.\.1, got 2"),
        ({"users": [0, -1, 0]}, r"users whole numbers in 0\.\.1, got -1"),
        ({"users": [0, 0.5, 1]}, "users whole numbers"),
        ({"users": ["ann", "bob", "ann"]}, "users whole numbers"),
        ({"users": [0, 1]}, r"users of shape \(3,\)"),
        ({"contexts": np.zeros((3, 2))}, r"contexts of shape \(T, n, d\)"),
        ({"contexts": np.zeros((3, 0, 2))}, "contexts not empty"),
        ({"contexts": np.full((3, 2, 2), np.nan)}, r"contexts finite, also at \(0, 0, 0\)"),
        ({"contexts": np.ones((3, 2, 2))}, "contexts of length <= 1"),
        ({"rewards": np.zeros((2, 2))}, r"rewards of shape \(3, 2\)"),
        ({"rewards": np.array([[0, 1], [0, np.inf], [0, 0]])}, r"rewards finite, also at \(1, 1\)"),
        ({"weights": np.ones((2, 3))}, "weights a square matrix"),
        ({"weights": np.ones((3, 3)) / 3, "n_users": 2}, r"weights of shape \(2, 2\)"),
        ({"weights": np.full((2, 2), np.nan)}, "weights finite"),
        ({"graph": -np.ones((2, 2))}, "graph >= 0"),
        ({"preferences": np.zeros((1, 2))}, r"preferences of shape \(2, 2\)"),
        ({"n_users": 0, "weights": None}, "n_users >= 1"),
    ],
)
def test_a_log_that_cannot_be_played_is_refused(changes, message):
    with pytest.raises(ValueError, match=f"recorded_table: expected {message}"):
        log(**changes)


def test_a_log_cannot_be_played_past_its_end():
    table, policy = log(), CoLin(n_users=2, dimension=2)
    trace = Synthetic().trace(9, np.array([9]), record=True)
    state = policy.start(table)
    with pytest.raises(ValueError, match="last <= 3, the table's rounds, got 9"):
        policy.play(state, table, seeded_tape(0), trace, 0, 9)
    kernel, arguments = policy.program(state, table, seeded_tape(0), trace)
    kernel(*arguments, 0, 9)
    assert trace.cursor[0] == 0
    short = Synthetic().trace(1, np.array([3]), record=True)
    policy.play(policy.start(table), table, seeded_tape(0), short, 0, 3)


def test_linucb_needs_nothing_and_others_say_what_they_need():
    table = log(weights=None, n_users=2)
    LinUCB(n_users=2, dimension=2).start(table)
    with pytest.raises(ValueError, match="CoLin: expected weights given, got None"):
        CoLin(n_users=2, dimension=2).start(table)
    with pytest.raises(ValueError, match="GOBLin: expected graph given, got None"):
        GOBLin(n_users=2, dimension=2).open(weights=np.eye(2))
    edges = Graph.from_edges([(0, 1)])
    one = GOBLin(n_users=2, dimension=2).open(graph=edges)
    other = GOBLin(n_users=2, dimension=2).open(graph=[[0, 1], [1, 0]])
    np.testing.assert_array_equal(one.ridge.covariance, other.ridge.covariance)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p, s: p.select(s, 2, [[0.0, 0.0]]), r"user in 0\.\.1, got 2"),
        (lambda p, s: p.select(s, 0, [[0.0]]), r"contexts of shape \(n, 2\)"),
        (lambda p, s: p.select(s, 0, [[np.nan, 0.0]]), "contexts finite"),
        (lambda p, s: p.update(s, seeded_tape(0), 0, [np.inf, 0.0], 1.0), "context finite"),
        (lambda p, s: p.update(s, seeded_tape(0), -1, [0.0, 0.0], 1.0), r"user in 0\.\.1, got -1"),
        (lambda p, s: p.update(s, seeded_tape(0), 0, [0.0, 0.0], math.nan), "reward a number"),
        (lambda p, s: p.open(graph=[[0, -1], [-1, 0]]), "graph >= 0, got -1.0"),
        (lambda p, s: p.open(graph=[[0, 1], [0, 0]]), "graph symmetric"),
        (lambda p, s: p.open(graph=np.zeros((3, 3))), r"graph of shape \(2, 2\)"),
    ],
)
def test_a_step_that_cannot_be_taken_is_refused(call, message):
    policy = GOBLin(n_users=2, dimension=2, epsilon=1.0)
    state = policy.open(graph=[[0, 1], [1, 0]])
    with pytest.raises(ValueError, match=f"GOBLin: expected {message}"):
        call(policy, state)


def test_whoever_joins_nobody_is_told_so():
    with pytest.warns(UserWarning, match="CoLin: 0 of 45 pairs of users are joined"):
        CoLin(n_users=10, dimension=2).open(weights=np.eye(10))
    with pytest.warns(UserWarning, match="GOBLin: 0 of 3 pairs"):
        GOBLin(n_users=3, dimension=2, shared=1.0).open(graph=np.zeros((3, 3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinUCB(n_users=3, dimension=2).open()
        CoLin(n_users=1, dimension=2).open(weights=[[1.0]])


def opposite(n_users):
    """Return preferences of length 1 that differ all they can over every edge of the graph."""
    theta = np.zeros((n_users, 2))
    theta[:, 0] = (-1.0) ** np.arange(n_users)
    graph = (np.add.outer(np.arange(n_users), np.arange(n_users)) % 2).astype(float)
    return theta, graph


def outside(policy, width, seed, rounds):
    """Return whether the truth is ever further from the estimate than the width, in the norm of A."""
    theta, graph = opposite(policy.n_users)
    rng, state, tape = np.random.default_rng(seed), policy.open(graph=graph), seeded_tape(seed)
    L = np.diag(graph.sum(1)) - graph
    root = np.kron(np.linalg.cholesky(np.eye(policy.n_users) + L).T, np.eye(2))
    A = policy.ridge * np.eye(root.shape[0])
    truth, N = root @ theta.ravel(), policy.n_users
    for t in range(rounds):
        user, x = t % N, rng.standard_normal(2)
        x /= np.linalg.norm(x)
        phi = np.zeros(2 * N)
        phi[2 * user : 2 * user + 2] = x
        spread = np.linalg.solve(root.T, phi)
        reward = 0.5 + (x @ theta[user]) / 2 if policy.protection else x @ theta[user]
        noisy = (
            float(rng.random() < reward) if policy.protection else reward + rng.standard_normal()
        )
        A += np.outer(spread, spread)
        policy.update(state, tape, user, x, noisy)
        B = np.linalg.solve(root.T, np.eye(2 * N))
        estimate = state.ridge.mean[state.ridge.place].ravel()
        # In prediction space the estimate is B' theta^; what is left is measured by B^-T.
        scaled = truth / 2 if policy.protection else truth
        error = np.linalg.solve(B.T, estimate) - scaled
        alpha = width(policy, state)
        if error @ A @ error > alpha**2:
            return True
    return False


def alpha_of(code):
    """Return the width of a theorem, calculated apart from the kernel."""

    def width(policy, state):
        lam, delta, D = policy.ridge, 0.05, state.ridge.mean.size
        if code == EQUATION_5:
            volume, bound = float(state.ridge.log_volume[0]), float(state.norm_bound[0])
        else:
            volume = D * math.log1p(float(state.ridge.energy[0]) / (lam * D))
            bound = math.sqrt(policy.n_users)
        return (
            policy.params.reach * math.sqrt(volume - 2 * math.log(delta)) + math.sqrt(lam) * bound
        )

    return width


@slow
def test_the_width_of_equation_5_is_a_bound_and_that_of_lemma_2_is_not():
    # Each holds in all rounds with probability 0.95 at least: 40 runs, more than 8 outside is a false
    # alarm once in 10^4.
    policy = GOBLin(n_users=6, dimension=2, exploration=Theory(), regularisation=30.0)
    assert policy.params.width == EQUATION_5
    count = {
        code: sum(outside(policy, alpha_of(code), seed, 60) for seed in range(40))
        for code in (LEMMA_2, EQUATION_5)
    }
    assert count[EQUATION_5] <= 8
    assert count[LEMMA_2] == 40


@pytest.mark.parametrize(("kind", "code"), [(GOBLin, EQUATION_5), (LinUCB, LEMMA_2)])
def test_the_width_in_force_is_that_of_the_theorem(kind, code):
    theta, graph = opposite(6)
    policy = kind(n_users=6, dimension=2, exploration=Theory(), regularisation=1.0)
    state, tape = policy.open(graph=graph), seeded_tape(0)
    for t in range(12):
        policy.update(state, tape, t % 6, [0.6, 0.8], float(theta[t % 6] @ [0.6, 0.8]))
    (other,) = {EQUATION_5, LEMMA_2} - {code}
    width = model._width(policy.params, state)
    assert width == pytest.approx(alpha_of(code)(policy, state), rel=1e-12)
    assert width != pytest.approx(alpha_of(other)(policy, state), rel=1e-3)
    if kind is GOBLin:  # the length of all tastes and of their differences over the edges
        apart = sum(
            graph[u, v] * ((theta[u] - theta[v]) ** 2).sum() / 2 for u, v in np.ndindex(6, 6)
        )
        assert float(state.norm_bound[0]) >= math.sqrt((theta**2).sum() + apart)


def test_with_one_bit_the_width_counts_half_the_range_of_reports():
    hidden = PerReward(epsilon=1.0, mechanism="bit")
    policy = GOBLin(n_users=2, dimension=2, exploration=Theory(), privacy=hidden)
    report = policy.params.channel.report
    ends = [report.numbers[0], report.numbers[0] + report.numbers[1]]
    assert policy.params.reach == pytest.approx((ends[1] - ends[0]) / 2)


NOT_LEARNED = ("place", "layout", "pending", "covariance", "deferred", "work")


def learned(state):
    return {
        name: array for name, array in leaves(state) if name.rpartition(".")[2] not in NOT_LEARNED
    }


@pytest.mark.parametrize("parameters", [{"epsilon": 2.0}, {"epsilon": 2.0, "reward": "binary"}])
@pytest.mark.parametrize("kind", [LinUCB, CoLin, GOBLin])
def test_a_state_made_anew_equals_starting_over_with_other_edges(kind, parameters):
    rng = np.random.default_rng(0)
    joined = []
    for n in (4, 5):
        graph = np.triu(rng.random((n, n)) < 0.6, 1).astype(float)
        graph += graph.T
        weights = graph + np.eye(n)
        joined.append({"graph": graph, "weights": weights / weights.sum(0)})
    small, large = (kind(n_users=n, dimension=3, **parameters) for n in (4, 5))
    old, over = small.open(**joined[0]), large.open(**joined[1])
    tapes = seeded_tape(1), seeded_tape(1)
    for t in range(50):
        x, reward = rng.standard_normal(3) / 4, float(rng.random() < 0.4)
        small.update(old, tapes[0], t % 4, x, reward)
        large.update(over, tapes[1], t % 4, x, reward)
    statistics = statistics_of(old).arranged(np.array([0, 1, 2, 3, -1]))
    anew = large.state_of(statistics, **joined[1])
    for name, array in learned(anew).items():
        np.testing.assert_allclose(array, learned(over)[name], atol=1e-9, err_msg=name)
    contexts = rng.standard_normal((6, 3)) / 4
    for user in range(5):
        assert large.select(anew, user, contexts) == large.select(over, user, contexts)
    with pytest.raises(ValueError, match=r"statistics of shape \(5, 3\)"):
        large.state_of(statistics_of(old), **joined[1])
    with pytest.raises(ValueError, match="PerReward or Residual"):
        LinUCB(n_users=4, dimension=3, privacy=NoisySums(epsilon=1.0, visits=9)).state_of(
            statistics
        )


@slow
@pytest.mark.parametrize("reward", ["bounded", "binary"])
def test_a_large_component_made_anew_goes_on_with_deferred_updates(reward):
    rng, n, d = np.random.default_rng(3), 12, 12
    policy = CoLin(n_users=n, dimension=d, epsilon=2.0, reward=reward)
    weights = rng.random((n, n))
    weights /= weights.sum(0)
    one, tape = policy.open(weights=weights), seeded_tape(5)
    other, other_tape = policy.open(weights=weights), seeded_tape(5)
    rows = rng.standard_normal((200, d)) / 5
    for t, x in enumerate(rows):
        if t == 90:
            other = policy.state_of(statistics_of(other), weights=weights)
        for state, own in ((one, tape), (other, other_tape)):
            policy.update(state, own, t % n, x, float(x[0] > 0))
    np.testing.assert_allclose(one.ridge.mean, other.ridge.mean, atol=1e-9)
    assert (one.level is not None) == (reward == "binary")
    for left, right in zip(one.level or (), other.level or (), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-9)


@slow
def test_forgetting_follows_preferences_that_change():
    # The one item that is liked changes half-way; 2,000 rounds each, mean of the last 1,000.
    rng, T = np.random.default_rng(0), 4000
    contexts = np.tile(np.eye(3)[None] * 0.9, (T, 1, 1))
    means = np.where(np.arange(T)[:, None] < T // 2, [0.8, 0.2, 0.2], [0.2, 0.2, 0.8])
    rewards = (rng.random((T, 3)) < means).astype(float)
    table = recorded_table(np.zeros(T), contexts, rewards, n_users=1)
    right = {}
    for half_life in (None, 300):
        policy = LinUCB(n_users=1, dimension=3, epsilon=3.0, half_life=half_life)
        assert policy.guarantee(T).epsilon == pytest.approx(3.0)
        trace = Synthetic().trace(T, np.array([T]), record=True)
        policy.play(policy.start(table), table, seeded_tape(2), trace, 0, T)
        right[half_life] = float((trace.decisions[-1000:] == 2).mean())
    assert right[300] > 0.8 > right[None] + 0.2
    with pytest.raises(ValueError, match="half_life None with noise on sums"):
        LinUCB(n_users=1, dimension=3, privacy=NoisySums(epsilon=1.0, visits=9), half_life=5)


def test_a_saved_state_is_that_of_one_policy_and_of_users_joined_alike(tmp_path):
    path, joined = tmp_path / "state.npz", {"weights": np.full((2, 2), 0.5), "graph": 1 - np.eye(2)}
    policy = CoLin(n_users=2, dimension=2, epsilon=1)
    state = policy.open(**joined)
    policy.update(state, seeded_tape(0), 0, [0.5, 0.5], 1.0)
    policy.save(path, state)
    assert path.stat().st_mode & 0o077 == 0
    again = CoLin(n_users=2, dimension=2, epsilon=1.0).load(path, **joined)
    np.testing.assert_array_equal(again.ridge.mean, state.ridge.mean)
    with pytest.raises(
        ValueError, match=r"GOBLin: expected file of the same policy, got 'colin in"
    ):
        GOBLin(n_users=2, dimension=2, epsilon=1.0).load(path, **joined)
    with pytest.raises(ValueError, match="CoLin: expected file of the same policy"):
        dataclasses.replace(policy, epsilon=2.0).load(path, **joined)
    with pytest.raises(ValueError, match="expected file of users who are joined alike"):
        policy.load(path, weights=[[0.6, 0.4], [0.4, 0.6]])


@pytest.mark.parametrize("unit", ["reward", "round", "visit", "user"])
def test_neighbours_differ_in_everything_that_a_unit_contains(unit):
    from tacit.contextual.table import arrive, contexts_at, reward

    environment = Fitted(n_users=3, dimension=2, n_items=20, n_shown=4)
    pairs = environment.neighbours(unit, 12, limit=18)
    assert 9 <= len(pairs) <= 18
    assert len({pair.words for pair in pairs}) == len(pairs)
    assert any("all other rewards 1" in pair.words for pair in pairs)
    shown = np.empty(4, np.int64)
    for pair in pairs:
        differ = []
        for t in range(12):
            user = arrive(pair.left, t, shown)
            ends = [
                [reward(side, t, user, slot, shown[slot]) for slot in range(4)]
                for side in (pair.left, pair.right)
            ]
            differ += [(t, user, slot) for slot in range(4) if ends[0][slot] != ends[1][slot]]
            changed = [(a, b) for a, b in zip(*ends, strict=True) if a != b]
            assert set(changed) <= {(-1.0, 1.0)}
        if unit == "reward":
            assert len(differ) == 1
        elif unit in ("round", "visit"):
            assert len(differ) == 4
            assert len({t for t, _, _ in differ}) == 1
        else:
            assert len(differ) == 4 * 4
            assert len({user for _, user, _ in differ}) == 1
        where, contexts = differ[0][0], np.empty((2, 4, 2))
        for side, rows in zip((pair.left, pair.right), contexts, strict=True):
            arrive(side, where, shown)
            contexts_at(side, where, shown, rows)
        assert (contexts[0] == contexts[1]).all() == (unit != "visit")
    with pytest.raises(ValueError, match="unit one of reward, round, visit, user"):
        environment.neighbours("agent", 12)
