"""Twin runs: one reward changed, decisions compared."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.arms import GAP, UCB1, Bernoulli, GraphFeedback, Uniform
from tacit.graphs import complete
from tacit_studies.lu2022.twin_runs import twin_runs

ENVIRONMENT = GraphFeedback(environment=Bernoulli(means=(0.9, 0.8, 0.2)), graph=complete(3))


def test_a_policy_blind_to_rewards_never_parts():
    result = twin_runs(Uniform(n_arms=3), ENVIRONMENT, horizon=200, pairs=8)
    assert result.same_share == 1.0
    assert (result.parted == 200).all()


def test_a_policy_that_follows_rewards_parts_after_the_change():
    result = twin_runs(UCB1(n_arms=3), ENVIRONMENT, horizon=300, pairs=30)
    assert 0.0 < result.same_share < 1.0
    assert (result.parted > result.rounds).all()


def test_fresh_noise_parts_what_shared_noise_does_not():
    shared, fresh = (
        twin_runs(Uniform(n_arms=3), ENVIRONMENT, horizon=50, pairs=8, noise=noise)
        for noise in ("shared", "fresh")
    )
    assert (shared.same_share, fresh.same_share) == (1.0, 0.0)
    np.testing.assert_array_equal(shared.rounds, fresh.rounds)


def test_gap_is_seldom_moved_by_one_reward():
    policy = GAP(n_arms=3, epsilon=0.1, horizon=3000, failure_prob=0.5)
    result = twin_runs(policy, ENVIRONMENT, horizon=3000, pairs=20)
    assert result.same_share >= 0.9
    assert "says nothing about privacy" in result.sentence()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pairs": 0}, "expected pairs >= 1, got 0"),
        ({"noise": "none"}, "expected noise shared or fresh, got 'none'"),
        ({"horizon": 0}, "expected horizon >= 1, got 0"),
    ],
)
def test_bad_questions_name_themselves(given, message):
    with pytest.raises(ValueError, match=f"twin_runs: {message}"):
        twin_runs(Uniform(n_arms=3), ENVIRONMENT, **{"horizon": 10, **given})
