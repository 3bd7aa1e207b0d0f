"""Which arm is best: policies against oracles, and errors that are what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln, xlogy
from scipy.stats import laplace as laplace_law

import tacit
from oracles import identification as oracle
from tacit.arms import UCB1, Bernoulli, DPTopTwo, Recorded, TopTwoCF
from tacit.arms.identification import Seen, noise_reach, released_error
from tacit.core.tapes import NOISE, seeded_tape
from tacit.privacy.mechanisms.laplace import standard_laplace

K, ROUNDS = 4, 700
MEANS = np.array([0.6, 0.55, 0.4, 0.2])


def played(policy, rewards):
    environment, T = Recorded(data=rewards), len(rewards)
    table = environment.table(0, 0, T)
    trace = environment.trace(T, np.array([T]), record=True)
    state = policy.start(table)
    policy.play(state, table, seeded_tape(1), trace, 0, T)
    return state, trace.decisions.tolist()


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_private_kernel_is_its_definition(epsilon, seed):
    rewards = np.random.default_rng(seed).beta(20 * MEANS, 20 * (1 - MEANS), (ROUNDS, K))

    def noise(t, a):
        return standard_laplace(seeded_tape(1), t, a, NOISE)

    state, decisions = played(DPTopTwo(n_arms=K, epsilon=epsilon), rewards)
    expected, S = oracle.dp_top_two(rewards, epsilon, noise)
    assert decisions == expected
    np.testing.assert_allclose(state.blocks.sums, S, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_kernel_on_bits_is_its_definition(seed):
    bits = (np.random.default_rng(seed).random((400, K)) < MEANS).astype(float)
    assert played(TopTwoCF(n_arms=K), bits)[1] == oracle.top_two(bits)


@pytest.mark.parametrize("k", [1, 2, 7])
def test_a_sum_of_noise_rarely_gets_that_far(k):
    """Exact for one variable; 200,000 draws for more, five standard errors (once in 3.5 million)."""
    share = 0.01
    reach = noise_reach(k, math.log(share))
    if k == 1:
        assert laplace_law.sf(reach) <= share <= laplace_law.sf(reach / 2)
    sums = np.random.default_rng(k).laplace(size=(200_000, k)).sum(axis=1)
    error = math.sqrt(share / 200_000)
    assert (sums >= reach).mean() <= share + 5 * error
    assert (sums >= reach / 2).mean() > share + 5 * error


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 10_000), st.floats(0, 1))
def test_a_mixture_is_within_n_plus_one_of_the_best_mean(n, m):
    """max_q of the likelihood over its mean, uniform q: what the threshold ln(n + 1) stands on."""
    largest = xlogy(n * m, m) + xlogy(n * (1 - m), 1 - m)
    assert largest - betaln(n * m + 1, n * (1 - m) + 1) <= math.log(n + 1) + 1e-8 * n


@pytest.mark.parametrize(
    "policy", [DPTopTwo(n_arms=3, epsilon=2.0), TopTwoCF(n_arms=3, epsilon=2.0), TopTwoCF(n_arms=3)]
)
def test_a_wrong_arm_is_rarely_named(policy):
    """One run in five may be wrong at 80%; 36 wrong of 100 would be chance once in 10,000.

    After 30 rounds with means that are close, that many are wrong.
    """
    environment = Bernoulli(means=(0.4, 0.62, 0.45))
    found = tacit.identify(policy, environment, confidence=0.8, repetitions=100, limit=20_000)
    assert found.sure.mean() > 0.9
    assert (found.arms[found.sure] != 1).sum() < 36
    close = Bernoulli(means=(0.5, 0.52, 0.5))
    careless = tacit.identify(policy, close, confidence=1e-9, repetitions=100, limit=30)
    assert (careless.arms != 1).sum() >= 36


def test_more_evidence_more_noise_and_more_looks_move_the_error_the_right_way():
    def error(total, n, releases, epsilon=1.0):
        seen = Seen(total, n, releases), Seen(0.4 * n, n, releases)
        return released_error(seen, epsilon, 0.0)

    base = error(300.0, 500, 5)
    assert base.arm == 0
    assert 0 < base.error < 0.5
    assert error(350.0, 500, 5).error < base.error
    assert error(3000.0, 5000, 5).error < base.error
    assert error(300.0, 500, 9).error > base.error
    assert error(300.0, 500, 5, epsilon=0.1).error > base.error
    assert error(50.0, 500, 5).arm == 1
    assert error(50.0, 500, 5).error < 0.5
    assert error(200.0, 500, 5).error == 1.0


def test_nothing_is_named_before_every_arm_is_seen():
    for policy in (DPTopTwo(n_arms=3, epsilon=1.0), TopTwoCF(n_arms=3)):
        assert policy.best_arm(policy.start()).error == 1.0


def test_what_cannot_be_identified_says_so():
    with pytest.raises(ValueError, match="one that names arms"):
        tacit.identify(UCB1(n_arms=2), Bernoulli(means=(0.1, 0.9)))
    with pytest.raises(ValueError, match="confidence"):
        tacit.identify(TopTwoCF(n_arms=2), Bernoulli(means=(0.1, 0.9)), confidence=1.0)
    never = tacit.identify(TopTwoCF(n_arms=2), Bernoulli(means=(0.5, 0.5)), limit=2000)
    assert not never.sure.any()
    assert never.rounds.tolist() == [2000]
