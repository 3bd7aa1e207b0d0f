"""The diffusion kernels against a dense oracle, and the contracts every policy keeps."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from oracles import diffusion as oracle
from tacit.core.tapes import CHOICE, MESSAGE, NOISE, SIGNAL, recorded_tape, seeded_tape
from tacit.diffusion import (
    THREE_AGENTS,
    BatchedTsallis,
    ChangingTruth,
    DiffusionBandit,
    DiffusionLearning,
    OutsiderPrivateDiffusion,
    RecordedTruth,
    SpyPrivateDiffusion,
)
from tacit.graphs import MixingMatrix, erdos_renyi

M = 4
POLICIES = {
    "learning": DiffusionLearning(n_states=M),
    "3": DiffusionBandit(n_states=M),
    "3 theory": DiffusionBandit(n_states=M, rates="theory", horizon=60, independence_number=2),
    "3 adaptive": DiffusionBandit(n_states=M, rates="adaptive"),
    "1 published": OutsiderPrivateDiffusion(
        n_states=M, epsilon=0.7, variant="published", horizon=60
    ),
    "2 published": SpyPrivateDiffusion(n_states=M, epsilon=0.7, variant="published", horizon=60),
    "1 corrected": OutsiderPrivateDiffusion(n_states=M, epsilon=1.5),
    "1 corrected, block": OutsiderPrivateDiffusion(n_states=M, epsilon=0.5),
    "1 corrected, Laplace": OutsiderPrivateDiffusion(
        n_states=M, epsilon=0.5, mechanism="laplace", block=4
    ),
    "2 corrected": SpyPrivateDiffusion(n_states=M, epsilon=1.5, signal_epsilon=0.8),
    "2 corrected, block": SpyPrivateDiffusion(n_states=M, epsilon=0.5, block=7),
    "batched": BatchedTsallis(n_states=M, epsilon=0.3),
    "batched, open": BatchedTsallis(n_states=M, epsilon=None),
}
EXPECTED = {
    "3": {"eta": 0.1},
    "3 theory": {"eta": math.sqrt(math.log(4) / 120), "gamma": 0.5},
    "1 published": {"eta": 0.1, "epsilon": 0.7, "b": math.log(60) / 0.7},
    "2 published": {"eta": 0.1, "epsilon": 0.7, "b": math.log(60) / 0.7, "b_message": 1.0},
    "3 adaptive": {},
    "1 corrected": {"epsilon": 1.5},
    "1 corrected, block": {"epsilon": 0.5, "block": 3},
    "1 corrected, Laplace": {"epsilon": 0.5, "block": 4, "laplace": True},
    "2 corrected": {"epsilon": 1.5, "signal_epsilon": 0.8},
    "2 corrected, block": {"epsilon": 0.5, "signal_epsilon": 0.5, "block": 7},
    "batched": {"epsilon": 0.3, "block": 4},
    "batched, open": {"epsilon": None, "block": 1},
}


def run(policy, environment, tape, T, *, pieces=1, record=True):
    table = environment.table(5, 0, T)
    trace = environment.trace(T, np.arange(1, T + 1), record=record)
    state = policy.start(table)
    cuts = np.linspace(0, T, pieces + 1).astype(int)
    for first, last in itertools.pairwise(cuts):
        policy.play(state, table, tape, trace, int(first), int(last))
    return trace


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(11)
    T, N = 60, 6
    A = MixingMatrix.uniform(erdos_renyi(N, 0.6, seed=2)).to_dense()
    return {
        "A": A,
        "states": rng.integers(M, size=T),
        "signals": rng.normal(1.5, 2.0, size=(T, N)),
        "losses": rng.random((T, N, M)),
        "tape": rng.random((T, 2 * N + N * M)),
    }


def by_purpose(tape, N):
    """Return the columns of an oracle's tape under the names that the policies read."""
    rest = tape[:, 2 * N :]
    return recorded_tape(
        {CHOICE: tape[:, :N], NOISE: tape[:, N : 2 * N], MESSAGE: rest, SIGNAL: rest}
    )


def recorded_world(data, signal_std=1.3):
    return RecordedTruth(
        states=data["states"],
        n_states=M,
        signals=data["signals"],
        losses=data["losses"],
        network=data["A"],
        signal_std=signal_std,
    )


DEVIATIONS = {
    "alike": 1.3,
    "by agent": np.linspace(0.4, 2.5, 6),
    "by agent and round": np.random.default_rng(5).uniform(0.3, 3.0, (60, 6)),
}


@pytest.mark.parametrize(
    ("name", "spread"),
    [(name, "alike") for name in POLICIES]
    + [
        (name, spread)
        for name in ("learning", "3", "2 corrected")
        for spread in ("by agent", "by agent and round")
    ],
)
def test_kernel_equals_oracle(name, spread, data):
    sigma = DEVIATIONS[spread]
    trace = run(POLICIES[name], recorded_world(data, sigma), by_purpose(data["tape"], 6), 60)
    if name == "learning":
        beliefs, choices = oracle.learning(data["A"], data["signals"], M, sigma)
    elif name.startswith("batched"):
        beliefs, choices = oracle.batched(data["losses"], data["tape"], **EXPECTED[name])
    else:
        settings = {"gamma": 0.1, "sigma": sigma} | EXPECTED[name]
        algorithm = oracle.bandit if "eta" in settings else oracle.sound
        beliefs, choices = algorithm(
            data["A"], data["signals"], data["losses"], data["tape"], **settings
        )
    np.testing.assert_array_equal(trace.decisions, choices)
    np.testing.assert_allclose(trace.beliefs, beliefs, rtol=1e-9, atol=1e-12)


def test_the_oracle_can_fail(data):
    trace = run(POLICIES["3"], recorded_world(data), by_purpose(data["tape"], 6), 60)
    wrong, _ = oracle.bandit(
        data["A"].T, data["signals"], data["losses"], data["tape"], eta=0.1, gamma=0.1, sigma=1.3
    )
    assert np.abs(trace.beliefs - wrong).max() > 1e-3


@pytest.mark.parametrize("name", POLICIES)
def test_pieces_equal_whole(name):
    environment = ChangingTruth(n_states=M, flip_prob=0.1)
    whole = run(POLICIES[name], environment, seeded_tape(1), 50)
    split = run(POLICIES[name], environment, seeded_tape(1), 50, pieces=9)
    for a, b in zip(whole, split, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", POLICIES)
def test_one_agent_one_state_one_round(name):
    policy = dataclasses.replace(POLICIES[name], n_states=1)
    trace = run(policy, ChangingTruth(n_states=1, network=[[1.0]]), seeded_tape(1), 1)
    np.testing.assert_array_equal(trace.beliefs, [[[1.0]]])
    assert trace.measures[0, 0] == 0.0


@pytest.mark.parametrize(
    ("name", "reads"),
    [
        ("3", 0),
        ("3 adaptive", 0),
        ("1 published", 3 * 50),
        ("2 published", 3 * 50 * (1 + M)),
        ("1 corrected", 3 * 50),
        ("1 corrected, block", 3 * 16),
        ("2 corrected", 3 * 50 * 2),
        ("2 corrected, block", 3 * (7 + 8)),
        ("batched", 3 * 12),
        ("batched, open", 0),
    ],
)
def test_every_release_is_counted(name, reads):
    tape = seeded_tape(1, log=1000)
    run(POLICIES[name], ChangingTruth(n_states=M), tape, 50)
    assert tape.reads[1] == reads


def test_measures_follow_their_definitions(data):
    environment = recorded_world(data)
    trace = run(POLICIES["3 adaptive"], environment, by_purpose(data["tape"], 6), 60)
    losses = data["losses"]
    before = np.concatenate((np.full((1, 6, M), 1 / M), trace.beliefs[:-1]))
    held = (before * losses).sum(axis=2).cumsum(axis=0)
    best = losses.cumsum(axis=0).argmin(axis=2)
    least = losses.cumsum(axis=0).min(axis=2)
    np.testing.assert_allclose(trace.measures[:, 0], (held - least).mean(axis=1))
    in_best = np.take_along_axis(trace.beliefs, best[:, :, None], axis=2)
    np.testing.assert_allclose(trace.measures[:, 1], in_best.mean(axis=(1, 2)))
    apart = np.abs(trace.beliefs - trace.beliefs.mean(axis=1, keepdims=True)).sum(axis=2) / 2
    np.testing.assert_allclose(trace.measures[:, 2], apart.mean(axis=1))
    suffered = np.take_along_axis(losses, trace.decisions[:, :, None].astype(int), axis=2)
    np.testing.assert_allclose(trace.choice_loss, suffered.sum(axis=(0, 2)))
    named = suffered[:, :, 0].cumsum(axis=0)
    np.testing.assert_allclose(trace.measures[:, 5], (named - least).mean(axis=1))
    after = (trace.beliefs * losses).sum(axis=2).cumsum(axis=0)  # eq. 10 as it is printed
    np.testing.assert_allclose(trace.measures[:, 6], (after - least).mean(axis=1))
    assert np.abs(trace.measures[:, 6] - trace.measures[:, 0]).max() > 1e-3


def test_convergence_is_when_all_agents_are_certain_of_one_state():
    environment = ChangingTruth(dominance=1.0)
    trace = run(DiffusionBandit(n_states=5, rates="adaptive"), environment, seeded_tape(1), 200)
    certain = (trace.beliefs > 0.99).all(axis=1).any(axis=1)
    first = int(certain.argmax()) + 1
    assert 10 < first < 200
    np.testing.assert_array_equal(trace.measures[:, 3], np.arange(1, 201) >= first)
    np.testing.assert_array_equal(trace.measures[:, 4], np.minimum(np.arange(1, 201), first))


def test_an_estimate_never_moves_a_belief_by_more_than_e():
    """The rate times the largest possible estimate is at most 1 in every block."""
    policy = OutsiderPrivateDiffusion(n_states=5, epsilon=0.3)
    environment, tape = ChangingTruth(), seeded_tape(3)
    table, state = environment.table(3, 0, 4000), None
    trace = environment.trace(4000, np.array([4000]))
    state = policy.start(table)
    params, largest = policy.params, 0.0
    for t in range(4000):
        eta = state.eta.copy()
        policy.play(state, table, tape, trace, t, t + 1)
        largest = max(largest, (eta * params.reach / state.chance).max())
    assert 0.5 < largest <= 1.0 + 1e-12
    assert state.eta.max() < 0.5 / (5 * params.reach)


def test_three_agents_are_the_papers():
    np.testing.assert_allclose(np.sum(THREE_AGENTS, axis=0), 1.0)
    assert ChangingTruth().public_parameters(10) == {
        "n_agents": 3,
        "n_states": 5,
        "horizon": 10,
        "independence_number": 1,
    }


@pytest.mark.parametrize(
    ("cls", "settings", "message"),
    [
        (DiffusionLearning, {"n_states": 0}, "DiffusionLearning: expected n_states >= 1, got 0"),
        (DiffusionBandit, {"n_states": 5, "rates": "fast"}, "got 'fast'"),
        (DiffusionBandit, {"n_states": 5, "rates": "theory"}, "expected horizon >= 1, got None"),
        (DiffusionBandit, {"n_states": 5, "exploration_prob": 0.6}, "got 0.6"),
        (DiffusionBandit, {"n_states": 5, "learning_rate": 0.0}, "expected learning_rate > 0"),
        (OutsiderPrivateDiffusion, {"n_states": 5, "epsilon": -1.0}, "expected epsilon between"),
        (
            OutsiderPrivateDiffusion,
            {"n_states": 5, "epsilon": math.nan},
            "expected epsilon between",
        ),
        (OutsiderPrivateDiffusion, {"n_states": 5, "epsilon": 1.0, "block": 0}, "block >= 1"),
        (
            OutsiderPrivateDiffusion,
            {"n_states": 5, "epsilon": 1.0, "variant": "published"},
            "expected noise_bound given, or a horizon T",
        ),
        (OutsiderPrivateDiffusion, {"n_states": 5, "epsilon": 1.0, "variant": "x"}, "variant"),
        (OutsiderPrivateDiffusion, {"n_states": 5, "epsilon": 1.0, "mechanism": "x"}, "'x'"),
        (SpyPrivateDiffusion, {"n_states": 5, "epsilon": 1.0, "signal_epsilon": -1.0}, "-1.0"),
        (SpyPrivateDiffusion, {"n_states": 5, "epsilon": 1.0, "message_bound": 0.0}, "0.0"),
    ],
)
def test_bad_parameters_name_themselves(cls, settings, message):
    with pytest.raises(ValueError, match=message):
        cls(**settings)


def test_a_policy_for_another_number_of_states_is_refused():
    with pytest.raises(ValueError, match="expected n_states == 5"):
        DiffusionBandit(n_states=4).start(ChangingTruth().table(0, 0, 10))
