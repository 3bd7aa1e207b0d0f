"""Corruption: the feedback it gives, what the learner makes of it, and what it protects."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from tacit.arms import KLUCBCF, Bernoulli, Corruption, Gaussian, TruncatedNormal
from tacit.arms.loops import corrupt
from tacit.arms.table import reward
from tacit.core.tapes import seeded_tape

N = 20_000


@pytest.mark.parametrize("ends", [(0.2, 0.7), (0.9, 0.1)])
@pytest.mark.parametrize(
    "environment",
    [Bernoulli(means=(0.3,)), TruncatedNormal(means=(0.5,)), Bernoulli(means=(1.0,))],
    ids=lambda environment: environment.name,
)
def test_the_mean_feedback_is_g_of_the_mean_reward(ends, environment):
    # 5 standard errors: a false alarm has probability 6e-7.
    grid, tape = Corruption(values=(ends,)).response_probabilities(1), seeded_tape(1)
    table = environment.table(0, 0, N)
    bits = [corrupt(grid, tape, t, 0, reward(table, t, 0)) for t in range(N)]
    g = ends[0] + (ends[1] - ends[0]) * environment.means[0]
    error = math.sqrt(g * (1 - g) / N)
    assert abs(np.mean(bits) - g) < 5 * error
    assert abs(np.mean(bits) - (g + 0.03)) > 5 * error
    assert tape.reads[1] == N


CURVED = Corruption.from_functions(lambda x: x, lambda x: 0.1 + 0.8 * x * x)


@pytest.mark.parametrize("corruption", [CURVED, Corruption(values=((0.2, 0.7), (0.9, 0.1)))])
def test_arms_behind_different_channels_are_compared_by_their_rewards(corruption):
    # Always the wrong arm costs 2,000 rounds; the curve, inverted as one, cost 0.99 of that.
    environment = Bernoulli(means=(0.6, 0.5))
    policy = KLUCBCF(n_arms=2, corruption=corruption)
    result = tacit.simulate(policy, environment, horizon=20_000, repetitions=8)
    assert result.final("regret").max() < 400


def test_the_server_learns_from_feedback_of_known_mean_alone():
    """Two arms of mean .6 and .5, the second behind .1 + .8 x^2, whose bits are made elsewhere."""
    policy, rng = KLUCBCF(n_arms=2, corruption=CURVED), np.random.default_rng(1)
    state, tape, pulls = policy.start(), seeded_tape(0), np.zeros(2)
    chance = (0.6, 0.1 + 0.8 * 0.5)  # of a 1, given 0/1 rewards
    for t in range(5_000):
        arm = policy.select(state, tape, t, np.arange(2))
        KLUCBCF.kernels.learn_from_report(
            policy.params, state, t, arm, float(rng.random() < chance[arm])
        )
        pulls[arm] += 1
    assert pulls[1] < 1_500
    assert tape.reads[1] == 0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_optimal_response_spends_exactly_epsilon(epsilon):
    response = Corruption.optimal(epsilon)
    assert response.release(2).epsilon == pytest.approx(epsilon, rel=1e-12)
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert np.allclose(response.response_probabilities(1), [[1 - keep, keep]], rtol=1e-15)


def test_the_least_private_arm_counts():
    one, two = (Corruption.of(p00=p, p11=p) for p in (0.6, 0.9))
    both = Corruption.of(p00=[0.6, 0.9], p11=[0.6, 0.9])
    assert both.release(2).epsilon == two.release(1).epsilon > one.release(1).epsilon


def test_a_person_is_promised_what_the_most_expensive_arm_costs():
    # The second arm has the larger pure epsilon, and hardly costs anything; the first costs 83.5.
    both = Corruption(values=((0.269, 0.731), (0.001, 0.001 * math.exp(1.0001))))
    assert KLUCBCF(n_arms=1, corruption=Corruption(values=both.values[1:])).guarantee(
        100
    ).epsilon == pytest.approx(1.0001)
    promised = KLUCBCF(n_arms=2, corruption=both).guarantee(100).for_user(100, delta=1e-6)
    assert promised.epsilon > 80


def test_privacy_is_that_of_the_bit_whatever_the_reward():
    # The likelihood ratio of the bit over all pairs of rewards, calculated.
    g = 0.1 + 0.7 * np.linspace(0, 1, 101)
    worst = max(np.log(g[:, None] / g[None]).max(), np.log((1 - g[:, None]) / (1 - g[None])).max())
    release = Corruption(values=((0.1, 0.8),)).release(1)
    assert release.epsilon == pytest.approx(worst, rel=1e-12)


def test_a_falling_function_is_as_private_as_its_mirror():
    rising, falling = Corruption(values=((0.2, 0.9),)), Corruption(values=((0.9, 0.2),))
    assert rising.release(1).epsilon == falling.release(1).epsilon


@pytest.mark.parametrize(
    "values",
    [((0.5,),), ((0.5, 0.5),), ((0.1, 0.5, 0.9),), ((-0.1, 0.5),), ((0.5, 1.2),), ((0.1, np.nan),)],
)
def test_what_is_no_corruption_is_refused(values):
    with pytest.raises(ValueError, match=r"Corruption: expected values"):
        Corruption(values=values)


def test_one_row_or_one_an_arm_are_of_one_type():
    # Read-only arrays would have every kernel that is given one compiled a second time.
    one, each = Corruption(values=((0.1, 0.9),)), Corruption(values=((0.1, 0.9), (0.2, 0.8)))
    assert one.response_probabilities(2).flags.writeable
    assert each.response_probabilities(2).flags.writeable
    spread = [
        Gaussian(means=(0.0, 1.0), spread=s).table(0, 0, 3).cdf_span for s in (1.0, (1.0, 2.0))
    ]
    assert spread[0].flags.writeable
    assert spread[1].flags.writeable


def test_the_number_of_arms_must_fit():
    with pytest.raises(ValueError, match=r"expected values 1 row or 3, got 2"):
        KLUCBCF(n_arms=3, corruption=Corruption(values=((0.1, 0.9), (0.2, 0.8))))
