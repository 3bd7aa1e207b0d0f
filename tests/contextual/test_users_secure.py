"""Noise on sums with secure numerics: whole numbers, predictions made of what is released, forks."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tacit.contextual import CoLin, Fitted, LinUCB, NoisySums, PerReward
from tacit.core.tapes import secure_tape, seeded_tape

EVERY = {
    "tree": {"visits": 40},
    "toeplitz": {"visits": 40, "continual": "toeplitz"},
    "tree on b": {"horizon": 40, "trust": "central", "statistic": "b"},
    "toeplitz on b": {
        "horizon": 40,
        "trust": "central",
        "statistic": "b",
        "continual": "toeplitz",
    },
}
every_way = pytest.mark.parametrize("how", EVERY.values(), ids=EVERY)


@every_way
def test_sums_with_gaussian_noise_run_on_a_secure_tape(how):
    environment = Fitted(n_users=3, dimension=4, n_items=30, n_shown=5)
    sums = NoisySums(epsilon=2.0, delta=1e-6, **how)
    policy = CoLin(**environment.sizes, privacy=sums, reward_range=(-1.0, 1.0))
    assert policy.secure
    table = environment.table(0, 0, 40)
    trace = environment.trace(40, np.array([40]), record=True)
    state, tape = policy.start(table), secure_tape(log=5000)
    policy.play(state, table, tape, trace, 0, 40)
    assert tape.reads[1] == 40 * state.sums.sums.shape[1]
    step = state.sums.scales[0, 1]
    assert step == 2.0**-20 * (2.0 if "trust" not in how else step * 2.0**20)
    if "continual" not in how:
        np.testing.assert_array_equal(tape.log, step * np.rint(tape.log / step))
    np.testing.assert_array_equal(state.sums.memory, np.rint(state.sums.memory))
    assert "multiples of 2^" in policy.guarantee(40).note


@every_way
def test_predictions_are_made_of_released_sums_and_nothing_else(how):
    """Other rewards and the same released sums: the same predictions, to the last bit."""
    policy = CoLin(n_users=2, dimension=2, privacy=NoisySums(epsilon=1.0, delta=1e-6, **how))
    weights = np.array([[0.7, 0.4], [0.3, 0.6]])
    states = []
    for reward in (0.0, 1.0):
        state, tape = policy.open(weights=weights), secure_tape()
        for t in range(8):
            policy.update(state, tape, t % 2, [0.6, 0.8 - 0.1 * t], reward)
        states.append(state)
    one, other = states
    assert not np.array_equal(one.sums.sums, other.sums.sums)
    for name in ("sums", "lift", "shift", "eta"):
        getattr(other.sums, name)[:] = getattr(one.sums, name)
    picks, coefficients = [], []
    for state in states:
        picks.append(policy.select(state, 1, np.eye(2)))
        coefficients.append(state.work[:2].copy())
    np.testing.assert_array_equal(*coefficients)
    assert picks[0] == picks[1]
    assert not np.any(one.ridge.mean)
    assert not np.any(one.ridge.response)


def test_sums_of_neighbours_stay_as_far_apart_as_declared():
    """A large sum rounds what it takes in otherwise than a small one; whole numbers do not."""
    tiny, visits = 1.5 * 2.0**-53, 300
    sums = NoisySums(epsilon=1.0, delta=1e-6, visits=visits, continual="toeplitz")
    policy = LinUCB(n_users=1, dimension=2, privacy=sums)
    kept = {}
    for name, tape in (("seeded", seeded_tape), ("secure", secure_tape)):
        for first in (0.0, 1.0):
            state, drawn = policy.open(), tape(*([0] if name == "seeded" else []))
            for reward in [first, *[tiny] * (visits - 1)]:
                policy.update(state, drawn, 0, [1.0, 0.0], reward)
            kept[name, first] = float(state.sums.memory[0, 0, visits:].sum())
    assert kept["seeded", 1.0] - kept["seeded", 0.0] > 1.0  # further apart than two rewards
    step, (mechanism,) = state.sums.scales[0, 1], policy.mechanisms
    apart = kept["secure", 1.0] - kept["secure", 0.0]
    assert apart == 1.0 / step
    assert apart * np.linalg.norm(mechanism.coefficients) <= mechanism.secure_release.steps


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
@pytest.mark.parametrize(
    "privacy",
    [NoisySums(epsilon=1.0, delta=1e-6, visits=50), PerReward(epsilon=1.0, mechanism="laplace")],
)
def test_a_forked_learner_draws_other_noise(privacy):
    policy = LinUCB(n_users=1, dimension=2, privacy=privacy)
    state, tape = policy.open(), secure_tape(log=100)
    policy.update(state, tape, 0, [0.6, 0.8], 1.0)
    read, write = os.pipe()
    child = os.fork()
    for _ in range(20):
        policy.update(state, tape, 0, [0.6, 0.8], 1.0)
    if child == 0:
        os.write(write, tape.log.tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(read, 8 * tape.log.size))
    os.close(read)
    os.close(write)
    first = 2 if isinstance(privacy, NoisySums) else 1
    used = int(tape.reads[1])
    np.testing.assert_array_equal(theirs[:first], tape.log[:first])
    assert np.mean(theirs[first:used] == tape.log[first:used]) < 0.1
