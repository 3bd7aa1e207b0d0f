"""What may change while people are served: all of it at once or nothing, and never what was spent."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from service.conftest import CENTRAL, LOCAL, Service
from tacit.serving import Core, Event
from tacit.serving.storage import StoreError

VISITS = {"epsilon": 4.0, "delta": 1e-6, "dimension": 2}
ITEMS = {"tea": [0.125, 0.0], "coffee": [0.0, 0.625]}


def patch(service, change, name="news"):
    return service.call("PATCH", f"/v1/experiments/{name}", change)


@pytest.mark.parametrize(
    "bad",
    [
        {"retire_options": ["no such"]},
        {"add_options": ["new", "red"]},
        {"add_people": {"ada": []}},
        {"edges": [["ada", "bob"]]},
        {"budget": {"lifetime": 0.5}},
    ],
    ids="-".join,
)
def test_a_change_happens_whole_or_not_at_all(bad, service):
    # Finding S6
    service.create(LOCAL, budget={"lifetime": 5.0})
    hosted = service.opened.manager.experiments["news"]
    seq, before = hosted.seq, hosted.core.snapshot()
    good = {
        "budget": {"day": 9.0},
        "add_options": ["fresh"],
        "retire_options": ["red"],
        "mode": "frozen",
    }
    answer = patch(service, {**good, **bad})
    assert answer.status_code in (409, 422), answer.text
    assert hosted.seq == seq
    assert hosted.core.snapshot() == before
    hosted.verify()
    assert patch(service, good).status_code == 200
    # One command in the log, and one step of the version.
    assert hosted.seq == seq + 1
    described = service.call("GET", "/v1/experiments/news").json()
    assert (described["version"], described["mode"]) == (2, "frozen")
    assert described["budget"] == {"day": 9.0}
    assert [(each["name"], each["retired"]) for each in described["options"]] == [
        ("red", True),
        ("green", False),
        ("blue", False),
        ("fresh", False),
    ]
    hosted.verify()
    lines = service.call("GET", "/v1/experiments/news/released").text.splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["option", "retire", "mode"]


def test_people_and_edges_change_together(service):
    # Finding S6
    policy = {"name": "goblin", "dimension": 2, "epsilon": 1.0}
    service.create(
        {"name": "shop", "policy": policy, "people": ["ada", "bob"], "edges": [["ada", "bob"]]}
    )
    hosted = service.opened.manager.experiments["shop"]
    whole = {"add_people": {"cy": ["ada"], "di": ["cy"]}, "edges": [["ada", "di"]]}
    bad = {**whole, "edges": [["ada", "nobody"]]}
    assert patch(service, bad, "shop").status_code == 422
    assert (len(hosted.core.people), hosted.seq) == (2, 0)
    assert patch(service, whole, "shop").status_code == 200
    assert (len(hosted.core.people), hosted.seq) == (4, 1)
    assert hosted.core.decider.joined == [[0, 3, 1.0], [3, 0, 1.0]]
    hosted.verify()
    hidden = {"add_people": {"e\u202ev": []}}
    assert patch(service, hidden, "shop").status_code == 422


def test_a_log_of_version_0_2_is_replayed(service):
    # Finding S6: there every part of a change was an event of its own.
    service.create(LOCAL)
    hosted = service.opened.manager.experiments["news"]
    old = [
        ("allowances", {"each": {"lifetime": 5.0}}),
        ("option", {"name": "fresh"}),
        ("retire", {"option": 0}),
        ("mode", {"mode": "frozen"}),
    ]
    events = [Event(kind, 1_700_000_000_000, None, body) for kind, body in old]
    service.opened.manager.store.append("news", 0, events)
    hosted.reload()
    described = service.call("GET", "/v1/experiments/news").json()
    assert described["budget"] == {"lifetime": 5.0}
    assert described["mode"] == "frozen"
    assert described["options"][0]["retired"]
    assert described["options"][3]["name"] == "fresh"
    assert described["version"] == 5
    kinds = [
        json.loads(line)["kind"]
        for line in service.call("GET", "/v1/experiments/news/released").text.splitlines()
    ]
    assert kinds == ["option", "retire", "mode"]


def test_a_budget_is_held_to_the_same_rules_at_both_ends(service):
    # Finding P11
    with_delta = {"name": "fed", "policy": {"name": "fed-ucb", **VISITS}, "people": ["ada", "bob"]}
    plain = {**LOCAL, "name": "plain", "policy": {"name": "ucb1"}}
    for wanted, budget in (
        (with_delta, {"lifetime": 9.0}),
        (plain, {"lifetime": 9.0}),
        (LOCAL, {"lifetime": 0.5}),
    ):
        refused = service.call("POST", "/v1/experiments", {**wanted, "budget": budget})
        assert refused.status_code == 422
        service.create(wanted)
        changed = patch(service, {"budget": budget}, wanted["name"])
        assert changed.status_code == 422
        assert changed.json()["detail"] == refused.json()["detail"]
    refused = service.call("POST", "/v1/experiments", {**CENTRAL, "mode": "shadow"})
    service.create(CENTRAL)
    changed = patch(service, {"mode": "shadow"}, "trusted")
    assert refused.status_code == changed.status_code == 422
    assert changed.json()["detail"] == refused.json()["detail"]


def test_a_cap_patched_in_later_counts_what_was_spent(service):
    # Finding P4
    service.create(LOCAL)
    for _ in range(3):
        service.report(service.decide(person="ada", shown=True), 1.0)
    assert patch(service, {"budget": {"lifetime": 3.0}}).status_code == 200
    assert service.decide(person="ada", shown=True)["reason"] == "budget"
    assert service.decide(person="bob", shown=True)["reason"] == "learn"


def test_a_report_of_several_rewards_is_charged_for_all(service):
    # Finding P5
    ring = {"name": "gap", "epsilon": 1.0, "horizon": 1000, "graph": {"name": "ring", "n_nodes": 4}}
    made = {**CENTRAL, "policy": ring, "options": ["a", "b", "c", "d"]}
    low = {**made, "budget": {"lifetime": 2.0}}
    assert service.call("POST", "/v1/experiments", low).status_code == 422
    service.create(made)
    decision = service.decide("trusted", person="ada", shown=True, eligible=["a"])
    value = {"a": 1.0, "b": 0.0, "d": 1.0}
    report = {"v": 1, "id": decision["id"], "value": value}
    assert service.call("POST", "/v1/experiments/trusted/reports", report).status_code == 200
    whole = service.opened.manager.experiments["trusted"].policy.guarantee(1000).for_user(3).epsilon
    for window in ("lifetime", "year"):
        assert patch(service, {"budget": {window: whole + 2.9}}, "trusted").status_code == 200
        again = service.decide("trusted", person="ada", shown=True, eligible=["a"])
        assert again["reason"] == "budget"
    assert service.opened.manager.store.amounts("trusted", "lifetime") == [round(whole * 10**6)]


@pytest.mark.parametrize("policy", ["private-contexts", "fed-ucb"])
def test_an_export_tells_no_context_where_visits_are_protected(policy, service):
    # Finding P7
    more = {"trust": "central"} if policy == "private-contexts" else {}
    made = service.create(
        {"name": "shop", "policy": {"name": policy, **VISITS, **more}, "people": ["ada", "bob"]}
    )
    assert "sees contexts and rewards and keeps them" in made["sentence"]
    for person in ("ada", "bob", "ada"):
        decision = service.decide("shop", person=person, contexts=ITEMS, shown=True)
        service.report(decision, 1.0, "shop")
    text = service.call("GET", "/v1/experiments/shop/released").text
    made = [json.loads(line) for line in text.splitlines()]
    assert [line["contexts"] for line in made if line["kind"] == "decision"] == [None] * 3
    assert "0.125" not in text
    assert "0.625" not in text


def test_the_kind_of_reward_reaches_a_contextual_policy(service):
    # Finding C2
    policy = {"name": "linucb", "dimension": 2, "epsilon": 1.0}
    shop = {"name": "shop", "policy": policy, "people": ["ada"], "reward": {"kind": "binary"}}
    service.create(shop)
    assert service.opened.manager.experiments["shop"].policy.reward == "binary"
    twice = {**shop, "name": "twice", "policy": {**policy, "reward": "bounded"}}
    refused = service.call("POST", "/v1/experiments", twice)
    assert refused.status_code == 422
    assert "the kind of the experiment's reward" in refused.json()["detail"]
    # One that version 0.2 made goes on as it learned.
    host = service.opened.manager
    request = {**shop, "name": "old", "people": []}
    host.store.create("old", {"request": {**request, "people": ["x"]}, "choices": "00" * 32})
    assert host.take("old")
    assert host.experiments["old"].policy.reward == "bounded"


def test_the_gap_of_a_restore_is_in_the_guarantee_itself(service):
    # Finding P12
    service.create(LOCAL)
    hosted = service.opened.manager.experiments["news"]
    hosted.run(Core.begin_epoch, 2, 1_700_000_000_000)
    described = service.call("GET", "/v1/experiments/news").json()
    gap = "from 2023-11-14 22:13 to "
    assert any(gap in each for each in described["guarantee"]["not_protected"])
    assert gap in described["guarantee"]["sentence"]
    assert gap in described["sentence"]


def test_a_clock_that_was_ahead_is_set_back(service):
    # Finding S5
    service.create(LOCAL)
    hosted = service.opened.manager.experiments["news"]
    ahead = 10**12
    from tacit.serving.experiment import read_clock as clock

    hosted.clock = lambda: clock() + ahead
    hosted.run(Core.decide, "early", None, person="x")
    del hosted.clock
    assert hosted.core.clock_lead(clock()) > ahead / 2
    hosted.run(Core.reset_clock)
    hosted.reload()
    assert hosted.core.clock_lead(clock()) == 0
    assert service.decide()["report_at"] * 1000 < clock() + ahead / 2


def test_a_lost_key_stops_the_service(tmp_path):
    # Finding P8
    running = Service(tmp_path / "s.db")
    running.create(LOCAL, budget={"lifetime": 1.0})
    running.decide(person="ada", shown=True)
    running.stop()
    (tmp_path / "s.db.key").unlink()
    with pytest.raises(StoreError, match="found none; bring it back"):
        Service(tmp_path / "s.db")


@pytest.mark.slow
def test_without_a_compiler_the_service_answers(tmp_path):
    # Finding S20
    code = f"""
from service.conftest import CENTRAL, LOCAL, Service
service = Service({str(tmp_path / "s.db")!r})
for wanted in (LOCAL, CENTRAL):
    service.create(wanted)
    print(service.decide(wanted["name"], shown=True)["option"])
service.stop()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": "tests"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["red", "red"]
