"""Killed under load, again and again: nothing acknowledged is lost, nothing counts twice."""

from __future__ import annotations

import random
import resource
import signal
import subprocess
import sys
import time

import httpx
import pytest

from service.conftest import LOCAL, Service
from service.processes import Clients, Nursery, Process, create


def kills(folder, times):
    process = Nursery(folder)
    process.start()
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
        process.start()
    assert len(clients.reported) >= 5 * times
    clients.check(process.url)
    assert process.kill(signal.SIGTERM) == 0
    process.close()


def test_kill_9_under_load(tmp_path):
    kills(tmp_path, 20)


@pytest.mark.soak
def test_kill_9_under_load_for_long(tmp_path):
    kills(tmp_path, 200)


def test_a_graceful_end_under_load_finishes_what_was_accepted(tmp_path):
    process = Nursery(tmp_path)
    process.start()
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
        process.start()
    clients.check(process.url)
    assert process.kill(signal.SIGTERM) == 0
    process.close()


def test_a_full_disk_is_said_and_nothing_is_half_written(tmp_path):
    """A limit on the size of files stands for a disk without space."""
    service = Service(tmp_path / "s.db")
    service.create(LOCAL, budget={"ever": 1e5})
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
    hosted = service.opened.host.experiments["news"]
    assert hosted.core.decided == len(kept) > 3
    (spent,) = service.opened.host.store.amounts("news", "ever")
    assert spent == len(kept) * hosted.core.cost
    for decision in kept:
        assert service.report(decision, 1.0).json()["status"] == "learned"
    hosted.experiment.verify()
    service.stop()


def test_a_second_server_on_one_store_is_refused_clearly(tmp_path):
    process = Process(tmp_path)
    command = [sys.executable, "-m", "tacit", "serve", "--store", str(tmp_path / "s.db")]
    second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert second.returncode == 2
    assert "in use by process" in second.stderr
    assert len(second.stderr.strip().splitlines()) == 1
    begun = time.monotonic()
    assert process.kill(signal.SIGINT) in (0, 130)
    assert time.monotonic() - begun < 6


def test_an_old_copy_is_refused_until_it_is_called_one(tmp_path):
    process = Process(tmp_path)
    headers = {"authorization": f"Bearer {process.token}"}
    budget = {**LOCAL, "budget": {"ever": 3.0}}
    create(process.url, budget, headers)
    path = f"{process.url}/v1/experiments/news/decisions"
    ask = {"person": "ann", "shown": True}
    assert httpx.post(path, json=ask, headers=headers).json()["instructions"]
    process.kill(signal.SIGTERM)
    copy = (tmp_path / "s.db").read_bytes()
    process = Process(tmp_path)
    path = f"{process.url}/v1/experiments/news/decisions"
    for _ in range(2):
        assert httpx.post(path, json=ask, headers=headers).json()["instructions"]
    process.kill(signal.SIGTERM)
    (tmp_path / "s.db").write_bytes(copy)
    command = [sys.executable, "-m", "tacit", "serve", "--store", str(tmp_path / "s.db"), "--port"]
    refused = subprocess.run(
        [*command, "0"], capture_output=True, text=True, check=False, timeout=60
    )
    assert refused.returncode == 2
    assert "old copy" in refused.stderr
    assert "tacit service restore" in refused.stderr
    put_back = [sys.executable, "-m", "tacit", "service", "restore", "--store"]
    done = subprocess.run(
        [*put_back, str(tmp_path / "s.db")], capture_output=True, text=True, check=True, timeout=60
    )
    assert "old copy was restored" in done.stdout
    restored = subprocess.Popen([*command, "0"], stdout=subprocess.PIPE, text=True)
    url = restored.stdout.readline().split()[1]
    # What the lost history may have spent is spent: nothing is left of 3.
    answer = httpx.post(f"{url}/v1/experiments/news/decisions", json=ask, headers=headers).json()
    assert answer["reason"] == "budget"
    said = httpx.get(f"{url}/v1/experiments/news", headers=headers).json()["sentence"]
    assert "old copy was restored" in said
    restored.send_signal(signal.SIGTERM)
    restored.wait(timeout=20)
