"""The kernels of the arms setting against slow policies written from the papers."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from oracles import arms as oracle
from tacit.arms import (
    EXP3,
    KLUCB,
    KLUCBCF,
    SWKLUCBCF,
    SWUCB,
    UCB1,
    Bernoulli,
    Corruption,
    Switching,
    TruncatedNormal,
)
from tacit.arms.table import reward
from tacit.core.tapes import CHOICE, NOISE, ROUNDING, noise_uniform, seeded_tape, uniform

T = 250
WORLDS = {
    "bernoulli": Bernoulli(means=(0.3, 0.5, 0.45)),
    "changing": Switching(means=((0.9, 0.2), (0.1, 0.8), (0.5, 0.6))),
    "normal": TruncatedNormal(means=(0.4, 0.6, 0.5, 0.55)),
    "all alike": Bernoulli(means=(0.5,) * 5),
    "hopeless": Bernoulli(means=(0.0, 0.0, 0.02)),
}
every_world = pytest.mark.parametrize("environment", WORLDS.values(), ids=WORLDS)
seeds = pytest.mark.parametrize("seed", [0, 1])


def decisions(policy, environment, seed):
    table, tape = environment.table(seed, 0, T), seeded_tape(seed, 0)
    trace = environment.trace(T, np.array([T]), record=True)
    policy.play(policy.start(table), table, tape, trace, 0, T)
    return trace.decisions.tolist()


def reading(environment, seed):
    table, tape = environment.table(seed, 0, T), seeded_tape(seed, 0)

    def draw(t, index, purpose):
        named = {"choice": CHOICE, "rounding": ROUNDING, "noise": NOISE}[purpose]
        return (noise_uniform if purpose == "noise" else uniform)(tape, t, index, named)

    return (lambda t, a: reward(table, t, a)), draw


@every_world
@seeds
def test_ucb1(environment, seed):
    pays, _ = reading(environment, seed)
    expected = oracle.ucb1(environment.n_arms, T, pays)
    assert decisions(UCB1(n_arms=environment.n_arms), environment, seed) == expected


@every_world
@seeds
@pytest.mark.parametrize("window", [1, 7, 60, 1000])
def test_sw_ucb(environment, seed, window):
    pays, _ = reading(environment, seed)
    policy = SWUCB(n_arms=environment.n_arms, horizon=T, window=window)
    assert decisions(policy, environment, seed) == oracle.sw_ucb(
        environment.n_arms, T, pays, window
    )


@every_world
@seeds
def test_exp3(environment, seed):
    pays, draw = reading(environment, seed)
    policy = EXP3(n_arms=environment.n_arms, horizon=T, exploration_prob=0.2)
    assert decisions(policy, environment, seed) == oracle.exp3(
        environment.n_arms, T, pays, draw, 0.2
    )


@cache
def kl_ucb(world, seed):
    pays, draw = reading(WORLDS[world], seed)
    return oracle.sw_klucb_cf(WORLDS[world].n_arms, T, pays, draw)


@pytest.mark.parametrize("world", WORLDS)
@seeds
def test_kl_ucb(world, seed):
    environment = WORLDS[world]
    assert decisions(KLUCB(n_arms=environment.n_arms), environment, seed) == kl_ucb(world, seed)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", ["log", "own"])
def test_kl_ucb_with_another_exploration_function(world, name):
    environment = WORLDS[world]
    pays, draw = reading(environment, 1)
    functions = {"log": "log", "own": lambda t: 0.5 * math.log(t) + 1.0}
    bonus = {"log": math.log, "own": functions["own"]}[name]
    policy = KLUCB(n_arms=environment.n_arms, exploration=functions[name])
    expected = oracle.sw_klucb_cf(environment.n_arms, T, pays, draw, bonus=bonus)
    assert decisions(policy, environment, 1) == expected
    assert expected != kl_ucb(world, 1)


@pytest.mark.parametrize(
    ("f", "rule"), [(lambda t: -t, "non-decreasing"), (lambda t: 1 / (t - 1 or 0.0), "finite")]
)
def test_an_exploration_function_must_be_one(f, rule):
    with pytest.raises((ValueError, ZeroDivisionError), match=f"exploration {rule}|division"):
        KLUCB(n_arms=2, exploration=f)
    with pytest.raises(ValueError, match="KLUCB: expected exploration one of paper, log or"):
        KLUCB(n_arms=2, exploration="loglog")


RESPONSES = {
    "randomized response": (0.8, 0.7),
    "falling": (0.1, 0.2),
    "nothing lost": (1.0, 1.0),
}


@every_world
@pytest.mark.parametrize("name", RESPONSES)
def test_klucb_cf(environment, name):
    pays, draw = reading(environment, 1)
    p00, p11 = RESPONSES[name]
    responses = [(p00, p11)] * environment.n_arms
    expected = oracle.sw_klucb_cf(environment.n_arms, T, pays, draw, responses=responses)
    policy = KLUCBCF(n_arms=environment.n_arms, corruption=Corruption.of(p00=p00, p11=p11))
    assert decisions(policy, environment, 1) == expected


@every_world
@pytest.mark.parametrize("window", [1, 5, 40, 1000])
def test_sw_klucb_cf_with_a_corruption_for_each_arm(environment, window):
    pays, draw = reading(environment, 2)
    K = environment.n_arms
    responses = [(0.1, 0.2), (0.9, 0.6), (0.7, 0.8), (0.3, 0.1), (0.75, 0.75)][:K]
    zero, one = zip(*responses, strict=True)
    expected = oracle.sw_klucb_cf(K, T, pays, draw, responses=responses, window=window)
    corruption = Corruption.of(p00=zero, p11=one)
    policy = SWKLUCBCF(n_arms=K, horizon=T, corruption=corruption, window=window)
    assert decisions(policy, environment, 2) == expected


@every_world
@seeds
def test_sw_klucb_cf_by_epsilon(environment, seed):
    pays, draw = reading(environment, seed)
    K, keep = environment.n_arms, 1 / (1 + np.exp(-1.5))
    expected = oracle.sw_klucb_cf(K, T, pays, draw, responses=[(keep, keep)] * K, window=30)
    policy = SWKLUCBCF(n_arms=K, horizon=T, epsilon=1.5, window=30)
    assert decisions(policy, environment, seed) == expected


@seeds
def test_sw_klucb_cf_draws_among_indices_of_zero(seed):
    """In a window of two rounds f is 0, and feedback 0 is below that of any reward."""
    environment = Bernoulli(means=(0.0, 0.0))
    pays, draw = reading(environment, seed)
    expected = oracle.sw_klucb_cf(2, T, pays, draw, responses=[(0.8, 0.8)] * 2, window=2)
    policy = SWKLUCBCF(n_arms=2, horizon=T, corruption=Corruption.of(p00=0.8, p11=0.8), window=2)
    assert decisions(policy, environment, seed) == expected


def test_the_oracle_notices_a_window_that_is_one_round_short():
    environment = WORLDS["changing"]
    pays, draw = reading(environment, 1)
    policy = SWKLUCBCF(n_arms=2, horizon=T, window=40)
    assert decisions(policy, environment, 1) == oracle.sw_klucb_cf(2, T, pays, draw, window=40)
    assert decisions(policy, environment, 1) != oracle.sw_klucb_cf(2, T, pays, draw, window=39)
