"""Killed under load, again and again: nothing acknowledged is lost, nothing counts twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest

from service.conftest import LOCAL
from tacit.device import Reporter


class Process:
    """``tacit serve`` as a process of its own."""

    def __init__(self, folder) -> None:
        self.log = (folder / "serve.log").open("a")
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tacit",
                "serve",
                "--store",
                str(folder / "s.db"),
                "--port",
                "0",
            ],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        self.token = None
        for line in self.process.stdout:
            if line.startswith("token"):
                self.token = line.split()[1]
            if line.startswith("serving"):
                self.url = line.split()[1]
                break
        else:
            raise AssertionError((folder / "serve.log").read_text())

    def kill(self, how=signal.SIGKILL) -> int:
        self.process.send_signal(how)
        return self.process.wait(timeout=20)


def drive(url, token, seed, acknowledged, stop):
    """Decide and report until the service goes away; note everything that was acknowledged."""
    rng = random.Random(seed)
    with httpx.Client(
        base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=5
    ) as http:
        while not stop.is_set():
            try:
                answer = http.post("/v1/experiments/news/decisions", json={"shown": True})
                if answer.status_code != 200:
                    continue
                decision = answer.json()
                acknowledged["decided"][decision["id"]] = decision["option"]
                reporter = Reporter(decision["instructions"], id=decision["id"], max_epsilon=1)
                report = reporter.report(float(rng.random() < 0.5))
                acknowledged["sent"][decision["id"]] = report
                answer = http.post("/v1/experiments/news/reports", json=report)
                if answer.status_code == 200:
                    acknowledged["reported"][decision["id"]] = report
            except httpx.HTTPError:
                return


def kills(folder, times):
    process = Process(folder)
    token = process.token
    headers = {"authorization": f"Bearer {token}"}
    wanted = {**LOCAL, "max_open": 1_000_000}
    assert (
        httpx.post(f"{process.url}/v1/experiments", json=wanted, headers=headers).status_code == 201
    )
    acknowledged = {"decided": {}, "sent": {}, "reported": {}}
    for i in range(times):
        stop = threading.Event()
        threads = [
            threading.Thread(
                target=drive, args=(process.url, token, 10 * i + j, acknowledged, stop)
            )
            for j in range(4)
        ]
        for thread in threads:
            thread.start()
        # A machine may be busy: so many more reports, not so much time.
        enough = len(acknowledged["reported"]) + random.Random(i).randint(5, 25)
        until = time.monotonic() + 30
        while len(acknowledged["reported"]) < enough and time.monotonic() < until:
            time.sleep(0.005)
        process.kill()
        stop.set()
        for thread in threads:
            thread.join()
        process = Process(folder)
    http = httpx.Client(base_url=process.url, headers=headers)
    decided, reported = acknowledged["decided"], acknowledged["reported"]
    assert len(reported) >= 5 * times
    path = "/v1/experiments/news/reports"
    for id, report in reported.items():
        again = http.post(path, json=report)
        assert again.json() == {"id": id, "status": "repeated", "reason": ""}
    late = {id for id in decided if id not in reported}
    statuses = {http.post(path, json=acknowledged["sent"][id]).json()["status"] for id in late}
    assert statuses <= {"learned", "repeated"}
    rows = http.get("/v1/experiments/news/statistics").json()["options"]
    for row in rows:
        mine = sum(option == row["option"] for option in decided.values())
        assert row["decided"] >= mine
    # Every acknowledged decision is now reported on; others were never answered.
    assert sum(row["learned"] for row in rows) == len(decided)
    assert process.kill(signal.SIGTERM) == 0
    return len(reported)


def test_kill_9_under_load(tmp_path):
    kills(tmp_path, 5)


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
