"""Agents who have an epsilon of their own: estimates, engines, and what each is promised."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from tacit.core.kernels import INTERPRETED
from tacit.core.registry import build_policy
from tacit.core.tapes import seeded_tape
from tacit.dynamics import LearningDynamics, SocialOptions, edit_adoption, popularity_noise
from tacit.graphs import complete, erdos_renyi
from tacit.privacy import NeighbouringPair
from tacit.serving.peers import DynamicsPeer
from tacit.simulation.audits import audit_policy
from tiers import tiered

LEVELS = (4.0, 0.5)
M = 3
slow = pytest.mark.skipif(INTERPRETED, reason="thousands of rounds need compiled kernels")


def dynamics(engine="mixed", n_agents=40, **changes):
    settings = {
        "epsilon": LEVELS,
        "beta": 0.9,
        "mu": 0.05,
        "tokens": 20,
        "walk_length": 4,
        **changes,
    }
    return LearningDynamics(n_options=M, n_agents=n_agents, engine=engine, **settings)


def estimates_of(policy, place, runs):
    """Return what agent 0 remembers after one round, once for each run: its estimate, unclipped."""
    found, table = [], place.table(0, 0, 1)
    start = policy.start(table)
    for run in range(runs):
        state = type(start)(*(array.copy() for array in start))
        trace = place.trace(1, np.array([1]))
        policy.play(state, table, seeded_tape(9, run), trace, 0, 1)
        found.append(state.memory[0].copy())
    return np.array(found)


@slow
@pytest.mark.parametrize(
    ("engine", "tokens"), [("mixed", 20), ("mixed", 400), ("crowd", 400), ("endpoints", 20)]
)
def test_every_message_is_undone_by_its_own_noise(engine, tokens):
    """With rho next to 1 a memory is the newest estimate: unbiased, within 5 standard errors.

    Shares of 1/2 and 1/4 among agents of both levels, so weights do not matter for the mean. Undoing all
    by the noise of the first level would be off by far more.
    """
    place = SocialOptions(qualities=(0.5,) * M, network=complete(40), popularity=(0.5, 0.25, 0.0))
    policy = dynamics(engine, tokens=tokens, smoothed=True, rho=1 - 1e-12)
    adopting = policy.start(place.table(0, 0, 1)).adoption
    found = estimates_of(policy, place, 1000)
    wanted = np.array([0.5, 0.25, 0.0])
    if adopting.size:  # those who are heard more may adopt a little differently at first
        weight = policy.params.weight[np.arange(40) % 2]
        hot = adopting[:, None] == np.arange(M)
        wanted = (weight[:, None] * hot).sum(axis=0) / weight.sum()
    error = found.std(axis=0) / math.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - wanted) < 5 * error).all()
    naive = policy.params.slope[0] * (policy.params.q.mean() - policy.params.q[0])
    assert abs(naive) > 10 * error.max()


def test_weights_are_inverse_variances_and_noise_is_their_sum():
    sizes = {"n_agents": 1000, "n_options": M}
    params = dynamics(n_agents=1000).params
    one, other = (popularity_noise(**sizes, epsilon=e) ** -2 for e in LEVELS)
    assert params.weight.tolist() == pytest.approx([1.0, other / one])
    assert popularity_noise(**sizes, epsilon=LEVELS) ** -2 == pytest.approx((one + other) / 2)
    # A cautious half does no harm: the others are heard as if alone, and a little better.
    half = popularity_noise(n_agents=500, n_options=M, epsilon=4.0)
    assert popularity_noise(**sizes, epsilon=(4.0, 0.01)) == pytest.approx(half, rel=1e-3)


@pytest.mark.parametrize("engine", ["tokens", "endpoints", "mixed", "crowd"])
def test_two_equal_levels_are_as_good_as_one(engine):
    """Means of the popularity after three rounds, within 5 standard errors of each other."""
    runs = 40 if INTERPRETED else 400
    place = SocialOptions(qualities=(0.9, 0.5, 0.1), network=erdos_renyi(40, 0.3, seed=1))
    one, two = (
        tacit.simulate(
            dynamics(engine, epsilon=epsilon), place, horizon=3, repetitions=runs, seed=seed
        ).final("best_popularity")
        for epsilon, seed in ((2.0, 1), ((2.0, 2.0), 2))
    )
    error = math.sqrt((one.var() + two.var()) / runs)
    assert abs(one.mean() - two.mean()) < 5 * error


@pytest.mark.parametrize("how", tiered(("here", "processes"), lambda how: how == "here"))
def test_a_level_for_each_agent_and_pieces(how):
    levels = tuple(np.linspace(0.5, 3.0, 40))
    place = SocialOptions(qualities=(0.9, 0.5, 0.1), network=complete(40))
    for engine in ("mixed", "endpoints"):
        policy = dynamics(engine, epsilon=levels)
        whole, split = (
            tacit.simulate(policy, place, horizon=4, seed=3, **partitions)
            for partitions in ({}, {"partitions": 3, "engine": how})
        )
        np.testing.assert_array_equal(whole.measures["regret"], split.measures["regret"])
    assert policy.guarantee(4, agent=0).epsilon == pytest.approx(4 * 0.5)
    assert policy.guarantee(4, agent=39).epsilon == pytest.approx(4 * 3.0)


def test_each_is_promised_its_own():
    policy = dynamics()
    assert policy.message_guarantee(agent=0).epsilon == pytest.approx(4.0)
    assert policy.message_guarantee(agent=1).epsilon == pytest.approx(0.5)
    assert policy.guarantee(10, agent=1).epsilon == pytest.approx(5.0)
    least = policy.guarantee(10)
    assert least.epsilon == pytest.approx(40.0)
    assert "from 0.5 to 4" in least.sentence()
    assert "from" not in policy.guarantee(10, agent=1).note
    assert not dynamics(epsilon=(1.0, math.inf)).guarantee(10).private
    assert dynamics(epsilon=(1.0, math.inf)).guarantee(10, agent=0).private
    with pytest.raises(ValueError, match=r"expected agent in 0\.\.39, got 40"):
        policy.guarantee(10, agent=40)


def test_all_are_promised_what_the_one_who_loses_most_loses():
    """Subsets of two sizes: who has the smaller epsilon loses more over many rounds, at a delta."""
    levels, T = (1.05, 1.1), 100
    many = {"n_options": 5, "n_agents": 6, "encoding": "subset", "delta": 1e-6}
    policy = LearningDynamics(epsilon=levels, **many)
    alone = [LearningDynamics(epsilon=each, **many).guarantee(T).epsilon for each in levels]
    assert alone[0] > 1.05 * alone[1]
    assert [policy.guarantee(T, agent=a).epsilon for a in range(2)] == alone
    assert policy.guarantee(T).epsilon >= max(alone)
    assert policy.guarantee(T).epsilon == pytest.approx(max(alone), rel=0.02)
    assert policy.message_guarantee().epsilon == pytest.approx(1.1)


@pytest.mark.parametrize("encoding", ["plain", "optimised", "subset", "least"])
def test_of_one_way_to_tell_the_largest_epsilon_loses_most(encoding):
    levels = tuple(np.linspace(0.2, 4.0, 39))
    many = {"n_options": 5, "n_agents": 39, "encoding": encoding}
    policy = LearningDynamics(epsilon=levels, **many)
    most = max(policy.guarantee(1, agent=a).releases[0][0].delta(0.5) for a in range(39))
    assert policy.release.delta(0.5) == pytest.approx(most, rel=1e-12)
    assert len(getattr(policy.release, "releases", (0,))) <= 4


def test_where_some_perturb_nothing_a_memoised_history_promises_nothing():
    policy = dynamics(epsilon=(1.0, math.inf), memoised=True)
    assert not policy.value_guarantee(3).private


@pytest.mark.parametrize("n_agents", [1, 2, 3, 7, 100])
def test_a_crowd_has_as_many_of_each_level_as_there_are_whoever_is_edited(n_agents):
    place = SocialOptions(qualities=(0.9, 0.5, 0.1), n_agents=n_agents)
    policy = dynamics("crowd", n_agents, epsilon=(4.0, 0.5, 1.0))
    table = place.table(0, 0, 2)
    sizes = np.bincount(np.arange(n_agents) % len(policy.levels)).tolist()
    before = policy.start(table).split
    for agent in {0, n_agents // 2, n_agents - 1}:
        for option in range(-1, M):
            changed = edit_adoption(table, agent, option)
            state = policy.start(changed)
            assert (state.split >= 0).all()
            assert state.split.sum(axis=1).tolist() == before.sum(axis=1).tolist() == sizes
            assert state.split.sum(axis=0).tolist() == state.counts.tolist()
            assert state.split[agent % len(sizes), option] > 0


@slow
def test_an_audit_believes_the_cautious_agent_and_not_its_twin_with_half_the_noise():
    """Agent 1, whose epsilon is the smaller one; a true claim is refuted once in 100,000 times."""
    place = SocialOptions(qualities=(0.9, 0.5, 0.1), network=complete(3))
    table = place.table(0, 0, 1)
    pair = NeighbouringPair(
        edit_adoption(table, 1, 0), edit_adoption(table, 1, 2), "agent 1 adopts"
    )
    for levels, refuted in (((4.0, 1.0), False), ((4.0, 2.0), True)):
        found = audit_policy(
            dynamics(n_agents=3, epsilon=levels),
            place,
            horizon=1,
            epsilon=1.0,
            delta=0.0,
            neighbours=[pair],
            runs=8000,
            alpha=1e-5,
            decisions=False,
        )
        assert found.result.refuted is refuted, found.sentence()


def test_what_cannot_be_is_refused():
    assert dynamics(n_agents=2, epsilon=(1.0, 1.0, 9.0)).guarantee(1).epsilon == pytest.approx(1.0)
    with pytest.raises(ValueError, match="expected epsilon between"):
        dynamics(epsilon=(1.0, -1.0))
    with pytest.raises(ValueError, match="expected epsilon one"):
        dynamics(epsilon=())
    with pytest.raises(ValueError, match=r"at most 64 in turn for a crowd.*got '65 of them'"):
        dynamics("crowd", n_agents=1000, epsilon=(1.0,) * 65)
    with pytest.raises(ValueError, match=">= 2000 for a crowd"):
        dynamics("crowd", n_agents=1500, encoding="subset")
    one = {"n_agents": 3, "tokens": 2, "walk_length": 1}
    with pytest.raises(ValueError, match="one epsilon"):
        DynamicsPeer(dynamics("tokens", **one), 0, {1: 2, 2: 2}, lambda t, j: True)


def test_a_written_policy():
    policy = build_policy("learning-dynamics:epsilon=[1,0.5],n_agents=10,n_options=3", {})
    assert policy.levels == (1.0, 0.5)
