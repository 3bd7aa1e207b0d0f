"""Who may be told rewards of arms that were not pulled, and of which (findings P1 and P2)."""

from __future__ import annotations

import pytest

import tacit
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
)
from tacit.core.registry import policies
from tacit.graphs import path

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


def told(decision, value):
    return {"v": 1, "id": decision.id, "value": value}


@pytest.mark.parametrize("policy", SINGLE, ids=by_name)
def test_who_learns_from_the_pulled_arm_only_refuses_more(policy):
    learner = tacit.Learner(policy, seed=0)
    decision = learner.decide(eligible=[0])
    for seen in ({0: 1.0, 1: 1.0, 2: 0.0}, {1: 1.0}):
        with pytest.raises(ValueError, match="expected"):
            learner.learn(told(decision, seen))
    value = 0 if learner.trust == "local" else 0.0
    assert learner.learn(told(decision, value)).status == "learned"


@pytest.mark.parametrize("policy", GRAPH, ids=by_name)
def test_neighbours_only_and_the_own_arm_always(policy):
    learner = tacit.Learner(policy, seed=0)
    decision = learner.decide(eligible=[0])
    with pytest.raises(ValueError, match=r"expected seen rewards of arms shown with arm 0"):
        learner.learn(told(decision, {0: 0.0, 2: 1.0}))
    with pytest.raises(ValueError, match="the reward of the chosen option"):
        learner.learn(told(decision, {1: 1.0}))
    assert learner.learn(told(decision, {0: 0.0, 1: 1.0})).status == "learned"


def test_without_a_graph_an_arm_shows_itself():
    assert GAP(n_arms=3, horizon=9).shown_with(1) == {1}
    assert UCBN(n_arms=3, graph=path(3)).shown_with(1) == {0, 1, 2}
    assert AlphaSample(n_arms=3, horizon=9).shown_with(1) == {0, 1, 2}


def test_every_policy_that_takes_side_observations_says_so():
    takers = {n for n, kind in policies().items() if getattr(kind, "side_observations", False)}
    assert {"gap", "gapu", "ucb-n", "ts-n", "alpha-sample"} <= takers
    assert not takers & {p.name for p in SINGLE}


@pytest.mark.parametrize("policy", GRAPH[:2], ids=by_name)
def test_an_unreleased_reward_can_be_forgotten(policy):
    learner = tacit.Learner(policy, seed=0)
    state = learner._core.decider.state
    learner.learn(told(learner.decide(), 1.0))
    assert state.sums.max() == 1.0
    policy.forget_unreleased(state)
    assert state.sums.max() == 0.0
    late = learner.decide()
    policy.forget_unreleased(state)
    learner.learn(told(late, 1.0))
    assert state.sums.max() == 0.0
    learner.learn(told(learner.decide(), 1.0))
    assert state.counts.max() == 1
