"""The audit of a running service: what the network, and what a client, can tell about one reward.

A true claim is refuted with probability at most 0.001 in each of these tests; every one has a twin that
leaks and must be refuted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import random
import re
import socket
import threading

import httpx2
import msgspec
import numpy as np
import pytest
import uvicorn

from service.disorder import Disorder
from tacit.client import AsyncClient
from tacit.client.flows import Ask
from tacit.privacy import audit
from tacit.service import ExperimentManager, open_service
from tacit.service.app import make_app
from tacit.service.messages import ExperimentRequest
from tacit.service.tokens import Tokens
from tacit.serving import Experiment
from tacit.serving.core import Core
from tacit.serving.storage import MemoryStore
from tiers import tiered

ALPHA = 0.001
DEVICES = 420


class Wire(httpx2.AsyncBaseTransport):
    """The network: it sees when each request leaves a device, and its bytes."""

    def __init__(self, inner, clock) -> None:
        self.inner, self.clock, self.seen = inner, clock, {}

    async def handle_async_request(self, request):
        body = json.loads(request.content)
        about = body.get("id") or request.url.path.split("/")[-2]
        sent = (self.clock(), request.url.path, request.content)
        self.seen.setdefault(about, []).append(sent)
        return await self.inner.handle_async_request(request)


class Time:
    """What clocks on both sides show: real time would tell how busy the machine is."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A service with an experiment for each epsilon, and the time on both sides."""
    clock, patch = Time(), pytest.MonkeyPatch()
    patch.setattr(Experiment, "clock", staticmethod(lambda: round(1000 * clock())))
    opened = open_service(tmp_path_factory.mktemp("audit") / "s.db")
    opened.manager.store.database.connection.execute("PRAGMA synchronous = OFF")
    for epsilon in (1.0, 2.0):
        wanted = {
            "name": f"eps{epsilon:g}",
            "policy": {"name": "klucb-cf", "epsilon": epsilon},
            "options": ["red", "green"],
            "reward": {"kind": "binary", "report_after": 60},
        }
        opened.manager.create(msgspec.convert(wanted, ExperimentRequest))
    yield opened, clock
    opened.manager.store.close()
    patch.undo()


@contextlib.contextmanager
def listening(app):
    """Let a service listen on a socket of its own; yield its address."""
    # Named as TCP, so that asyncio sends small answers at once.
    open_socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    open_socket.bind(("127.0.0.1", 0))
    how = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off")
    server = uvicorn.Server(how)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [open_socket]})
    thread.start()
    yield f"http://127.0.0.1:{open_socket.getsockname()[1]}"
    server.should_exit = True
    thread.join()


async def crowd(running, experiment, n, *, hasty, url):
    """Let n devices decide, half of which see a click; return what the network saw of each."""
    opened, clock = running
    inner = httpx2.AsyncHTTPTransport() if url else httpx2.ASGITransport(opened.app)
    wire, rng, turns = Wire(inner, clock), random.Random(n), asyncio.Semaphore(20)
    client = AsyncClient(
        url or "http://testserver",
        experiment,
        token=opened.first_token,
        max_epsilon=None,
        transport=wire,
    )
    client._flows.clock = clock
    rows, begun = {True: [], False: []}, {}

    async def device():
        async with turns:
            decision = await client.decide()
            assert await client.shown(decision)
            begun[decision.id] = clock()
            return decision

    decisions = await asyncio.gather(*(device() for _ in range(n)))
    clicked = {decision.id: rng.random() < 0.5 for decision in decisions}
    clock.now += 20
    for decision in decisions:
        if clicked[decision.id]:
            client.reward(decision, 1.0)
            if hasty:
                report = client.outbox.report(client.place, decision.id)
                client.outbox.forget(client.place, decision.id)
                await client._post(Ask("/reports", report))
    while (again := await client.flush()) is not None:
        clock.now = max(clock.now, again)
    await client.close()
    for id, was in clicked.items():
        when, path, body = wire.seen[id][-1]
        assert path.endswith("/reports")
        value = json.loads(body)["value"]
        rows[was].append([value, len(wire.seen[id]), len(body), when - begun[id]])
    return rows


def heard(rows):
    """Return rows as something to audit: each is looked at once."""

    def run(clicked, n, seed):
        taken, rows[clicked] = rows[clicked][:n], rows[clicked][n:]
        assert len(taken) == n
        return np.array(taken, float)

    return run


def network(running, experiment, *, hasty=False, url=""):
    rows = asyncio.run(crowd(running, experiment, 2 * DEVICES + 80, hasty=hasty, url=url))
    return audit(heard(rows), True, False, epsilon=1.0, runs=DEVICES, alpha=ALPHA)


def test_the_network_cannot_tell_a_click_from_none(running):
    assert network(running, "eps1").verdict == "not refuted"


def test_a_client_that_reports_when_it_is_clicked_is_refuted(running):
    assert network(running, "eps1", hasty=True).verdict == "refuted"


def test_half_the_noise_on_the_device_is_refuted(running):
    assert network(running, "eps2").verdict == "refuted"


@pytest.mark.soak
def test_the_same_over_real_sockets(running):
    with listening(running[0].app) as url:
        assert network(running, "eps1", url=url).verdict == "not refuted"
        assert network(running, "eps1", hasty=True, url=url).verdict == "refuted"
        assert network(running, "eps2", url=url).verdict == "refuted"


class Pages:
    """A central experiment, afresh for every history, and all that its clients and pages can see."""

    def __init__(self, folder, monkeypatch, epsilon):
        self.now = 0
        monkeypatch.setattr(Experiment, "clock", staticmethod(lambda: self.now))
        monkeypatch.setattr("tacit.service.dashboard._signed_in", lambda request: True)
        tokens = Tokens(folder / "tokens")
        self.secret = tokens.create("admin", ["admin"])
        self.app = make_app(ExperimentManager(MemoryStore(), bytes(32)), tokens, rate=1e12)
        self.client = Disorder(self.app, self.secret, 0)
        self.wanted = {
            "name": "x",
            "policy": {"name": "lazy-dp-ts", "epsilon": epsilon},
            "options": ["red", "green"],
            "reward": {"kind": "binary", "report_after": 1},
            "grace": 0,
        }

    async def ask(self, method, path, body=None):
        headers = [(b"authorization", f"Bearer {self.secret}".encode())]
        text = b"" if body is None else json.dumps(body).encode()
        status, said = await self.client.ask(method, path, text, headers)
        assert status == 200, said
        return said.decode()

    async def history(self, rewards):
        """Decide and report; return every number that can be seen on the way and at the end."""
        manager = self.app.state.manager = ExperimentManager(MemoryStore(), bytes(32))
        hosted = manager.create(msgspec.convert(self.wanted, ExperimentRequest))
        self.now, seen = 1_700_000_000_000, []
        for turn, reward in enumerate(rewards):
            asked = {"id": f"d{turn}", "shown": True}
            decision = json.loads(await self.ask("POST", "/v1/experiments/x/decisions", asked))
            seen += [hosted.core.options.index(decision["option"]), decision["probability"]]
            if reward is not None:
                report = {"v": 1, "id": f"d{turn}", "value": reward}
                await self.ask("POST", "/v1/experiments/x/reports", report)
            self.now += 1000
            await hosted.ask(Core.tick)
        # An estimate that is not yet there is a number too, so that rows have the same length.
        for place in ("", "/statistics", "/released"):
            text = await self.ask("GET", f"/v1/experiments/x{place}")
            if place == "/released":
                values = [
                    each
                    for line in map(json.loads, text.splitlines())
                    for each in line.get("values", ())
                ]
                seen += (values + [math.nan] * 8)[:8]
            else:
                seen += numbers(text.replace("null", "-7"))
        seen += numbers(await self.ask("GET", "/metrics"))[:60]
        page = await self.ask("GET", "/experiments/x/numbers")
        shares = re.findall(r'<td class="n">([\d,]+)', page)
        return seen + [float(each.replace(",", "")) for each in shares]

    def run(self, rewards, n, seed):
        loop = asyncio.new_event_loop()
        try:
            rows = [loop.run_until_complete(self.history(rewards)) for _ in range(n)]
        finally:
            loop.close()
        width = max(map(len, rows))
        return np.array([row + [math.nan] * (width - len(row)) for row in rows])


def numbers(text):
    return [float(each) for each in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)]


def pages(folder, monkeypatch, left, right, epsilon=1.0, runs=300):
    seen = Pages(folder, monkeypatch, epsilon)
    return audit(seen.run, left, right, epsilon=1.0, runs=runs, alpha=ALPHA)


HISTORIES = {
    "reward": ([1, 0, 0, 0], [0, 0, 0, 0]),
    "silence": ([1, 1, 1, 0], [1, 1, None, 0]),
}


@pytest.mark.parametrize("what", tiered(HISTORIES, "reward".__eq__))
def test_clients_and_pages_cannot_tell_a_reward_or_a_silence(tmp_path, monkeypatch, what):
    found = pages(tmp_path, monkeypatch, *HISTORIES[what])
    assert found.verdict == "not refuted", found.sentence()


def test_a_tenth_of_the_noise_on_the_server_is_refuted(tmp_path, monkeypatch):
    found = pages(tmp_path, monkeypatch, *HISTORIES["reward"], epsilon=10.0)
    assert found.verdict == "refuted", found.sentence()


def test_pages_that_show_who_answered_are_refuted(tmp_path, monkeypatch):
    shown = property(lambda self: False, lambda self, hides: None)
    monkeypatch.setattr(Core, "hides_silence", shown, raising=False)
    found = pages(tmp_path, monkeypatch, *HISTORIES["silence"], runs=100)
    assert found.verdict == "refuted", found.sentence()
