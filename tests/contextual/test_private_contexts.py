"""Contexts that are private as rewards are: moments with noise, batches, what is protected."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oracles import private_contexts as oracle
from tacit.contextual import Fitted, PrivateContexts, recorded_table
from tacit.contextual.neighbours import edit_visit
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import NOISE, secure_tape, seeded_tape
from tacit.privacy import GaussianMoments
from tacit.privacy.mechanisms.gaussian import gaussian_delta, standard_normal
from tacit.privacy.mechanisms.gaussian_moments import add_moments, matrix_of_moments

slow = pytest.mark.skipif(INTERPRETED, reason="thousands of rounds need compiled kernels")


def moments(x, r):
    """Return x x' and x r as one vector whose length is the Frobenius norm."""
    return np.concatenate([np.outer(x, x).ravel(), r * x])


@pytest.mark.parametrize("largest", [0.3, 1.0, 2.0])
def test_the_sensitivity_is_reached_and_never_passed(largest):
    mechanism = GaussianMoments(epsilon=1.0, delta=1e-5, dimension=3, largest=largest)
    rng = np.random.default_rng(1)
    far = 0.0
    for _ in range(4000):
        pairs = []
        for _ in range(2):
            x = rng.standard_normal(3)
            x *= (1.0 if rng.random() < 0.7 else rng.random()) / np.linalg.norm(x)
            pairs.append(moments(x, largest * (rng.choice([-1, 1]) if rng.random() < 0.7 else 0.3)))
        far = max(far, float(np.linalg.norm(pairs[0] - pairs[1])))
    assert far <= mechanism.sensitivity
    worst = mechanism.worst_pairs()[0]
    reached = moments(worst.left[:-1], worst.left[-1]) - moments(worst.right[:-1], worst.right[-1])
    # But for what is added for contexts that are longer than 1 by 1e-9.
    assert np.linalg.norm(reached) * (1 + 2.0**-28) == pytest.approx(
        mechanism.sensitivity, rel=1e-12
    )
    ends = [moments((1 + 1e-9) * each[:-1], each[-1]) for each in (worst.left, worst.right)]
    assert np.linalg.norm(ends[0] - ends[1]) < mechanism.sensitivity


@pytest.mark.parametrize("epsilon", [1e-4, 1.0, 30.0])
def test_on_a_secure_tape_neighbours_stay_as_far_apart_as_declared(epsilon):
    """A large floating-point sum rounds what it takes in otherwise than a small one."""
    rng, visits = np.random.default_rng(4), 300
    x = rng.standard_normal((visits, 2))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    policy = PrivateContexts(n_users=1, dimension=2, epsilon=epsilon, reward_range=(-1.0, 1.0))
    (mechanism,) = policy.mechanisms
    pair, kept = mechanism.worst_pairs()[0], {}
    for name, tape in (("seeded", seeded_tape(0)), ("secure", secure_tape())):
        for side, first in (("left", pair.left), ("right", pair.right)):
            state = policy.open()
            state.counts[0, 1] = 2 * visits  # an open batch
            policy.update(state, tape, 0, first[:-1], first[-1])
            for each in x:
                policy.update(state, tape, 0, each, 1.5 * 2.0**-53)
            kept[name, side] = state.opened[0] / mechanism.step
    steps = kept["secure", "left"] - kept["secure", "right"]
    assert (steps == np.rint(steps)).all()
    assert (kept["secure", "left"] == np.rint(kept["secure", "left"])).all()
    assert np.linalg.norm(steps) <= mechanism.secure_release.steps
    drift = kept["seeded", "left"] - kept["seeded", "right"] - steps
    assert (drift != np.rint(drift)).any()


def test_moments_keep_lengths_and_come_back():
    rng = np.random.default_rng(2)
    x, y, sums, other = *rng.standard_normal((2, 4)), np.zeros(14), np.zeros(14)
    add_moments(x, 0.5, 0.0, sums)
    add_moments(y, -0.2, 0.0, other)
    apart = np.linalg.norm(moments(x, 0.5) - moments(y, -0.2))
    assert np.linalg.norm(sums - other) == pytest.approx(apart, rel=1e-12)
    matrix = np.zeros((4, 4))
    matrix_of_moments(sums, matrix)
    np.testing.assert_allclose(matrix, np.outer(x, x), rtol=1e-12)
    np.testing.assert_allclose(sums[-4:], 0.5 * x)


def test_what_runs_is_what_is_declared():
    # 4,000 draws: a variance is off by more than 12% once in 10^6 or less.
    mechanism = GaussianMoments(epsilon=2.0, delta=1e-6, dimension=2)
    found = mechanism.run([0.6, 0.8, 1.0], n=4000, seed=3)
    assert found.shape == (4000, mechanism.coordinates)
    truth = np.zeros(5)
    add_moments(np.array([0.6, 0.8]), 1.0, 0.0, truth)
    np.testing.assert_allclose(
        found.mean(axis=0), truth, atol=5 * mechanism.scale / math.sqrt(4000)
    )
    np.testing.assert_allclose(found.var(axis=0), mechanism.variance, rtol=0.12)
    ratio = mechanism.sensitivity / mechanism.scale
    assert gaussian_delta(ratio, 2.0) == pytest.approx(1e-6, rel=1e-6)
    with pytest.raises(ValueError, match="length <= 1"):
        mechanism.run([1.0, 0.8, 1.0])


def noise_of(policy, seed):
    d, scale, tape = policy.dimension, policy.params.scale, seeded_tape(seed)

    def noise(t):
        draws = [scale * standard_normal(tape, t, j, NOISE) for j in range(d * (d + 3) // 2)]
        Z = np.zeros((d, d))
        for a in range(d):
            for b in range(a + 1):
                z = draws.pop(0)
                Z[a, b] = Z[b, a] = z if a == b else z / math.sqrt(2)
        return Z, np.array(draws)

    return noise


@pytest.mark.parametrize("trust", ["central", "local"])
def test_it_is_the_algorithm_of_its_definition(trust):
    rng, T = np.random.default_rng(5), 150
    contexts = rng.standard_normal((T, 4, 3))
    contexts /= np.linalg.norm(contexts, axis=2, keepdims=True) * rng.uniform(1, 2, (T, 4, 1))
    users = rng.integers(0, 3, T)
    rewards = np.einsum("tad,td->ta", contexts, rng.standard_normal((3, 3))[users])
    table = recorded_table(users, contexts, rewards, n_users=3)
    policy = PrivateContexts(
        n_users=3, dimension=3, epsilon=20.0, trust=trust, reward_range=(-1.0, 1.0)
    )
    terms = {"lam": 1.0, "alpha": 0.3, "scale": policy.params.scale, "clip": (-1.0, 1.0)}
    wanted = oracle.play(
        users, contexts, rewards, noise_of(policy, 9), doubling=trust == "central", **terms
    )
    trace = Fitted().trace(T, np.array([T]), record=True)
    policy.play(policy.start(table), table, seeded_tape(9), trace, 0, T)
    assert trace.decisions.tolist() == wanted.tolist()
    other = oracle.play(
        users, contexts, rewards, noise_of(policy, 9), doubling=trust == "local", **terms
    )
    assert trace.decisions.tolist() != other.tolist()


def test_what_it_says_of_itself():
    joint = PrivateContexts(n_users=2, dimension=2, epsilon=2.0).guarantee(100)
    local = PrivateContexts(n_users=2, dimension=2, epsilon=2.0, trust="local").guarantee(100)
    assert (joint.unit, joint.trust, local.trust) == ("visit", "central", "local")
    assert "decisions of all other rounds are protected" in joint.sentence()
    for each in (joint, local):
        assert "choice of the round itself" in " ".join(each.open_to_all)
    assert "contexts and features" not in " ".join(local.open_to_all)
    assert not PrivateContexts(n_users=2, dimension=2).guarantee(100).private
    with pytest.raises(ValueError, match="trust one of central, local"):
        PrivateContexts(n_users=2, dimension=2, trust="nobody")


def test_other_rounds_see_nothing_of_an_open_batch():
    """Until a batch is full its rounds change nothing, whoever looks at all decisions but theirs."""
    environment = Fitted(n_users=1, dimension=2, n_items=20, n_shown=3, n_groups=1)
    policy = PrivateContexts(n_users=1, dimension=2, epsilon=2.0, reward_range=(-1.0, 1.0))
    table = environment.table(0, 0, 14)
    seen = []
    for context, reward in (([1.0, 0.0], -1.0), ([0.5, 0.8], 1.0)):
        changed = edit_visit(table, 8, context, reward)
        trace = environment.trace(14, np.array([14]), record=True)
        policy.play(policy.start(changed), changed, seeded_tape(3), trace, 0, 14)
        seen.append(np.delete(trace.decisions, 8).tolist())
    assert seen[0] == seen[1]


@slow
def test_joint_privacy_learns_in_time_and_local_hardly():
    # 4 runs of 40,000 rounds, ten thousand for each of four users; random costs 1.
    environment, T = Fitted(n_users=4, dimension=5), 40_000
    share = {}
    for trust in ("central", "local"):
        policy = PrivateContexts(
            **environment.sizes, epsilon=2.0, trust=trust, reward_range=(-1.0, 1.0)
        )
        found = []
        for repetition in range(4):
            table = environment.table(6, repetition, T)
            trace = environment.trace(T, np.array([T]))
            policy.play(policy.start(table), table, seeded_tape(6, repetition), trace, 0, T)
            found.append(trace.measures[-1, 0] / trace.measures[-1, 3])
        share[trust] = float(np.mean(found))
    assert share["central"] < 0.3
    assert share["local"] > 2 * share["central"]
