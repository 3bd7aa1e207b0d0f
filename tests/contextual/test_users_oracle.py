"""The one update of the users setting against the paper's (dN) x (dN) algorithm."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from oracles import collaborative as oracle
from tacit.contextual import CoLin, GOBLin, LinUCB, NoisySums, Published, recorded_table
from tacit.contextual.table import matrix_of, rows_of
from tacit.core.arrays import leaves
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import NOISE, RADIUS, noise_uniform, seeded_tape

KINDS = {"linucb": LinUCB, "colin": CoLin, "goblin": GOBLin}
LAMBDA, ALPHA = 0.3, 0.3
slow = pytest.mark.skipif(INTERPRETED, reason="thousands of rounds need compiled kernels")


def environment(n_users, d, horizon, seed, *, n_shown=4, islands=False):
    rng = np.random.default_rng(seed)
    contexts = rng.standard_normal((horizon, n_shown, d))
    contexts /= np.linalg.norm(contexts, axis=2, keepdims=True)
    contexts *= rng.uniform(0.5, 1.0, (horizon, n_shown, 1))  # of one length they tie at first
    adjacency = np.triu(rng.random((n_users, n_users)) < 0.3, 1)
    adjacency |= np.eye(n_users, k=1, dtype=bool)
    if islands:
        half = n_users // 2
        adjacency[:half, half:] = False
    adjacency = (adjacency | adjacency.T).astype(float)
    weights = (adjacency + np.eye(n_users)) * rng.random((n_users, n_users))
    weights /= weights.sum(axis=0)
    preferences = rng.standard_normal((n_users, d)) / math.sqrt(d)
    users = rng.integers(0, n_users, horizon)
    means = np.einsum("tad,td->ta", contexts, preferences[users])
    rewards = means + 0.1 * rng.standard_normal(means.shape)
    return recorded_table(users, contexts, rewards, weights=weights, graph=adjacency)


def joined(table):
    """Return the relational matrix and the adjacency matrix."""
    return matrix_of(table.weights).toarray(), matrix_of(table.graph).toarray()


def compare(kind, table, noise, privacy=None, known=None, **parameters):
    """Assert equal picks and scores equal to 1e-9, round by round."""
    T, n = table.rewards.shape
    d = table.features.shape[1]
    contexts = table.features.reshape(T, n, d)
    policy = KINDS[kind](
        n_users=table.n_users,
        dimension=d,
        regularisation=LAMBDA,
        exploration=ALPHA,
        privacy=None if privacy is None else dataclasses.replace(privacy, horizon=T, visits=T),
        **parameters,
    )
    state, tape = policy.start(table), seeded_tape(7)
    given = noise(policy, state) if noise else None
    picks, scores = oracle.play(
        kind,
        table.users,
        contexts,
        table.rewards,
        *(known or joined(table)),
        lam=LAMBDA,
        alpha=ALPHA,
        noise=given,
    )
    worst = 0.0
    for t in range(T):
        X, u = contexts[t], int(table.users[t])
        assert policy.select(state, u, X) == picks[t]
        p, C = state.work[:d], state.work[d : d + d * d].reshape(d, d)
        score = X @ p + ALPHA * np.sqrt(np.einsum("ai,ij,aj->a", X, C, X))
        worst = max(worst, float(np.abs(score - scores[t]).max() / max(1, abs(scores[t]).max())))
        policy.update(state, tape, u, X[picks[t]], table.rewards[t, picks[t]])
    assert worst < 1e-9
    return state


def draws(law, dim):
    """Return a function of the round: a draw of the law from the uniforms on the policy's tape."""
    tape, purposes = seeded_tape(7), (NOISE, RADIUS) if law is oracle.ball else (NOISE,)
    return lambda t: law(
        np.array([noise_uniform(tape, t, j, purpose) for purpose in purposes for j in range(dim)])
    )


def on_b(law, combine, *, local):
    """Return the noise on b of one stream, or of one stream for each user, all of R^(dN)."""

    def make(policy, state):
        draw = draws(law, policy.n_users * policy.dimension)
        histories = [[] for _ in range(policy.n_users)]

        def noise(t, user, step):
            histories[user if local else 0].append(
                draw(t) * state.sums.scales[user if local else 0, 0]
            )
            return sum(combine(h) for h in histories if h)

        return noise

    return make


def on_sums(law, combine, kind, table):
    """Return the noise on each user's sum of x r, mapped by B onto b."""
    B = oracle.spread(kind, *joined(table))

    def make(policy, state):
        draw = draws(law, policy.dimension)
        histories = [[] for _ in range(policy.n_users)]
        sums = np.zeros((policy.n_users, policy.dimension))

        def noise(t, user, step):
            histories[user].append(draw(t) * state.sums.scales[user, 0])
            sums[user] = combine(histories[user])
            return (B @ sums).ravel()

        return noise

    return make


CENTRAL = Published(epsilon=2.0, trust="central", clip=False, horizon=1)
LOCAL = Published(epsilon=2.0, trust="local", clip=False, horizon=1)
laplace_central = on_b(stats.laplace.ppf, oracle.tree_noise, local=False)
laplace_local = on_b(stats.laplace.ppf, oracle.tree_noise, local=True)


@slow
@pytest.mark.parametrize(
    ("kind", "noise", "privacy"),
    [("colin", None, None), ("colin", laplace_central, CENTRAL), ("goblin", laplace_local, LOCAL)],
    ids=["plain", "central", "local"],
)
@pytest.mark.parametrize("rounds", [300, pytest.param(2000, marks=pytest.mark.slow)])
def test_many_rounds_with_deferred_updates(kind, noise, privacy, rounds):
    table = environment(9, 15, rounds, seed=1)
    state = compare(kind, table, noise, privacy)
    assert state.ridge.layout[0, 2] > 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["plain", "central", "local"])
@pytest.mark.parametrize("islands", [False, True])
def test_small_components(kind, mode, islands):
    table = environment(5, 4, 200, seed=2, islands=islands)
    noise = {"plain": None, "central": laplace_central, "local": laplace_local}[mode]
    compare(kind, table, noise, {"plain": None, "central": CENTRAL, "local": LOCAL}[mode])


@slow
def test_one_component_above_and_one_below_the_limit():
    compare("goblin", environment(9, 30, 150, seed=3, islands=True), laplace_central, CENTRAL)


SOUND = {
    "ball tree": (oracle.ball, oracle.tree_noise, {}),
    "gaussian tree": (stats.norm.ppf, oracle.tree_noise, {"delta": 1e-6}),
    "gaussian toeplitz": (
        stats.norm.ppf,
        oracle.toeplitz_noise,
        {"delta": 1e-6, "continual": "toeplitz"},
    ),
}
WIDE = {"reward_range": (-9.0, 9.0)}


def compare_sound(kind, table, sound, trust, statistic):
    law, combine, parameters = SOUND[sound]
    on_one = on_b(law, combine, local=False)
    noise = on_one if statistic == "b" else on_sums(law, combine, kind, table)
    place = {"trust": trust, "statistic": statistic, "horizon": 1}
    compare(kind, table, noise, NoisySums(epsilon=2.0, **place, **parameters), **WIDE)


every_place = pytest.mark.parametrize(
    ("trust", "statistic"), [("local", "sums"), ("central", "sums"), ("central", "b")]
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sound", SOUND)
@every_place
def test_noise_on_sums(kind, sound, trust, statistic):
    compare_sound(kind, environment(4, 3, 150, seed=4), sound, trust, statistic)


@pytest.mark.slow
@slow
@pytest.mark.parametrize("sound", SOUND)
@every_place
def test_noise_on_sums_over_two_thousand_rounds(sound, trust, statistic):
    compare_sound("colin", environment(4, 3, 2000, seed=6), sound, trust, statistic)


@pytest.mark.parametrize("sound", SOUND)
def test_noise_on_sums_is_not_noise_on_b(sound):
    law, combine, parameters = SOUND[sound]
    sums = NoisySums(epsilon=2.0, trust="central", horizon=1, **parameters)
    table = environment(4, 3, 50, seed=4)
    with pytest.raises(AssertionError):
        compare("colin", table, on_b(law, combine, local=False), sums, **WIDE)


def heavier(table, seed=8):
    """Return the table with weights on the edges of its graph, and the matrices an oracle needs."""
    weights, adjacency = joined(table)
    heavy = np.triu(adjacency * np.random.default_rng(seed).uniform(0.2, 3.0, adjacency.shape), 1)
    heavy = heavy + heavy.T
    return table._replace(graph=rows_of(heavy)), (weights, heavy)


@pytest.mark.parametrize("mode", ["plain", "central", "local"])
def test_a_weighted_laplacian_is_that_of_its_edges(mode):
    table, known = heavier(environment(5, 4, 150, seed=2))
    noise = {"plain": None, "central": laplace_central, "local": laplace_local}[mode]
    hidden = {"plain": None, "central": CENTRAL, "local": LOCAL}[mode]
    compare("goblin", table, noise, hidden, known=known, weighted=True)
    with pytest.raises(AssertionError):
        compare("goblin", table, noise, hidden, known=known)


def test_the_sensitivity_of_a_weighted_laplacian():
    """Lemmas 5 and 6: the longest row of G^(-1/2), and each user's own, with the weights in G."""
    table, (_, heavy) = heavier(environment(5, 4, 10, seed=2))
    rows = np.sqrt(np.diag(np.linalg.inv(np.eye(5) + np.diag(heavy.sum(axis=1)) - heavy)))
    for hidden, sensitivity in ((CENTRAL, rows.max(keepdims=True)), (LOCAL, rows)):
        for weighted in (True, False):
            published = dataclasses.replace(hidden, horizon=100, visits=100)
            policy = GOBLin(n_users=5, dimension=4, privacy=published, weighted=weighted)
            state = policy.start(table)
            order = state.ridge.place if len(state.sums.scales) > 1 else [0]
            found = state.sums.scales[order, 0] / (math.log(100) / 2.0)
            assert np.allclose(found, sensitivity, rtol=1e-9) == weighted


def test_a_wrong_user_kernel_is_noticed():
    table = environment(5, 4, 100, seed=5)
    weights, adjacency = joined(table)
    other = table._replace(weights=rows_of(weights.T / weights.sum(1)))
    compare("colin", table, laplace_local, LOCAL)
    with pytest.raises(AssertionError):
        compare("colin", other, laplace_local, LOCAL, known=(weights, adjacency))


@pytest.mark.parametrize("kind", KINDS)
def test_components_of_sparse_matrices_are_those_of_dense_ones(kind):
    from scipy.sparse import csr_array

    table = environment(8, 2, 10, seed=3, islands=True)
    weights, adjacency = joined(table)
    policy = KINDS[kind](n_users=8, dimension=2)
    dense = policy.open(weights=weights, graph=adjacency)
    sparse = policy.open(weights=csr_array(weights), graph=csr_array(adjacency))
    for (name, one), (_, other) in zip(leaves(dense), leaves(sparse), strict=True):
        np.testing.assert_array_equal(one, other, err_msg=name)
    assert dense.ridge.layout[0, 1] == (1 if kind == "linucb" else 4)
