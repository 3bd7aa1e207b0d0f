"""The audit of what leaves real clients over HTTP: the bytes, and when they arrive.

A true claim is refuted with probability at most ALPHA in each audit; with this many visitors a halved
threshold stays unnoticed with probability 3e-6 (4.5 standard errors).
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time

import httpx2
import numpy as np
import pytest

from clients.node import node
from clients.wire import Sent, Wire
from tacit.client import AsyncClient, Client, Outbox
from tacit.device import instructions
from tacit.privacy.auditing import audit, epsilon_lower_bound

ALPHA = 1e-4
AFTER = 1.5
ASKED = instructions.randomized_response(1.0)
NAMES = ("value", "seconds after its time", "value stored", "bytes stored")
WRITE, DRAW = 0.012, 0.001
"""Seconds by a clock that stands still otherwise, so that no busy machine hides or makes a difference."""


def service(sent):
    """Answer as the service does, and do nothing else."""
    report_at = time.time() + AFTER
    if sent.path.endswith("/reports"):
        return {"status": "learned"}
    return {
        "option": "red",
        "probability": 0.5,
        "report_at": report_at,
        "instructions": ASKED,
    }


def halved(asked):
    truth, lie = asked["answer"]["weights"]
    return {**asked, "answer": {**asked["answer"], "weights": [truth + lie - lie // 2, lie // 2]}}


class Lying(httpx2.AsyncBaseTransport):
    """Hands a device instructions whose threshold is halved."""

    def __init__(self) -> None:
        self._real = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request):
        answer = await self._real.handle_async_request(request)
        if not request.url.path.endswith("/decisions"):
            return answer
        said = json.loads(await answer.aread())
        await answer.aclose()
        return httpx2.Response(200, json={**said, "instructions": halved(said["instructions"])})


async def python_crowd(url, visitors, kind, folder):
    """What `crowd.ts` does, with the Python client: devices that decide many times."""
    clicked, devices, rng = {}, 32, random.SystemRandom()

    async def click(client, decision):
        await asyncio.sleep(rng.random() * 0.8 * (decision.report_at - time.time()))
        if clicked[decision.id]:
            client.reward(decision, 1.0)
            if kind == "hasty":
                client.outbox._database.run("UPDATE owed SET due = 0 WHERE id = ?", decision.id)
                await client.flush()

    async def device(mine, n):
        transport = Lying() if kind == "halved" else httpx2.AsyncHTTPTransport()
        outbox = None if folder is None else Outbox(folder / f"{n}.db")
        client = AsyncClient(
            url, "news", token="t", max_epsilon=2.0, outbox=outbox, transport=transport
        )
        sending, clicks = asyncio.create_task(client.send_when_due()), []
        for _ in range(mine):
            decision = await client.decide()
            clicked[decision.id] = rng.random() < 0.5
            await client.shown(decision)
            clicks.append(asyncio.create_task(click(client, decision)))
        await asyncio.gather(*clicks)
        while client.outbox.pending(client.place):
            await asyncio.sleep(0.02)
        sending.cancel()
        await transport.aclose()

    await asyncio.gather(*(device(visitors // devices, n) for n in range(devices)))
    return clicked


def crowd(language, visitors, kind, folder=None):
    """Return what arrived of visitors who did not click and of visitors who did, a row each."""
    with Wire(service) as wire:
        url = f"http://127.0.0.1:{wire.port}"
        if language == "python":
            clicked = asyncio.run(python_crowd(url, visitors, kind, folder))
        else:
            done = node("tests/crowd.ts", url, str(visitors), kind)
            assert done.returncode == 0, done.stderr
            clicked = json.loads(done.stdout)
        decided = {json.loads(sent.body)["id"]: sent.at for sent in wire.posts("/decisions")}
        rows = {id: [] for id in clicked}
        for sent in wire.posts("/reports"):
            report = json.loads(sent.body)
            late = sent.at - decided[report["id"]] - AFTER
            rows[report["id"]].append((report["value"], late))
    assert all(len(each) == 1 for each in rows.values())
    return [np.array([rows[id][0] for id in rows if clicked[id] == side]) for side in (False, True)]


def audited(sides, epsilon, columns):
    """Audit recorded rows, each of which is looked at once."""
    fresh = [iter(np.random.default_rng(0).permutation(side[:, columns])) for side in sides]
    runs = min(map(len, sides)) - 2

    def run(side, n, _):
        return np.array([next(fresh[side]) for _ in range(n)])

    names = [NAMES[column] for column in columns]
    return audit(run, 0, 1, epsilon=epsilon, runs=runs, alpha=ALPHA, low_bits=False, names=names)


def bound_by_values(sides):
    """Bound epsilon from below by the two events of a bit, so that no run is spent on a search."""
    n = min(map(len, sides))
    silent, clicked = (int(side[:n, 0].sum()) for side in sides)
    bounds = [
        epsilon_lower_bound(*hits, n, delta=0.0, alpha=ALPHA / 2)
        for hits in ((clicked, silent), (n - silent, n - clicked))
    ]
    return float(max(bounds))


def not_refuted(sides):
    assert bound_by_values(sides) <= 1.0
    assert audited(sides, 1.0, [0, 1]).verdict == "not refuted"
    assert audited(sides, 0.0, [1]).verdict == "not refuted"


def test_what_leaves_the_typescript_client_is_not_refuted(packages):
    not_refuted(crowd("typescript", 1280, "real"))


def test_a_halved_threshold_is_refuted(packages):
    assert bound_by_values(crowd("typescript", 1280, "halved")) > 1.0


def test_what_leaves_the_python_client_is_not_refuted():
    not_refuted(crowd("python", 320, "real"))


@pytest.mark.soak
def test_the_same_in_python_with_as_many_visitors():
    not_refuted(crowd("python", 1280, "real"))
    assert bound_by_values(crowd("python", 1280, "halved")) > 1.0


@pytest.mark.parametrize(
    ("language", "visitors"),
    [("typescript", 384), pytest.param("python", 640, marks=pytest.mark.slow)],
)
def test_sending_on_click_is_refuted(language, visitors, packages):
    sides = crowd(language, visitors, "hasty")
    assert audited(sides, 1.0, [1]).refuted
    silent, clicked = (side[:, 1].min() for side in sides)
    assert silent > -0.1 > clicked


class OldOutbox(Outbox):
    """Stores no report when a decision is shown, and draws at its time what no reward has drawn: 0.2.0."""

    def add(self, place, reporter, due):
        owed = super().add(place, reporter, due)
        [(text,)] = self._database.query("SELECT reporter FROM owed WHERE id = ?", reporter.id)
        kept = json.dumps(json.loads(text) | {"value": None}, separators=(",", ":"))
        self._database.run("UPDATE owed SET reporter = ? WHERE id = ?", kept, reporter.id)
        return owed


def visits(outbox, path, number):
    """What is stored before its time and what arrives, where each write and each draw takes its time."""
    now = [1_800_000_000.0]

    def spend(seconds):
        now[0] += seconds

    def draw(n):
        spend(DRAW)
        return os.urandom(n)

    def trace(statement):
        spend(WRITE * statement.startswith(("INSERT", "UPDATE", "DELETE")))

    arrived = []

    def answer(request):
        if request.url.path.endswith("/reports"):
            arrived.append((json.loads(request.content)["value"], now[0]))
        said = service(Sent(now[0], "POST", request.url.path, request.content))
        return httpx2.Response(200, json={**said, "report_at": now[0] + AFTER})

    box = outbox(path, random=draw)
    box._database.run("PRAGMA synchronous=OFF")
    box._database.connection.set_trace_callback(trace)
    client = Client(
        *("http://decide.test", "news"),
        token="t",
        max_epsilon=1.0,
        outbox=box,
        background=False,
        transport=httpx2.MockTransport(answer),
    )
    client._flows.clock = lambda: now[0]
    sides, rng = ([], []), random.SystemRandom()
    for _ in range(number):
        decision = client.decide()
        client.shown(decision)
        clicked = rng.random() < 0.5
        if clicked:
            spend(rng.random())
            assert client.reward(decision, 1.0)
        [(text,)] = box._database.query("SELECT reporter FROM owed")
        stored = json.loads(text)["value"]
        now[0] = decision.report_at
        client.flush()
        value, at = arrived.pop()
        late = round(at - decision.report_at, 6)
        sides[clicked].append((value, late, -1 if stored is None else stored, len(text)))
    client.close()
    return [np.array(side) for side in sides]


@pytest.mark.parametrize("kept", ["memory", "file"])
def test_an_outbox_tells_nothing_before_its_time_nor_by_the_time(kept, tmp_path):
    # Findings P2 and P10
    path = tmp_path / "outbox.db" if kept == "file" else None
    sides = visits(Outbox, path, 400)
    assert audited(sides, 1.0, [0, 1, 2, 3]).verdict == "not refuted"
    assert audited(sides, 0.0, [1]).verdict == "not refuted"
    assert audited(sides, 0.0, [3]).verdict == "not refuted"


@pytest.mark.parametrize("column", [1, 2, 3], ids=["time", "value stored", "bytes stored"])
def test_an_outbox_that_draws_at_its_time_is_refuted(column):
    """The twin: with 200 visitors of each kind an event without noise refutes any epsilon below 3."""
    assert audited(visits(OldOutbox, None, 400), 1.0, [column]).refuted


@pytest.mark.slow
def test_real_clients_with_files_are_not_refuted(tmp_path):
    # Finding P2
    not_refuted(crowd("python", 320, "real", tmp_path))
