"""One learner for real people: identities, silence, names, chances, saves, threads."""

from __future__ import annotations

import dataclasses
import math
import os
import pickle
import random
import threading
import warnings
from collections import Counter

import pytest

import tacit
from tacit.arms import (
    AAE,
    DPIMED,
    DPKLUCB,
    DPSE,
    EXP3,
    GAP,
    KLUCBCF,
    SWUCB,
    TSN,
    UCB1,
    UCBN,
    AlphaSample,
    SubGaussianUCB,
)
from tacit.contextual import LinUCB, PrivateContexts
from tacit.device import Reporter
from tacit.graphs import Graph
from tacit.serving import Core, RefusedError
from tacit.serving.core.events import Show

LOCAL = KLUCBCF(n_arms=3, epsilon=1.0)
CENTRAL = DPSE(n_arms=2, epsilon=1.0, horizon=100_000)


def told(decision, value):
    return {"v": 1, "id": decision.id, "value": value}


class Clock:
    """A learner's time, in the hands of a test."""

    def __init__(self, learner, now=1_800_000_000.0):
        self.now = now
        learner._experiment.clock = lambda: round(self.now * 1000)


# Identity


def test_a_decision_has_an_identity_and_each_report_counts_once():
    learner = tacit.Learner(UCB1(n_arms=2), options=["a", "b"])
    first, second = learner.decide(), learner.decide()
    assert len(first.id) == 32
    assert first.id != second.id
    assert learner.learn(told(second, 1.0)).status == "learned"
    assert learner.learn(told(second, 1.0)).status == "repeated"
    with pytest.raises(RefusedError, match="expected the report it has") as refused:
        learner.learn(told(second, 0.0))
    assert refused.value.reason == "answered"
    with pytest.raises(RefusedError) as refused:
        learner.learn({"v": 1, "id": "f" * 32, "value": 1.0})
    assert refused.value.reason == "unknown"
    assert learner.counts["learned"] == 1
    assert learner.open_decisions == 1


def test_a_callers_identity_repeats_the_answer_and_refuses_another_request():
    learner = tacit.Learner(UCB1(n_arms=3))
    first = learner.decide(id="request-1", eligible=["0", "2"])
    again = learner.decide(id="request-1", eligible=["0", "2"])
    assert (again.id, again.option, again.probability) == ("request-1", first.option, 1.0)
    assert learner.rounds == 1
    with pytest.raises(RefusedError) as refused:
        learner.decide(id="request-1")
    assert refused.value.reason == "conflict"
    learner.learn(told(first, 1.0))
    assert learner.decide(id="request-1", eligible=["0", "2"]).option == first.option


def test_a_late_click_after_a_crash_is_not_booked_to_somebody_else(tmp_path):
    """Section 4 of the findings: round numbers restarted from the last save."""
    learner = tacit.Learner(UCB1(n_arms=2))
    learner.save(tmp_path / "state")
    clicked = learner.decide()
    restarted = tacit.Learner.load(tmp_path / "state", UCB1(n_arms=2))
    restarted.decide()
    with pytest.raises(RefusedError) as refused:
        restarted.learn(told(clicked, 1.0))
    assert refused.value.reason == "unknown"


@pytest.mark.parametrize(
    "report",
    [
        None,
        3,
        "x",
        {},
        {"v": 1, "id": "a"},
        {"v": 2, "id": "a", "value": 1},
        {"v": 1, "id": 3, "value": 1},
        {"v": 1, "id": "a", "value": 1, "more": 2},
    ],
)
def test_what_is_no_report_is_refused(report):
    learner = tacit.Learner(UCB1(n_arms=2))
    with pytest.raises((ValueError, TypeError)):
        learner.learn(report if not isinstance(report, dict) else [report])


@pytest.mark.parametrize("value", [1.5, -0.1, math.nan, "1", None, True, [1], 10**400])
def test_a_reward_outside_its_range_is_refused(value):
    learner = tacit.Learner(UCB1(n_arms=2))
    decision = learner.decide()
    with pytest.raises(ValueError, match=r"expected a reward in \[0, 1\]"):
        learner.learn(told(decision, value))
    assert learner.learn(told(decision, 1)).status == "learned"


def test_many_at_once():
    learner = tacit.Learner(UCB1(n_arms=2))
    made = learner.decide_many([{}, {"id": "mine"}, {"eligible": [1]}])
    assert made[2].option == "1"
    done = learner.learn([told(made[0], 1.0), told(made[1], 2.0), told(made[0], 1.0)])
    assert [each.status for each in done] == ["learned", "refused", "repeated"]
    assert "[0, 1]" in done[1].reason
    with pytest.raises(ValueError, match="words of decide"):
        learner.decide_many([{"round": 3}])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda learner: learner.decide(report_at=math.nan), "report_at >= 0 seconds"),
        (lambda learner: learner.decide(report_at=math.inf), "report_at >= 0 seconds"),
        (lambda learner: learner.decide(report_at=1e30), "report_at >= 0 seconds"),
        (lambda learner: learner.decide(id="x" * 10**6), "id of 1 to 128"),
        (lambda learner: learner.decide(id="\ud800"), "id of 1 to 128"),
        (lambda learner: learner.learn({"v": 1, "id": "x" * 10**6, "value": 1}), "id of 1 to 128"),
        (lambda learner: learner.cancel("x" * 10**6), "id of 1 to 128"),
        (lambda learner: learner.learn(None), "expected one or a list"),
        (lambda learner: learner.learn("x" * 10**6), "expected one or a list"),
        (lambda learner: learner.learn([{"v": 1, "id": "a" * 10**6}]), "v = 1, id and value"),
        (lambda learner: learner.add_option("x" * 10**6), "option of 1 to 200"),
        (lambda learner: learner.add_option(5), "option of 1 to 200"),
        (lambda learner: learner.add_option(""), "option of 1 to 200"),
        (lambda _: tacit.Learner(LOCAL, default=math.nan), r"default in \[0, 1\]"),
        (lambda _: tacit.Learner(LOCAL, default=2.0), r"default in \[0, 1\]"),
    ],
)
def test_what_a_log_could_not_keep_is_refused_in_one_short_sentence(call, said):
    learner = tacit.Learner(LOCAL)
    before = learner._core.snapshot()[1:]
    with pytest.raises(ValueError, match=said) as refused:
        call(learner)
    assert len(str(refused.value)) < 1200
    assert learner._core.snapshot()[1:] == before
    assert learner.decide(person="\ud800").option in learner.options


def test_too_many_open_decisions_are_refused_not_forgotten():
    learner = tacit.Learner(UCB1(n_arms=2), max_open=2)
    first = learner.decide()
    learner.decide()
    with pytest.raises(RefusedError, match="set report_after") as refused:
        learner.decide()
    assert refused.value.reason == "full"
    learner.cancel(first)
    learner.cancel(first)
    learner.decide()
    with pytest.raises(RefusedError, match="cancelled"):
        learner.learn(told(first, 1.0))


def test_memory_does_not_grow_with_closed_decisions():
    learner = tacit.Learner(UCB1(n_arms=2))
    learner._core.decisions.remember = 100
    for _ in range(1000):
        learner.learn(told(learner.decide(), 1.0))
    core = learner._core
    assert len(core.decisions.closed) + len(core.decisions.closed_before) <= 200
    assert not core.open
    assert not core.decisions.due


def test_no_call_takes_a_tape_or_a_round():
    """P8: the caller cannot repeat a round, because no call has one."""
    import inspect

    for name, method in inspect.getmembers(tacit.Learner, inspect.isfunction):
        words = set(inspect.signature(method).parameters)
        assert not words & {"tape", "t", "round", "rounds"}, name


# The device's half


def test_a_local_policy_learns_from_reports_alone():
    """P11: in 0.1 the server took the true reward."""
    learner = tacit.Learner(LOCAL)
    decision = learner.decide()
    assert decision.instructions["trust"] == "local"
    for reward in (0.7, 1.0, 0.0, True):
        with pytest.raises(ValueError, match="expected a value of 0 or 1"):
            learner.learn(told(decision, reward))
    report = decision.device.report(0.7)
    assert report == decision.device.report(0.1)
    assert learner.learn(report).status == "learned"
    device = Reporter(learner.decide().instructions, id="x", max_epsilon=1.0)
    assert device.epsilon <= 1.0


def test_reports_of_a_local_policy_are_as_random_as_its_epsilon_says():
    learner = tacit.Learner(LOCAL)
    n = 4000
    ones = sum(learner.decide().device.report(1.0)["value"] for _ in range(n))
    keep = math.e / (1 + math.e)
    assert abs(ones - n * keep) < 5 * math.sqrt(n * keep * (1 - keep))


def test_arms_with_their_own_corruption_ask_their_own_question():
    from tacit.arms import Corruption

    policy = KLUCBCF(n_arms=2, corruption=Corruption(values=((0.2, 0.9), (0.9, 0.2))))
    learner = tacit.Learner(policy)
    rows = [learner.decide(eligible=[arm]).instructions["answer"]["rows"] for arm in (0, 1)]
    shares = [[round(row[1] / sum(row), 9) for row in each] for each in rows]
    assert shares == [[0.2, 0.9], [0.9, 0.2]]


def test_side_observations_only_where_the_graph_shows_them():
    """P1 and P2: only closed neighbours, own arm once, and never for policies that do not say so."""
    path = Graph.from_edges([(0, 1), (1, 2)], n_nodes=3)
    learner = tacit.Learner(
        GAP(n_arms=3, epsilon=1.0, horizon=1000, graph=path), options=["a", "b", "c"]
    )
    end = learner.decide(eligible=["a"])
    for value in (
        {"a": 1.0, "c": 1.0},
        {"b": 1.0},
        {"a": 2.0},
        {"a": 1.0, "x": 0.0},
        {"a": 1.0, 0: 0.0},
    ):
        with pytest.raises(ValueError, match="expected"):
            learner.learn(told(end, value))
    assert learner.learn(told(end, {"a": 1.0, "b": 0.0})).status == "learned"
    sums = learner._core.decider.state.sums
    assert sums.tolist() == [1.0, 0.0, 0.0]
    for policy in (CENTRAL, UCB1(n_arms=3), LOCAL, SWUCB(n_arms=3, horizon=100, epsilon=1.0)):
        other = tacit.Learner(policy)
        decision = other.decide(eligible=["0"])
        with pytest.raises(ValueError, match="expected"):
            other.learn(told(decision, {"0": 1, "1": 1}))


@pytest.mark.parametrize("kind", [DPIMED, DPKLUCB])
@pytest.mark.parametrize("store", [False, True])
def test_silence_fills_the_blocks_that_an_answer_fills(kind, store, tmp_path):
    """A block that grows with the answers only would tell who answered, as audits of 0.2.0 show."""
    star = Graph.from_edges([(0, leaf) for leaf in range(1, 4)], n_nodes=4)
    held = []
    for answer in (None, {"0": 1.0}, {"0": 1.0, "2": 0.5}, {str(arm): 1.0 for arm in range(4)}):
        where = {"store": tmp_path / f"{len(held)}.db"} if store else {}
        policy = kind(n_arms=4, epsilon=1.0, unit="round", graph=star)
        learner = tacit.Learner(policy, report_after=10.0, grace=0.0, default=0.25, **where)
        clock = Clock(learner)
        decision = learner.decide(eligible=["0"])
        if answer is not None:
            receipt = learner.learn(told(decision, answer))
            assert receipt.status == "held"
            assert bool(receipt.reason) == (len(answer) < 4)
        clock.now += 11.0
        learner.tick()
        if store:
            learner.close()
            learner = tacit.Learner(policy, report_after=10.0, grace=0.0, default=0.25, **where)
        blocks = learner._core.decider.state.blocks
        held.append((blocks.open_counts.tolist(), blocks.counts.tolist()))
    assert held[0][0] == [1, 1, 1, 1] or held[0][1] != [0, 0, 0, 0]
    assert all(each == held[0] for each in held)


def test_no_noise_position_is_read_twice_however_reports_arrive():
    """P1: in 0.1 all side observations of a round were corrupted with the same word."""
    path = Graph.from_edges([(0, 1), (1, 2)], n_nodes=3)
    policy = GAP(n_arms=3, epsilon=8.0, horizon=10, failure_prob=0.9, graph=path)
    learner = tacit.Learner(policy)
    rng = random.Random(1)
    core = learner._core
    core.tape = tape = tacit.core.tapes.secure_tape(log=64, positions=64)
    core._reads = memoryview(tape.reads)
    read, waiting = [], []
    for _ in range(6000):
        waiting.append(learner.decide())
        read += [tuple(row) for row in tape.positions[: tape.reads[1]].tolist()]
        if len(waiting) > 5:
            decision = waiting.pop(rng.randrange(len(waiting)))
            neighbours = {"0": ("0", "1"), "1": ("0", "1", "2"), "2": ("1", "2")}[decision.option]
            learner.learn(told(decision, {name: rng.random() for name in neighbours}))
    assert len(read) > 3
    assert len(set(read)) == len(read)
    assert learner.counts["releases"] == len(read)


def test_what_is_due_when_a_copy_is_restored_is_not_released_again():
    """A held report that the lost log may have released is lost; all reports are released at once here."""
    policy = PrivateContexts(n_users=1, dimension=1, epsilon=1.0)
    for restored, releases in ((False, True), (True, False)):
        learner = tacit.Learner(policy, report_after=10.0, grace=0.0, seed=1)
        clock = Clock(learner)
        decision = learner.decide(person="0", contexts=[[0.5]])
        assert learner.learn(told(decision, 0.9)).status == "held"
        clock.now += 11.0
        if restored:
            learner._experiment.run(Core.begin_epoch, 0, 0)
        learner.decide(person="0", contexts=[[0.5]])
        assert bool(learner.counts["releases"]) == releases


# Silence and time


def test_silence_closes_a_local_decision_and_a_late_report_is_counted():
    learner = tacit.Learner(LOCAL, report_after=10.0, grace=5.0)
    clock = Clock(learner)
    first, second = learner.decide(), learner.decide()
    assert first.report_at == clock.now + 10.0
    assert first.device.report_at == first.report_at
    clock.now += 14.0
    assert learner.learn(first.device.report(1.0)).status == "learned"
    clock.now += 2.0
    assert learner.tick() == 1
    assert learner.learn(second.device.report(1.0)).status == "late"
    assert learner.learn(first.device.report(1.0)).status == "repeated"
    assert learner.counts["silent"] == learner.counts["late"] == 1
    assert learner.counts["learned"] == 1


def states(policy, arrivals):
    """Play the same decisions with reports in another order or missing; return the states seen."""
    learner = tacit.Learner(policy, report_after=10.0, grace=0.0, seed=1)
    clock, seen = Clock(learner), []
    for batch in arrivals:
        made = [learner.decide() for _ in range(len(batch))]
        for place, reward in batch:
            if reward is not None:
                learner.learn(told(made[place], reward))
        seen.append(([each.option for each in made], learner._core.decider.pack()))
        clock.now += 20.0
    return seen


def test_arrivals_do_not_show_in_a_central_policys_decisions():
    """P12: silence is the default reward, learned in the order of decisions when their time is up."""
    policy = DPSE(n_arms=2, epsilon=20.0, horizon=10, failure_prob=0.9)
    rng = random.Random(3)
    rewards = [[rng.choice((0.0, 1.0)) for _ in range(30)] for _ in range(40)]
    early = [list(enumerate(batch)) for batch in rewards]
    late = [list(enumerate(batch))[::-1] for batch in rewards]
    silent = [[(i, r or None) for i, r in enumerate(batch)] for batch in rewards]
    first = states(policy, early)
    assert states(policy, late) == first
    assert states(policy, silent) == first
    changed = [[(i, 1.0 - r) for i, r in batch] for batch in early]
    assert states(policy, changed) != first


def test_a_central_learner_without_report_after_says_that_arrivals_show():
    assert "arrives" in tacit.Learner(CENTRAL).guarantee().sentence()
    waiting = tacit.Learner(CENTRAL, report_after=60.0).guarantee().sentence()
    assert "arrives, which" not in waiting
    assert "whether and when anything is sent" in tacit.Learner(LOCAL).guarantee().sentence()


def test_only_what_was_shown_is_charged_awaited_and_learned():
    learner = tacit.Learner(
        LOCAL, report_after=10.0, grace=0.0, budget={"day": 2.0, "lifetime": 3.0}
    )
    clock = Clock(learner)
    hidden = learner.decide(person="ada", shown=False)
    with pytest.raises(RefusedError, match="shown before a report"):
        learner.learn(told(hidden, 1))
    shown = [learner.decide(person="ada") for _ in range(3)]
    assert [each.reason for each in shown] == ["", "", "budget"]
    assert shown[2].instructions is None
    with pytest.raises(ValueError, match="device"):
        _ = shown[2].device
    with pytest.raises(RefusedError, match="budget"):
        learner.learn(told(shown[2], 1))
    learner.show(hidden)
    assert hidden.reason == "budget"
    assert learner.decide(person="bob").reason == ""
    clock.now += 86_400.0
    assert [learner.decide(person="ada").reason for _ in range(2)] == ["", "budget"]
    with pytest.raises(RefusedError, match="expected a person"):
        learner.decide()
    learner.learn(shown[0].device.report(1.0))
    assert learner.counts["lapsed"] == 0


@pytest.mark.parametrize("kept", [False, True])
def test_the_time_of_a_report_counts_from_when_its_decision_was_shown(kept, tmp_path):
    # Finding U1
    given = {"store": tmp_path / "x.db"} if kept else {}
    learner = tacit.Learner(LOCAL, report_after=10.0, grace=5.0, **given)
    clock = Clock(learner)
    late, named, silent = (
        learner.decide(shown=False, **more).id for more in ({}, {"report_at": clock.now + 12}, {})
    )
    clock.now += 9.0
    for id in (late, named, silent):
        learner.show(id)
    assert learner._core.open[late].report_at == round(1000 * (clock.now + 10))
    # A time that the caller named stays.
    assert learner._core.open[named].report_at == round(1000 * (clock.now + 3))
    if kept:
        learner.close()
        learner = tacit.Learner(LOCAL, report_after=10.0, grace=5.0, **given)
        learner._experiment.clock = lambda: round(clock.now * 1000)
    clock.now += 14.0
    assert learner.learn({"v": 1, "id": late, "value": 1}).status == "learned"
    assert learner.learn({"v": 1, "id": named, "value": 1}).status == "late"
    assert learner.counts["silent"] == 1
    clock.now += 1.0
    assert learner.learn({"v": 1, "id": silent, "value": 1}).status == "late"
    learner.close()


def test_a_log_in_which_it_counted_from_the_decision_is_replayed_as_it_was(tmp_path):
    # Finding U1
    learner = tacit.Learner(LOCAL, report_after=10.0, store=tmp_path / "x.db")
    clock = Clock(learner)
    id = learner.decide(shown=False).id
    clock.now += 9.0
    core = learner._core
    learner._experiment.run(lambda core, _: core._apply(Show(), core.open[id]))  # as 0.2.0
    report_at = core.open[id].report_at
    learner.close()
    learner = tacit.Learner(LOCAL, report_after=10.0, store=tmp_path / "x.db")
    assert learner._core.open[id].report_at == report_at == round(1000 * (clock.now + 1))
    learner.close()


def test_what_is_never_shown_lapses():
    learner = tacit.Learner(CENTRAL, report_after=10.0, grace=0.0)
    clock = Clock(learner)
    learner.decide(shown=False)
    clock.now += 10.0
    learner.tick()
    assert learner.counts["lapsed"] == 1
    assert learner.counts["learned"] == learner.counts["silent"] == 0


def test_a_budget_needs_a_guarantee():
    with pytest.raises(ValueError, match="only where rewards are protected"):
        tacit.Learner(UCB1(n_arms=2), budget={"day": 1.0})
    with pytest.raises(ValueError, match="one of day, month, year, lifetime"):
        tacit.Learner(LOCAL, budget={"week": 1.0})


def test_a_budget_of_epsilon_refuses_a_guarantee_with_delta(monkeypatch):
    whole = KLUCBCF.guarantee

    def approximate(self, horizon):
        return dataclasses.replace(whole(self, horizon), delta=1e-6)

    monkeypatch.setattr(KLUCBCF, "guarantee", approximate)
    with pytest.raises(ValueError, match="delta is 0"):
        tacit.Learner(KLUCBCF(n_arms=2, epsilon=1.0), budget={"day": 5.0})
    tacit.Learner(KLUCBCF(n_arms=2, epsilon=1.0))


def test_a_clock_that_is_set_back_opens_nothing_again():
    learner = tacit.Learner(LOCAL, report_after=10.0, grace=0.0)
    clock = Clock(learner)
    decision = learner.decide()
    clock.now += 11.0
    learner.tick()
    clock.now -= 11.0
    assert learner.learn(decision.device.report(1.0)).status == "late"


def test_spending_of_windows_that_are_over_is_forgotten(monkeypatch):
    monkeypatch.setattr("tacit.serving.core.budget._CROWDED", 10)
    learner = tacit.Learner(LOCAL, budget={"day": 1.0, "lifetime": 5.0})
    clock = Clock(learner)
    for _ in range(20):
        for person in "ab":
            learner.decide(person=person)
        clock.now += 86_400.0
    assert len(learner._core.budget.pending) <= 20
    assert learner.decide(person="a").reason == "budget"


def test_a_failure_half_way_ends_a_learner_in_memory_and_rebuilds_a_stored_one(
    tmp_path, monkeypatch
):
    from tacit.arms.decider import ArmsDecider
    from tacit.serving.core import BrokenError

    whole = ArmsDecider.learn

    def failing(self, tape, t, option, record, value):
        whole(self, tape, t, option, record, value)
        raise ZeroDivisionError("after the state was changed")

    for store in (None, tmp_path / "x.db"):
        with tacit.Learner(UCB1(n_arms=2), store=store) as learner:
            first, second = learner.decide(), learner.decide()
            learner.learn(told(first, 1.0))
            monkeypatch.setattr(ArmsDecider, "learn", failing)
            with pytest.raises(BrokenError):
                learner.learn(told(second, 1.0))
            monkeypatch.setattr(ArmsDecider, "learn", whole)
            if store is None:
                with pytest.raises(BrokenError, match="load the last save"):
                    learner.decide()
            else:
                assert learner.learn(told(second, 1.0)).status == "learned"
                assert learner._core.decider.state.counts.sum() == 2


# Chances


def test_an_exploration_floor_gives_every_option_a_chance():
    learner = tacit.Learner(UCB1(n_arms=4), explore=0.2, seed=1)
    for _ in range(50):
        learner.learn(told(decision := learner.decide(), float(decision.option == "1")))
    seen = {}
    for _ in range(400):
        decision = learner.decide()
        seen[decision.option] = decision.probability
        learner.cancel(decision)
    assert set(seen) == {"0", "1", "2", "3"}
    assert sorted(round(p, 9) for p in seen.values()) == [0.05, 0.05, 0.05, 0.85]


@pytest.mark.parametrize(
    "policy",
    [
        CENTRAL,
        GAP(n_arms=2, epsilon=1.0, horizon=10),
        AAE(n_arms=2, horizon=10),
        EXP3(n_arms=2, horizon=9),
    ],
    ids=lambda policy: policy.name,
)
def test_a_policy_that_learns_from_its_own_choices_only_refuses_to_explore(policy):
    with pytest.raises(ValueError, match="chose itself"):
        tacit.Learner(policy, explore=0.1)


def test_estimates_hold_at_all_times_and_include_the_noise():
    """At 0.05 for each of two options: that more than 8 of 40 fail has probability below 10^-3."""
    means, missed, biased = (0.3, 0.8), 0, 0
    for seed in range(20):
        learner = tacit.Learner(KLUCBCF(n_arms=2, epsilon=1.0), seed=seed)
        rng, failed, naive = random.Random(seed), [False, False], [False, False]
        for _ in range(600):
            decision = learner.decide()
            learner.learn(decision.device.report(float(rng.random() < means[int(decision.option)])))
            tallies = learner._core.tallies
            for arm, found in enumerate(learner._core.decider.estimates(tallies)):
                if found is not None:
                    failed[arm] |= not found.low <= means[arm] <= found.high
                    raw = tallies[arm][4] / tallies[arm][2]
                    half = (found.high - found.low) / 2
                    naive[arm] |= abs(raw - means[arm]) > half and half < 0.2
        missed, biased = missed + sum(failed), biased + sum(naive)
    assert missed <= 8
    assert biased > 8


def test_estimates_of_a_central_policy_are_what_it_released():
    learner = tacit.Learner(DPSE(n_arms=2, epsilon=20.0, horizon=10, failure_prob=0.01), seed=1)
    estimates = lambda: learner._core.decider.estimates(learner._core.tallies)  # noqa: E731
    assert estimates() == [None, None]
    rng, means = random.Random(2), (0.5, 0.45)
    while learner.counts["releases"] == 0:
        decision = learner.decide()
        learner.learn(told(decision, float(rng.random() < means[int(decision.option)])))
    for found, mean in zip(estimates(), means, strict=True):
        assert found.low <= mean <= found.high
        assert 0 < found.high - found.low <= 0.25
    learner.add_option("new")
    assert estimates()[2] is None
    assert tacit.Learner(UCB1(n_arms=2))._core.decider.estimates([]) is None


def test_tallies_are_kept_for_each_option():
    learner = tacit.Learner(LOCAL, report_after=10.0, grace=0.0)
    clock = Clock(learner)
    for option, value in ((0, 1), (0, 0), (1, 1)):
        learner.learn(told(learner.decide(eligible=[option]), value))
    learner.decide(eligible=[2])
    learner.decide(eligible=[2], shown=False)
    clock.now += 60.0
    learner.tick()
    assert learner._core.tallies == [[2, 2, 2, 0, 1], [1, 1, 1, 0, 1], [2, 1, 0, 1, 0]]


# Options


def test_options_come_and_go():
    learner = tacit.Learner(UCB1(n_arms=2), options=["a", "b"])
    for _ in range(20):
        learner.learn(told(decision := learner.decide(), float(decision.option == "a")))
    learner.add_option("c")
    with pytest.raises(RefusedError, match="new name"):
        learner.add_option("a")
    made = learner.decide()
    assert made.option == "c"
    assert learner._core.decider.state.counts.tolist()[2] == 0
    assert sum(learner._core.decider.state.counts.tolist()) == 20
    learner.retire("a")
    assert learner.options == ["b", "c"]
    assert {learner.decide().option for _ in range(10)} <= {"b", "c"}
    with pytest.raises(ValueError, match="not retired"):
        learner.decide(eligible=["a"])
    assert learner.learn(told(made, 1.0)).status == "learned"
    learner.retire("b")
    with pytest.raises(ValueError, match="left"):
        learner.retire("c")


@pytest.mark.parametrize(
    "policy",
    [
        DPSE(n_arms=3, epsilon=20.0, horizon=10, failure_prob=0.9),
        AAE(n_arms=3, horizon=10),
        AlphaSample(n_arms=3, horizon=10, failure_prob=0.9),
        KLUCBCF(n_arms=3, epsilon=2.0),
    ],
    ids=lambda policy: policy.name,
)
def test_a_policy_goes_on_after_options_changed(policy):
    learner = tacit.Learner(policy, options=["bad", "good", "worse"], seed=3)
    rng = random.Random(5)

    def play(n):
        chosen = Counter()
        for _ in range(n):
            decision = learner.decide()
            chosen[decision.option] += 1
            mean = {"bad": 0.1, "good": 0.5, "worse": 0.0, "best": 0.95}[decision.option]
            learner.learn(decision.device.report(float(rng.random() < mean)))
        return chosen

    play(500)
    learner.retire("worse")
    learner.add_option("best")
    play(6000)
    assert play(300).most_common(1)[0][0] == "best"


def test_an_option_cannot_be_added_to_a_graph():
    path = Graph.from_edges([(0, 1)], n_nodes=2)
    learner = tacit.Learner(GAP(n_arms=2, epsilon=1.0, horizon=9, graph=path))
    with pytest.raises(ValueError, match="graph"):
        learner.add_option("c")
    learner.decide()


def test_modes():
    learner = tacit.Learner(UCB1(n_arms=2), options=["a", "b"], baseline="b")
    learner.learn(told(learner.decide(eligible=["a"]), 1.0))
    learner.set_mode("off")
    assert (learner.decide().option, learner.decide().reason) == ("b", "off")
    learner.set_mode("frozen")
    before = learner._core.decider.pack()
    assert learner.decide().instructions is None
    assert learner._core.decider.pack() == before
    learner.set_mode("shadow")
    watched = learner.decide()
    assert (watched.option, watched._open.would) == ("b", 1)
    assert learner.learn(told(watched, 0.0)).status == "learned"
    assert learner.decide(eligible=["a"]).option == "a"
    for policy in (CENTRAL, EXP3(n_arms=2, horizon=9)):
        with pytest.raises(ValueError, match="mode"):
            tacit.Learner(policy).set_mode("shadow")
    with pytest.raises(ValueError, match="one of learn"):
        learner.set_mode("sleep")


@pytest.mark.parametrize("mode", ["off", "shadow"])
def test_a_baseline_that_is_not_offered_is_not_served(mode, tmp_path):
    options, store = ["a", "b", "c"], tmp_path / "learner.db"
    with tacit.Learner(UCB1(n_arms=3), options=options, baseline="a", store=store) as learner:
        learner.set_mode(mode)
        assert learner.decide().option == "a"
        assert learner.decide(eligible=["c", "b"]).option == "b"
        learner.retire("a")
        assert learner.decide().option == "b"
    with tacit.Learner(UCB1(n_arms=3), options=options, baseline="a", store=store) as again:
        assert again.decide(eligible=["c"]).option == "c"


def test_of_contexts_too_the_first_that_is_eligible_is_served():
    learner = tacit.Learner(LinUCB(n_users=1, dimension=2), people=["p"], mode="off")
    contexts = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    assert learner.decide(person="p", contexts=contexts, eligible=[1, 2]).option == 1


def test_past_the_horizon_it_says_so_once():
    learner = tacit.Learner(DPSE(n_arms=2, epsilon=1.0, horizon=3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            learner.decide()
    with pytest.warns(RuntimeWarning, match="made for 3 rounds"):
        learner.decide()
    learner.decide()


def test_a_report_that_is_too_old_for_exp3_is_not_learned():
    learner = tacit.Learner(EXP3(n_arms=2, horizon=1000, max_delay=4))
    old = learner.decide()
    for _ in range(4):
        learner.decide()
    before = learner._core.decider.pack()
    learner.learn(told(old, 1.0))
    assert learner._core.decider.pack() == before
    assert learner.counts["late"] == 1


# Save and load


@pytest.mark.parametrize(
    "policy",
    [
        UCB1(n_arms=3),
        LOCAL,
        SWUCB(n_arms=3, horizon=100),
        TSN(n_arms=3),
        EXP3(n_arms=3, horizon=99),
    ],
    ids=lambda policy: policy.name,
)
@pytest.mark.parametrize("seed", [4, None])
def test_a_saved_learner_continues_identically(policy, seed, tmp_path):
    learner = tacit.Learner(policy, seed=seed)
    waiting = [learner.decide() for _ in range(20)]
    value = 1 if learner.trust == "local" else 1.0
    for decision in waiting[5:]:
        learner.learn(told(decision, value))
    learner.save(tmp_path / "state")
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
    again = tacit.Learner.load(tmp_path / "state", policy)
    for each in (learner, again):
        for decision in waiting[:5]:
            assert each.learn(told(decision, value)).status == "learned"
    one, two = ([each.decide().option for _ in range(30)] for each in (learner, again))
    assert one == two
    assert learner._core.decider.pack() == again._core.decider.pack()


def test_a_central_state_is_loaded_once_unless_asked_for(tmp_path):
    """P9: in 0.1 a phase end could be replayed until its noise averaged out."""
    tacit.Learner(CENTRAL).save(tmp_path / "state")
    first = tacit.Learner.load(tmp_path / "state", CENTRAL)
    assert "loaded" not in first.guarantee().sentence()
    with pytest.raises(ValueError, match="again=True"):
        tacit.Learner.load(tmp_path / "state", CENTRAL)
    third = tacit.Learner.load(tmp_path / "state", CENTRAL, again=True)
    assert "loaded 2 times" in third.guarantee().sentence()
    for _ in range(2):
        tacit.Learner(LOCAL).save(tmp_path / "local")
        tacit.Learner.load(tmp_path / "local", LOCAL)
        tacit.Learner.load(tmp_path / "local", LOCAL)


def test_a_policy_is_compared_by_value(tmp_path):
    """R10: in 0.1 epsilon=1 was refused for a saved 1.0."""
    tacit.Learner(KLUCBCF(n_arms=2, epsilon=1.0)).save(tmp_path / "state")
    tacit.Learner.load(tmp_path / "state", KLUCBCF(n_arms=2, epsilon=1))
    for other in (KLUCBCF(n_arms=2, epsilon=2.0), UCB1(n_arms=2), KLUCBCF(n_arms=3, epsilon=1.0)):
        with pytest.raises(ValueError, match="expected policy"):
            tacit.Learner.load(tmp_path / "state", other)
    (tmp_path / "junk").write_bytes(b"junk")
    with pytest.raises(ValueError, match="not a saved learner"):
        tacit.Learner.load(tmp_path / "junk", LOCAL)


def test_nothing_shows_the_key_of_the_noise(tmp_path):
    """P10."""
    learner = tacit.Learner(CENTRAL)
    learner.decide()
    learner.save(tmp_path / "state")
    noise = learner._core.tape.key[4:]
    shown = repr(learner) + repr(learner._core.tape) + repr(learner._experiment.core)
    assert not any(str(word) in shown for word in noise.tolist())
    assert noise.tobytes() not in (tmp_path / "state").read_bytes()
    with pytest.raises(TypeError, match="save and load"):
        pickle.dumps(learner)


# Threads


def test_threads_share_a_learner():
    learner = tacit.Learner(UCB1(n_arms=3))
    ids, errors = [], []

    def work():
        try:
            for _ in range(300):
                decision = learner.decide()
                ids.append(decision.id)
                learner.learn(told(decision, 1.0))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(set(ids)) == len(ids) == 1800
    assert learner._core.decider.state.counts.sum() == 1800


def test_a_forked_learner_is_refused():
    """P4: in 0.1 a forked process repeated the secure key."""
    learner = tacit.Learner(CENTRAL)
    learner.decide()
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        try:
            learner.decide()
            os.write(writer, b"decided")
        except RuntimeError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert b"before a fork" in os.read(reader, 1000)
    learner.decide()


def test_a_default_lies_in_the_policys_own_range():
    policy = SubGaussianUCB(n_arms=2, sigma=1.0, reward_range=(-3, 4), epsilon=1.0)
    learner = tacit.Learner(policy, default=-2.0)
    assert learner.decide().instructions["default"] == -2.0
    with pytest.raises(ValueError, match=r"default in \[-3, 4\]"):
        tacit.Learner(policy, default=5.0)


def test_a_policy_that_cannot_serve_is_refused():
    with pytest.raises(ValueError, match="can serve"):
        tacit.Learner(object(), seed=1)
    with pytest.raises(ValueError, match="2 different names"):
        tacit.Learner(UCB1(n_arms=2), options=["a"])
    with pytest.raises(ValueError, match="seed"):
        tacit.Learner(UCBN(n_arms=2), seed=1, store="x.db")


@pytest.mark.parametrize("epsilon", [1e-9, 30.0])
def test_both_ends_of_the_range_of_epsilon_are_served(epsilon):
    learner = tacit.Learner(KLUCBCF(n_arms=1, epsilon=epsilon))
    decision = learner.decide()
    assert decision.device.epsilon <= epsilon * (1 + 1e-12)
    assert learner.learn(decision.device.report(1.0)).status == "learned"
