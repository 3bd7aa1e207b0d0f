"""One step at a time: policies at work, with late rewards, batches, missing arms and a ledger."""

from __future__ import annotations

import numpy as np
import pytest

from battery.arms_setting import MEANS
from battery.cases import assert_same, cases, play
from tacit.arms import KLUCBCF, Bernoulli, Decision, Learner
from tacit.arms.tables import reward
from tacit.privacy import BudgetExceededError, Ledger
from tacit.state import load, save
from tacit.tapes import seeded_tape
from tacit.users import tables as users

CASES = [case for case in cases() if hasattr(case.kind, "learn")]
LOCAL = [
    case
    for case in CASES
    if "epsilon" in case.parameters and case.easy()[1].guarantee(1).trust == "local"
]
USERS = [case for case in cases() if case.kind.setting == "users"]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_local_case = pytest.mark.parametrize("case", LOCAL, ids=lambda case: case.name)
every_users_case = pytest.mark.parametrize("case", USERS, ids=lambda case: case.name)


def served(case, horizon=None):
    """Return an environment where every arm shows its own reward only, as a learner sees it."""
    environment = Bernoulli(means=MEANS)
    return environment, case.build(environment, horizon or case.rounds)


def test_there_are_cases():
    assert len(CASES) >= 7
    assert len(LOCAL) >= 2
    assert len(USERS) >= 9


@every_case
def test_one_step_at_a_time_equals_play(case):
    environment, policy = served(case)
    whole = play(policy, environment, case.rounds, seed=5)
    table, tape, state = environment.table(5, 0, case.rounds), seeded_tape(5, 0), policy.start(None)
    everyone, arms = np.arange(environment.n_arms), []
    for t in range(case.rounds):
        arms.append(policy.select(state, tape, t, everyone))
        policy.update(state, tape, t, arms[-1], reward(table, t, arms[-1]))
    assert arms == whole.trace.decisions.tolist()
    assert_same(state, whole.state)
    assert tape.reads.tolist() == whole.tape.reads.tolist()


@every_case
def test_a_learner_equals_play(case):
    environment, policy = served(case)
    whole, table = (
        play(policy, environment, case.rounds, seed=5),
        environment.table(5, 0, case.rounds),
    )
    learner = Learner(policy, seed=5)
    for t in range(case.rounds):
        decision = learner.select()
        assert decision == Decision(t, whole.trace.decisions[t])
        learner.update(decision, reward(table, t, decision.arm))
    assert learner.noise_draws == whole.tape.reads[1]


@every_case
def test_a_restored_learner_continues_the_same(case, tmp_path):
    environment, policy = served(case)
    table = environment.table(5, 0, case.rounds)
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
    environment, policy = served(case, 300)
    table, learner, rng = (
        environment.table(5, 0, 300),
        Learner(policy, seed=5),
        np.random.default_rng(0),
    )
    for t in range(300):
        eligible = np.flatnonzero(rng.random(3) < 0.6).tolist() or [2]
        decision = learner.select(eligible)
        assert decision.arm in eligible
        learner.update(decision, reward(table, t, decision.arm))


@every_case
def test_it_still_learns_when_rewards_come_late_and_in_batches(case):
    rounds = case.setting.reading(case.kind)
    environment, policy = served(case, rounds)
    table, learner, waiting, regret = (
        environment.table(5, 0, rounds),
        Learner(policy, seed=5),
        [],
        0.0,
    )
    for t in range(rounds):
        decision = learner.select()
        regret += max(environment.means) - environment.means[decision.arm]
        waiting.append((decision, reward(table, t, decision.arm)))
        if t % 10 == 9:
            learner.update_many(reversed(waiting))
            waiting = []
    assert case.setting.learned(case, {"regret": np.array([regret])})


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
    environment, policy = served(case)
    learners = [Learner(policy), Learner(policy)]
    table = environment.table(0, 0, 200)
    states = []
    for learner in learners:
        assert learner.numerics == "secure"
        for t in range(200):
            decision = learner.select()
            learner.update(decision, reward(table, t, decision.arm))
        states.append([learner.noise_draws, learner.rounds])
    assert states[0] == states[1]


class Inexact(KLUCBCF):
    """A policy whose noise has no exact sampler."""

    secure = False


def test_a_learner_without_a_seed_refuses_inexact_noise():
    with pytest.raises(ValueError, match=r"^Inexact: expected tape seeded.* secure tape"):
        Learner(Inexact(n_arms=2, epsilon=1.0))
    assert Learner(Inexact(n_arms=2, epsilon=1.0), seed=0).numerics == "research"


@every_local_case
def test_every_draw_of_noise_is_in_the_ledger(case, tmp_path):
    environment, policy = served(case)
    table, learner = environment.table(5, 0, 20), Learner(policy)
    promise = policy.guarantee(20)
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.allow(case.parameters["epsilon"])

        def give(person, t):
            decision = learner.select()
            ledger.spend(person, promise.epsilon, key=f"round {t}")
            learner.update(decision, reward(table, t, decision.arm))

        for t in range(20):
            give(f"person {t}", t)
        for t in range(20):
            with pytest.raises(BudgetExceededError):
                give(f"person {t}", 20 + t)
        charged = len(ledger.entries())
    releases = sum(count for _, count in promise.releases)
    assert learner.noise_draws == charged * releases == 20 * releases > 0


def learned(state):
    """Return what a users' state knows: what it has scribbled meanwhile is left out."""
    return state._replace(work=np.empty(0))


def serve(policy, table, state, tape, first, last):
    """Serve rounds first to last - 1 of a users' table one step at a time; return the slots."""
    shown, slots = np.empty(table.n_shown, np.int64), []
    for t in range(first, last):
        user = users.arrive(table, t, shown)
        slots.append(policy.select(state, user, table.features[shown]))
        chosen = shown[slots[-1]]
        told = users.reward(table, t, user, slots[-1], chosen)
        policy.update(state, tape, user, table.features[chosen], told)
    return slots


@every_users_case
def test_users_served_one_by_one_equal_play(case):
    environment, policy = case.easy()
    whole, table = (
        play(policy, environment, case.rounds, seed=5),
        environment.table(5, 0, case.rounds),
    )
    state, tape = policy.start(table), seeded_tape(5, 0)
    slots = serve(policy, table, state, tape, 0, case.rounds)
    assert slots == whole.trace.decisions.tolist()
    assert_same(learned(state), learned(whole.state))
    assert tape.reads.tolist() == whole.tape.reads.tolist()


@every_users_case
def test_users_restored_half_way_are_served_the_same(case, tmp_path):
    environment, policy = case.easy()
    whole, table = (
        play(policy, environment, case.rounds, seed=5),
        environment.table(5, 0, case.rounds),
    )
    state, half = policy.start(table), case.rounds // 2
    slots = serve(policy, table, state, seeded_tape(5, 0), 0, half)
    save(tmp_path / "users.npz", state, {"rounds": half})
    restored, about = load(tmp_path / "users.npz", policy.start(table))
    slots += serve(policy, table, restored, seeded_tape(5, 0), about["rounds"], case.rounds)
    assert slots == whole.trace.decisions.tolist()
    assert_same(learned(restored), learned(whole.state))
