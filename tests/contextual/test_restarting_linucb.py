"""LinUCB with a watch: against a slow twin, as private as LinUCB, and quick to notice a new taste."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from tacit.contextual import LinUCB, PerReward, Residual, RestartingLinUCB, Synthetic
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import seeded_tape
from tacit_studies.gajane2023.contexts import switching_table


def played(policy, table, T):
    trace = Synthetic(n_users=1, dimension=5).trace(T, np.array([T]), record=True)
    state = policy.start(table)
    policy.play(state, table, seeded_tape(0), trace, 0, T)
    return trace, state


def slow(table, T, policy, alpha=None):
    """Ridge regression solved anew each round, and Page's test on its errors; not private."""
    d, lam, R = policy.dimension, policy.ridge, 0.5
    delta = policy.smallest_change / R
    alpha = policy.false_alarm_prob if alpha is None else alpha
    contexts = table.features.reshape(T, table.n_shown, d)
    A, b, up, down, n = lam * np.eye(d), np.zeros(d), 0.0, 0.0, 0
    slots, restarts = [], []
    for t in range(T):
        inverse = np.linalg.inv(A)
        theta = inverse @ b
        width = np.sqrt(np.einsum("sd,de,se->s", contexts[t], inverse, contexts[t]))
        slots.append(int(np.argmax(contexts[t] @ theta + 0.3 * width)))
        x, y = contexts[t, slots[-1]], table.rewards[t, slots[-1]]
        z = (y - x @ theta) / (R * math.sqrt(1 + x @ inverse @ x))
        A, b = A + np.outer(x, x), b + x * y
        n += 1
        up, down = max(0.0, up + z - delta / 2), max(0.0, down - z - delta / 2)
        if max(up, down) > math.log(2 * n * (n + 1) / alpha) / delta:
            A, b, up, down, n = lam * np.eye(d), np.zeros(d), 0.0, 0.0, 0
            restarts.append(t)
    return slots, restarts


def test_it_is_ridge_regression_with_a_watch():
    T, table = 1200, switching_table(1, 1200, 2)
    policy = RestartingLinUCB(n_users=1, dimension=5, smallest_change=0.5)
    trace, state = played(policy, table, T)
    slots, restarts = slow(table, T, policy)
    assert trace.decisions.tolist() == slots
    assert policy.restarts(state).tolist() == [len(restarts)]
    assert restarts
    assert restarts[0] > 600
    assert slow(table, T, policy, alpha=1e-6)[1] != restarts


def test_it_is_linucb_until_something_changes():
    table = switching_table(3, 800, 1)
    watched, state = played(RestartingLinUCB(n_users=1, dimension=5, epsilon=1.0), table, 800)
    plain, _ = played(LinUCB(n_users=1, dimension=5, epsilon=1.0), table, 800)
    assert watched.decisions.tolist() == plain.decisions.tolist()
    assert state.watch[0, 3] == 0


def test_a_user_is_forgotten_alone():
    policy, tape = RestartingLinUCB(n_users=2, dimension=2), seeded_tape(0)
    state, x = policy.open(), np.array([1.0, 0.0])
    fresh = policy.open()
    for _ in range(60):
        policy.update(state, tape, 0, x, 1.0)
        policy.update(state, tape, 1, x, 1.0)
    kept = state.ridge.mean[state.ridge.place[1]].copy()
    rounds = 0
    while policy.restarts(state)[0] == 0:
        policy.update(state, tape, 0, x, 0.0)
        rounds += 1
    assert rounds < 60
    i, j = state.ridge.place
    assert (state.ridge.mean[i] == 0).all()
    assert (state.ridge.gram[i] == 0).all()
    d = 2
    at = state.ridge.layout[i, 4]
    assert (
        state.ridge.covariance[at : at + d * d] == fresh.ridge.covariance[at : at + d * d]
    ).all()
    assert (state.ridge.mean[j] == kept).all()
    assert policy.restarts(state).tolist() == [1, 0]


def test_its_privacy_is_that_of_linucb_and_what_it_cannot_watch_is_refused():
    kinds = (RestartingLinUCB, LinUCB)
    one, other = (kind(n_users=2, dimension=3, epsilon=1.5).guarantee(100) for kind in kinds)
    assert (one.epsilon, one.unit, one.trust) == (other.epsilon, other.unit, other.trust)
    sizes = {"n_users": 2, "dimension": 3}
    for hidden, how in (
        (PerReward(epsilon=1.0, mechanism="laplace"), {}),
        (Residual(epsilon=1.0), {"reward": "symmetric"}),
        (PerReward(epsilon=1.0, mechanism="bit", centred=True), {}),
    ):
        with pytest.raises(ValueError, match=r"^RestartingLinUCB: expected (privacy|reward)"):
            RestartingLinUCB(**sizes, privacy=hidden, **how)
    with pytest.raises(ValueError, match="RestartingLinUCB: expected shared 0"):
        RestartingLinUCB(**sizes, shared=1.0)


def test_a_learner_watches_too():
    policy = RestartingLinUCB(n_users=1, dimension=2, epsilon=8.0, smallest_change=0.5)
    learner = tacit.Learner(policy, seed=1)
    offers = [[0.7, 0.7], [0.7, -0.7]]
    for liked in (1.0, 0.0):
        for _ in range(150):
            decision = learner.decide(person=0, contexts=offers)
            learner.learn(decision.device.report(liked))
    assert policy.restarts(learner._core.decider.state)[0] >= 1


@pytest.mark.skipif(INTERPRETED, reason="a hundred thousand rounds")
def test_it_follows_a_taste_that_changes():
    T, regret = 12_000, {}
    for kind in (LinUCB, RestartingLinUCB):
        policy = kind(n_users=1, dimension=5, epsilon=4.0)
        finals = [played(policy, switching_table(s, T, 4), T)[0].measures[-1, 0] for s in range(4)]
        regret[kind] = np.mean(finals)
    assert 1.3 * regret[RestartingLinUCB] < regret[LinUCB]
