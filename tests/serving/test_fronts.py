"""One experiment, two fronts: a service serves what a learner made, a learner opens what a service made."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import msgspec
import pytest

import tacit
from service.conftest import Service
from tacit.arms import DPIMED, KLUCBCF
from tacit.contextual import GOBLin, LinUCB
from tacit.graphs import Graph
from tacit.service.messages import ExperimentRequest
from tacit.serving import RefusedError, StoreError
from tacit.serving.description import REQUEST

NFC, NFD = "Jos\u00e9", "Jose\u0301"
FROZEN = Path(__file__).parents[1] / "frozen" / "v0_2_0"
POLICY = KLUCBCF(n_arms=3, epsilon=1.0)
HOW = {"options": ["red", "green", "blue"], "budget": {"lifetime": 3.0}, "report_after": 3600.0}


@pytest.fixture
def frozen(tmp_path):
    for name in ("learner.db", "learner.db.key", "learner.db.mark"):
        shutil.copy(FROZEN / name, tmp_path / name)
        (tmp_path / name).chmod(0o600)
    return tmp_path / "learner.db"


def ask(learner, person, n=1):
    return [learner.decide(person=person).reason for _ in range(n)]


def test_one_name_is_one_person_however_its_accents_are_encoded(tmp_path):
    # Finding P15
    for store in ({}, {"store": tmp_path / "x.db"}):
        learner = tacit.Learner(POLICY, budget={"lifetime": 2.0}, **store)
        assert ask(learner, NFC) + ask(learner, NFD, 2) == ["", "", "budget"]
        learner.close()
    learner = tacit.Learner(LinUCB(n_users=1, dimension=2), people=[NFC])
    assert learner.decide(person=NFD, contexts=[[1.0, 0.0]]).reason == ""
    with pytest.raises(ValueError, match="all different"):
        tacit.Learner(LinUCB(n_users=2, dimension=2), people=[NFC, NFD])


def test_pseudonyms_are_those_of_a_service_and_differ_between_experiments(tmp_path):
    # Finding P15
    with tacit.Learner(POLICY, store=tmp_path / "x.db", name="one", **HOW) as learner:
        mine = learner._experiment.pseudonyms.of("ada")
        key = learner._experiment.pseudonyms.key
    other = tacit.Learner(POLICY, name="two", key=key)
    assert other._experiment.pseudonyms.of("ada") != mine
    service = Service(tmp_path / "x.db")
    try:
        assert service.opened.manager.experiments["one"].pseudonyms.of("ada") == mine
    finally:
        service.stop()


def test_what_0_2_spent_adds_up_with_what_is_spent_now(frozen):
    # Finding P15: there ada was shown three decisions, José two, written as NFC.
    how = {"options": ["red", "green", "blue"], "budget": {"day": 2.0, "lifetime": 6.0}}
    with tacit.Learner(POLICY, store=frozen, **how) as learner:
        with sqlite3.connect(frozen) as db:
            rows = db.execute(
                "SELECT person, amount FROM spending WHERE period = 'lifetime'"
            ).fetchall()
        ada, *ada_old = (
            learner._experiment.pseudonyms.of("ada"),
            *learner._experiment.pseudonyms.aliases[learner._experiment.pseudonyms.of("ada")],
        )
        spent = sum(amount for person, amount in rows if person in ada_old)
        assert spent > 0
        assert ada not in ada_old
        # The same request under the same id gets the answer of 0.2.
        learned = learner.counts["decided"]
        assert learner.decide(person="ada", id="d-0").option in learner.options
        assert learner.counts["decided"] == learned
        with pytest.raises(RefusedError):
            learner.decide(person="eve", id="d-0")
        core = learner._core
        learner._experiment.run(type(core).change, allowances={"lifetime": spent / 1e6 + 1.0})
        assert ask(learner, "ada", 2) == ["", "budget"]
        jose = sum(
            amount
            for person, amount in rows
            if person
            in learner._experiment.pseudonyms.aliases.get(
                learner._experiment.pseudonyms.of(NFD), ()
            )
        )
        assert jose > 0
        learner._experiment.run(type(core).change, allowances={"lifetime": jose / 1e6 + 1.0})
        assert ask(learner, NFD) + ask(learner, NFC) == ["", "budget"]
        learner._experiment.verify()


def test_a_store_of_a_learner_is_served_and_goes_back(tmp_path):
    file = tmp_path / "x.db"
    with tacit.Learner(POLICY, store=file, name="news", **HOW) as learner:
        decision = learner.decide(person="ada", id="first")
        learner.learn(decision.device.report(1.0))
    service = Service(file)
    try:
        described = service.call("GET", "/v1/experiments/news").json()
        assert described["budget"] == {"lifetime": 3.0}
        assert described["policy"]["name"] == "klucb-cf"
        asked = [service.decide(person="ada", shown=True) for _ in range(3)]
        assert [each["instructions"] is not None for each in asked] == [True, True, False]
        assert service.report(asked[0], 1.0).json()["status"] == "learned"
        # Beside the running service, it can be read.
        with tacit.Learner.open(file, "news") as reader:
            assert reader.counts["learned"] == 2
            assert reader.guarantee().epsilon == pytest.approx(1.0)
            for change in (reader.decide, lambda: reader.set_mode("off")):
                with pytest.raises(StoreError, match="opened to read"):
                    change()
            assert reader.rounds == 4
        assert service.decide(person="bob", shown=True)["instructions"] is not None
    finally:
        service.stop()
    with tacit.Learner(POLICY, store=file, name="news", **HOW) as learner:
        assert learner.counts["learned"] == 2
        assert ask(learner, "ada") == ["budget"]


def test_a_served_experiment_is_opened_by_a_learner_and_served_again(tmp_path):
    file = tmp_path / "tacit.db"
    wanted = {
        "name": "shop",
        "policy": {"name": "goblin", "dimension": 2, "epsilon": 1.0},
        "people": ["ada", NFC],
        "edges": [["ada", NFC]],
    }
    contexts = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
    service = Service(file)
    service.create(wanted)
    decision = service.decide("shop", person=NFD, contexts=contexts, shown=True)
    assert service.report(decision, 1.0, "shop").json()["status"] == "learned"
    service.stop()
    admin = service.admin
    with tacit.Learner.open(file, "shop") as learner:
        assert isinstance(learner.policy, GOBLin)
        assert learner.counts["learned"] == 1
        again = learner.decide(person=NFC, contexts=contexts)
        assert learner.learn(again.device.report(0.0)).status == "learned"
        learner.add_person("cy", near=["ada"])
        learner._experiment.verify()
    service = Service(file)
    service.admin = admin
    try:
        assert service.decide("shop", person="cy", contexts=contexts)["option"] in contexts
        statistics = service.call("GET", "/v1/experiments/shop/statistics").json()
        assert statistics["rounds"] == 3
    finally:
        service.stop()
    with pytest.raises(ValueError, match="has shop, got 'other'"):
        tacit.Learner.open(file, "other")


def test_people_that_a_learner_joined_are_served(tmp_path):
    file = tmp_path / "x.db"
    policy = GOBLin(n_users=2, dimension=2, epsilon=1.0)
    graph = Graph.from_edges([(0, 1)], n_nodes=2)
    how = {"graph": graph, "people": ["ada", "bob"], "report_after": 60.0, "store": file}
    contexts = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
    with tacit.Learner(policy, name="shop", **how) as learner:
        learner.learn(learner.decide(person="ada", contexts=contexts).device.report(1.0))
        joined = learner._core.decider.joined
    service = Service(file)
    try:
        hosted = service.opened.manager.experiments["shop"]
        assert hosted.core.decider.joined == joined
        assert service.decide("shop", person="bob", contexts=contexts)["option"] in contexts
        hosted.verify()
    finally:
        service.stop()
    with pytest.raises(ValueError, match="joined as in the store"):
        tacit.Learner(policy, name="shop", **{**how, "graph": Graph.from_edges([], n_nodes=2)})


def test_a_store_of_a_learner_of_0_2_is_opened_without_its_arguments(frozen):
    with tacit.Learner.open(frozen) as learner:
        assert learner.policy == POLICY
        assert learner.options == ["red", "green", "blue"]
        assert learner.decide(person="ada", id="d-0").option in learner.options


def test_what_cannot_be_served_is_skipped_with_a_reason(tmp_path, capfd):
    file = tmp_path / "x.db"
    star = Graph.from_edges([(0, 1)], n_nodes=3)
    with tacit.Learner(POLICY, store=file, name="whenever"):
        pass
    policy = DPIMED(n_arms=3, epsilon=1.0, graph=star)
    with tacit.Learner(policy, store=file, name="own", report_after=1.0) as learner:
        assert learner.policy == policy
    service = Service(file)
    try:
        assert service.opened.manager.names() in ([], ["own"])
        assert service.call("GET", "/v1/experiments/whenever").status_code == 404
    finally:
        service.stop()
    written = [json.loads(line) for line in capfd.readouterr().err.splitlines() if "{" in line]
    why = {each["experiment"]: each["detail"] for each in written if "experiment" in each}
    assert "report_after" in why["whenever"]


def test_a_request_that_says_nothing_means_the_same_with_and_without_a_service():
    asked = msgspec.to_builtins(ExperimentRequest("x", {"name": "ucb1"}))
    assert asked == {"name": "x", "policy": {"name": "ucb1"}, **REQUEST}
