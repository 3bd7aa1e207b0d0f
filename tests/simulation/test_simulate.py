"""One simulation: what does not change the result, and what is refused."""

import numpy as np
import pytest

import tacit
from tacit.arms import KLUCBCF, UCB1, Bernoulli, Recorded
from tacit.simulation.bands import band_of

ENVIRONMENT = Bernoulli(means=(0.3, 0.7))
POLICY = KLUCBCF(n_arms=2, epsilon=1.0)


def regret(**options):
    result = tacit.simulate(POLICY, ENVIRONMENT, horizon=500, repetitions=5, **options)
    return result.measures["regret"]


def test_threads_and_chunks_change_nothing():
    whole = regret(threads=1)
    assert np.array_equal(whole, regret(threads=4))
    assert np.array_equal(whole, regret(chunk=7))
    assert not np.array_equal(whole, regret(seed=1))


def test_a_repetition_is_the_same_alone_and_among_others():
    alone = tacit.simulate(POLICY, ENVIRONMENT, horizon=500, repetitions=[3])
    assert np.array_equal(alone.measures["regret"][0], regret()[3])


def test_policies_see_the_same_table():
    runs = [
        tacit.simulate(policy, ENVIRONMENT, horizon=200, record=True).traces[0]
        for policy in (POLICY, UCB1(n_arms=2))
    ]
    same = runs[0].decisions == runs[1].decisions
    assert 0 < same.sum() < 200
    assert np.array_equal(runs[0].rewards[same], runs[1].rewards[same])


def test_progress_adds_up():
    told = []
    regret(chunk=100, threads=1, progress=told.append)
    assert sum(told) == 5 * 500


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"horizon": 0}, "expected horizon >= 1, got 0"),
        ({"horizon": 10, "repetitions": 0}, "expected repetitions >= 1, got 0"),
        ({"horizon": 10, "threads": 0}, "expected threads >= 1, got 0"),
        ({"horizon": 10, "checkpoints": np.array([11])}, "expected checkpoints in 1..10"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        tacit.simulate(POLICY, ENVIRONMENT, **options)


def test_a_recorded_table_is_not_played_past_its_end():
    environment = Recorded(data=[[0.0, 1.0]] * 5)
    with pytest.raises(ValueError, match="expected horizon <= 5 recorded rounds, got 6"):
        tacit.simulate(UCB1(n_arms=2), environment, horizon=6)


def test_bands_cover_as_often_as_they_say():
    """95% bands of 10 normal repetitions: 2,000 trials, 5 standard errors = 2.4 points."""
    rng = np.random.default_rng(0)
    trials = rng.normal(size=(10, 2000))
    band = band_of(trials)
    covered = ((band.low <= 0) & (band.high >= 0)).mean()
    assert abs(covered - 0.95) < 0.0244
    narrow = band.mean - band.low < 0  # the twin: a band of no width covers nothing
    assert not narrow.any()
    shrunk = np.abs(band.mean) <= 0.8 * (band.high - band.mean)
    assert abs(shrunk.mean() - 0.95) > 0.0244


def test_a_policy_of_another_size_is_refused_before_its_kernel_runs():
    with pytest.raises(ValueError, match="UCB1: expected n_arms to be 2 as in bernoulli, got 50"):
        tacit.simulate(UCB1(n_arms=50), Bernoulli(means=(0.3, 0.7)), horizon=10)
