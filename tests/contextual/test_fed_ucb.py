"""Agents who learn one model together: as published, when they speak tells what they saw; corrected, not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oracles import fed_ucb as oracle
from tacit.contextual import FedUCB, Fitted, recorded_table
from tacit.contextual.neighbours import edit_visit
from tacit.contextual.policies.fed_ucb import published_scale
from tacit.core.tapes import NOISE, seeded_tape
from tacit.privacy.mechanisms.gaussian import standard_normal

ONE = {"n_users": 2, "dimension": 2, "epsilon": 2.0, "reward_range": (-1.0, 1.0), "horizon": 40}


def noise_of(policy, seed):
    """Return the noise of (round, agent), a symmetric matrix and a vector, as the tape has it."""
    d, params, tape = policy.dimension, policy.params, seeded_tape(seed)
    m = d * (d + 3) // 2

    def noise(t, agent):
        draws = [standard_normal(tape, t, agent * m + j, NOISE) for j in range(m)]
        Z = np.zeros((d, d))
        for a in range(d):
            for b in range(a + 1):
                z = params.matrix_scale * draws.pop(0)
                Z[a, b] = Z[b, a] = z if a == b else z / math.sqrt(2)
        return Z, params.vector_scale * np.array(draws)

    return noise


@pytest.mark.parametrize("epsilon", [None, 20.0])
@pytest.mark.parametrize("variant", ["corrected", "published"])
def test_it_is_the_algorithm_of_its_definition(variant, epsilon):
    rng, T, N = np.random.default_rng(5), 150, 3
    contexts = rng.standard_normal((T, 4, 3))
    contexts /= np.linalg.norm(contexts, axis=2, keepdims=True) * rng.uniform(1, 2, (T, 4, 1))
    users = rng.integers(0, N, T)
    rewards = contexts @ rng.standard_normal(3)
    table = recorded_table(users, contexts, rewards, n_users=N)
    policy = FedUCB(
        n_users=N,
        dimension=3,
        epsilon=epsilon,
        variant=variant,
        horizon=T,
        reward_range=(-1.0, 1.0),
    )
    terms = {"lam": 1.0, "alpha": 0.3, "scale": policy.params.matrix_scale, "clip": (-1.0, 1.0)}
    wanted, spoke = oracle.play(
        users, contexts, rewards, noise_of(policy, 9), N, threshold=policy.params.threshold, **terms
    )
    trace = Fitted().trace(T, np.array([T]), record=True)
    state = policy.start(table)
    policy.play(state, table, seeded_tape(9), trace, 0, T)
    assert trace.decisions.tolist() == wanted.tolist()
    assert state.rounds[3] == len(spoke) > 3
    other, _ = oracle.play(
        users,
        contexts,
        rewards,
        noise_of(policy, 9),
        N,
        threshold=4.0 - policy.params.threshold,
        **terms,
    )
    assert trace.decisions.tolist() != other.tolist()


def synchronisations(policy, context, rounds, seed):
    """Return how often agents have spoken after some rounds, if those of round 0 show this context."""
    environment = Fitted(n_users=2, dimension=2, n_items=20, n_shown=3, n_groups=1)
    table = edit_visit(environment.table(0, 0, rounds), 0, context, 1.0)
    state = policy.start(table)
    policy.play(
        state, table, seeded_tape(seed), environment.trace(rounds, np.array([rounds])), 0, rounds
    )
    return int(state.rounds[3])


def test_when_agents_speak_tells_contexts_as_published_and_not_corrected():
    # The first call for a synchronisation is made before any noise is drawn: no tape changes it.
    published = FedUCB(**ONE, variant="published", threshold=0.5)
    for seed in range(20):
        assert synchronisations(published, [1.0, 0.0], 1, seed) == 1
        assert synchronisations(published, [0.1, 0.0], 1, seed) == 0
    corrected = FedUCB(**ONE)
    for rounds in (1, 2, 5, 6, 13, 14):
        spoke = {synchronisations(corrected, [x, 0.0], rounds, 0) for x in (0.1, 1.0)}
        assert spoke == {int(math.log2(rounds / 2 + 1))}


def test_what_it_says_of_itself():
    corrected = FedUCB(**ONE).guarantee(40)
    assert (corrected.unit, corrected.trust, corrected.claim) == ("visit", "local", None)
    assert corrected.epsilon == pytest.approx(2.0)
    assert "rounds that are fixed beforehand" in corrected.sentence()
    published = FedUCB(**ONE, variant="published").guarantee(40)
    assert not published.private
    assert published.claim is not None
    assert not published.claim.holds
    assert "determinant" in published.sentence()
    assert not FedUCB(n_users=2, dimension=2).guarantee(40).private
    with pytest.raises(ValueError, match="horizon given for published noise"):
        FedUCB(n_users=2, dimension=2, epsilon=2.0, variant="published")


def test_the_published_noise_is_that_of_its_authors():
    # sqrt(16 (1 + ceil(ln T)) (2 + B^2 + 2 rho^2) ln(10 / delta)^2 / epsilon^2), B = rho = 1.
    assert published_scale(2.0, 1e-6, 10_000) == pytest.approx(
        math.sqrt(16 * 11 * 5 * math.log(1e7) ** 2 / 4)
    )
