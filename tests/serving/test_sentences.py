"""What somebody new does wrong: one sentence that says what to do, and nothing changes."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

import tacit
from tacit.arms import DPSE, KLUCBCF, UCB1
from tacit.contextual import CoLin, GOBLin, LinUCB, NoisySums, Published
from tacit.diffusion import DiffusionLearning
from tacit.graphs import Graph
from tacit.serving import StoreError

LOCAL = KLUCBCF(n_arms=2, epsilon=1.0)
HOUR = datetime.timedelta(hours=1)


def people(privacy=None, kind=LinUCB, **more):
    return kind(n_users=2, dimension=2, privacy=privacy, **more)


MADE = {
    "expected a policy .* such as UCB1": lambda: tacit.Learner(UCB1),
    "expected a policy .* got 'ucb1'": lambda: tacit.Learner("ucb1"),
    "agents have peers": lambda: tacit.Learner(DiffusionLearning(n_states=2), seed=1),
    "exact.*depends on a length.*delta=1e-6.*trial runs, got 'binary-tree'": lambda: tacit.Learner(
        people(NoisySums(epsilon=1.0, trust="central", visits=9))
    ),
    "noise that is exact.*does not keep its epsilon.*delta=1e-6": lambda: tacit.Learner(
        people(Published(epsilon=1.0, trust="central", horizon=9))
    ),
    "PerReward hides each reward there": lambda: tacit.Learner(
        people(NoisySums(epsilon=1.0, delta=1e-6, visits=9))
    ),
    "weights given, or people as a Graph, because CoLin": lambda: tacit.Learner(
        people(kind=CoLin, epsilon=1.0)
    ),
    "graph given, or people as a Graph, because GOBLin": lambda: tacit.Learner(
        people(kind=GOBLin, epsilon=1.0)
    ),
    "explore a number in .0, 1.*, got 'much'": lambda: tacit.Learner(LOCAL, explore="much"),
    "options 2 different names, got .'ab'.": lambda: tacit.Learner(LOCAL, options="ab"),
    "report_after >= 0 seconds, a number": lambda: tacit.Learner(LOCAL, report_after=HOUR),
    "grace >= 0 seconds, a number": lambda: tacit.Learner(LOCAL, grace="1h"),
    "budget a mapping of windows": lambda: tacit.Learner(LOCAL, budget=1.0),
    "at least 1, what one report costs": lambda: tacit.Learner(LOCAL, budget={"day": 0.5}),
    "graph not given with this policy, got 7": lambda: tacit.Learner(LOCAL, graph=7),
}


@pytest.mark.parametrize("said", MADE)
def test_a_learner_that_cannot_be_made(said):
    with pytest.raises(ValueError, match=said):
        MADE[said]()


ARMS = {
    "eligible a list of options, got 'red'": lambda it: it.decide(eligible="red"),
    "eligible at least one option": lambda it: it.decide(eligible=[]),
    r"option one of .'red', 'blue'.": lambda it: it.decide(eligible=["rad"]),
    "id of 1 to 128 characters, a string, got 17": lambda it: it.decide(id=17),
    "report_at >= 0 seconds, a number": lambda it: it.decide(report_at=HOUR),
    "what decision.device.report": lambda it: it.learn(1.0),
    "as decision.device.report": lambda it: it.learn({"id": "a", "value": 1}),
    "as a device makes it of a reward": lambda it: it.learn({"v": 1, "id": "a", "value": 0.7}),
    "a mapping with the words of decide": lambda it: it.decide_many(["ada"]),
    "options left after retiring one": lambda it: (it.retire("red"), it.retire("blue")),
    "not retired, got .'red'.": lambda it: (it.retire("red"), it.decide(eligible=["red"])),
}


@pytest.mark.parametrize("said", ARMS)
def test_a_call_of_options_with_names(said):
    learner = tacit.Learner(LOCAL, options=["red", "blue"])
    learner.decide(id="a")
    with pytest.raises(ValueError, match=said):
        ARMS[said](learner)
    assert (learner.rounds, learner.open_decisions) == (1, 1)


USERS = {
    "a person who was added .* got None": lambda it: it.decide(contexts=[[1, 0]]),
    "add_person does it.* got 'eve'": lambda it: it.decide(person="eve", contexts=[[1, 0]]),
    "contexts given": lambda it: it.decide(person="ada"),
    "rows of 2 numbers": lambda it: it.decide(person="ada", contexts=[["a", "b"]]),
    r"of shape \(n, 2\), got \(2,\)": lambda it: it.decide(person="ada", contexts=[1, 0]),
    "person 'ada': expected a new one": lambda it: it.add_person("ada"),
    "it joins no people": lambda it: it.set_edges(graph=Graph.from_edges([(0, 1)])),
    "given as contexts of each decision": lambda it: it.add_option("tea"),
    "options given as contexts": lambda it: it.retire("tea"),
    "request with the words of decide": lambda it: it.decide_many([{"who": "ada"}]),
    "a value that the instructions allow": lambda it: it.learn({"v": 1, "id": "a", "value": 0.3}),
}


@pytest.mark.parametrize("said", USERS)
def test_a_call_of_people_with_names(said):
    learner = tacit.Learner(people(epsilon=2.0), people=["ada", "bob"])
    learner.decide(person="ada", contexts=np.eye(2), id="a")
    with pytest.raises(ValueError, match=said):
        USERS[said](learner)
    assert (learner.rounds, learner.open_decisions) == (1, 1)


def test_a_decision_without_a_report():
    decision = tacit.Learner(LOCAL, mode="off").decide()
    with pytest.raises(ValueError, match=r"only where reason is empty.* got 'off'"):
        _ = decision.device


def test_what_differs_from_a_store_is_named_and_nothing_else(tmp_path):
    tacit.Learner(LOCAL, store=tmp_path / "x.db", report_after=60.0).close()
    said = r"report_after as in the store, 60.0, got 61.0$"
    with pytest.raises(ValueError, match=said):
        tacit.Learner(LOCAL, store=tmp_path / "x.db", report_after=61.0)
    with pytest.raises(ValueError, match=r"policy.n_arms as in the store, 2, got 3$"):
        tacit.Learner(KLUCBCF(n_arms=3, epsilon=1.0), store=tmp_path / "x.db", report_after=60.0)


def test_a_store_that_is_a_folder_or_closed(tmp_path):
    with pytest.raises(StoreError, match="expected a file, got a folder"):
        tacit.Learner(LOCAL, store=tmp_path)
    learner = tacit.Learner(LOCAL, store=tmp_path / "x.db")
    report = learner.decide().device.report(1.0)
    learner.close()
    for _ in range(3):
        with pytest.raises(StoreError, match="closed; open it again"):
            learner.learn(report)
        with pytest.raises(StoreError, match="closed; open it again"):
            learner.decide()
    with tacit.Learner(LOCAL, store=tmp_path / "x.db") as again:
        assert again.learn(report).status == "learned"


def test_while_a_store_cannot_be_read_nothing_is_answered(tmp_path, monkeypatch):
    """A command that found no core returned None, and was carried out later behind its caller."""
    policy = DPSE(n_arms=2, epsilon=1.0, horizon=100)
    with tacit.Learner(policy, store=tmp_path / "x.db") as learner:
        report = learner.decide().device.report(1.0)
        with monkeypatch.context() as broken:

            def fails(*given):
                raise StoreError("no disk")

            broken.setattr(type(learner._owned), "append", fails)
            broken.setattr(type(learner._owned), "acquire", fails)
            for _ in range(3):
                with pytest.raises(StoreError, match="no disk"):
                    learner.learn(report)
        assert not learner._experiment._waiting
        assert learner.counts["learned"] == 0
        assert learner.learn(report).status == "learned"
