"""Shuffled klUCB-CF: against its definition, by enumeration of all flips, and by regret."""

from __future__ import annotations

import itertools
import math
import shutil

import numpy as np
import pytest

import tacit
from oracles import shuffled as oracle
from tacit.arms import KLUCBCF, Bernoulli, Recorded, ShuffledKLUCBCF, edit_rewards
from tacit.arms.table import reward
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import CHOICE, NOISE, ROUNDING, recorded_tape, seeded_tape, uniform
from tacit.privacy.mechanisms.shuffled_bits import flip_bit
from tacit.serving import StoreError


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
        rewards, lambda t, a, r, keep: flip_bit(tape, t, a, NOISE, r, keep), sizes, keeps, f
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
            keep = policy.params.keeps[blocks[arm] // policy.block]
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


def test_it_says_whom_to_trust():
    policy = ShuffledKLUCBCF(n_arms=2, epsilon=0.5, block=300)
    short, long = policy.guarantee(100), policy.guarantee(100_000)
    assert (short.epsilon, short.delta, short.trust) == (0.5, 1e-6, "shuffler")
    assert "local epsilon of 1.64 only" in short.sentence()
    # 83,309 reports fill 23 blocks; the shuffler sees those of the open one, of 20,828, as well.
    opened = policy.shuffler.bits(20_828).epsilon
    assert f"{opened:.3g}" == "5.37"
    assert policy.shuffler.bits(16_662).epsilon < 4.7
    assert f"local epsilon of {opened:.3g} only" in long.sentence()


def bits_of(learner, n, report=None):
    made = learner.decide_many([{}] * n)
    for each in made:
        assert each.instructions["trust"] == "local"
        learner.learn(report or each.device.report(1.0))
    return made


def test_a_learner_tells_its_policy_full_blocks_only(tmp_path):
    policy = ShuffledKLUCBCF(n_arms=2, epsilon=1.0, delta=0.01, block=4)
    with tacit.Learner(policy, store=tmp_path / "x.db") as learner:
        assert learner.trust == "shuffler"
        bits_of(learner, 3)
        state = learner._core.decider.state
        assert (state.open_counts.tolist(), state.counts.tolist()) == ([3, 0], [0, 0])
        assert learner.counts["releases"] == 0
        bits_of(learner, 1)
        assert (state.open_counts.tolist(), state.counts.tolist()) == ([0, 0], [4, 0])
        (told,) = (e for e in learner._experiment.store.events("learner", 0) if e.state)
        assert told.body["released"] == [state.ones[0]]
        learner._experiment.verify()


def test_what_a_learner_says_holds_against_whoever_sees_reports():
    policy = ShuffledKLUCBCF(n_arms=2, epsilon=0.5, block=300)
    learner = tacit.Learner(policy)
    asked = learner.decide().device.epsilon
    assert asked <= policy.shuffler.bits(300).epsilon < asked * (1 + 1e-9)
    said = learner.guarantee(100_000)
    assert (said.epsilon, said.delta, said.trust) == (0.5, 1e-6, "shuffler")
    assert f"the local epsilon of its bit only, up to {asked:.3g} so far" in said.sentence()
    assert "reads the learner's memory, store or backups" in said.sentence()
    with pytest.raises(ValueError, match="only where delta is 0"):
        tacit.Learner(policy, budget={"day": 1.0})


def test_late_bits_enter_the_next_block_as_they_were_flipped():
    """What they are worth is known: an estimate of all told bits is within 5 standard errors."""
    policy = ShuffledKLUCBCF(n_arms=1, epsilon=1.0, delta=0.01, block=40)
    learner, rng = tacit.Learner(policy), np.random.default_rng(1)
    params, state = policy.params, learner._core.decider.state
    assert len(set(params.keeps[:16].tolist())) > 2
    late, asked = [], []
    for t in range(3000):
        decision = learner.decide()
        report = decision.device.report(float(rng.random() < 0.3))
        if t % 3 == 0:
            late.append(report)
            continue
        learner.learn(report)
        asked.append(decision._open.record[0])
        if t % 300 == 299:
            learner.learn(late)
            late = []
    n = int(state.counts[0])
    assert n > 2000
    slope = state.ends[0, 1] - state.ends[0, 0]
    in_order = float(
        np.repeat(params.keeps[: state.blocks[0]], params.sizes[: state.blocks[0]]).mean()
    )
    assert slope < 2 * in_order - 1 - 1e-3  # late ones were flipped more
    error = math.sqrt(0.25 / n) / slope
    assert abs((state.ones[0] / n - state.ends[0, 0]) / slope - 0.3) < 5 * error


def exact_delta(keeps, k, epsilon):
    """Return delta of the number of ones: bits kept with these chances, the first one protected."""

    def law(first):
        masses = np.ones(1)
        for i, keep in enumerate(keeps):
            one = (first if i == 0 else i <= k) == 1
            p = keep if one else 1 - keep
            masses = np.convolve(masses, [1 - p, p])
        return masses

    zero, one = law(0), law(1)
    return max(
        float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in ((zero, one), (one, zero))
    )


def test_a_block_with_bits_that_are_flipped_more_hides_no_less():
    """Every number of ones among the others, every place of the early ones; flipped less, it fails."""
    policy = ShuffledKLUCBCF(n_arms=1, epsilon=0.7, delta=0.05, block=6)
    keep, early = (policy.shuffler.bits(size).keep for size in (12, 6))
    assert early < keep

    def worst(other):
        return max(
            exact_delta([other if i in where else keep for i in range(12)], k, 0.7)
            for k in range(12)
            for where in ({0}, {1}, {11}, {0, 11}, set(range(6)), set(range(6, 12)), set(range(12)))
        )

    assert worst(early) <= 0.05
    assert worst((1 + keep) / 2) > 0.05


def test_an_old_copy_tells_no_bit_twice(tmp_path):
    policy = ShuffledKLUCBCF(n_arms=1, epsilon=1.0, delta=0.01, block=4)
    store, copy = tmp_path / "x.db", tmp_path / "copy"
    with tacit.Learner(policy, store=store) as learner:
        bits_of(learner, 3)
    shutil.copy(store, copy)
    with tacit.Learner(policy, store=store) as learner:
        bits_of(learner, 1)
        assert learner.counts["releases"] == 1
    shutil.copy(copy, store)
    with pytest.raises(StoreError, match="old copy"):
        tacit.Learner(policy, store=store)
    with tacit.Learner(policy, store=store, restored=True) as learner:
        assert learner._core.decider.state.open_counts.tolist() == [0]
        bits_of(learner, 3)
        assert learner.counts["releases"] == 0


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
