"""One decision, one report: drawn once, kept through a crash, paid for when shown."""

from __future__ import annotations

import copy
import json
import math
import pickle
import subprocess
import sys
import threading

import pytest

from device.exactness import CHANNELS, seeded
from tacit.device import Budget, Channel, Reporter, instructions

ALL = CHANNELS | {"identity": instructions.identity()}


def reporter(name="randomized-response", **given):
    return Reporter(ALL[name], **{"id": "d", "max_epsilon": None} | given)


@pytest.mark.parametrize("name", ALL)
def test_the_report_is_drawn_once(name):
    one = reporter(name)
    assert not one.fixed
    first = json.dumps(one.report(1.0))
    assert one.fixed
    for reward in (0.0, 1.0, None, "text", math.nan):
        assert json.dumps(one.report(reward)) == first


def test_a_report_in_hand_does_not_change_the_one_kept():
    one = reporter("unary")
    kept = json.dumps(one.report(1))
    one.report(1)["value"].append(7)
    assert json.dumps(one.report(1)) == kept


@pytest.mark.parametrize("name", ALL)
def test_the_report_survives(name):
    one = reporter(name, report_at=1_800_000_000.5)
    before = Reporter.from_json(one.to_json(), max_epsilon=None)
    assert before.report(0.75) == one.report()
    report = one.replace(0.75)
    after = Reporter.from_json(one.to_json(), max_epsilon=None)
    assert after.fixed
    assert after.report(0.0) == report
    assert (after.id, after.report_at, after.epsilon) == ("d", 1_800_000_000.5, one.epsilon)
    assert after.default == one.default == ALL[name]["default"]
    assert after.to_json() == one.to_json()


@pytest.mark.parametrize("name", CHANNELS)
def test_what_is_kept_has_the_same_fields_with_and_without_a_reward(name):
    # Finding P10
    silent, rewarded = reporter(name), reporter(name)
    kept = [json.loads(silent.to_json()), json.loads(rewarded.to_json())]
    rewarded.replace(1.0)
    kept.append(json.loads(rewarded.to_json()))
    for each in kept:
        assert Channel(ALL[name]).possible(each.pop("value"))
    assert kept[0] == kept[1] == kept[2]


def test_what_0_2_0_kept_without_a_report_is_read():
    kept = json.loads(reporter().to_json()) | {"value": None}
    again = Reporter.from_json(json.dumps(kept), max_epsilon=None)
    assert not again.fixed
    assert again.report(1.0) == again.report(0.0)


def test_a_reward_draws_with_new_random_bytes():
    """With the same ones, a flip would be the same, and two reports would tell the reward.

    Of 64 pairs of equal rewards all are equal with probability at most 0.607^64 < 2e-14 (at epsilon 1).
    """
    changed = 0
    for _ in range(64):
        one = reporter()
        changed += one.report(0.0) != one.replace(0.0)
    assert changed


def test_the_reward_is_not_kept():
    one = reporter("piecewise")
    one.report(0.123456789)
    assert "123456789" not in one.to_json()
    assert "123456789" not in repr(one)


def test_what_was_stored_does_not_raise_the_bound():
    text = reporter().to_json()
    with pytest.raises(ValueError, match=r"expected epsilon <= max_epsilon = 0.5"):
        Reporter.from_json(text, max_epsilon=0.5)


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", '{"v": 1}', "nonsense"])
def test_what_was_not_stored_is_refused(text):
    with pytest.raises(ValueError, match=r"Expecting value|what to_json returned"):
        Reporter.from_json(text, max_epsilon=None)
    with pytest.raises(ValueError, match=r"Expecting value|what to_json returned"):
        Budget.from_json(text, 1.0)


def test_a_stored_value_is_one_that_could_be_reported():
    one = reporter("k-ary")
    one.report(1)
    kept = json.loads(one.to_json()) | {"value": 9}
    with pytest.raises(ValueError, match="expected a value that the instructions allow, got 9"):
        Reporter.from_json(json.dumps(kept), max_epsilon=None)


def test_no_copy_can_draw_another_report():
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="to_json"):
            make(reporter())


def test_threads_get_one_report():
    for _ in range(20):
        one, reports = reporter("discrete-laplace"), []
        start = threading.Barrier(8)

        def ask(reward, one=one, reports=reports, start=start):
            start.wait()
            reports.append(one.report(reward)["value"])

        threads = [threading.Thread(target=ask, args=(i / 7,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(reports)) == 1


def test_instructions_changed_later_change_nothing():
    asked = copy.deepcopy(ALL["k-ary"])
    one = Reporter(asked, id="d", max_epsilon=1.0, random=seeded(3))
    asked["answer"]["weights"][1] = 0
    assert one.report(1) == Reporter(
        ALL["k-ary"], id="d", max_epsilon=1.0, random=seeded(3)
    ).report(1)


def test_two_decisions_have_two_reports():
    values = {reporter("discrete-laplace", id=f"d-{i}").report(0.5)["value"] for i in range(200)}
    assert len(values) > 5


def test_a_budget_refuses_on_its_own():
    budget = Budget(3.0)
    shown = [budget.charge(reporter(id=f"d-{i}")) for i in range(5)]
    assert shown == [True, True, True, False, False]
    assert 2.9999 < budget.spent <= 3.0


def test_a_refused_report_leaves_room_for_a_smaller_one():
    budget = Budget(1.5)
    small = Reporter(instructions.randomized_response(0.25), id="s", max_epsilon=1.0)
    assert budget.charge(reporter(id="a"))
    refused = reporter(id="b")
    assert not budget.charge(refused)
    assert not refused.charged
    assert budget.charge(small)


def test_a_decision_is_charged_once_and_never_refunded():
    budget, one = Budget(1.0), reporter()
    assert budget.charge(one)
    again = Reporter.from_json(one.to_json(), max_epsilon=None)
    assert again.charged
    assert budget.charge(again)
    assert not hasattr(budget, "refund")
    kept = Budget.from_json(budget.to_json(), 1.0)
    assert kept.spent == budget.spent
    assert not kept.charge(reporter(id="other"))


def test_tiny_charges_are_not_lost():
    budget = Budget(2e-9)
    asked = instructions.randomized_response(1e-9)
    shown = [budget.charge(Reporter(asked, id=f"d-{i}", max_epsilon=1)) for i in range(3)]
    assert shown in ([True, True, False], [True, False, False])
    assert 1e-9 <= budget.spent <= 2e-9


def test_the_reward_itself_exhausts_every_budget():
    assert not Budget(8192).charge(reporter("identity"))
    free = Budget(None)
    assert free.charge(reporter("identity"))
    assert free.spent == math.inf
    assert Budget.from_json(free.to_json(), 8192).charge(reporter()) is False


@pytest.mark.parametrize("most", [-1.0, 8193, math.nan, math.inf, "1", True])
def test_a_bad_budget_is_named(most):
    with pytest.raises(
        ValueError, match="Budget: expected max_epsilon between 0 and 8192, or None"
    ):
        Budget(most)


def test_importing_loads_next_to_nothing():
    code = "import sys; before = set(sys.modules); import tacit; base = set(sys.modules); import tacit.device"
    code += "; from tacit.device import instructions; print(*sorted(set(sys.modules) - base))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    new = {name for name in done.stdout.split() if not name.startswith("tacit.")}
    assert new <= {"__future__", "math", "itertools", "_thread"}
