"""Decisions, reports and everything a caller may get wrong, over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import sqlite3
import time

import pytest

from service.conftest import CENTRAL, LOCAL, Service
from tacit.device import Channel
from tacit.serving.core import Core
from tacit.serving.experiment import Experiment
from tacit.serving.experiment import read_clock as clock
from tiers import tiered


def test_from_experiment_to_learning(service):
    made = service.create(LOCAL)
    assert made["trust"] == "local"
    assert made["secure"] is True
    assert made["guarantee"]["epsilon"] == pytest.approx(1.0)
    assert "Not protected" in made["sentence"]
    assert Channel(made["instructions"]).epsilon <= 1.0
    decision = service.decide(shown=True)
    assert decision["option"] in LOCAL["options"]
    assert decision["probability"] == pytest.approx(1 / 3) or decision["probability"] == 1
    assert decision["reason"] == "learn"
    answer = service.report(decision, 1.0)
    assert answer.json() == {"id": decision["id"], "status": "learned", "reason": ""}
    numbers = service.call("GET", "/v1/experiments/news/statistics").json()
    assert sum(row["decided"] for row in numbers["options"]) == 1
    assert sum(row["learned"] for row in numbers["options"]) == 1
    estimates = [row for row in numbers["options"] if row["estimate"] is not None]
    assert all(row["low"] <= row["estimate"] <= row["high"] for row in estimates)


@pytest.mark.parametrize("service", tiered(["sqlite", "postgres"], "sqlite".__eq__), indirect=True)
def test_it_learns_which_option_is_best(service):
    service.create(LOCAL, policy={"name": "klucb-cf", "epsilon": 4.0})
    chosen = []
    for _ in range(400):
        decision = service.decide(shown=True)
        chosen.append(decision["option"])
        service.report(decision, float(decision["option"] == "green"))
    assert chosen[200:].count("green") > 150


def test_the_same_request_twice_gets_the_stored_answer(service):
    service.create(LOCAL)
    first = service.decide(id="mine", person="ann")
    assert service.decide(id="mine", person="ann") == first
    other = service.call("POST", "/v1/experiments/news/decisions", {"id": "mine", "person": "bob"})
    assert other.status_code == 409
    assert other.headers["content-type"] == "application/problem+json"
    assert other.json()["reason"] == "conflict"
    aliased = service.http.post(
        "/v1/experiments/news/decisions",
        json={"person": "ann"},
        headers={"authorization": f"Bearer {service.admin}", "idempotency-key": "mine"},
    )
    assert aliased.json() == first


def test_a_report_counts_once(service):
    service.create(LOCAL)
    decision = service.decide(shown=True)
    report = {"v": 1, "id": decision["id"], "value": 1}
    assert (
        service.call("POST", "/v1/experiments/news/reports", report).json()["status"] == "learned"
    )
    again = service.call("POST", "/v1/experiments/news/reports", report)
    assert again.json()["status"] == "repeated"
    other = service.call("POST", "/v1/experiments/news/reports", {**report, "value": 0})
    assert other.status_code == 409
    unknown = service.call("POST", "/v1/experiments/news/reports", {**report, "id": "nobody"})
    assert unknown.status_code == 404
    many = service.call(
        "POST", "/v1/experiments/news/reports", [report, {**report, "id": "nobody"}]
    )
    statuses = [each["status"] for each in many.json()["reports"]]
    assert statuses == ["repeated", "refused"]


def test_only_what_was_shown_is_awaited(service):
    service.create(LOCAL)
    decision = service.decide()
    report = {"v": 1, "id": decision["id"], "value": 1}
    refused = service.call("POST", "/v1/experiments/news/reports", report)
    assert refused.status_code == 409
    shown = service.call("POST", f"/v1/experiments/news/decisions/{decision['id']}/shown")
    assert shown.json()["report_at"] >= decision["report_at"]
    assert (
        service.call("POST", "/v1/experiments/news/reports", report).json()["status"] == "learned"
    )


def test_a_budget_is_charged_when_shown_and_then_nothing_is_asked(service):
    service.create(LOCAL, budget={"day": 2.0})
    nobody = service.call("POST", "/v1/experiments/news/decisions", {})
    assert nobody.status_code == 422
    assert service.decide(person="ann")["instructions"] is not None
    answers = [service.decide(person="ann", shown=True) for _ in range(3)]
    assert [each["instructions"] is not None for each in answers] == [True, True, False]
    assert answers[2]["reason"] == "budget"
    assert answers[2]["report_at"] is None
    assert answers[2]["option"] in LOCAL["options"]
    assert service.decide(person="bob", shown=True)["instructions"] is not None


def test_modes_options_and_budgets_change_while_it_runs(service):
    service.create(LOCAL)
    path = "/v1/experiments/news"
    changed = service.call("PATCH", path, {"add_options": ["pink"], "retire_options": ["red"]})
    names = {each["name"]: each["retired"] for each in changed.json()["options"]}
    assert names == {"red": True, "green": False, "blue": False, "pink": False}
    assert {service.decide()["option"] for _ in range(40)} <= {"green", "blue", "pink"}
    assert service.call("PATCH", path, {"mode": "frozen"}).json()["mode"] == "frozen"
    frozen = service.decide()
    assert (frozen["instructions"], frozen["reason"]) == (None, "frozen")
    service.call("PATCH", path, {"mode": "off"})
    assert service.decide()["reason"] == "off"
    assert service.call("PATCH", path, {"add_options": ["pink"]}).status_code == 409
    assert service.call("PATCH", path, {"retire_options": ["none"]}).status_code == 422
    assert service.call("PATCH", path, {"mode": "loud"}).status_code == 400
    budget = service.call("PATCH", path, {"budget": {"day": 3.0}}).json()["budget"]
    assert budget == {"day": 3.0}


def test_central_trust_takes_the_reward_and_says_so(service):
    made = service.create(CENTRAL)
    assert made["trust"] == "central"
    assert "sees rewards" in made["sentence"]
    decision = service.decide("trusted", shown=True)
    assert decision["instructions"]["trust"] == "central"
    answer = service.report(decision, 1.0, "trusted")
    assert answer.json()["status"] in ("held", "late", "learned")
    third = service.decide("trusted", shown=True)
    half = {"v": 1, "id": third["id"], "value": 0.5}
    assert service.call("POST", "/v1/experiments/trusted/reports", half).status_code == 422


@pytest.mark.parametrize("closed", [False, True])
def test_nobody_learns_from_receipts_whether_or_what_a_central_decision_was_answered(
    service, closed, monkeypatch
):
    at = clock()
    monkeypatch.setattr(Experiment, "clock", staticmethod(lambda: at))
    later = {"reward": {"kind": "bounded", "report_after": 60}, "grace": 0}
    service.create(CENTRAL, **later)
    decided = [service.decide("trusted", shown=True) for _ in range(3)]
    for decision, reward in zip(decided[:2], (0.0, 1.0), strict=True):
        assert service.report(decision, reward, "trusted").json()["status"] == "held"
    at += 61_000 if closed else 0
    path, seen = "/v1/experiments/trusted/reports", []
    for value in (0.0, 1.0, 0.5, 2.0):
        answers = [
            service.call("POST", path, {"v": 1, "id": each["id"], "value": value})
            for each in decided
        ]
        seen += [
            (each.status_code, each.json().get("status"), each.json().get("reason"))
            for each in answers
        ]
        assert len(set(seen[-3:])) == 1, seen
    assert seen[0][1] == ("late" if closed else "held")
    numbers = service.call("GET", "/v1/experiments/trusted/statistics").json()
    assert (numbers["late"], numbers["missing_share"]) == (None, None)
    assert numbers["options"][0]["silent"] is None
    text = service.call("GET", "/metrics").text
    assert "tacit_events{" not in text
    assert "tacit_reports_total{" not in text
    assert service.call("GET", "/v1/experiments/trusted").json()["version"] == 1


def test_the_statistics_say_what_lying_devices_could_do(service):
    service.create(LOCAL, max_open=1_000_000)
    decided = [service.decide(eligible=["red"], shown=True)["id"] for _ in range(200)]
    path = "/v1/experiments/news"

    def report(ids, value):
        sent = [{"v": 1, "id": id, "value": value} for id in ids]
        service.call("POST", f"{path}/reports", sent)
        return service.call("GET", f"{path}/statistics").json()

    report(decided[:100], 0)
    honest = report(decided[100:198], 1)["options"][0]["estimate"]
    lied = report(decided[198:], 1)  # both of the last two say yes, whatever is true
    moved = lied["options"][0]["estimate"] - honest
    told = [98 / 198, 100 / 200]
    keep = math.e / (1 + math.e)
    assert moved == pytest.approx((told[1] - told[0]) / (2 * keep - 1))
    assert 0 < moved < lied["shift_by_lies"] == pytest.approx(0.01 / (2 * keep - 1), rel=1e-6)


def test_what_is_past_its_retention_is_gone_from_the_store(service):
    service.create(CENTRAL, retention=0)
    service.create(LOCAL)
    for _ in range(5):
        service.report(service.decide("trusted", shown=True), 1.0, "trusted")
    service.report(service.decide(shown=True), 1.0)
    time.sleep(1.2)  # by then the clock has closed them
    store = service.opened.manager.store
    count = "SELECT count(*) FROM events WHERE decision IS NOT NULL"
    before = store.database.connection.execute(count).fetchone()[0]
    assert asyncio.run(service.opened.manager.prune())
    assert store.database.connection.execute(count).fetchone()[0] == 2 < before
    numbers = service.call("GET", "/v1/experiments/trusted/statistics").json()
    assert sum(row["decided"] for row in numbers["options"]) == 5


def test_nobody_waits_for_a_log_to_be_folded_while_nothing_of_it_expired(tmp_path, monkeypatch):
    """The model of a thousand people takes seconds, and an end five at most."""
    service = Service(tmp_path / "s.db")
    service.create(LOCAL)
    service.create(CENTRAL, retention=0)
    folded = []
    monkeypatch.setattr(Experiment, "verify", lambda self: folded.append(self.name))
    for name in ("news", "trusted"):
        service.decide(name, shown=True)
    monkeypatch.setattr(Experiment, "clock", staticmethod(lambda: time.time_ns() // 10**6 + 10_000))
    service.stop()
    assert folded == ["trusted"]
    # Both are kept as they were at the end: the next start has nothing to replay.
    with contextlib.closing(sqlite3.connect(tmp_path / "s.db")) as db:
        behind = (
            "SELECT e.seq - s.seq FROM experiments AS e JOIN snapshots AS s ON e.id = experiment"
        )
        assert db.execute(behind).fetchall() == [(0,), (0,)]


def test_everything_survives_a_restart(tmp_path):
    first = Service(tmp_path / "store.db")
    first.create(LOCAL, budget={"lifetime": 50.0})
    decided = [first.decide(person="ann", shown=True) for _ in range(20)]
    for decision in decided[:10]:
        assert first.report(decision, 1.0).json()["status"] == "learned"
    before = first.call("GET", "/v1/experiments/news/statistics").json()
    token = first.admin
    first.stop()
    again = Service(tmp_path / "store.db")
    assert again.admin is None
    again.admin = token
    assert again.call("GET", "/v1/experiments/news/statistics").json() == before
    for decision in decided[10:]:
        assert again.report(decision, 0.0).json()["status"] == "learned"
    again.stop()


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"name": "no spaces"}, 400),
        ({"name": ""}, 400),
        ({"policy": {"name": "nobody"}}, 422),
        ({"policy": {"epsilon": 1.0}}, 422),
        ({"policy": {"name": "klucb-cf", "epsilon": -1.0}}, 422),
        ({"policy": {"name": "klucb-cf", "epsilon": 1e9}}, 422),
        ({"policy": {"name": "klucb-cf", "colour": 1}}, 422),
        ({"options": []}, 400),
        ({"options": ["a", "a"]}, 422),
        ({"options": "ab"}, 400),
        ({"reward": {"kind": "vague"}}, 400),
        ({"reward": {"default": 2}}, 400),
        ({"budget": {"week": 1}}, 400),
        ({"budget": {"day": -1}}, 400),
        ({"mode": "on"}, 400),
        ({"explore": 1.5}, 400),
        ({"baseline": "purple"}, 422),
        ({"surprise": True}, 400),
        ({"policy": {"name": "ucb1"}, "budget": {"day": 1.0}}, 422),
        ({"policy": {"name": "dpse", "epsilon": 1.0, "horizon": 100}, "explore": 0.1}, 422),
    ],
    ids=str,
)
def test_a_description_that_cannot_work_is_refused_and_leaves_nothing(service, changes, status):
    answer = service.call("POST", "/v1/experiments", {**LOCAL, **changes})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert "\n" not in answer.json()["detail"]
    assert service.call("GET", "/v1/experiments").json() == {"experiments": []}


def test_a_name_is_what_it_looks_like(service):
    accents = ["caf\u00e9", "cafe\u0301"]
    hidden = ["a\nb", "a\tb", "a\0", "\u202eder", "a\u2066b", "\ufeffred", " red", "\x9bred"]
    for options in (accents, *([name, "b"] for name in hidden)):
        made = service.call("POST", "/v1/experiments", {**LOCAL, "options": options})
        assert made.status_code in (409, 422), options
    for name in ("news\n", "n\u0435ws", "caf\u00e9", "a b", "../a", ""):
        made = service.call("POST", "/v1/experiments", {**LOCAL, "name": name})
        assert made.status_code == 400, name
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    kept = [accents[0], family, "\u05d0\u05d1", "</td>", "{{ 7 * 7 }}", "a" * 200]
    service.create(LOCAL, options=kept, budget={"lifetime": 1.5})
    for name in (accents[1], "pink\n", family):
        answer = service.call("PATCH", "/v1/experiments/news", {"add_options": [name]})
        assert answer.status_code in (409, 422), name
    assert service.call("POST", "/v1/experiments/news/decisions", {"id": "a\n"}).status_code == 400
    # However a person's name is written, it is one person with one budget.
    first, second = (service.decide(person=name, shown=True) for name in accents)
    assert first["instructions"] is not None
    assert (second["instructions"], second["reason"]) == (None, "budget")
    named = [
        row["option"]
        for row in service.call("GET", "/v1/experiments/news/statistics").json()["options"]
    ]
    assert named == kept


def test_a_clock_that_jumps_refunds_nothing_and_is_said(service, monkeypatch):
    ahead = 0
    monkeypatch.setattr(Experiment, "clock", staticmethod(lambda: clock() + ahead))
    service.create(LOCAL, budget={"day": 2.5})
    service.http.post("/login", data={"token": service.admin})

    def reasons(n):
        return [service.decide(person="ann", shown=True)["reason"] for _ in range(n)]

    assert reasons(3) == ["learn", "learn", "budget"]
    assert "was set back" not in service.http.get("/experiments/news").text
    ahead = 400 * 86_400_000
    assert reasons(1) == ["learn"]
    ahead = 0
    # The day that it believes in has one report left, and the first one none.
    assert reasons(2) == ["learn", "budget"]
    assert "576,000 minutes ahead" in service.http.get("/experiments/news").text
    service.opened.manager.experiments["news"].verify()


def test_what_is_not_there_and_what_is_too_large(service):
    service.create(LOCAL)
    assert service.call("GET", "/v1/experiments/none").status_code == 404
    assert service.call("POST", "/v1/experiments/none/decisions", {}).status_code == 404
    assert service.call("GET", "/nowhere").status_code == 404
    assert service.call("DELETE", "/v1/experiments/news").status_code == 405
    big = {"person": "x" * 2_000_000}
    assert service.call("POST", "/v1/experiments/news/decisions", big).status_code == 413
    many = [{"v": 1, "id": "a", "value": 1}] * 1001
    assert service.call("POST", "/v1/experiments/news/reports", many).status_code == 413
    taken = service.call("POST", "/v1/experiments", LOCAL)
    assert taken.status_code == 409


def test_open_decisions_are_bounded(service):
    service.create(LOCAL, max_open=3)
    for _ in range(3):
        service.decide(shown=True)
    full = service.call("POST", "/v1/experiments/news/decisions", {})
    assert full.status_code == 429
    assert "retry-after" in full.headers


def test_health_metrics_and_description(service):
    service.create(LOCAL)
    service.decide(shown=True)
    assert service.call("GET", "/healthz", token=None).json() == {"status": "up"}
    assert service.call("GET", "/readyz", token=None).json()["status"] == "ready"
    # Finding S12: not to everybody.
    assert service.call("GET", "/metrics", token=None).status_code == 401
    reader = service.opened.tokens.create("prometheus", ["metrics"])
    assert service.call("GET", "/v1/experiments", token=reader).status_code == 403
    text = service.call("GET", "/metrics", token=reader).text
    assert 'tacit_open_decisions{experiment="news"} 1.0' in text
    described = service.call("GET", "/openapi.json", token=None).json()
    assert described["openapi"] == "3.1.0"
    assert "/v1/experiments/{name}/decisions" in described["paths"]
    assert "ExperimentRequest" in described["components"]["schemas"]


def test_no_traceback_leaves(service, monkeypatch, capsys):
    service.create(LOCAL)

    def broken(self):
        raise RuntimeError("the secret is plover")

    monkeypatch.setattr(Experiment, "sentence", broken)
    answer = service.call("GET", "/v1/experiments/news")
    assert answer.status_code == 500
    assert "plover" not in answer.text
    line = json.loads(capsys.readouterr().err.strip().splitlines()[-1])
    assert line["event"] == "fault"
    assert "plover" not in json.dumps(line)


def test_one_experiment_that_fails_does_not_keep_others_from_closing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tacit.service.experiments._TICK", 0.05)
    service = Service(tmp_path / "s.db")
    soon = {"kind": "binary", "report_after": 0}
    for name in ("first", "second"):
        service.create(LOCAL, name=name, reward=soon, grace=0)
    first = service.opened.manager.experiments["first"]
    tick = Core.tick

    def fail(core, now):
        if core is first._core:
            raise RuntimeError("a fault of the policy")
        return tick(core, now)

    monkeypatch.setattr(Core, "tick", fail)
    service.decide("first", shown=True)
    # It has failed once before the other one has anything to close.
    said, end = "", time.monotonic() + 20
    while '"detail": "RuntimeError at' not in said:
        assert time.monotonic() < end
        time.sleep(0.02)
        said += capsys.readouterr().err
    service.decide("second", shown=True)
    end = time.monotonic() + 20
    while service.opened.manager.experiments["second"].core.open:
        assert time.monotonic() < end
        time.sleep(0.02)
    monkeypatch.undo()
    service.stop()
