"""Killed under load, again and again: nothing acknowledged is lost, nothing counts twice."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import httpx
import pytest

from service.conftest import LOCAL
from service.processes import Clients, Process


def kills(folder, times):
    process = Process(folder)
    clients = Clients(process.token)
    wanted = {**LOCAL, "max_open": 1_000_000}
    made = httpx.post(f"{process.url}/v1/experiments", json=wanted, headers=clients.headers)
    assert made.status_code == 201
    for i in range(times):
        clients.urls = [process.url]
        clients.start()
        clients.until_more(random.Random(i).randint(5, 25))
        process.kill()
        clients.stop()
        process = Process(folder)
    assert len(clients.reported) >= 5 * times
    clients.check(process.url)
    assert process.kill(signal.SIGTERM) == 0


def test_kill_9_under_load(tmp_path):
    kills(tmp_path, 10)


@pytest.mark.soak
def test_kill_9_under_load_for_long(tmp_path):
    kills(tmp_path, 200)


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
    httpx.post(f"{process.url}/v1/experiments", json=budget, headers=headers)
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
