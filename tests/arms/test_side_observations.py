"""Who may be told rewards of arms that were not pulled, and of which (findings P1 and P2)."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.arms import (
    DPSE,
    GAP,
    GAPU,
    KLUCB,
    KLUCBCF,
    SWKLUCBCF,
    SWUCB,
    TSN,
    UCB1,
    UCBN,
    AlphaSample,
    Learner,
)
from tacit.networks import path
from tacit.registry import policies

SINGLE = [
    KLUCB(n_arms=3),
    KLUCBCF(n_arms=3, epsilon=1.0),
    SWKLUCBCF(n_arms=3, horizon=100, epsilon=1.0),
    SWUCB(n_arms=3, horizon=100, epsilon=1.0),
    UCB1(n_arms=3),
    DPSE(n_arms=3, horizon=100),
]
GRAPH = [
    GAP(n_arms=3, horizon=100, graph=path(3)),
    GAPU(n_arms=3, horizon=100, graph=path(3)),
    UCBN(n_arms=3, graph=path(3)),
    TSN(n_arms=3, graph=path(3)),
]


def by_name(policy):
    return policy.name


@pytest.mark.parametrize("policy", SINGLE, ids=by_name)
def test_who_learns_from_the_pulled_arm_only_refuses_more(policy):
    learner = Learner(policy, seed=0)
    decision = learner.select()
    for seen in ({1: 1.0, 2: 0.0}, {decision.arm: 1.0}):
        with pytest.raises(ValueError, match=r"expected seen none, because it learns from"):
            learner.update(decision, 0.0, seen=seen)
    assert learner.noise_draws == 0
    learner.update(decision, 0.0)


@pytest.mark.parametrize("policy", GRAPH, ids=by_name)
def test_neighbours_only_and_the_own_arm_never_twice(policy):
    learner = Learner(policy, seed=0)
    decision = learner.select(eligible=[0])
    for seen in ({2: 1.0}, {0: 1.0}, {0: 1.0, 1: 1.0}):
        with pytest.raises(ValueError, match=r"expected seen rewards of arms shown with arm 0"):
            learner.update(decision, 0.0, seen=seen)
    learner.update(decision, 0.0, seen={1: 1.0})


def test_without_a_graph_an_arm_shows_itself():
    assert GAP(n_arms=3, horizon=9).shown_with(1) == {1}
    assert UCBN(n_arms=3, graph=path(3)).shown_with(1) == {0, 1, 2}
    assert AlphaSample(n_arms=3, horizon=9).shown_with(1) == {0, 1, 2}


def test_every_policy_that_takes_side_observations_says_so():
    takers = {n for n, kind in policies().items() if getattr(kind, "side_observations", False)}
    assert {"gap", "gapu", "ucb-n", "ts-n", "alpha-sample"} <= takers
    assert not takers & {p.name for p in SINGLE}


@pytest.mark.parametrize("policy", [*SINGLE[1:4], *GRAPH[:2]], ids=by_name)
def test_an_unreleased_reward_can_be_forgotten(policy):
    learner = Learner(policy, seed=0)
    state = learner._state
    before = [np.asarray(part).copy() for part in (state.counts, state.sums)]
    if policy.forget_unreleased.__qualname__.startswith("ArmsPolicy"):
        return
    learner.update(learner.select(), 1.0)
    policy.forget_unreleased(state)
    learner.update(learner.select(), 1.0)
    assert state.counts.max() == before[0].max() + 1
