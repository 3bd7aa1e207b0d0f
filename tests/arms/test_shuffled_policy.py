"""Shuffled klUCB-CF: against its definition, by enumeration of all flips, and by regret."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tacit
from oracles import shuffled as oracle
from tacit.arms import KLUCBCF, Bernoulli, Recorded, ShuffledKLUCBCF, edit_rewards
from tacit.arms.tables import reward
from tacit.compiled import INTERPRETED
from tacit.privacy.mechanisms import flipped_bit
from tacit.tapes import CHOICE, NOISE, ROUNDING, recorded_tape, seeded_tape, uniform


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("exploration", ["log", "paper"])
def test_it_is_its_definition(seed, exploration):
    T, K = 1500, 3
    environment = Bernoulli(means=(0.3, 0.7, 0.6))
    policy = ShuffledKLUCBCF(n_arms=K, epsilon=0.8, delta=1e-3, block=20, exploration=exploration)
    table, tape = environment.table(seed, 0, T), seeded_tape(seed)
    trace = environment.trace(T, np.array([T]), record=True)
    state = policy.start(table)
    policy.play(state, table, seeded_tape(seed), trace, 0, T)
    rewards = np.array([[reward(table, t, a) for a in range(K)] for t in range(T)])

    def f(t):
        if t <= 1:
            return 0.0
        more = 3 * math.log(math.log(t)) if exploration == "paper" else 0.0
        return max(0.0, math.log(t) + more)

    sizes, total = [20], 20  # at least 20, a quarter of what is told
    while total < T:
        sizes.append(max(20, math.ceil(total / 4)))
        total += sizes[-1]
    keeps = [policy.shuffler.bits(size).keep for size in sizes]
    decisions, told = oracle.klucb_on_blocks(
        rewards, lambda t, a, r, keep: flipped_bit(tape, t, a, NOISE, r, keep), sizes, keeps, f
    )
    assert trace.decisions.tolist() == decisions
    assert state.ones.tolist() == [sum(ones for ones, _, _ in blocks) for blocks in told]
    assert len(set(keeps)) > 2


def test_numbers_are_rounded_to_bits_without_bias():
    policy = ShuffledKLUCBCF(n_arms=1, epsilon=30.0, delta=0.5, block=50)
    environment = Recorded(data=np.full((50, 1), 0.3))
    table, tape = environment.table(0, 0, 50), seeded_tape(4)
    state, trace = policy.start(table), environment.trace(50, np.array([50]))
    policy.play(state, table, tape, trace, 0, 50)
    again = seeded_tape(4)
    assert state.ones[0] == sum(uniform(again, t, 0, ROUNDING) < 0.3 for t in range(50))


def law_of(policy, table, environment, rounds):
    """The exact law of decisions and of what is told, from every pattern of flips."""
    law = {}
    for flips in itertools.product((0, 1), repeat=rounds):
        draws = np.repeat(np.where(flips, 1 - 1e-9, 1e-9)[:, None], policy.n_arms, axis=1)
        tape = recorded_tape({CHOICE: draws, NOISE: draws}, log=rounds)
        trace = environment.trace(rounds, np.array([rounds]), record=True)
        policy.play(policy.start(table), table, tape, trace, 0, rounds)
        chance, blocks = 1.0, dict.fromkeys(range(policy.n_arms), 0)
        for flip, arm in zip(flips, trace.decisions.tolist(), strict=True):
            keep = policy.rule.keeps[blocks[arm] // policy.block]
            chance *= 1 - keep if flip else keep
            blocks[arm] += 1
        seen = (*trace.decisions.tolist(), *tape.log.tolist())
        law[seen] = law.get(seen, 0.0) + chance
    return law


def test_everything_seen_is_as_private_as_stated():
    """All patterns of flips of a short run, on every pair of tables that differ in one reward."""
    rounds, environment = 8, Bernoulli(means=(0.5, 0.5))
    policy = ShuffledKLUCBCF(n_arms=2, epsilon=0.7, delta=0.05, block=2)
    half = ShuffledKLUCBCF(n_arms=2, epsilon=1.4, delta=0.05, block=2)
    table = environment.table(3, 0, rounds)

    def worst(each):
        delta = 0.0
        for t, arm in itertools.product(range(rounds), range(2)):
            one, zero = (
                law_of(each, edit_rewards(table, [(t, arm, r)]), environment, rounds)
                for r in (1.0, 0.0)
            )
            assert sum(one.values()) == pytest.approx(1.0)
            for left, right in ((one, zero), (zero, one)):
                delta = max(delta, oracle.hockey_stick(left, right, math.exp(0.7)))
        return delta

    assert worst(policy) <= 0.05
    assert worst(half) > 0.05


def test_it_says_whom_to_trust_and_is_no_service():
    policy = ShuffledKLUCBCF(n_arms=2, epsilon=0.5, block=300)
    short, long = policy.guarantee(100), policy.guarantee(100_000)
    assert (short.epsilon, short.delta, short.trust) == (0.5, 1e-6, "shuffler")
    assert "local epsilon of 1.64 only" in short.sentence()
    assert "local epsilon of 4.68 only" in long.sentence()
    with pytest.raises(ValueError, match=r"^ShuffledKLUCBCF: expected a simulation"):
        tacit.Learner(policy)


@pytest.mark.skipif(INTERPRETED, reason="long runs need compiled kernels")
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_it_has_less_regret_than_local_privacy(epsilon):
    environment = Bernoulli(means=(0.6,) + (0.5,) * 4 + (0.4,) * 5)
    local, shuffled = (
        tacit.simulate(
            kind(n_arms=10, epsilon=epsilon, exploration="log"),
            environment,
            horizon=100_000,
            repetitions=8,
            checkpoints=1,
        ).final("regret")
        for kind in (KLUCBCF, ShuffledKLUCBCF)
    )
    assert 1.4 * shuffled.mean() < local.mean()
