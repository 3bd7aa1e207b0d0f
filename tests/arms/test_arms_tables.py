"""The table of the arms setting: distributions, edits, and what a trace keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from oracles.arms import mean_of
from tacit.arms import (
    UCB1,
    Bernoulli,
    Beta,
    Drifting,
    Recorded,
    Switching,
    TruncatedNormal,
    edit_rewards,
)
from tacit.arms.table import four_rewards, reward, segment_at
from tacit.arms.trace import record
from tacit.core.generator import philox, to_unit
from tacit.core.tapes import seeded_tape

N = 8000


def draws(environment, arm=0, seed=3):
    table = environment.table(seed, 0, N)
    return np.array([reward(table, t, arm) for t in range(N)])


def distance(sample, distribution):
    """Return sqrt(n) times the Kolmogorov distance."""
    return math.sqrt(len(sample)) * stats.kstest(sample, distribution.cdf).statistic


# Of a Kolmogorov distance above 2.9 / sqrt(n) by chance: 2 exp(-2 * 2.9^2) = 1e-7.
LIMIT = 2.9


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.97])
@pytest.mark.parametrize("spread", [0.1, 0.5])
def test_truncated_normal(mean, spread):
    sample = draws(TruncatedNormal(means=(mean,), spread=spread))

    def law(at):
        return stats.truncnorm(-at / spread, (1 - at) / spread, loc=at, scale=spread)

    assert distance(sample, law(mean)) < LIMIT
    assert distance(sample, law(mean + 0.2 * spread)) > LIMIT


@pytest.mark.parametrize("mean", [0.03, 0.5, 0.9])
@pytest.mark.parametrize("spread", [1.0, 10.0])
def test_beta(mean, spread):
    sample = draws(Beta(means=(mean,), spread=spread))
    assert distance(sample, stats.beta(mean * spread, (1 - mean) * spread)) < LIMIT
    assert distance(sample, stats.beta(mean * spread * 1.3, (1 - mean) * spread)) > LIMIT


@pytest.mark.parametrize("mean", [0.0, 0.2, 1.0])
def test_bernoulli(mean):
    sample = draws(Bernoulli(means=(mean,)))
    assert set(sample) <= {0.0, 1.0}
    error = math.sqrt(mean * (1 - mean) / N)
    assert abs(sample.mean() - mean) <= 5 * error
    assert abs(sample.mean() - mean - 0.05) > 5 * error


@pytest.mark.parametrize("rewards", ["bernoulli", "truncated-normal"])
def test_four_rounds_at_once_are_the_same_rewards(rewards):
    means = ((0.1, 0.95), (0.6, 0.3))
    table = Switching(means=means, rewards=rewards, spread=0.4).table(5, 0, 400)
    for t in range(0, 400, 4):
        for a in range(2):
            together = four_rewards(table, t // 200, t, a)
            assert together == tuple(reward(table, t + i, a) for i in range(4))
    assert four_rewards(table, 0, 200, 1) != four_rewards(table, 1, 200, 1)


def test_an_entry_is_philox_at_its_position():
    table = Bernoulli(means=(0.3, 0.6)).table(1, 0, 10)
    for t in range(10):
        for a in range(2):
            words = philox(table.key0, table.key1, *map(np.uint64, (t // 4, a, 0, 0)))
            assert reward(table, t, a) == float(
                to_unit(np.uint64(words[t % 4])) < table.means[0, a]
            )


def test_arms_rounds_and_repetitions_are_uncorrelated():
    # A correlation of N independent pairs has sd 1/sqrt(N); 5 sd: false alarm 6e-7 each.
    environment = TruncatedNormal(means=(0.5, 0.5))
    one, two = draws(environment, 0), draws(environment, 1)
    others = [two, np.roll(one, 1), np.roll(one, 4), draws(environment, 0, seed=4)]
    for other in others:
        assert abs(np.corrcoef(one, other)[0, 1]) < 5 / math.sqrt(N)
    assert abs(np.corrcoef(one, 0.1 * one + two)[0, 1]) > 5 / math.sqrt(N)


def test_an_edit_changes_its_entry_and_no_other():
    table = Bernoulli(means=(0.5, 0.5)).table(0, 0, 50)
    other = edit_rewards(table, [(7, 1, 0.25), (9, 0, 0.5)])
    entries = [(t, a) for t in range(50) for a in range(2)]
    differ = {e for e in entries if reward(table, *e) != reward(other, *e)}
    assert differ == {(7, 1), (9, 0)}
    assert reward(other, 7, 1) == 0.25
    assert reward(edit_rewards(other, [(7, 1, 1.0)]), 7, 1) == 1.0
    assert reward(edit_rewards(table, [(7, 1, 0.25), (7, 1, 0.75)]), 7, 1) == 0.75
    assert reward(other, 7, 1) == 0.25


@pytest.mark.parametrize("entry", [(-1, 0, 0.5), (0, 2, 0.5), (0, -1, 0.5), (0, 0, 1.5)])
def test_an_edit_that_is_no_entry_is_refused(entry):
    table = Bernoulli(means=(0.5, 0.5)).table(0, 0, 5)
    with pytest.raises(ValueError, match="edit_rewards: expected"):
        edit_rewards(table, [entry])


def test_segments():
    starts = np.array([0, 3, 4, 10])
    expected = [max(i for i in range(4) if starts[i] <= t) for t in range(15)]
    assert [segment_at(starts, t) for t in range(15)] == expected


def regret_of(environment, table, t, a):
    trace = environment.trace(100, np.array([100]))
    record(table, trace, t, a, 0.0)
    return trace.totals[0]


def test_regret_on_a_switching_and_on_a_drifting_table():
    environment = Switching(means=((0.9, 0.1), (0.2, 0.4)), breakpoints=(3,))
    table = environment.table(0, 0, 6)
    assert [regret_of(environment, table, t, 0) for t in range(6)] == [0.0] * 3 + [0.4 - 0.2] * 3
    assert [regret_of(environment, table, t, 1) for t in range(6)] == [0.9 - 0.1] * 3 + [0.0] * 3
    environment = Drifting(n_arms=3, variation=1.5, knots=4)
    table = environment.table(0, 0, 40)
    means = [mean_of(table, np.arange(40), a) for a in range(3)]
    for a in range(3):
        expected = np.max(means, axis=0) - means[a]
        found = [regret_of(environment, table, t, a) for t in range(40)]
        assert np.allclose(found, expected, atol=1e-14)


def test_a_trace_adds_up_what_it_saw():
    environment = Bernoulli(means=(0.2, 0.7, 0.5))
    table, trace = (
        environment.table(0, 0, 30),
        environment.trace(30, np.array([1, 12, 30]), record=True),
    )
    pulled = np.random.default_rng(0).integers(0, 3, 30)
    for t, a in enumerate(pulled):
        record(table, trace, t, a, reward(table, t, a))
    regret = np.cumsum(0.7 - np.array(environment.means)[pulled])
    earned = np.cumsum([reward(table, t, a) for t, a in enumerate(pulled)])
    rounds = np.array([1, 12, 30]) - 1
    assert np.allclose(trace.measures, np.stack([regret[rounds], earned[rounds]], axis=1))
    assert trace.pulls.tolist() == np.bincount(pulled, minlength=3).tolist()
    assert trace.decisions.tolist() == pulled.tolist()


def test_regret_of_a_recorded_table_is_against_the_best_fixed_arm():
    data = np.random.default_rng(0).random((40, 3))
    environment = Recorded(data=data)
    trace = environment.trace(40, np.array([40]), record=True)
    policy, table = UCB1(n_arms=3), environment.table(0, 0, 40)
    policy.play(policy.start(table), table, seeded_tape(0), trace, 0, 40)
    mine = data[np.arange(40), trace.decisions].sum()
    assert trace.measures[0, 0] == pytest.approx(data.sum(axis=0).max() - mine)
