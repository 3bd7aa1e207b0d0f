"""One step at a time: policies at work, with late rewards, batches, missing arms and a ledger."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import tacit
from battery.arms_setting import MEANS
from battery.cases import LIKE, assert_same, cases, play, tiered
from tacit.arms import KLUCBCF, Bernoulli, DPZooming
from tacit.arms.policy import ArmsPolicy
from tacit.arms.table import reward
from tacit.contextual import FedUCB, NoisySums, PrivateContexts, Published
from tacit.contextual import table as users
from tacit.core.arrays import load, save
from tacit.core.tapes import NOISE, seeded_tape
from tacit.privacy.mechanisms.shuffled_bits import flip_bit

CASES = [case for case in cases() if issubclass(case.kind, ArmsPolicy)]
LOCAL = [
    case
    for case in CASES
    if "epsilon" in case.parameters and case.easy()[1].guarantee(1).trust == "local"
]
USERS = [case for case in cases() if case.kind.setting == "users"]
FIRST_CASES = list({case.kind: case for case in reversed(CASES)}.values())
FIRST = [pytest.param(case, id=case.name) for case in FIRST_CASES]
every_case = pytest.mark.parametrize("case", tiered(CASES))
every_local_case = pytest.mark.parametrize("case", tiered(LOCAL))
every_users_case = pytest.mark.parametrize("case", tiered(USERS))


def served(case, horizon=None):
    """Return an environment where every arm shows its own reward only, as a learner sees it."""
    environment = Bernoulli(means=MEANS)
    return environment, case.build(environment, horizon or case.rounds)


def test_there_are_cases():
    assert len(CASES) >= 7
    assert any(case.easy()[1].guarantee(1).trust == "shuffler" for case in CASES)
    assert len(LOCAL) >= 2
    assert len(USERS) >= 9


def test_for_every_slow_case_a_relative_is_quick():
    kinds = {case.kind.name: case.kind for case in cases()}
    for name, relative in LIKE.items():
        assert kinds[name].setting == kinds[relative].setting
        assert relative not in LIKE


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


def report_of(case, policy, decision, value):
    """Return the report of a reward: by the device's half where the policy is local."""
    if decision.instructions["trust"] == "local":
        return decision.device.report(value)
    return {"v": 1, "id": decision.id, "value": float(value)}


@every_case
def test_a_learner_equals_play(case):
    """A local policy's reports are those that the simulation's own device sent."""
    environment, policy = served(case)
    rounds = case.rounds
    whole = play(policy, environment, rounds, tape=seeded_tape(5, 0, log=rounds))
    table, learner = environment.table(5, 0, rounds), tacit.Learner(policy, seed=5)
    draws = 0
    for t in range(rounds):
        decision = learner.decide()
        assert int(decision.option) == whole.trace.decisions[t]
        value = float(reward(table, t, whole.trace.decisions[t]))
        if learner.trust == "local":
            value = int(whole.tape.log[t])
        elif learner.trust == "shuffler":
            arm, params = whole.trace.decisions[t], policy.params
            block = learner._core.decider.state.blocks[arm]
            keep = params.keeps[min(block, len(params.keeps) - 1)]
            value = flip_bit(whole.tape, t, arm, NOISE, value, keep)
        learner.learn({"v": 1, "id": decision.id, "value": value})
        draws = learner.counts["releases"]
    if learner.trust == "local":
        assert whole.tape.reads[1] == rounds
        assert draws == 0
    elif learner.trust == "shuffler":
        assert draws == whole.state.blocks.sum() > 3
    else:
        assert draws == whole.tape.reads[1]
    assert_same(learner._core.decider.state, whole.state)


@every_case
def test_a_restored_learner_continues_the_same(case, tmp_path):
    environment, policy = served(case)
    table = environment.table(5, 0, case.rounds)
    options: dict[bool, list[str]] = {}
    for restart in (False, True):
        learner, waiting, options[restart] = tacit.Learner(policy, seed=5), [], []
        for t in range(case.rounds):
            if restart and t == case.rounds // 2:
                learner.save(tmp_path / "state")
                learner = tacit.Learner.load(tmp_path / "state", policy)
            waiting.append((t, learner.decide()))
            options[restart].append(waiting[-1][1].option)
            if t % 3 == 2:
                values = [reward(table, t, int(d.option)) for t, d in waiting]
                local = learner.trust != "central"
                learner.learn(
                    [
                        {"v": 1, "id": d.id, "value": int(v > 0.5) if local else float(v)}
                        for (_, d), v in zip(waiting, values, strict=True)
                    ]
                )
                waiting = []
    # A central state that is loaded forgets its open block, which the saved learner may release.
    same = case.rounds // 2 if learner.policy.guarantee(1).trust == "central" else case.rounds
    assert options[True][:same] == options[False][:same]


@every_case
def test_only_eligible_arms_are_chosen(case):
    environment, policy = served(case, 300)
    table, learner, rng = (
        environment.table(5, 0, 300),
        tacit.Learner(policy, seed=5),
        np.random.default_rng(0),
    )
    for t in range(300):
        eligible = np.flatnonzero(rng.random(3) < 0.6).tolist() or [2]
        decision = learner.decide(eligible=eligible)
        assert int(decision.option) in eligible
        assert 0.0 < decision.probability <= 1.0
        learner.learn(report_of(case, policy, decision, reward(table, t, int(decision.option))))
    for bad_set in ([], [3], [-1], ["x"], [0.5]):
        with pytest.raises(ValueError, match="expected"):
            learner.decide(eligible=bad_set)


@pytest.mark.parametrize("explore", [0.0, 0.3])
@every_case
def test_probabilities_are_the_frequencies(case, explore):
    """Each of three options within 5 standard errors, at 3 states: a false alarm in 10^4 runs."""
    _, policy = served(case)
    if explore and not policy.learns_from_any:
        with pytest.raises(ValueError, match="chose itself"):
            tacit.Learner(policy, explore=explore)
        return
    for rewards in (0, 6, 40):
        learner = tacit.Learner(policy, explore=explore, seed=rewards)
        rng = np.random.default_rng(rewards)
        for _ in range(rewards):
            decision = learner.decide()
            reward = float(rng.random() < 0.3 + 0.2 * int(decision.option))
            learner.learn(report_of(case, policy, decision, reward))
        decider, rounds = learner._core.decider, learner.rounds
        kept, stated, counts, n = decider.pack(), {}, Counter(), 400
        for i in range(n):
            tape = seeded_tape(1000 + i, log=64)
            tape.key[4:] = learner._core.tape.key[4:]  # other choices, the same noise
            choice = decider.choose(tape, rounds, decider.asked({"eligible": [0, 2]}))
            chance = choice.probability
            counts[choice.option] += 1
            if choice.option not in stated:
                stated[choice.option] = chance() if callable(chance) else chance
            decider.unpack(kept)
        assert sum(stated.values()) == pytest.approx(1.0, abs=0.02)
        for option, p in stated.items():
            assert abs(counts[option] - n * p) <= 5 * math.sqrt(n * p * (1 - p)) + 1e-9


def test_a_probability_that_is_not_the_frequency_is_noticed(monkeypatch):
    """What a policy says that draws arms and forgets to say with which chance."""
    (case,) = (each for each in CASES if each.name == "ts-n")
    without = case.kind.kernels._replace(posterior=None)
    monkeypatch.setattr(case.kind, "kernels", without)
    with pytest.raises(AssertionError):
        test_probabilities_are_the_frequencies(case, 0.0)


@every_case
def test_it_still_learns_when_rewards_come_late_and_in_batches(case):
    rounds = case.setting.reading(case.kind)
    environment, policy = served(case, rounds)
    table, learner, waiting, regret = (
        environment.table(5, 0, rounds),
        tacit.Learner(policy, seed=5),
        [],
        0.0,
    )
    for t in range(rounds):
        decision = learner.decide()
        arm = int(decision.option)
        regret += max(environment.means) - environment.means[arm]
        waiting.append(report_of(case, policy, decision, reward(table, t, arm)))
        if t % 10 == 9:
            learner.learn(waiting[::-1])
            waiting = []
    assert case.setting.learned(case, {"regret": np.array([regret])})


def share_of_an_added_option(policy, means, before, after):
    """Serve all but the last of `means`, then all; return how often the last is served in the end."""
    learner, rng = tacit.Learner(policy, seed=5), np.random.default_rng(5)
    served = []
    for t in range(before + after):
        if t == before:
            learner.add_option("new")
        decision = learner.decide()
        arm = len(means) - 1 if decision.option == "new" else int(decision.option)
        served.append(arm == len(means) - 1)
        bit = int(rng.random() < means[arm])
        value = float(bit) if learner.trust == "central" else bit
        learner.learn({"v": 1, "id": decision.id, "value": value})
    return float(np.mean(served[-after // 2 :]))


# Finding S17
@pytest.mark.parametrize("case", FIRST)
def test_an_added_option_is_found_if_it_is_best_and_left_if_it_is_worst(case):
    """The seed is fixed, and so is what is reported: no false alarm."""
    after = case.setting.reading(case.kind)
    policy = case.build(Bernoulli(means=MEANS[:2]), 2 * after)
    if case.kind is DPZooming:
        with pytest.raises(ValueError, match="arms are places on a line"):
            tacit.Learner(policy, seed=5).add_option("new")
        return
    assert share_of_an_added_option(policy, (0.1, 0.2, 0.9), after // 2, after) > 0.25
    assert share_of_an_added_option(policy, (0.2, 0.9, 0.1), after // 2, after) < 0.4


def test_an_added_option_that_is_never_tried_is_noticed(monkeypatch):
    """The twin: as DP-IMED of 0.2.0 it takes the new arm for one that it knows."""
    (case,) = (each for each in FIRST_CASES if each.name == "dp-imed-epsilon=1.0")

    def take_for_known(self, state, larger):
        ArmsPolicy.carry_over(self, state, larger)
        larger.blocks.counts[-1] = 10**6

    monkeypatch.setattr(case.kind, "carry_over", take_for_known)
    with pytest.raises(AssertionError):
        test_an_added_option_is_found_if_it_is_best_and_left_if_it_is_worst(case)


@every_case
def test_without_a_seed_noise_is_secure(case):
    _, policy = served(case)
    learners = [tacit.Learner(policy), tacit.Learner(policy)]
    keys = [learner._core.tape.key.tobytes() for learner in learners]
    assert keys[0] != keys[1]
    for learner in learners:
        assert learner.numerics == "secure"
        for _ in range(20):
            decision = learner.decide()
            learner.learn(report_of(case, policy, decision, 1.0))


@every_case
def test_a_stored_learner_is_the_fold_of_its_log(case, tmp_path):
    environment, policy = served(case, 640)
    table = environment.table(5, 0, 640)
    with tacit.Learner(policy, store=tmp_path / "x.db") as learner:
        for first in range(0, 640, 64):
            made = learner.decide_many([{}] * 64)
            learner.learn_many(
                [
                    report_of(
                        case,
                        policy,
                        d,
                        reward(table, first + i, int(d.option)),
                    )
                    for i, d in enumerate(made)
                ]
            )
        learner._experiment.verify()


class Inexact(KLUCBCF):
    """A policy whose noise has no exact sampler."""

    secure = False


def test_a_learner_without_a_seed_refuses_inexact_noise():
    with pytest.raises(
        ValueError, match=r"^Inexact: expected noise that is exact on a secure tape"
    ):
        tacit.Learner(Inexact(n_arms=2, epsilon=1.0))
    assert tacit.Learner(Inexact(n_arms=2, epsilon=1.0), seed=0).numerics == "research"


@every_local_case
def test_every_report_is_charged_and_no_more(case, tmp_path):
    _, policy = served(case)
    epsilon = case.parameters["epsilon"]
    with tacit.Learner(policy, store=tmp_path / "x.db", budget={"lifetime": epsilon}) as learner:
        for person in range(20):
            asked = learner.decide(person=f"person {person}")
            assert asked.device.epsilon <= epsilon
            learner.learn(asked.device.report(1.0))
            assert learner.decide(person=f"person {person}").reason == "budget"
        assert learner.counts["learned"] == 20


def learned(state):
    """Return what a users' state knows: what it has scribbled meanwhile is left out."""
    return state._replace(work=np.empty(0)) if "work" in state._fields else state


def serve(policy, table, state, tape, first, last):
    """Serve rounds first to last - 1 of a users' table one step at a time; return the slots."""
    shown, slots = np.empty(table.n_shown, np.int64), []
    for t in range(first, last):
        user = users.arrive(table, t, shown)
        slots.append(policy.select(state, user, table.features[shown]))
        chosen = shown[slots[-1]]
        value = users.reward(table, t, user, slots[-1], chosen)
        policy.update(state, tape, user, table.features[chosen], value)
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


def joined(policy, table):
    """Return who is joined to whom, as a learner is given it."""
    if not getattr(policy, "joined_by", ""):
        return {}
    return {policy.joined_by: users.matrix_of(getattr(table, policy.joined_by))}


def done_by_devices(policy):
    """Return why a learner refuses: devices would have to keep sums, or to choose; else nothing."""
    if isinstance(policy, FedUCB):
        return "when to release by true contexts" if policy.variant == "published" else ""
    if isinstance(policy, PrivateContexts):
        return "contexts never leave the device" if policy.trust == "local" else ""
    hidden = policy.protection
    sums = isinstance(hidden, NoisySums | Published) and hidden.trust == "local"
    return "a device would have to keep its rewards" if sums else ""


def clips(policy):
    """Return whether a simulation clips rewards as a device does."""
    return isinstance(policy, PrivateContexts | FedUCB) or policy.protection is not None


@every_users_case
def test_a_learner_serves_users(case):
    """One whose server is trusted is the simulation, to the last bit."""
    environment, policy = case.easy()
    table, rounds = environment.table(5, 0, case.rounds), case.rounds
    given = joined(policy, table)
    if why := done_by_devices(policy):
        with pytest.raises(ValueError, match=why):
            tacit.Learner(policy, seed=5, **given)
        return
    learner, shown, slots = tacit.Learner(policy, seed=5, **given), np.empty(4, np.int64), []
    for t in range(rounds):
        user = users.arrive(table, t, shown)
        decision = learner.decide(person=str(user), contexts=table.features[shown])
        slots.append(decision.option)
        value = users.reward(table, t, user, decision.option, shown[decision.option])
        learner.learn(decision.device.report(float(value)))
    assert learner.counts["learned"] == rounds
    if learner.trust == "central" and clips(policy):
        whole = play(policy, environment, rounds, seed=5)
        assert slots == whole.trace.decisions.tolist()
        assert_same(learned(learner._core.decider.state), learned(whole.state))


@every_users_case
def test_a_stored_learner_of_users_is_the_fold_of_its_log(case, tmp_path):
    environment, policy = case.easy()
    table = environment.table(5, 0, case.rounds)
    if not policy.secure or done_by_devices(policy):
        return
    given, shown = joined(policy, table), np.empty(4, np.int64)
    with tacit.Learner(policy, store=tmp_path / "x.db", **given) as learner:
        for t in range(case.rounds):
            user = users.arrive(table, t, shown)
            decision = learner.decide(person=str(user), contexts=table.features[shown])
            value = users.reward(table, t, user, decision.option, shown[decision.option])
            learner.learn(decision.device.report(float(value)))
        learner._experiment.verify()
        before = learner._core.snapshot()
    with tacit.Learner(policy, store=tmp_path / "x.db", **given) as learner:
        assert learner._core.snapshot() == before


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
