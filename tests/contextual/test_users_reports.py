"""What devices are asked and tell: the residual report, kinds of reward, device and server half."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from oracles import collaborative as oracle
from oracles.device import estimator, probabilities
from tacit.contextual import (
    CoLin,
    Fitted,
    GOBLin,
    LinUCB,
    PerReward,
    Residual,
    Synthetic,
    recorded_table,
)
from tacit.contextual.level import value_of
from tacit.contextual.model import answer
from tacit.contextual.questions import BIN, NEAR
from tacit.core.arrays import leaves
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import NOISE, recorded_tape, seeded_tape
from tacit.device import Channel, Reporter
from tacit.simulation.audits import audit_policy, neighbours_of
from tiers import tiered

slow = pytest.mark.skipif(INTERPRETED, reason="thousands of rounds need compiled kernels")
TWO = {"n_users": 2, "dimension": 2}
W = np.array([[0.7, 0.4], [0.3, 0.6]])


def residual(kind=CoLin, epsilon=1.0, sigma=0.2, **parameters):
    hidden = Residual(epsilon=epsilon, sigma=sigma)
    return kind(**TWO, privacy=hidden, reward="symmetric", reward_range=(-1.0, 1.0), **parameters)


@pytest.mark.parametrize("epsilon", [1.0, 2.5, 5.0])
def test_the_residual_report_is_the_one_of_its_definition(epsilon):
    policy = residual(epsilon=epsilon)
    rng, bins = np.random.default_rng(1), Residual(epsilon=epsilon).bins
    state, tape = policy.open(weights=W), seeded_tape(3, log=1)
    seen, K = [], W.T @ W + 1.0
    truth = rng.standard_normal((2, 2)) / 2
    for t in range(60):
        user = t % 2
        contexts = rng.standard_normal((3, 2)) / 2
        covariance, theta = oracle.residual_posterior(K, 2, seen)
        own = slice(2 * user, 2 * user + 2)
        C, p = covariance[own, own], theta[own]
        score = contexts @ p + 0.5 * np.sqrt(np.einsum("ai,ij,aj->a", contexts, C, contexts))
        slot = policy.select(state, user, contexts)
        assert slot == int(np.argmax(score))
        x = contexts[slot]
        mean, square = float(np.clip(x @ p, -1, 1)), float(x @ C @ x)
        question = policy.ask(state, user, x)
        state.rounds[0] -= 1
        scale = math.sqrt(0.2**2 + square)
        assert (question.kind, question.mean) == (BIN, pytest.approx(mean, abs=1e-9))
        assert question.scale == pytest.approx(scale, rel=1e-9)
        tape.reads[:] = 0
        policy.update(state, tape, user, x, float(x @ truth[user] + 0.2 * rng.standard_normal()))
        y, v = oracle.residual_observation(int(tape.log[0]), bins, epsilon, mean, scale, square)
        assert question.variance == pytest.approx(v, rel=1e-6)
        seen.append((user, x, y, v))
    assert len({o[2] for o in seen}) > 10


@pytest.mark.parametrize("half_life", [None, 24])
@pytest.mark.parametrize("kind", [CoLin, LinUCB])
@pytest.mark.parametrize("centred", [False, True])
def test_centred_bits_are_learned_beside_the_level_of_all_of_them(centred, kind, half_life):
    hidden = PerReward(epsilon=2.0, mechanism="bit", centred=centred)
    policy = kind(**TWO, privacy=hidden, reward="binary", regularisation=0.8, half_life=half_life)
    rng, tape, state = np.random.default_rng(2), seeded_tape(5, log=1), policy.open(weights=W)
    kernel = W.T @ W if kind is CoLin else np.eye(2)
    keep = math.exp(2) / (1 + math.exp(2))
    seen, same = [], []
    for t in range(80):
        user, contexts = t % 2, rng.standard_normal((3, 2)) / 2 + 0.3
        c, theta, covariance = oracle.with_level(kernel, 0.8, 2, seen)
        own = slice(2 * user, 2 * user + 2)
        C, p = covariance[own, own], theta[own]
        score = contexts @ p + 0.3 * np.sqrt(np.einsum("ai,ij,aj->a", contexts, C, contexts))
        slot = policy.select(state, user, contexts)
        same.append(
            slot == int(np.argmax(score)) and value_of(state.level) == pytest.approx(c, abs=1e-9)
        )
        if half_life and (t + 1) % 3 == 0:
            seen = [(*o[:3], o[3] * 0.5 ** (3 / half_life)) for o in seen]
        tape.reads[:] = 0
        policy.update(state, tape, user, contexts[slot], float(rng.random() < 0.8))
        estimate = ((tape.log[0] > 0.5) - (1 - keep)) / (2 * keep - 1)
        seen.append((user, contexts[slot], estimate, 1.0))
    assert all(same) == centred


def test_how_many_bins_keep_most_of_the_information():
    changes = [2.03, 3.1, 3.8, 4.3, 4.8, 5.1]
    for bins, epsilon in enumerate(changes, 2):
        assert Residual(epsilon=epsilon - 0.06).bins == bins
        assert Residual(epsilon=epsilon + 0.06).bins == bins + 1


LOCAL = {
    "bit": {"privacy": PerReward(epsilon=1.5, mechanism="bit")},
    "binary": {"epsilon": 1.5, "reward": "binary"},
    "residual": {"epsilon": 1.5, "reward": "symmetric"},
    "residual of three bins": {"epsilon": 2.5, "reward": "symmetric"},
}
every_local = pytest.mark.parametrize("parameters", LOCAL.values(), ids=LOCAL)


@every_local
def test_a_server_that_sees_reports_alone_knows_what_the_simulation_knows(parameters):
    policy = GOBLin(**TWO, **parameters)
    graph, rng = np.array([[0.0, 1.0], [1.0, 0.0]]), np.random.default_rng(0)
    state, served = policy.open(graph=graph), policy.open(graph=graph)
    tape, kinds = seeded_tape(4, log=1), set()
    for t in range(45):
        x, reward = rng.standard_normal(2) / 3, float(rng.random())
        question = policy.ask(served, t % 2, x)
        kinds.add(question.kind)
        tape.reads[:] = 0
        policy.update(state, tape, t % 2, x, reward)
        policy.take(served, t % 2, x, question, int(tape.log[0]))
    for (name, one), (_, other) in zip(leaves(state), leaves(served), strict=True):
        if name != "work":
            np.testing.assert_allclose(one, other, atol=1e-12, err_msg=name)
    assert kinds == ({BIN, NEAR} if "residual" in str(policy.protection).lower() else {0})


@pytest.mark.parametrize("mechanism", ["bit", "piecewise", "laplace"])
def test_what_a_device_sends_of_a_value_is_understood(mechanism):
    policy = LinUCB(**TWO, privacy=PerReward(epsilon=1.5, mechanism=mechanism))
    state = policy.open()
    question = policy.ask(state, 0, [0.5, 0.1])
    asked = policy.instructions(question)
    slope, intercept = estimator(asked)
    numbers = policy.params.channel.report.numbers
    assert float(slope) == pytest.approx(numbers[1], rel=1e-9)
    assert float(intercept) == pytest.approx(numbers[0], rel=1e-9, abs=1e-12)
    report = Reporter(asked, id="1", max_epsilon=1.5).report(1.0)["value"]
    policy.take(state, 0, [0.5, 0.1], question, report)
    assert state.rounds.tolist() == [1, 1]
    told = float(slope * report + intercept)
    assert state.ridge.response[0].tolist() == pytest.approx([0.5 * told, 0.1 * told])


@pytest.mark.parametrize("epsilon", [1.5, 2.5])
def test_a_device_makes_the_report_that_the_simulation_makes(epsilon):
    """Every reward lies in the same bin, and answers have the same probabilities to 2^-49."""
    policy = LinUCB(**TWO, epsilon=epsilon, reward="symmetric")
    state, rng = policy.open(), np.random.default_rng(2)
    truthful, channel = recorded_tape({NOISE: np.zeros((1, 1))}), policy.params.channel.bins
    for _ in range(60):
        question = policy.ask(state, 0, rng.standard_normal(2) / 2)
        asked = policy.instructions(question)
        cuts = asked["question"]["cuts"]
        keep = channel.keep if question.kind == BIN else channel.near_keep
        for reward in [*rng.uniform(-0.5, 1.5, 5), *cuts, *np.nextafter(cuts, 9.0)]:
            told = int(answer(policy.params, truthful, 0, question, float(reward)))
            assert told == Channel(asked).position(float(reward))
            chances = probabilities(asked, float(reward))
            assert float(chances[told]) == pytest.approx(keep, abs=2.0**-49)
        report = Reporter(asked, id="1", max_epsilon=epsilon).report(0.3)["value"]
        policy.take(state, 0, [0.3, 0.4], question, report)


def test_reports_that_no_device_sends_are_refused():
    policy = LinUCB(**TWO, epsilon=1.0)
    state = policy.open()
    question = policy.ask(state, 0, [0.5, 0.5])
    for wrong in (2, -1, 0.5, math.nan):
        with pytest.raises(ValueError, match="expected report one that the device can send"):
            policy.take(state, 0, [0.5, 0.5], question, wrong)
    with pytest.raises(ValueError, match="PerReward or Residual"):
        LinUCB(**TWO).ask(state, 0, [0.5, 0.5])


def test_the_state_counts_rounds_so_that_noise_is_never_used_twice():
    policy = LinUCB(**TWO, privacy=PerReward(epsilon=1.0, mechanism="laplace"))
    state, tape = policy.open(), seeded_tape(0, log=4)
    for reward in (0.0, 1.0, 0.0, 1.0):
        policy.update(state, tape, 0, [0.0, 0.0], reward)
    assert len(set(np.round(tape.log - [0, 1, 0, 1], 9))) == 4


def skewed(horizon, rng):
    """Return two arms: the first has the larger mean, the second the larger median."""
    rare = (rng.random(horizon) < 0.3).astype(float)
    steady = 0.2 + 0.02 * rng.standard_normal(horizon)
    contexts = np.tile(np.eye(2)[None], (horizon, 1, 1))
    return recorded_table(np.zeros(horizon), contexts, np.column_stack([rare, steady]), n_users=1)


@slow
def test_the_residual_report_finds_medians_and_others_find_means():
    # In 4,000 rounds the share of the better arm is nearer 1 than 0 for the one, and the contrary.
    table = skewed(4000, np.random.default_rng(0))
    share = {}
    for reward in ("bounded", "symmetric"):
        policy = LinUCB(n_users=1, dimension=2, epsilon=4.0, reward=reward)
        trace = Synthetic().trace(4000, np.array([4000]), record=True)
        policy.play(policy.start(table), table, seeded_tape(1), trace, 0, 4000)
        share[reward] = float((trace.decisions[2000:] == 0).mean())
    assert share["bounded"] > 0.8
    assert share["symmetric"] < 0.2
    with pytest.raises(ValueError, match="reward 'symmetric' where privacy is Residual"):
        LinUCB(n_users=1, dimension=2, privacy=Residual(epsilon=1.0))


@slow
@pytest.mark.parametrize(
    ("epsilon", "most"),
    tiered([(0.5, 290), (1.0, 95), (2.0, 42)], lambda each: each[0] == 1.0),
)
def test_the_residual_report_in_the_fitted_world(epsilon, most):
    # 20 fresh runs; sigma is learned. Standard errors are about 15, 6 and 1.2.
    environment, T = Fitted(), 10_000
    policy = CoLin(
        **environment.sizes, epsilon=epsilon, reward="symmetric", reward_range=(-1.0, 1.0)
    )
    regret = []
    for r in range(20):
        table, trace = environment.table(91, r, T), environment.trace(T, np.array([T]))
        policy.play(policy.start(table), table, seeded_tape(91, r), trace, 0, T)
        regret.append(trace.measures[-1, 0])
    assert np.mean(regret) < most
    bounded = dataclasses.replace(policy, reward="bounded")
    assert bounded.protection == PerReward(epsilon=epsilon)


@slow
@pytest.mark.parametrize(
    ("pairs", "some", "runs"),
    [  # of six pairs two are of what is shown
        pytest.param(6, (3, 5), 5_000, id="two"),
        pytest.param(6, range(6), 20_000, id="six", marks=pytest.mark.slow),
        pytest.param(18, range(18), 20_000, id="eighteen", marks=pytest.mark.soak),
    ],
)
@pytest.mark.parametrize("hidden", [Residual(epsilon=1.0), Residual(epsilon=3.0, sigma=0.1)])
def test_the_audit_refutes_a_residual_report_with_half_the_noise(hidden, pairs, some, runs):
    environment = Synthetic(n_users=2, dimension=2, n_items=20, n_shown=3)
    common = {**environment.sizes, "reward": "symmetric"}
    honest = CoLin(**common, privacy=hidden)
    known = neighbours_of(environment, 25, seed=1, limit=pairs)
    terms = {"horizon": 25, "runs": runs, "seed": 1, "neighbours": [known[i] for i in some]}
    found = audit_policy(honest, environment, **terms)
    assert found.result.verdict == "not refuted"
    loose = CoLin(**common, privacy=dataclasses.replace(hidden, epsilon=2 * hidden.epsilon))
    found = audit_policy(loose, environment, **terms, epsilon=hidden.epsilon)
    assert found.result.verdict == "refuted"


def test_sigma_is_learned_from_every_twentieth_answer():
    rng, policy = (
        np.random.default_rng(0),
        LinUCB(n_users=1, dimension=1, epsilon=4.0, reward="symmetric", reward_range=(-1.0, 1.0)),
    )
    state, tape, rounds = policy.open(), seeded_tape(0), 300 if INTERPRETED else 6000
    for _ in range(rounds):
        policy.update(state, tape, 0, [1.0], 0.3 + 0.05 * rng.standard_normal())
    assert state.deviation[1] == rounds // 20
    if not INTERPRETED:
        assert math.exp(state.deviation[0]) == pytest.approx(0.05, rel=0.3)
