"""The Python client: one report for every shown decision, at its time, whatever happens in between."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.client import AsyncClient, Client, Outbox, ServiceError
from tacit.device import Reporter, instructions

URL = "http://decide.test"


class Clock:
    def __init__(self) -> None:
        self.time = 1_800_000_000.0

    def __call__(self) -> float:
        return self.time


class Service:
    """The part of the service that a client talks to, with a switch for the network."""

    def __init__(self, clock) -> None:
        self.clock, self.received, self.network = clock, [], "up"
        self.asked, self.report_after = instructions.randomized_response(1.0), 60.0
        self.wanted, self.reported = True, threading.Event()

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        if self.network == "down":
            raise httpx2.ConnectError("offline")
        path = request.url.path.removeprefix("/v1/experiments/news")
        assert request.headers["authorization"] == "Bearer t"
        self.received.append((self.clock(), path, request.content))
        if self.network == "deaf":
            raise httpx2.ReadError("connection lost")
        if isinstance(self.network, int):
            return httpx2.Response(self.network, json={"detail": "no"})
        report_at = self.clock() + self.report_after
        if path.endswith("/shown"):
            return httpx2.Response(200, json={"report_at": report_at if self.wanted else None})
        if path != "/decisions":
            self.reported.set()
            return httpx2.Response(200, json={})
        return httpx2.Response(
            200,
            json={
                "id": json.loads(request.content)["id"],
                "option": "red",
                "probability": 0.5,
                "report_at": report_at,
                "instructions": self.asked,
                "reason": "learn",
            },
        )

    def paths(self):
        return [path for _, path, _ in self.received]

    def reports(self, id):
        return [each for each in self.received if each[1] == "/reports" and id.encode() in each[2]]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def service(clock):
    return Service(clock)


def visit(service, outbox=None, max_epsilon=1.0, **more):
    client = Client(
        URL,
        "news",
        token="t",
        max_epsilon=max_epsilon,
        outbox=outbox,
        background=False,
        transport=httpx2.MockTransport(service.answer),
        **more,
    )
    client._flows.clock = service.clock
    return client


def zeros(n: int) -> bytes:
    return bytes(n)


def test_a_click_is_reported_at_its_time_and_not_before(service, clock):
    client = visit(service, Outbox(random=zeros))
    decision = client.decide(person="ann")
    assert (decision.option, decision.probability) == ("red", 0.5)
    assert 0.99 < decision.epsilon <= 1
    assert client.shown(decision)
    assert client.reward(decision, 1.0)
    assert not client.reward(decision, 0.0)
    clock.time += 59
    assert client.flush() == decision.report_at
    assert service.reports(decision.id) == []
    clock.time += 1
    assert client.flush() is None
    ((at, _, body),) = service.reports(decision.id)
    assert at == decision.report_at
    assert json.loads(body) == {"v": 1, "id": decision.id, "value": 1}


def test_silence_is_reported_like_a_click_and_what_was_not_shown_is_not(service, clock):
    client = visit(service)
    shown, hidden = client.decide(), client.decide()
    client.shown(shown)
    client.reward(hidden, 1.0)
    clock.time += 60
    client.flush()
    clock.time += 600
    client.flush()
    assert len(service.reports(shown.id)) == 1
    assert service.reports(hidden.id) == []


def test_retries_repeat_the_bytes_and_a_killed_process_leaves_them_to_the_next(
    service, clock, tmp_path
):
    client = visit(service, Outbox(tmp_path / "outbox.db"))
    decision = client.decide()
    client.shown(decision)
    client.reward(decision, 1.0)
    clock.time += 60
    service.network = "deaf"
    client.flush()
    client.flush()
    again = visit(service, Outbox(tmp_path / "outbox.db"))
    again.flush()
    service.network = "up"
    again.flush()
    client.flush()
    bodies = {body for _, _, body in service.reports(decision.id)}
    assert len(bodies) == 1
    assert len(service.reports(decision.id)) == 4
    assert os.stat(tmp_path / "outbox.db").st_mode & 0o777 == 0o600


def test_offline_when_shown_the_service_is_told_before_the_report(service, clock):
    client = visit(service)
    decision = client.decide()
    service.network = "down"
    assert client.shown(decision)
    clock.time += 60
    assert client.flush() == clock.time + 30
    service.network = "up"
    client.flush()
    assert service.paths() == ["/decisions", f"/decisions/{decision.id}/shown", "/reports"]


def test_a_decision_that_the_service_does_not_know_is_forgotten(service, clock):
    client = visit(service)
    decision = client.decide()
    client.shown(decision)
    service.network = 410
    clock.time += 60
    assert client.flush() is None
    assert client.flush() is None
    assert len(service.reports(decision.id)) == 1


def test_a_service_that_wants_no_report_once_it_was_shown_gets_none(service, clock):
    service.wanted = False
    client = visit(service)
    decision = client.decide()
    client.shown(decision)
    client.reward(decision, 1.0)
    clock.time += 60
    assert client.flush() is None
    assert service.paths() == ["/decisions", f"/decisions/{decision.id}/shown"]


@pytest.mark.parametrize("wait", [59, 60])
def test_a_reward_that_comes_after_its_time_counts_as_none(service, clock, wait):
    # Finding U1
    late = []
    client = visit(service, Outbox(random=zeros), on_late=late.append)  # the report is the reward
    decision = client.decide()
    client.shown(decision)
    clock.time += wait
    assert client.reward(decision, 1.0) == (wait == 59)
    assert late == ([] if wait == 59 else [decision])
    clock.time += 1
    client.flush()
    ((_, _, body),) = service.reports(decision.id)
    assert json.loads(body)["value"] == (wait == 59)


@pytest.mark.parametrize("network", ["up", "down", "deaf"])
def test_its_time_counts_from_when_it_was_shown(service, clock, network):
    # Finding U1
    client = visit(service, Outbox(random=zeros))
    decision = client.decide()
    clock.time += 45
    service.network = network
    assert client.shown(decision)
    service.network = "up"
    assert decision.report_at == clock.time + 60
    clock.time += 59
    assert client.flush() == decision.report_at
    assert client.reward(decision, 1.0)
    clock.time += 1
    client.flush()
    ((at, _, body),) = service.reports(decision.id)
    assert (at, json.loads(body)["value"]) == (decision.report_at, 1)


def test_a_reward_that_nobody_waits_for_is_not_late(service, clock):
    late = []
    client = visit(service, on_late=late.append)
    hidden = client.decide()
    service.asked = None
    unasked = client.decide()
    clock.time += 3600
    assert not client.reward(hidden, 1.0)
    assert not client.reward(unasked, 1.0)
    assert late == []


@pytest.mark.parametrize("again", [False, True], ids=["the same process", "another one"])
def test_a_clock_that_is_set_back_does_not_change_what_was_sent(service, clock, tmp_path, again):
    client = visit(service, Outbox(tmp_path / "outbox.db", random=zeros))
    decision = client.decide()
    client.shown(decision)
    clock.time += 60
    service.network = "deaf"
    client.flush()
    clock.time -= 30
    if again:
        client = visit(service, Outbox(tmp_path / "outbox.db", random=zeros))
    assert not client.reward(decision, 1.0)
    service.network = "up"
    clock.time += 60
    client.flush()
    assert len(service.reports(decision.id)) == 2
    assert {json.loads(body)["value"] for _, _, body in service.reports(decision.id)} == {0}


def kept_by(path, reward):
    """The file of an outbox with five reports, after a reward of the third or without."""
    outbox = Outbox(path, random=zeros)
    for i in range(5):
        asked = instructions.randomized_response(1.0)
        reporter = Reporter(asked, id=f"d-{i}", max_epsilon=1.0, random=zeros)
        assert outbox.add("news", reporter, due=10.0)
        outbox.confirm("news", reporter.id)
    if reward is not None:
        assert outbox.replace("news", "d-2", reward, lambda: 0.0)
    outbox.close()
    return path.read_bytes()


def test_a_file_with_a_reward_differs_in_the_report_and_the_number_of_writes(tmp_path):
    # Finding P10
    silent, rewarded = kept_by(tmp_path / "a.db", None), kept_by(tmp_path / "b.db", 1.0)
    assert len(silent) == len(rewarded)
    differing = [i for i in range(len(silent)) if silent[i] != rewarded[i]]
    counters = {*range(24, 28), *range(92, 96)}  # of SQLite's header
    (value,) = set(differing) - counters
    assert (silent[value : value + 1], rewarded[value : value + 1]) == (b"0", b"1")
    assert silent[value - 8 : value] == b'"value":'


def test_what_0_2_0_left_in_a_file_is_sent(service, clock, tmp_path):
    client = visit(service, Outbox(tmp_path / "outbox.db"))
    decision = client.decide()
    client.shown(decision)
    [(text,)] = client.outbox._database.query("SELECT reporter FROM owed")
    text = json.dumps(json.loads(text) | {"value": None})
    client.outbox._database.run("UPDATE owed SET reporter = ?", text)
    client.close()
    again = visit(service, Outbox(tmp_path / "outbox.db"))
    clock.time += 60
    service.network = "deaf"
    again.flush()
    service.network = "up"
    again.flush()
    assert len({body for _, _, body in service.reports(decision.id)}) == 1
    assert len(service.reports(decision.id)) == 2


def test_a_lost_answer_is_asked_for_again_under_the_same_id(service):
    client = visit(service)
    service.network = "deaf"
    with pytest.raises(ServiceError, match="answered nothing"):
        client.decide()
    assert len({json.loads(body)["id"] for _, _, body in service.received}) == 1
    assert len(service.received) == 2
    service.network = 403
    with pytest.raises(ServiceError, match="answered 403: no"):
        client.decide()


@pytest.mark.parametrize(
    "asked",
    [
        instructions.randomized_response(2.0),
        instructions.identity(),
        {**instructions.randomized_response(1.0), "epsilon": 0.1},
        {"report": "everything"},
    ],
    ids=["too much", "the reward itself", "a declared epsilon", "nonsense"],
)
def test_what_a_device_must_not_follow_is_not_followed(service, clock, asked):
    service.asked = asked
    client = visit(service)
    decision = client.decide()
    assert decision.option == "red"
    assert decision.report_at is None
    assert decision.epsilon == 0
    assert "expected" in decision.reason
    assert not client.shown(decision)
    client.reward(decision, 1.0)
    clock.time += 3600
    assert client.flush() is None
    assert service.paths() == ["/decisions"]


def test_the_budget_of_the_device_refuses(service, tmp_path):
    shown = []
    for _ in range(4):
        client = visit(service, Outbox(tmp_path / "outbox.db", budget=2.5))
        decision = client.decide()
        shown.append(client.shown(decision))
        client.close()
    assert shown == [True, True, False, False]
    assert sum(path.endswith("/shown") for path in service.paths()) == 2
    assert 1.99 < Outbox(tmp_path / "outbox.db").spent <= 2


def test_two_processes_with_one_outbox_come_to_the_same_report(service, clock, tmp_path):
    client = visit(service, Outbox(tmp_path / "outbox.db"))
    decisions = [client.decide() for _ in range(20)]
    for decision in decisions:
        client.shown(decision)
    clock.time += 60
    service.network = "deaf"
    others = [visit(service, Outbox(tmp_path / "outbox.db")) for _ in range(4)]
    threads = [threading.Thread(target=other.flush) for other in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for decision in decisions:
        bodies = [body for _, _, body in service.reports(decision.id)]
        assert len(bodies) == 4
        assert len(set(bodies)) == 1


STEPS = ["decide", "shown", "click", "restart", "up", "down", "deaf", "wait", "wait long"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(STEPS), min_size=8, max_size=40))
def test_any_order_of_events(steps):
    clock = Clock()
    service, outbox = Service(clock), Outbox()
    client, decided, owed = visit(service, outbox), [], set()
    for step in steps:
        if step == "decide" and service.network == "up":
            decided.append(client.decide())
        elif step == "shown" and decided and client.shown(decided[-1]):
            owed.add(decided[-1].id)
        elif step == "click" and decided:
            client.reward(decided[-1], 1.0)
        elif step == "restart":
            client = visit(service, outbox)
        elif step in ("up", "down", "deaf"):
            service.network = step
        elif step.startswith("wait"):
            clock.time += 20 if step == "wait" else 200
            client.flush()
    service.network = "up"
    clock.time += 300
    client.flush()
    for decision in decided:
        reports = service.reports(decision.id)
        assert len({body for _, _, body in reports}) == (decision.id in owed)
        assert all(at >= decision.report_at for at, _, _ in reports)
    assert outbox.pending(client._base) == []


def test_a_client_sends_by_itself():
    service = Service(time.time)
    service.report_after = 0.2
    transport = httpx2.MockTransport(service.answer)
    with Client(URL, "news", token="t", max_epsilon=1.0, transport=transport) as client:
        decision = client.decide()
        client.shown(decision)
        assert service.reported.wait(60)
    ((at, _, _),) = service.reports(decision.id)
    assert at >= decision.report_at


def test_the_async_client_behaves_alike():
    service = Service(time.time)
    service.report_after = 0.2

    async def life():
        transport = httpx2.MockTransport(service.answer)
        async with AsyncClient(
            URL, "news", token="t", max_epsilon=1.0, transport=transport
        ) as client:
            sending = asyncio.create_task(client.send_when_due())
            decision = await client.decide(contexts={"red": [1.0, 0.0]})
            assert await client.shown(decision)
            client.reward(decision, 1.0)
            assert await asyncio.to_thread(service.reported.wait, 60)
            sending.cancel()
            return decision

    decision = asyncio.run(life())
    ((at, _, _),) = service.reports(decision.id)
    assert at >= decision.report_at
