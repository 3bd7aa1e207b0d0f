"""Windows: from a variation budget, and for a horizon that nobody knows."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from oracles import arms as oracle
from oracles.arms import mean_of
from tacit.arms import (
    SWKLUCBCF,
    Adversarial,
    Bernoulli,
    Corruption,
    DoublingSWKLUCBCF,
    Drifting,
    GraphFeedback,
    Rotating,
    Switching,
)
from tacit.arms.table import reward
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import CHOICE, NOISE, ROUNDING, noise_uniform, seeded_tape, uniform
from tacit.graphs import path

JUMPS = Switching(means=((0.9, 0.2), (0.1, 0.8), (0.5, 0.6)), breakpoints=(100, 400))


@pytest.mark.parametrize(
    "environment",
    [
        Bernoulli(means=(0.3, 0.7)),
        JUMPS,
        Rotating(n_arms=3),
        Drifting(n_arms=2, variation=2.5, knots=20),
        GraphFeedback(environment=JUMPS, graph=path(2)),
    ],
    ids=lambda environment: environment.name,
)
@pytest.mark.parametrize("T", [300, 1000])
def test_a_budget_is_what_the_means_move(environment, T):
    table = environment.table(3, 0, T)
    means = np.stack([mean_of(table, np.arange(T), a) for a in range(environment.n_arms)], axis=1)
    moved = np.abs(np.diff(means, axis=0)).max(axis=1).sum()
    # A drift is not over in the last round.
    assert environment.variation_budget(T) == pytest.approx(moved, rel=2 / T * 30)
    assert environment.public_parameters(T)["variation"] == environment.variation_budget(T)


def test_nobody_knows_the_budget_of_an_adversary():
    assert "variation" not in Adversarial().public_parameters(100)


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_the_window_is_where_the_two_costs_sum_to_the_least(epsilon):
    K, T, V = 3, 50_000, 4.0
    policy = SWKLUCBCF(n_arms=K, horizon=T, variation=V, window="variation", epsilon=epsilon)
    s = 1.0 if epsilon is None else math.tanh(epsilon / 2)

    def cost(w):
        return 2 * w * V + 2 * T * math.sqrt(2 * K * math.log(T) / w) / s

    w = policy.window_rounds
    assert cost(w) <= min(cost(w - 2), cost(w + 2))
    assert cost(w) < 0.95 * min(cost(w / 2), cost(2 * w))


def test_a_world_that_does_not_move_has_no_window():
    whole = SWKLUCBCF(n_arms=2, horizon=500, variation=0.0, window="variation")
    assert whole.window_rounds == 500
    falling = Corruption.of(p00=(0.1, 0.9), p11=(0.2, 0.6))
    some = SWKLUCBCF(n_arms=2, horizon=500, variation=3, window="variation", corruption=falling)
    steeper = SWKLUCBCF(n_arms=2, horizon=500, variation=3, window="variation")
    assert some.window_rounds > steeper.window_rounds
    with pytest.raises(ValueError, match="SWKLUCBCF: expected variation given, for the window"):
        SWKLUCBCF(n_arms=2, horizon=500, window="variation")


@pytest.mark.skipif(INTERPRETED, reason="a million rounds")
def test_a_window_from_the_budget_follows_a_drift():
    T, environment = 40_000, Drifting(n_arms=2, variation=1.0)

    def regret(**how):
        policy = SWKLUCBCF(n_arms=2, horizon=T, **how)
        result = tacit.simulate(policy, environment, horizon=T, repetitions=8, checkpoints=1)
        return result.final("regret").mean()

    right = regret(window="variation", variation=1.0)
    assert right < 0.8 * regret(window="log")
    assert right < 0.8 * regret(window="variation", variation=20.0)


def doubled(environment, T, first, responses, seed):
    """Return the decisions of the oracle, begun anew with twice the horizon."""
    table, tape = environment.table(seed, 0, T), seeded_tape(seed, 0)
    named = {"choice": CHOICE, "rounding": ROUNDING, "noise": NOISE}
    arms, begin, length = [], 0, first
    while begin < T:
        rounds = min(length, T - begin)

        def draw(t, index, purpose, begin=begin):
            read = noise_uniform if purpose == "noise" else uniform
            return read(tape, begin + t, index, named[purpose])

        w = math.floor(math.sqrt(4 * math.e * length / 5 * math.log(length)))
        arms += oracle.sw_klucb_cf(
            environment.n_arms,
            rounds,
            lambda t, a, begin=begin: reward(table, begin + t, a),
            draw,
            responses=responses,
            window=w,
        )
        begin, length = begin + rounds, 2 * length
    return arms


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("first", [20, 35, 1000])
def test_every_epoch_is_the_algorithm_with_its_own_horizon(seed, first):
    T, keep = 320, 0.8
    policy = DoublingSWKLUCBCF(
        n_arms=2, first_horizon=first, corruption=Corruption.of(p00=keep, p11=keep)
    )
    table = JUMPS.table(seed, 0, T)
    trace = JUMPS.trace(T, np.array([T]), record=True)
    policy.play(policy.start(table), table, seeded_tape(seed, 0), trace, 0, T)
    found = trace.decisions.tolist()
    assert found == doubled(JUMPS, T, first, [(keep, keep)] * 2, seed)
    assert first == 1000 or found != doubled(JUMPS, T, first + 1, [(keep, keep)] * 2, seed)


def test_feedback_of_an_earlier_epoch_is_dropped():
    policy = DoublingSWKLUCBCF(n_arms=2, first_horizon=10)
    state, tape, both = policy.start(), seeded_tape(0), np.arange(2)
    for t in range(12):
        policy.update(state, tape, t, policy.select(state, tape, t, both), 1.0)
    assert state.counts.sum() == 2
    policy.update(state, tape, 9, 0, 1.0)
    assert state.counts.sum() == 2
    policy.update(state, tape, 10, 0, 1.0)
    assert state.counts.sum() == 3


def test_epochs_end_and_stop_doubling():
    with pytest.raises(ValueError, match=r"DoublingSWKLUCBCF: expected first_horizon in 1\.\."):
        DoublingSWKLUCBCF(n_arms=2, first_horizon=0)
    params = DoublingSWKLUCBCF(n_arms=2, first_horizon=2**26).params
    assert params.starts.tolist() == [0]


# Finding E8
@pytest.mark.parametrize("kind", [SWKLUCBCF, DoublingSWKLUCBCF])
def test_what_a_paper_says_is_called_published_and_the_old_word_is_read(kind):
    given = {"n_arms": 2, "n_segments": 3} | ({"horizon": 9_999} if kind is SWKLUCBCF else {})
    new, old, ours = (kind(window=word, **given).params for word in ("published", "paper", "log"))
    size = "window" if kind is SWKLUCBCF else "windows"
    np.testing.assert_array_equal(getattr(new, size), getattr(old, size))
    assert np.any(getattr(new, size) < getattr(ours, size))
