"""Arms on a line: the environment, the tree of cells against its definition, and what it gains."""

from __future__ import annotations

import numpy as np
import pytest

import tacit
from oracles import private_blocks as oracle
from tacit.arms import DPKLUCB, DPZooming, Lipschitz
from tacit.arms.policies.dp_zooming import SOONER
from tacit.arms.table import reward
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import NOISE, noise_uniform, seeded_tape


def test_means_are_a_function_of_places_and_the_best_is_that_of_the_line():
    environment = Lipschitz(n_arms=5, function=lambda x: 0.2 + 0.5 * x * x)
    table = environment.table(0, 0, 1)
    places = (np.arange(5) + 0.5) / 5
    assert table.means[0] == pytest.approx(0.2 + 0.5 * places**2)
    assert table.best[0] == pytest.approx(0.7)
    assert environment.public_parameters(1)["lipschitz"] == pytest.approx(1.0, abs=1e-4)
    with pytest.raises(ValueError, match=r"Lipschitz: expected means in \[0, 1\]"):
        Lipschitz(function=lambda x: 2 * x)
    with pytest.raises(ValueError, match="Lipschitz: expected function one of peak, two-peaks"):
        Lipschitz(function="valley")


def played(n_arms, seed, epsilon, T=1500, lipschitz=1.2):
    environment = Lipschitz(n_arms=n_arms)
    policy = DPZooming(n_arms=n_arms, epsilon=epsilon, lipschitz=lipschitz)
    table, tape = environment.table(seed, 0, T), seeded_tape(seed, 0)
    trace = environment.trace(T, np.array([T]), record=True)
    state = policy.start(table)
    policy.play(state, table, tape, trace, 0, T)
    rewards = np.array([[reward(table, t, a) for a in range(n_arms)] for t in range(T)])
    return trace.decisions.tolist(), state, rewards


def laplace(seed):
    tape = seeded_tape(seed, 0)

    def draw(t, v):
        u = noise_uniform(tape, t, v, NOISE) - 0.5
        return -np.sign(u) * np.log1p(-2 * abs(u))

    return draw


@pytest.mark.parametrize(("n_arms", "seed", "epsilon"), [(16, 0, 2.0), (11, 1, 1.0), (64, 2, 5.0)])
def test_it_is_a_tree_of_cells(n_arms, seed, epsilon):
    found, state, rewards = played(n_arms, seed, epsilon)
    decisions, leaves = oracle.zooming(rewards, epsilon, laplace(seed), 1.2, SOONER)
    assert found == decisions
    assert len(leaves) > 3
    for cell in leaves:
        assert (state.leaf_of[list(cell["arms"])] == cell["v"]).all()
    other, _ = oracle.zooming(rewards, epsilon, laplace(seed), 1.2, 2 * SOONER)
    assert other != found


def test_a_reward_enters_the_block_of_one_cell():
    policy = DPZooming(n_arms=8, epsilon=1.0)
    state, tape = policy.start(), seeded_tape(0)
    arms = np.arange(8)
    for t in range(3000):
        arm = policy.select(state, tape, t, arms)
        before = state.blocks.open_counts.copy()
        policy.update(state, tape, t, arm, float(arm == 6))
        grown = state.blocks.open_counts - before
        assert grown.sum() == 1
        assert grown[state.leaf_of[arm]] == 1
    assert len(set(state.leaf_of)) > 1
    assert state.blocks.counts.sum() + state.blocks.open_counts.sum() == 3000
    with pytest.raises(ValueError, match="DPZooming: expected n_arms unchanged, because arms are"):
        policy.carry_over(state, state)


def test_only_eligible_arms_are_pulled():
    policy = DPZooming(n_arms=32, epsilon=1.0)
    state, tape, some = policy.start(), seeded_tape(0), np.array([3, 17, 30])
    for t in range(300):
        arm = policy.select(state, tape, t, some)
        assert arm in some
        policy.update(state, tape, t, arm, float(arm == 17))


@pytest.mark.skipif(INTERPRETED, reason="a hundred thousand rounds")
def test_it_learns_finely_where_rewards_are_large():
    T, n_arms, epsilon = 30_000, 256, 1.0

    def played(policy, environment):
        return tacit.simulate(policy, environment, horizon=T, repetitions=4, checkpoints=1)

    fine = Lipschitz(n_arms=n_arms)
    zoomed = played(DPZooming(n_arms=n_arms, epsilon=epsilon, lipschitz=1.2), fine)
    every = played(DPKLUCB(n_arms=n_arms, epsilon=epsilon), fine)
    assert 2 * zoomed.final("regret").mean() < every.final("regret").mean()
