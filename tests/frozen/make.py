"""Write what version 0.2.0 stores, with version 0.2.0: run it there, never with a later version.

    PYTHONPATH=tests python tests/frozen/make.py FOLDER

It writes stores, saved learners, an outbox, a ledger and a database dump, and `expected.json` with what
was true when each was closed. Later versions must open all of them and go on.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from databases import Postgres
from service.conftest import Service
from tacit.arms import DPIMED, DPSE, KLUCBCF
from tacit.client import Outbox
from tacit.contextual import LinUCB, PrivateContexts
from tacit.device import Reporter
from tacit.privacy import Ledger

YEAR = 365 * 86_400
LOCAL = {
    "name": "news",
    "policy": {"name": "klucb-cf", "epsilon": 1.0},
    "options": ["red", "green", "blue"],
    "reward": {"kind": "binary", "report_after": YEAR},
    "budget": {"day": 3.0, "ever": 5.0},
}
CENTRAL = {
    "name": "trusted",
    "policy": {"name": "dp-imed", "epsilon": 1.0},
    "options": ["red", "green"],
    "reward": {"kind": "binary", "report_after": 0},
    "grace": 0,
}
PEOPLE = {
    "name": "people",
    "policy": {"name": "linucb", "epsilon": 2.0, "dimension": 2},
    "people": ["ada", "José"],
    "reward": {"kind": "bounded", "default": 0.0, "report_after": YEAR},
}


def live(service: Service) -> dict[str, Any]:
    """Lead three experiments through part of their lives; return what is true then."""
    expected: dict[str, Any] = {}
    service.create(LOCAL)
    service.create(CENTRAL)
    service.create(PEOPLE)
    for i in range(4):
        decision = service.decide(person="ada", shown=True, id=f"ada-{i}")
        if i < 2:
            service.report(decision, 1.0)
    service.decide(person="bob", shown=False, id="bob-0")
    change = {"retire_options": ["blue"], "add_options": ["violet"]}
    assert service.call("PATCH", "/v1/experiments/news", change).status_code == 200
    for i in range(30):
        decision = service.decide("trusted", shown=True, id=f"t-{i}")
        service.report(decision, float(i % 2), "trusted")
        time.sleep(0.002)
    contexts = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
    for i in range(6):
        decision = service.decide(
            "people", person="José", contexts=contexts, shown=True, id=f"p-{i}"
        )
        if i < 5:
            service.report(decision, 0.5, "people")
    for name in ("news", "trusted", "people"):
        expected[name] = {
            "statistics": service.call("GET", f"/v1/experiments/{name}/statistics").json(),
            "description": service.call("GET", f"/v1/experiments/{name}").json(),
        }
    return expected


def make_service(folder: Path) -> dict[str, Any]:
    service = Service(folder / "tacit.db")
    try:
        return {"token": service.admin, **live(service)}
    finally:
        service.stop()


def make_postgres(folder: Path) -> dict[str, Any]:
    server = Postgres()
    try:
        schema = server.fresh()
        service = Service(server.address(schema), beside=folder / "postgres")
        try:
            expected = {"token": service.admin, "schema": schema, **live(service)}
        finally:
            service.stop()
        server.dump(schema, folder / "postgres.sql")
        return expected
    finally:
        server.close()


def make_learners(folder: Path) -> dict[str, Any]:
    expected: dict[str, Any] = {}
    local = KLUCBCF(n_arms=3, epsilon=1.0)
    how: dict[str, Any] = {"options": ["red", "green", "blue"], "budget": {"day": 2.0, "ever": 6.0}}
    stored = tacit.Learner(local, store=folder / "learner.db", **how)
    saved = tacit.Learner(local, seed=7, **how)
    for learner in (stored, saved):
        for i in range(5):
            decision = learner.decide(person=["ada", "José"][i % 2], id=f"d-{i}")
            if decision.reason == "" and i < 4:
                learner.learn(decision.device.report(1.0))
    expected["learner.db"] = {"counts": stored.counts, "rounds": stored.rounds}
    expected["local.learner"] = {"counts": saved.counts, "rounds": saved.rounds}
    stored.close()
    saved.save(folder / "local.learner")
    for name, policy in (
        ("imed.learner", DPIMED(n_arms=2, epsilon=1.0)),
        ("dpse.learner", DPSE(n_arms=2, epsilon=1.0, horizon=1000)),
    ):
        central = tacit.Learner(policy, seed=3)
        for i in range(41):
            central.learn(central.decide().device.report(float(i % 3 == 0)))
        expected[name] = {"counts": central.counts, "rounds": central.rounds}
        central.save(folder / name)
    rng = np.random.default_rng(1)
    for name, policy in (
        ("linucb.learner", LinUCB(n_users=2, dimension=2, epsilon=2.0)),
        ("visits.learner", PrivateContexts(n_users=2, dimension=2, epsilon=1.0)),
    ):
        contextual = tacit.Learner(policy, people=["ada", "José"], seed=5)
        for i in range(20):
            contexts = rng.uniform(-0.5, 0.5, size=(3, 2))
            decision = contextual.decide(person=["ada", "José"][i % 2], contexts=contexts)
            contextual.learn(decision.device.report(0.5))
        expected[name] = {"counts": contextual.counts, "rounds": contextual.rounds}
        contextual.save(folder / name)
    return expected


def make_outbox(folder: Path) -> dict[str, Any]:
    learner = tacit.Learner(KLUCBCF(n_arms=2, epsilon=1.0), seed=1)
    outbox = Outbox(folder / "outbox.db", budget=4.0, random=lambda n: bytes(range(n)))
    place = "http://127.0.0.1:8000/v1/experiments/news"
    for i in range(3):
        told = learner.decide().instructions
        assert told is not None
        outbox.owe(place, Reporter(told, id=f"d-{i}", max_epsilon=None), 1_700_000_000.0 + i)
    fixed = outbox.fix(place, "d-0", 1.0)
    outbox.confirm(place, "d-1")
    expected = {
        "place": place,
        "report": fixed,
        "spent": outbox.spent,
        "owed": [list(each) for each in outbox.owed(place)],
    }
    outbox.close()
    return expected


def make_ledger(folder: Path) -> dict[str, Any]:
    with Ledger(folder / "ledger.db") as ledger:
        ledger.allow(2.0, 1e-6, period="day")
        ledger.allow(5.0, 1e-6)
        ledger.allow(3.0, period="day", subject="ada")
        ledger.spend("ada", 1.5, key="survey-ada")
        ledger.spend("bob", 0.5, 1e-7, key="survey-bob")
        return {
            "ada": float(ledger.spent("ada").epsilon),
            "bob": float(ledger.spent("bob").epsilon),
            "entries": len(ledger.entries()),
        }


def main() -> None:
    assert tacit.__version__ == "0.2.0", tacit.__version__
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    expected = {
        "service": make_service(folder),
        "postgres": make_postgres(folder),
        "learners": make_learners(folder),
        "outbox": make_outbox(folder),
        "ledger": make_ledger(folder),
    }
    text = json.dumps(expected, indent=1, sort_keys=True, default=float)
    (folder / "expected.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
