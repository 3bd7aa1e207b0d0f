"""The Python client against the real service, while modes, budgets and the network change."""

from __future__ import annotations

import json

import httpx2
import pytest
from starlette.testclient import TestClient

from tacit.client import Client, Outbox
from tacit.service import open_service
from tacit.service.messages import ExperimentRequest, Reward


class Shop:
    """A service in this process, whose answers can be lost, and whose time a test sets."""

    def __init__(self, folder, monkeypatch, **more):
        self.opened = open_service(folder / "store.db")
        self.hosted = self.opened.manager.create(
            ExperimentRequest(
                name="news",
                policy={"name": "klucb-cf", "epsilon": 1.0},
                options=["red", "green"],
                reward=Reward(kind="binary", report_after=60.0),
                **more,
            )
        )
        self.http = TestClient(self.opened.app, raise_server_exceptions=False)
        self.now, self.deaf, self.asked = 1_900_000_000.0, False, []
        monkeypatch.setattr("tacit.serving.experiment.time.time_ns", lambda: int(self.now * 1e9))
        self.folder, self.late = folder, []
        self.token = self.opened.tokens.create("page", ["decide", "report"])

    def visit(self):
        client = Client(
            *("http://testserver", "news"),
            token=self.token,
            max_epsilon=1.0,
            outbox=Outbox(self.folder / "outbox.db"),
            on_late=self.late.append,
            background=False,
            transport=httpx2.MockTransport(self.carry),
        )
        client._flows.clock = lambda: self.now
        return client

    def carry(self, request):
        answer = self.http.request(
            request.method, request.url.path, content=request.content, headers=dict(request.headers)
        )
        self.asked.append((request.url.path.rpartition("/")[2], request.content))
        if self.deaf:
            raise httpx2.ReadError("lost")
        return httpx2.Response(answer.status_code, content=answer.content)

    def reports(self):
        return [json.loads(body) for path, body in self.asked if path == "reports"]

    def change(self, **body):
        headers = {"authorization": f"Bearer {self.opened.first_token}"}
        done = self.http.patch("/v1/experiments/news", json=body, headers=headers)
        assert done.is_success, done.text


@pytest.fixture
def shop(tmp_path, monkeypatch):
    with_budget = Shop(tmp_path, monkeypatch, budget={"day": 2.5})
    with with_budget.http:
        yield with_budget


@pytest.mark.parametrize("mode", ["learn", "shadow", "frozen", "off"])
def test_a_mode_decides_whether_a_device_reports(shop, mode):
    shop.change(mode=mode)
    client = shop.visit()
    decision = client.decide(person="ann")
    wanted = mode in ("learn", "shadow")
    assert client.shown(decision) == client.reward(decision, 1.0) == wanted
    shop.now += 60
    assert client.flush() is None
    assert len(shop.reports()) == wanted
    assert shop.late == []
    assert shop.hosted.core.learned == wanted


@pytest.mark.parametrize("mode", ["frozen", "shadow", "off"])
def test_a_mode_that_changes_after_the_decision_takes_back_nothing(shop, mode):
    client = shop.visit()
    decision = client.decide(person="ann")
    shop.now += 50
    shop.change(mode=mode)
    assert client.shown(decision)
    shop.now += 59
    assert client.reward(decision, 1.0)
    shop.now += 1
    client.flush()
    assert len(shop.reports()) == shop.hosted.core.learned == 1


def test_a_budget_that_is_used_up_meanwhile_ends_what_is_owed(shop):
    client = shop.visit()
    decisions = [client.decide(person="ann") for _ in range(4)]
    assert all(client.shown(each) for each in decisions)
    # Of the last two nothing is owed any more: the service said so when they were shown.
    assert [client.reward(each, 1.0) for each in decisions] == [True, True, False, False]
    shop.now += 60
    client.flush()
    assert len(shop.reports()) == shop.hosted.core.learned == 2
    assert shop.late == []


@pytest.mark.parametrize("click", [False, True])
def test_every_answer_is_lost_and_the_process_ends(shop, click):
    client = shop.visit()
    decision = client.decide(person="ann")
    shop.deaf = True
    shop.now += 30
    assert client.shown(decision)
    assert not click or client.reward(decision, 1.0)
    client.close()
    shop.now += 60
    again = shop.visit()
    again.flush()
    again.flush()
    assert not again.reward(decision, 1.0)
    assert shop.late == [decision]
    shop.deaf = False
    again.flush()
    assert again.flush() is None
    assert len({report["value"] for report in shop.reports()}) == 1
    assert shop.hosted.core.learned == 1
