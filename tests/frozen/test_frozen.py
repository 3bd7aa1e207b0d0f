"""What version 0.2.0 stored opens with this version, says the same, and goes on."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import tacit
from service.conftest import Service
from tacit.arms import DPIMED, DPSE, KLUCBCF
from tacit.client import Outbox
from tacit.contextual import LinUCB, PrivateContexts
from tacit.graphs import Graph
from tacit.privacy import Ledger

HERE = Path(__file__).parent / "v0_2_0"
EXPECTED = json.loads((HERE / "expected.json").read_text())
SAVED = {
    "local.learner": KLUCBCF(n_arms=3, epsilon=1.0),
    "imed.learner": DPIMED(n_arms=2, epsilon=1.0),
    "dpse.learner": DPSE(n_arms=2, epsilon=1.0, horizon=1000),
    "linucb.learner": LinUCB(n_users=2, dimension=2, epsilon=2.0),
    "visits.learner": PrivateContexts(n_users=2, dimension=2, epsilon=1.0),
}


@pytest.fixture
def folder(tmp_path):
    """A copy that may be written to, as its owner left it."""
    shutil.copytree(HERE, tmp_path, dirs_exist_ok=True)
    for file in tmp_path.iterdir():
        file.chmod(0o600)
    return tmp_path


def check_service(service, expected):
    """Compare three experiments with what was true when they were closed, then go on."""
    service.admin = expected["token"]
    for name in ("news", "trusted", "people"):
        was = expected[name]
        now = service.call("GET", f"/v1/experiments/{name}/statistics").json()
        for old, new in zip(was["statistics"]["options"], now["options"], strict=True):
            assert {key: new[key] for key in ("option", "shown", "learned")} == {
                key: old[key] for key in ("option", "shown", "learned")
            }
            if old["estimate"] is not None:
                assert new["estimate"] == pytest.approx(old["estimate"], rel=1e-9)
        described = service.call("GET", f"/v1/experiments/{name}").json()
        assert described["options"] == was["description"]["options"]
        # What 0.2 called ever is called lifetime.
        budget = {
            each.replace("ever", "lifetime"): most
            for each, most in was["description"]["budget"].items()
        }
        assert described["budget"] == budget
        assert described["guarantee"]["epsilon"] == was["description"]["guarantee"]["epsilon"]
    # The same request under the same id gets the stored answer and costs nothing.
    again = service.decide(person="ada", shown=True, id="ada-0")
    assert again["option"] in {"red", "green", "blue"}
    # Ada was shown three decisions within her day; her lifetime has room for two more reports.
    reasons = [service.decide(person="ada", shown=True)["reason"] for _ in range(4)]
    assert reasons in (["budget"] * 4, ["", "", "budget", "budget"])
    # José spelled in the other way is the same person.
    contexts = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
    decision = service.decide("people", person="Jose\u0301", contexts=contexts, shown=True)
    assert service.report(decision, 1.0, "people").json()["status"] == "learned"
    decision = service.decide("trusted", shown=True)
    assert service.report(decision, 1.0, "trusted").json()["status"] in ("held", "learned", "late")


def test_a_store_in_a_file(folder):
    service = Service(folder / "tacit.db")
    try:
        check_service(service, EXPECTED["service"])
    finally:
        service.stop()


def test_a_database(folder, postgres):
    expected = EXPECTED["postgres"]
    # A dump in another server is a copy: it opens as restored only.
    postgres.put_back(expected["schema"], folder / "postgres.sql")
    service = Service(
        postgres.address(expected["schema"]), beside=folder / "postgres", restored=True
    )
    try:
        check_service(service, expected)
    finally:
        service.stop()


def test_a_store_of_a_learner(folder):
    how = {"options": ["red", "green", "blue"], "budget": {"day": 2.0, "ever": 6.0}}
    with tacit.Learner(SAVED["local.learner"], store=folder / "learner.db", **how) as learner:
        expected = EXPECTED["learners"]["learner.db"]
        assert learner.rounds == expected["rounds"]
        assert learner.counts["learned"] == expected["counts"]["learned"]
        # Ada was shown three, José two; six each may be spent in a lifetime, two a day.
        asked = [learner.decide(person="ada").reason for _ in range(9)].count("")
        assert asked <= 3


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_learner(folder, name):
    people = {"people": ["ada", "José"]} if name in ("linucb.learner", "visits.learner") else {}
    learner = tacit.Learner.load(folder / name, SAVED[name], **people)
    expected = EXPECTED["learners"][name]
    assert learner.rounds == expected["rounds"]
    assert learner.counts["learned"] == expected["counts"]["learned"]
    how = {}
    if people:
        how = {"person": "ada", "contexts": np.eye(2) / 2}
    elif name == "local.learner":
        # 0.2.0 did not save who spent what, so that everybody counts as having spent it all.
        assert learner.decide(person="eve").reason == "budget"
        return
    assert learner.learn(learner.decide(**how).device.report(0.5 if people else 1.0)).status in (
        "learned",
        "held",
    )


def test_an_outbox(folder):
    expected = EXPECTED["outbox"]
    outbox = Outbox(folder / "outbox.db", budget=4.0)
    try:
        assert outbox.spent == expected["spent"]
        owed = [list(each) for each in outbox.pending(expected["place"])]
        assert owed == expected["owed"]
        assert outbox.report(expected["place"], "d-0") == expected["report"]
        # The one that 0.2.0 had not drawn yet is drawn now, once.
        drawn = outbox.report(expected["place"], "d-1")
        assert drawn is not None
        assert outbox.report(expected["place"], "d-1") == drawn
    finally:
        outbox.close()


def test_a_ledger(folder):
    expected = EXPECTED["ledger"]
    with Ledger(folder / "ledger.db") as ledger:
        ledger.verify()
        assert float(ledger.spent("ada").epsilon) == expected["ada"]
        assert float(ledger.spent("bob").epsilon) == expected["bob"]
        assert len(ledger.entries()) == expected["entries"]
        ledger.spend("ada", 0.5, key="later")


def test_an_open_block_of_a_round_that_0_2_scaled_is_dropped(tmp_path):
    # Finding P1: in 0.2.0 shadow mode or exploration may have served what its open block holds.
    file = tmp_path / "learner.db"
    star = Graph.from_edges([(0, leaf) for leaf in range(1, 6)], n_nodes=6)
    policy = DPIMED(n_arms=6, epsilon=1.0, unit="round", graph=star)

    def blocks(learner):
        return learner._core.decider.state.blocks

    with tacit.Learner(policy, store=file) as learner:
        for _ in range(20):
            learner.learn(learner.decide().device.report(1.0))
        held = blocks(learner).open_sums.sum()
        assert held > 0
    with tacit.Learner(policy, store=file) as learner:
        assert blocks(learner).open_sums.sum() == held
    # A snapshot of 0.2.0 has no word of what was forgotten.
    with sqlite3.connect(file) as database:
        [(about,)] = database.execute("SELECT about FROM snapshots")
        older = {name: value for name, value in json.loads(about).items() if name != "forgotten"}
        database.execute("UPDATE snapshots SET about = ?", (json.dumps(older),))
    for _ in range(2):
        with tacit.Learner(policy, store=file) as learner:
            assert blocks(learner).open_sums.sum() == 0
            assert learner.rounds == 20
