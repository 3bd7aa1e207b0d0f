"""Rewards of any size: who takes them, what clipping costs, and what is private of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from oracles import arms as oracle
from tacit.arms import (
    DPIMED,
    KLUCB,
    Gaussian,
    GraphFeedback,
    SubGaussianUCB,
    edit_rewards,
)
from tacit.arms.table import reward
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import CHOICE, NOISE, ROUNDING, noise_uniform, seeded_tape, uniform
from tacit.graphs import path
from tacit.simulation.audits import audit_policy

WORLD = Gaussian(means=(-1.0, 0.5, 0.0), spread=(1.0, 2.0, 0.5))


def test_rewards_are_normal_and_of_any_size():
    table = WORLD.table(1, 0, 4000)
    drawn = np.array([[reward(table, t, a) for a in range(3)] for t in range(4000)])
    # 5 standard errors of a mean and of a standard deviation: false alarm below 4e-6.
    z = (drawn.mean(axis=0) - WORLD.means) / np.array(WORLD.spread) * math.sqrt(4000)
    assert np.abs(z).max() < 5
    assert np.abs(drawn.std(axis=0) / np.array(WORLD.spread) - 1).max() < 5 / math.sqrt(8000)
    assert drawn.min() < -1
    assert drawn.max() > 2
    assert reward(edit_rewards(table, [(3, 1, -250.0)]), 3, 1) == -250.0
    with pytest.raises(ValueError, match="and value finite, got"):
        edit_rewards(table, [(3, 1, math.inf)])


@pytest.mark.parametrize("policy", [KLUCB(n_arms=3), DPIMED(n_arms=3, epsilon=1.0)])
def test_who_needs_rewards_between_0_and_1_refuses(policy):
    for environment in (WORLD, GraphFeedback(environment=WORLD, graph=path(3))):
        with pytest.raises(ValueError, match=r"expected environment that pays rewards in \[0, 1\]"):
            tacit.simulate(policy, environment, horizon=10)


def decisions(policy, environment, T, seed=0):
    table, tape = environment.table(seed, 0, T), seeded_tape(seed, 0)
    trace = environment.trace(T, np.array([T]), record=True)
    policy.play(policy.start(table), table, tape, trace, 0, T)
    return trace.decisions.tolist()


@pytest.mark.parametrize("window", [None, 50])
def test_without_privacy_it_is_ucb(window):
    T, table = 300, WORLD.table(0, 0, 300)
    policy = SubGaussianUCB(n_arms=3, sigma=2.0, window=window)
    found = decisions(policy, WORLD, T)
    assert found == oracle.sub_gaussian_ucb(3, T, lambda t, a: reward(table, t, a), 2.0, window)
    assert found != oracle.sub_gaussian_ucb(3, T, lambda t, a: reward(table, t, a), 1.0, window)


@pytest.mark.parametrize("window", [None, 50])
def test_with_privacy_it_is_klucb_cf_on_what_is_left_in_the_range(window):
    T, table, tape = 300, WORLD.table(0, 0, 300), seeded_tape(0, 0)
    policy = SubGaussianUCB(n_arms=3, reward_range=(-2.0, 3.0), epsilon=1.5, window=window)
    named = {"choice": CHOICE, "rounding": ROUNDING, "noise": NOISE}

    def draw(t, index, purpose):
        return (noise_uniform if purpose == "noise" else uniform)(tape, t, index, named[purpose])

    def share(t, a):
        return (min(3.0, max(-2.0, reward(table, t, a))) + 2.0) / 5.0

    keep = 1 / (1 + math.exp(-1.5))
    expected = oracle.sw_klucb_cf(3, T, share, draw, responses=[(keep, keep)] * 3, window=window)
    assert decisions(policy, WORLD, T) == expected


@pytest.mark.parametrize(("mean", "sigma"), [(0.5, 0.3), (1.9, 0.4), (-0.5, 2.0), (2.5, 1.0)])
def test_the_bias_of_clipping_is_within_its_bound(mean, sigma):
    """The mean of a clipped normal, by the trapezoidal rule."""
    policy = SubGaussianUCB(n_arms=2, sigma=sigma, reward_range=(-1.0, 2.0))
    z = np.linspace(-9, 9, 20_001)
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    clipped = np.trapezoid(np.clip(mean + sigma * z, -1.0, 2.0) * density, z)
    assert abs(clipped - mean) <= policy.clipping_bias(mean) + 1e-9
    wide = SubGaussianUCB(n_arms=2, sigma=sigma, reward_range=(-30.0, 30.0))
    assert wide.clipping_bias(mean) < 1e-9


def test_the_largest_rewards_there_are_cost_epsilon_and_half_the_noise_costs_more():
    loose, policy = (
        SubGaussianUCB(n_arms=3, sigma=2.0, reward_range=(-3.0, 3.0), epsilon=e) for e in (4.0, 2.0)
    )
    pairs = WORLD.neighbours("reward", 4, limit=6)
    terms = {"horizon": 4, "runs": 4000, "epsilon": 2.0, "neighbours": pairs}
    assert audit_policy(policy, WORLD, **terms).result.verdict == "not refuted"
    assert audit_policy(loose, WORLD, **terms).result.verdict == "refuted"


def test_a_learner_clips_on_the_device_and_estimates_in_the_range():
    policy = SubGaussianUCB(n_arms=2, sigma=1.0, reward_range=(-2.0, 6.0), epsilon=4.0)
    learner = tacit.Learner(policy, seed=3)
    for _ in range(400):
        decision = learner.decide()
        learner.learn(decision.device.report(100.0 if decision.option == "1" else -100.0))
    decider = learner._core.decider
    tallies = [[0, 0, n, 0, s] for n, s in zip(*decider.state[:2], strict=True)]
    low, high = decider.estimates(tallies)
    assert low.low <= -2.0 + 1e-9
    assert high.high >= 6.0 - 1e-9
    assert high.value > 5.0
    plain = tacit.Learner(SubGaussianUCB(n_arms=2, reward_range=(-2.0, 6.0)), seed=3)
    decision = plain.decide()
    with pytest.raises(ValueError, match=r"expected a reward in \[-2, 6\], got 7.0"):
        plain.learn({"v": 1, "id": decision.id, "value": 7.0})
    plain.learn({"v": 1, "id": decision.id, "value": 5.5})


@pytest.mark.skipif(INTERPRETED, reason="half a million rounds")
def test_a_range_that_is_too_narrow_can_turn_arms_round():
    """The better arm scatters more, and most of what it pays lies outside."""
    environment = Gaussian(means=(0.6, 0.5), spread=(3.0, 0.1))

    def regret(**bounds):
        policy = SubGaussianUCB(n_arms=2, sigma=3.0, epsilon=4.0, **bounds)
        result = tacit.simulate(policy, environment, horizon=60_000, repetitions=4, checkpoints=1)
        return result.final("regret").mean() / 60_000

    assert regret(reward_range=(0.2, 0.7)) > 0.09  # all but always the worse arm: 0.1 a round
    assert regret(reward_range=(-8.0, 9.0)) < 0.06
