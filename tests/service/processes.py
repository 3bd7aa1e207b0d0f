"""``tacit serve`` as processes of their own, and clients that note what was acknowledged."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import httpx2

import commands
from tacit.device import Reporter

NEWS = "/v1/experiments/news"
#: For httpx2, which else reads all certificates of this machine for every client.
UNENCRYPTED = False


def create(url: str, wanted: dict[str, Any], headers: dict[str, str]) -> httpx2.Response:
    """Create an experiment; the first of its kind on a machine is compiled before it is ready."""
    path = f"{url}/v1/experiments"
    with httpx2.Client(headers=headers, timeout=300, verify=UNENCRYPTED) as http:
        answer = http.post(path, json=wanted)
        if answer.status_code != 202:
            return answer
        place = f"{path}/{wanted['name']}"
        while (said := http.get(f"{place}/creation").json())["status"] == "compiling":
            time.sleep(0.1)
        assert said["status"] == "ready", said
        return httpx2.Response(201, json=http.get(place).json())


class Process:
    """One process: forked from one that has imported everything, or begun from nothing."""

    def __init__(
        self, folder: Path, store: str | Path | None = None, *more: str, afresh: bool = False
    ) -> None:
        store = folder / "s.db" if store is None else store
        begin = commands.start_afresh if afresh else commands.start
        with (folder / "serve.log").open("a") as log:
            self.process = begin(
                *("serve", "--store", store, "--port", "0", *more),
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
        self.token = None
        for line in self.process.stdout:
            if line.startswith("token"):
                place = line.partition(" in ")[2].rpartition("  (")[0]
                self.token = Path(place).read_text().strip()
            if line.startswith("serving"):
                self.url = line.split()[1]
                break
        else:
            raise AssertionError((folder / "serve.log").read_text())

    def kill(self, how: int = signal.SIGKILL) -> int:
        self.process.send_signal(how)
        code = self.process.wait(timeout=20)
        self.process.stdout.close()
        return code


class Waiting:
    """Asks one thing again and again, and notes how long each answer took."""

    def __init__(self, url: str, headers: dict[str, str], method: str, path: str) -> None:
        self.took: list[float] = []
        self._how = url, headers, method, path
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        url, headers, method, path = self._how
        with httpx2.Client(base_url=url, headers=headers, timeout=60, verify=UNENCRYPTED) as http:
            while not self._stop.is_set():
                begun = time.monotonic()
                answer = http.request(method, path)
                assert answer.status_code == 200, answer.text
                self.took.append(time.monotonic() - begun)
                time.sleep(0.03)

    def stop(self) -> float:
        self._stop.set()
        self._thread.join()
        return sorted(self.took)[int(0.99 * len(self.took))]


class Clients:
    """Threads that decide and report, at any of the addresses, until they are told to stop."""

    def __init__(self, token: str, count: int = 4) -> None:
        self.headers = {"authorization": f"Bearer {token}"}
        self.urls: list[str] = []
        self.decided: dict[str, str] = {}
        self.sent: dict[str, Any] = {}
        self.reported: dict[str, Any] = {}
        self.wrong: list[str] = []
        self._count, self._seed = count, 0
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        self._stop.clear()
        self._threads = []
        for _ in range(self._count):
            self._seed += 1
            thread = threading.Thread(target=self._drive, args=(self._seed,))
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def until_more(self, n: int, seconds: float = 30.0) -> float:
        """Wait until so many more reports are acknowledged; return how long that took."""
        # A machine may be busy: so many more reports, not so much time.
        begun, enough = time.monotonic(), len(self.reported) + n
        while len(self.reported) < enough and time.monotonic() < begun + seconds:
            time.sleep(0.005)
        return time.monotonic() - begun

    def _drive(self, seed: int) -> None:
        rng = random.Random(seed)
        with httpx2.Client(headers=self.headers, timeout=8, verify=UNENCRYPTED) as http:
            while not self._stop.is_set():
                try:
                    url = rng.choice(self.urls) + NEWS
                    answer = http.post(f"{url}/decisions", json={"shown": True})
                    self._check(answer)
                    if answer.status_code != 200:
                        time.sleep(0.02)
                        continue
                    decision = answer.json()
                    id = decision["id"]
                    self.decided[id] = decision["option"]
                    reporter = Reporter(decision["instructions"], id=id, max_epsilon=1)
                    self.sent[id] = reporter.report(float(rng.random() < 0.5))
                    answer = http.post(f"{url}/reports", json=self.sent[id])
                    self._check(answer)
                    if answer.status_code == 200:
                        self.reported[id] = self.sent[id]
                except httpx2.HTTPError:
                    time.sleep(0.02)

    def _check(self, answer: httpx2.Response) -> None:
        """Either it is done, or one is told to come back."""
        unavailable = answer.status_code == 503 and "retry-after" in answer.headers
        if answer.status_code != 200 and not unavailable:
            self.wrong.append(f"{answer.status_code} {answer.text}")

    def check(self, url: str) -> None:
        """Hold what is known now against everything that was acknowledged."""
        assert not self.wrong, self.wrong[:3]
        with httpx2.Client(
            base_url=url, headers=self.headers, timeout=20, verify=UNENCRYPTED
        ) as http:
            known = [self._again(http, each) for each in _batches(self.reported.values())]
            assert {status for each in known for status in each} == {"repeated"}
            unsure = [self.sent[id] for id in self.decided if id not in self.reported]
            found = [self._again(http, each) for each in _batches(unsure)]
            assert {status for each in found for status in each} <= {"learned", "repeated"}
            rows = http.get(f"{NEWS}/statistics").json()["options"]
        for row in rows:
            mine = sum(option == row["option"] for option in self.decided.values())
            assert row["decided"] >= mine
        # Every acknowledged decision is now reported on; others were never answered.
        assert sum(row["learned"] for row in rows) == len(self.decided)

    def _again(self, http: httpx2.Client, reports: list[Any]) -> list[str]:
        answer = http.post(f"{NEWS}/reports", json=reports)
        receipts = answer.json()["reports"]
        assert [each["id"] for each in receipts] == [each["id"] for each in reports]
        return [each["status"] for each in receipts]


def _batches(reports: Any) -> list[list[Any]]:
    every = list(reports)
    return [every[at : at + 500] for at in range(0, len(every), 500)]
