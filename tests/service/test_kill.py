"""Killed under load, again and again: nothing acknowledged is lost, nothing counts twice."""

from __future__ import annotations

import random
import resource
import signal
import time

import httpx2
import pytest

from commands import tacit
from service.conftest import LOCAL, Service
from service.processes import UNENCRYPTED, Clients, Process, create


def kills(folder, times):
    process = Process(folder)
    clients = Clients(process.token)
    wanted = {**LOCAL, "max_open": 1_000_000}
    made = create(process.url, wanted, clients.headers)
    assert made.status_code == 201
    for i in range(times):
        clients.urls = [process.url]
        clients.start()
        clients.until_more(random.Random(i).randint(5, 25))
        assert process.kill() == -signal.SIGKILL
        clients.stop()
        process = Process(folder)
    assert len(clients.reported) >= 5 * times
    clients.check(process.url)
    assert process.kill(signal.SIGTERM) == 0


@pytest.mark.parametrize("times", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_kill_9_under_load(tmp_path, times):
    kills(tmp_path, times)


@pytest.mark.soak
def test_kill_9_under_load_for_long(tmp_path):
    kills(tmp_path, 200)


def test_a_graceful_end_under_load_finishes_what_was_accepted(tmp_path):
    process = Process(tmp_path)
    clients = Clients(process.token, count=8)
    made = create(process.url, LOCAL, clients.headers)
    assert made.status_code == 201
    for how in (signal.SIGTERM, signal.SIGINT):
        clients.urls = [process.url]
        clients.start()
        clients.until_more(40)
        begun = time.monotonic()
        assert process.kill(how) == 0
        # Five seconds, and as much again for a machine that does other things.
        assert time.monotonic() - begun < 10
        clients.stop()
        process = Process(tmp_path)
    clients.check(process.url)
    assert process.kill(signal.SIGTERM) == 0


def test_a_full_disk_is_said_and_nothing_is_half_written(tmp_path):
    """A limit on the size of files stands for a disk without space."""
    service = Service(tmp_path / "s.db")
    service.create(LOCAL, budget={"lifetime": 1e5})
    path, body = "/v1/experiments/news/decisions", {"person": "ann", "shown": True}
    kept = [service.decide(**body) for _ in range(3)]
    largest = max(file.stat().st_size for file in tmp_path.iterdir())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest + 20_000, before[1]))
    try:
        for _ in range(200):
            answer = service.call("POST", path, body)
            if answer.status_code != 200:
                break
            kept.append(answer.json())
        for _ in range(3):
            assert service.call("POST", path, body).status_code == 503
        assert "retry-after" in answer.headers
        assert answer.json()["detail"] == "the store could not commit; nothing was done"
        ready = service.call("GET", "/readyz", token=None)
        report = {"v": 1, "id": kept[0]["id"], "value": 1}
        refused = service.call("POST", "/v1/experiments/news/reports", report)
        assert (ready.status_code in (200, 503), refused.status_code) == (True, 503)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    # There is space again: it goes on, with everything that was answered and nothing else.
    hosted = service.opened.manager.experiments["news"]
    assert hosted.core.decided == len(kept) > 3
    (spent,) = service.opened.manager.store.amounts("news", "lifetime")
    assert spent == len(kept) * hosted.core.cost
    for decision in kept:
        assert service.report(decision, 1.0).json()["status"] == "learned"
    hosted.verify()
    service.stop()


def test_a_second_server_on_one_store_is_refused_clearly(tmp_path):
    process = Process(tmp_path, afresh=True)
    second = tacit("serve", "--store", tmp_path / "s.db", cwd=tmp_path)
    assert second.returncode == 2
    assert "in use by process" in second.stderr
    assert len(second.stderr.strip().splitlines()) == 1
    begun = time.monotonic()
    assert process.kill(signal.SIGINT) in (0, 130)
    assert time.monotonic() - begun < 6


def test_an_old_copy_is_refused_until_it_is_called_one(tmp_path):
    process = Process(tmp_path)
    headers = {"authorization": f"Bearer {process.token}"}
    ask = {"person": "ann", "shown": True}

    def call(method, path="", body=None):
        url = f"{process.url}/v1/experiments/news{path}"
        answer = httpx2.request(method, url, json=body, headers=headers, verify=UNENCRYPTED)
        return answer.json()

    create(process.url, {**LOCAL, "budget": {"lifetime": 3.0}}, headers)
    assert call("POST", "/decisions", ask)["instructions"]
    process.kill(signal.SIGTERM)
    copy = (tmp_path / "s.db").read_bytes()
    process = Process(tmp_path)
    for _ in range(2):
        assert call("POST", "/decisions", ask)["instructions"]
    process.kill(signal.SIGTERM)
    (tmp_path / "s.db").write_bytes(copy)
    refused = tacit("serve", "--store", tmp_path / "s.db", "--port", "0", cwd=tmp_path)
    assert refused.returncode == 2
    assert "old copy" in refused.stderr
    assert "tacit service restore" in refused.stderr
    done = tacit("service", "restore", "--store", tmp_path / "s.db", cwd=tmp_path)
    assert done.returncode == 0
    assert "old copy was restored" in done.stdout
    process = Process(tmp_path)
    # What the lost history may have spent is spent: nothing is left of 3.
    assert call("POST", "/decisions", ask)["reason"] == "budget"
    assert "old copy was restored" in call("GET")["sentence"]
    process.kill(signal.SIGTERM)
