"""A service on a fresh store, in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tacit.device import Reporter
from tacit.service import open_service

LOCAL: dict[str, Any] = {
    "name": "news",
    "policy": {"name": "klucb-cf", "epsilon": 1.0},
    "options": ["red", "green", "blue"],
    "reward": {"kind": "binary", "report_after": 3600},
}
CENTRAL: dict[str, Any] = {
    "name": "trusted",
    "policy": {"name": "dpse", "epsilon": 1.0, "horizon": 1000},
    "options": ["red", "green"],
    "reward": {"kind": "binary", "report_after": 0},
    "grace": 0,
}


class Service:
    """A running service and an administrator of it."""

    def __init__(self, store: str | Path, **how: Any) -> None:
        self.store = store
        self.opened = open_service(store, **how)
        self.admin = self.opened.first_token
        self.http = TestClient(self.opened.app, raise_server_exceptions=False)
        self.http.__enter__()

    def call(self, method: str, path: str, body: Any = None, token: str | None = "") -> Any:
        headers = {}
        token = self.admin if token == "" else token
        if token:
            headers["authorization"] = f"Bearer {token}"
        return self.http.request(method, path, json=body, headers=headers)

    def create(self, wanted: dict[str, Any], **changes: Any) -> Any:
        wanted = {**wanted, **changes}
        answer = self.call("POST", "/v1/experiments", wanted)
        if answer.status_code == 202:
            place = f"/v1/experiments/{wanted['name']}"
            while self.call("GET", f"{place}/creation").json()["status"] == "compiling":
                time.sleep(0.1)
            return self.call("GET", place).json()
        assert answer.status_code == 201, answer.text
        return answer.json()

    def decide(self, name: str = "news", **body: Any) -> Any:
        answer = self.call("POST", f"/v1/experiments/{name}/decisions", body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def report(self, decision: Any, reward: float, name: str = "news") -> Any:
        reporter = Reporter(decision["instructions"], id=decision["id"], max_epsilon=None)
        return self.call("POST", f"/v1/experiments/{name}/reports", reporter.report(reward))

    def stop(self) -> None:
        self.http.__exit__(None, None, None)


@pytest.fixture(params=["sqlite", "postgres"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    """A service; the test runs on each kind of store."""
    if request.param == "sqlite":
        running = Service(tmp_path / "store.db")
    else:
        server = request.getfixturevalue("postgres")
        running = Service(server.address(server.fresh()), beside=tmp_path / "outside")
    yield running
    running.stop()
