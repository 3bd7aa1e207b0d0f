"""Kernels, factors and clusters that are learned from privatised reports."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import tacit
from oracles import collaborative
from oracles import learned_priors as oracle
from tacit.contextual import (
    CLUB,
    Factorised,
    Fitted,
    LearnedKernel,
    LinUCB,
    NoisySums,
    PerReward,
    Published,
    Residual,
    Theory,
    statistics_of,
)
from tacit.contextual.learned_prior import STEPS, due
from tacit.core.arrays import leaves
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import seeded_tape

slow = pytest.mark.skipif(INTERPRETED, reason="thousands of rounds need compiled kernels")
KINDS = [LearnedKernel, Factorised, CLUB]
N, D, LAMBDA = 3, 3, 0.6
SIZES = {"n_users": N, "dimension": D, "reward_range": (-1.0, 1.0)}
NOISE = LAMBDA / D
every_kind = pytest.mark.parametrize("kind", KINDS)


def build(kind, **parameters):
    rank = {"rank": 2} if kind is Factorised else {}
    return kind(**SIZES, **rank, **parameters)


def played(policy, rounds, seed=2, truth=None):
    """Return the state after some rounds, and what was observed: (user, x, y, v)."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((N, D)) / 2 if truth is None else truth
    state, tape, seen = policy.open(), seeded_tape(seed, log=1), []
    for t in range(rounds):
        user, x = t % N, rng.standard_normal(D) / 3
        reward = float(x @ truth[user] + 0.1 * rng.standard_normal())
        question = policy.ask(state, user, x) if policy.protection else None
        tape.reads[:] = 0
        state.rounds[0] = t
        policy.update(state, tape, user, x, reward)
        if isinstance(policy.protection, Residual):
            square = question.scale**2 - policy.protection.sigma**2
            symbol, (mean, scale) = int(tape.log[0]), question[1:3]
            seen.append(
                (user, x, *collaborative.residual_observation(symbol, 2, 1.0, mean, scale, square))
            )
        else:
            seen.append((user, x, float(tape.log[0]) if policy.protection else reward, NOISE))
    return state, seen


def learned(kind, K, sigma, seen, ridge):
    if kind is CLUB:
        return oracle.clusters(N, ridge, seen), np.eye(D) / ridge
    rank = 2 if kind is Factorised else 0
    return oracle.expectation_maximisation(K, sigma, seen, steps=STEPS, rank=rank)


def agrees(policy, rounds, weight=10.0):
    """Assert that prior, covariance and mean are those of the definition."""
    kind, (state, seen) = type(policy), played(policy, rounds)
    unit = 1.0 if isinstance(policy.protection, Residual) else NOISE
    ridge = policy.ridge / unit
    K = np.ones((N, N)) + (0.0 if kind is CLUB else 1.0) * np.eye(N)
    sigma = np.eye(D) / ridge
    for answers in range(1, rounds + 1):
        if due(answers):
            K, sigma = learned(kind, K, sigma, seen[: answers - 1], ridge)
    kernel = np.kron(state.ridge.kernel.reshape(N, N), state.ridge.within) * unit
    np.testing.assert_allclose(kernel, np.kron(K, sigma), rtol=1e-6, atol=1e-12)
    mean, covariance = oracle.posterior(K, sigma, seen)
    np.testing.assert_allclose(state.ridge.mean, mean, rtol=1e-6, atol=1e-9)
    S = state.ridge.covariance.reshape(N * D, N * D) * unit
    np.testing.assert_allclose(S, covariance, rtol=1e-6, atol=1e-9)


HIDDEN = {
    "nothing": {"regularisation": LAMBDA},
    "laplace": {"regularisation": LAMBDA, "privacy": PerReward(epsilon=4.0, mechanism="laplace")},
    "sign": {"reward": "symmetric", "privacy": Residual(epsilon=1.0, sigma=0.1)},
}


@every_kind
@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
def test_what_is_learned_is_what_the_definition_says(kind, hidden):
    agrees(build(kind, **hidden), 70)  # learned twice, with answers after it


def test_a_wrong_oracle_is_noticed(monkeypatch):
    policy = build(LearnedKernel, **HIDDEN["laplace"])
    whole = oracle.permutations
    monkeypatch.setattr(oracle, "permutations", lambda n: whole(n)[:1])
    with pytest.raises(AssertionError):
        agrees(policy, 70)


def test_when_a_prior_is_learned():
    assert [n for n in range(1, 250) if due(n)] == [50, 65, 84, 109, 141, 183, 237]


@every_kind
def test_learning_reads_reports_alone(kind):
    """A server that sees questions and symbols knows all that the simulation knows."""
    policy = build(kind, reward="symmetric", epsilon=1.5)
    rng = np.random.default_rng(0)
    state, served, tape = policy.open(), policy.open(), seeded_tape(4, log=1)
    for t in range(70):
        x, reward = rng.standard_normal(D) / 3, float(rng.random())
        question = policy.ask(served, t % N, x)
        tape.reads[:] = 0
        policy.update(state, tape, t % N, x, reward)
        policy.take(served, t % N, x, question, int(tape.log[0]))
    for (name, one), (_, other) in zip(leaves(state), leaves(served), strict=True):
        if name != "work":
            np.testing.assert_allclose(one, other, atol=1e-12, err_msg=name)
    assert policy.guarantee(100) == LinUCB(**SIZES, reward="symmetric", epsilon=1.5).guarantee(100)


def test_clusters_are_found_and_joined():
    truth = np.array([[1.0, 0, 0], [1.0, 0, 0], [-1.0, 0, 0]])
    state, _ = played(build(CLUB, regularisation=LAMBDA), 200, truth=truth)
    same = state.ridge.kernel.reshape(N, N) > 0
    assert same.tolist() == [[True, True, False], [True, True, False], [False, False, True]]


@every_kind
def test_whoever_comes_later_is_learned_with_the_others(kind):
    policy = build(kind, **HIDDEN["laplace"])
    state, _ = played(policy, 80)
    again = policy.state_of(statistics_of(state))
    more = dataclasses.replace(policy, n_users=N + 1)
    grown = more.state_of(statistics_of(state).arranged(np.array([0, 1, 2, -1])))
    for one in (again, grown):
        P = one.ridge.mean.size
        S = one.ridge.covariance.reshape(P, P)
        assert np.linalg.eigvalsh((S + S.T) / 2).min() > -1e-12
    np.testing.assert_array_equal(grown.ridge.gram[:N], again.ridge.gram)
    fresh = policy.open()
    unlike = not np.allclose(again.ridge.kernel, fresh.ridge.kernel)
    assert unlike or not np.allclose(again.ridge.within, fresh.ridge.within)


def test_a_saved_state_brings_its_kernel(tmp_path):
    policy = build(LearnedKernel, **HIDDEN["laplace"])
    state, _ = played(policy, 70)
    policy.save(tmp_path / "state", state)
    np.testing.assert_array_equal(policy.load(tmp_path / "state").ridge.kernel, state.ridge.kernel)


@every_kind
def test_a_learner_rebuilds_and_continues_where_it_was(kind, tmp_path):
    rng, policy = np.random.default_rng(3), build(kind, reward="symmetric", epsilon=2.0)
    names = {"people": ["ada", "bob", "cy"], "store": tmp_path / "x.db"}
    with tacit.Learner(policy, **names) as learner:
        for t in range(60):
            asked = learner.decide(
                person=names["people"][t % N], contexts=rng.standard_normal((2, D)) / 3
            )
            learner.learn(asked.device.report(float(rng.random())))
        state = learner._core.decider.state
        if kind is not CLUB:  # in which all may still be the same
            assert not np.allclose(state.ridge.within, np.eye(D))
        learner.add_person("di")
        learner.decide(person="di", contexts=np.eye(D))
        before = learner._core.snapshot()
    with tacit.Learner(policy, **names) as learner:
        assert learner._core.snapshot() == before
        learner._experiment.verify()


@every_kind
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"privacy": NoisySums(epsilon=1.0, horizon=5)}, "privacy PerReward, Residual or None"),
        ({"privacy": Published(epsilon=1.0, horizon=5)}, "privacy PerReward, Residual or None"),
        ({"exploration": Theory()}, "exploration a number"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(kind, wrong, words):
    with pytest.raises(ValueError, match=words):
        build(kind, **wrong)


@slow
def test_without_w_it_is_nearer_to_colin_than_to_linucb():
    # Ten fresh runs at epsilon 2; standard errors are about 4. CoLin, told W, has about 30.
    environment, T = Fitted(), 10_000
    regret = {}
    for kind in (LearnedKernel, LinUCB):
        policy = kind(
            **environment.sizes, epsilon=2.0, reward="symmetric", reward_range=(-1.0, 1.0)
        )
        found = []
        for repetition in range(10):
            table, trace = environment.table(5, repetition, T), environment.trace(T, np.array([T]))
            policy.play(policy.start(table), table, seeded_tape(5, repetition), trace, 0, T)
            found.append(trace.measures[-1, 0])
        regret[kind] = float(np.mean(found))
    assert regret[LearnedKernel] < 75
    assert regret[LinUCB] > 90
