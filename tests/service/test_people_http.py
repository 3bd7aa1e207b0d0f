"""People with contexts over HTTP: names, edges, new people, and no name in the store."""

from __future__ import annotations

import time

import pytest

from service.conftest import Service
from tacit.serving import Core

PEOPLE = ["ada-l", "bob-m", "cy-n"]
ITEMS = {"tea": [1.0, 0.0], "coffee": [0.6, 0.8]}


def wanted(policy, **more):
    return {
        "name": "shop",
        "policy": {"name": policy, "dimension": 2, "epsilon": 2.0},
        "people": PEOPLE,
        **more,
    }


def offer(service, person):
    return service.decide("shop", person=person, contexts=ITEMS, shown=True)


@pytest.mark.parametrize("policy", ["linucb", "goblin", "colin"])
def test_people_decide_learn_and_come_back(policy, tmp_path):
    edges = {} if policy == "linucb" else {"edges": [["ada-l", "bob-m"], ["bob-m", "cy-n"]]}
    service = Service(tmp_path / "s.db")
    made = service.create(wanted(policy, **edges))
    assert made["trust"] == "local"
    for turn in range(9):
        decision = offer(service, PEOPLE[turn % 3])
        assert decision["option"] in ITEMS
        assert service.report(decision, 1.0, "shop").json()["status"] == "learned"
    unknown = {"person": "eve-q", "contexts": ITEMS}
    refused = service.call("POST", "/v1/experiments/shop/decisions", unknown)
    assert refused.status_code == 422
    near = [] if policy == "linucb" else ["ada-l"]
    changed = service.call("PATCH", "/v1/experiments/shop", {"add_people": {"eve-q": near}})
    assert changed.status_code == 200, changed.text
    assert service.report(offer(service, "eve-q"), 0.0, "shop").json()["status"] == "learned"
    if policy != "linucb":
        rejoined = {"edges": [["ada-l", "eve-q"], ["bob-m", "cy-n"]]}
        assert service.call("PATCH", "/v1/experiments/shop", rejoined).status_code == 200
    numbers = service.call("GET", "/v1/experiments/shop/statistics").json()
    assert [(row["option"], row["learned"]) for row in numbers["options"]] == [("all options", 10)]
    assert 'option="all options"} 10.0' in service.call("GET", "/metrics").text
    before = service.opened.manager.experiments["shop"].core.snapshot()
    token = service.admin
    service.stop()
    files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert not any(name.encode() in files for name in (*PEOPLE, "eve-q"))
    again = Service(tmp_path / "s.db")
    again.admin = token
    assert again.opened.manager.experiments["shop"].core.snapshot() == before
    assert offer(again, "eve-q")["option"] in ITEMS
    again.stop()


@pytest.mark.parametrize("policy", ["fed-ucb", "private-contexts"])
def test_whole_visits_are_hidden_by_a_service_that_is_trusted(policy, tmp_path):
    service = Service(tmp_path / "s.db")
    made = service.create(wanted(policy, reward={"report_after": 0}, grace=0))
    assert (made["trust"], made["guarantee"]["trust"]) == ("central", "central")
    assert made == service.call("GET", "/v1/experiments/shop").json()
    assert "but the server, which is trusted" in made["sentence"]
    assert "contexts and rewards of one round" in made["sentence"]
    experiment = service.opened.manager.experiments["shop"]
    core = experiment.core
    while core.learned < 3:  # nobody answers: silence is a visit as any other
        offer(service, PEOPLE[core.learned])
        time.sleep(0.002)
        experiment.run(Core.tick)
    assert core.releases == 3 * 5
    near = {"add_people": {"eve-q": ["ada-l"]}}
    assert service.call("PATCH", "/v1/experiments/shop", near).status_code == 422
    assert service.call("PATCH", "/v1/experiments/shop", {"add_people": {"eve-q": []}}).is_success
    assert offer(service, "eve-q")["option"] in ITEMS
    experiment.verify()
    service.stop()


@pytest.mark.parametrize(
    "changes",
    [
        {"people": None},
        {"people": []},
        {"people": ["a", "a"], "edges": [["a", "a"]]},
        {"edges": [["ada-l", "nobody"]]},
        {"edges": None},
        {"policy": {"name": "linucb", "dimension": 2, "epsilon": 1.0}, "edges": []},
        {"policy": {"name": "goblin", "dimension": 2, "n_users": 10**12}},
        {"policy": {"name": "goblin", "dimension": 10**9}},
        {"policy": {"name": "fed-ucb", "dimension": 2, "variant": "published"}, "edges": None},
        {"policy": {"name": "klucb-cf", "epsilon": 1.0}, "options": ["a", "b"]},
    ],
    ids=str,
)
def test_people_that_do_not_fit_are_refused(changes, tmp_path):
    service = Service(tmp_path / "s.db")
    asked = {**wanted("goblin", edges=[["ada-l", "bob-m"]]), **changes}
    answer = service.call("POST", "/v1/experiments", asked)
    assert answer.status_code == 422, answer.text
    assert service.call("GET", "/v1/experiments").json() == {"experiments": []}
    service.stop()


@pytest.mark.parametrize(
    "policy",
    [
        {"name": "os:path"},
        {"name": "klucb-cf", "epsilon": 1.0, "n_arms": 10**12},
        {"name": "sw-ucb", "window": 10**12},
        {"name": "sw-ucb", "window": 10**30},
        {"name": "ucb-n", "graph": "/etc/passwd"},
        {"name": "ucb-n", "graph": "passwd"},
        {"name": "ucb-n", "graph": {"name": "complete", "n_nodes": 10**9}},
        {"name": "ucb-n", "graph": {"name": "/etc/passwd"}},
    ],
    ids=str,
)
def test_a_description_imports_nothing_reads_nothing_and_fits_in_memory(policy, service):
    asked = {"name": "x", "policy": policy, "options": ["a", "b"]}
    answer = service.call("POST", "/v1/experiments", asked)
    assert answer.status_code == 422, answer.text
    assert "root:" not in answer.text
