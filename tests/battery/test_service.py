"""One step at a time: the arms room at work, with late rewards, batches and missing arms."""

from __future__ import annotations

import numpy as np
import pytest

from battery.arms_room import MEANS
from battery.cases import assert_same, cases, play
from tacit.arms import Bernoulli, Decision, Learner
from tacit.arms.tables import reward
from tacit.tapes import seeded_tape

CASES = [case for case in cases() if hasattr(case.kind, "learn")]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def served(case, horizon=None):
    """Return a world where every arm shows its own reward only, as a learner sees it."""
    world = Bernoulli(means=MEANS)
    return world, case.build(world, horizon or case.rounds)


def test_there_are_cases():
    assert len(CASES) >= 7


@every_case
def test_one_step_at_a_time_equals_play(case):
    world, policy = served(case)
    whole = play(policy, world, case.rounds, seed=5)
    table, tape, state = world.table(5, 0, case.rounds), seeded_tape(5, 0), policy.start(None)
    everyone, arms = np.arange(world.n_arms), []
    for t in range(case.rounds):
        arms.append(policy.select(state, tape, t, everyone))
        policy.update(state, tape, t, arms[-1], reward(table, t, arms[-1]))
    assert arms == whole.trace.decisions.tolist()
    assert_same(state, whole.state)
    assert tape.reads.tolist() == whole.tape.reads.tolist()


@every_case
def test_a_learner_equals_play(case):
    world, policy = served(case)
    whole, table = play(policy, world, case.rounds, seed=5), world.table(5, 0, case.rounds)
    learner = Learner(policy, seed=5)
    for t in range(case.rounds):
        decision = learner.select()
        assert decision == Decision(t, whole.trace.decisions[t])
        learner.update(decision, reward(table, t, decision.arm))
    assert learner.noise_draws == whole.tape.reads[1]


@every_case
def test_a_restored_learner_continues_the_same(case, tmp_path):
    world, policy = served(case)
    table = world.table(5, 0, case.rounds)
    arms: dict[bool, list[int]] = {}
    for restart in (False, True):
        learner, waiting, arms[restart] = Learner(policy, seed=5), [], []
        for t in range(case.rounds):
            if restart and t == case.rounds // 2:
                learner.save(tmp_path / "learner.npz")
                learner = Learner.load(tmp_path / "learner.npz", policy)
            waiting.append(learner.select())
            arms[restart].append(waiting[-1].arm)
            if t % 3 == 2:
                learner.update_many([(d, reward(table, d.round, d.arm)) for d in waiting])
                waiting = []
    assert arms[True] == arms[False]


@every_case
def test_only_eligible_arms_are_chosen(case):
    world, policy = served(case, 300)
    table, learner, rng = world.table(5, 0, 300), Learner(policy, seed=5), np.random.default_rng(0)
    for t in range(300):
        eligible = np.flatnonzero(rng.random(3) < 0.6).tolist() or [2]
        decision = learner.select(eligible)
        assert decision.arm in eligible
        learner.update(decision, reward(table, t, decision.arm))


@every_case
def test_it_still_learns_when_rewards_come_late_and_in_batches(case):
    rounds = case.room.reading(case.kind)
    world, policy = served(case, rounds)
    table, learner, waiting, regret = world.table(5, 0, rounds), Learner(policy, seed=5), [], 0.0
    for t in range(rounds):
        decision = learner.select()
        regret += max(world.means) - world.means[decision.arm]
        waiting.append((decision, reward(table, t, decision.arm)))
        if t % 10 == 9:
            learner.update_many(reversed(waiting))
            waiting = []
    assert case.room.learned(case, {"regret": np.array([regret])})


@every_case
def test_a_reward_counts_once_and_must_be_one(case):
    _, policy = served(case)
    learner = Learner(policy, seed=1)
    decision = learner.select()
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"expected reward in \[0, 1\]"):
            learner.update(decision, bad)
    learner.update(decision, 1.0)
    with pytest.raises(ValueError, match="not waiting"):
        learner.update(decision, 1.0)
    for bad_set in ([], [3], [-1]):
        with pytest.raises(ValueError, match="eligible"):
            learner.select(bad_set)


@every_case
def test_without_a_seed_two_learners_draw_their_own_noise(case):
    world, policy = served(case)
    learners = [Learner(policy), Learner(policy)]
    table = world.table(0, 0, 200)
    states = []
    for learner in learners:
        assert learner.numerics == "secure"
        for t in range(200):
            decision = learner.select()
            learner.update(decision, reward(table, t, decision.arm))
        states.append([learner.noise_draws, learner.rounds])
    assert states[0] == states[1]
