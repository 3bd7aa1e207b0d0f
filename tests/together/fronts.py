"""The product as each kind of user meets it, behind one small interface: a thin adapter for each front end.

A redesign changes this file and no other of the folder. What is read past the public seams stands in `World`:
the clock, the noise, and what the policy released.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tacit
from tacit.client import ServiceError
from tacit.contextual.decider import BatchDecider
from tacit.core.decider import Decider
from tacit.core.registry import policy_named
from tacit.core.tapes import NOISE, Tape, secure_tape
from tacit.device import Reporter
from tacit.graphs import Graph
from tacit.privacy import Guarantee
from tacit.service import open_service
from tacit.service.backups import back_up, restore
from tacit.serving import Core, Experiment, experiment
from together.options import CONTEXTS, Case

NAMES = ["red", "green", "blue", "pink", "grey"]
PEOPLE = ["ann", "bob", "cy"]
EPSILON = {"private-contexts": 4.0, "fed-ucb": 4.0}
START = 1_700_000_000_000
AFTER, GRACE = 60.0, 10.0
DEFAULT = 3 * 2.0**-4
TINY = 2.0**-40
"""The noise of scale 1 on a readable tape."""
_ROUNDS, _INDICES = 4096, 24


class RefusedCommandError(Exception):
    """The product said no."""


class Answer(NamedTuple):
    """What a person's device is told."""

    option: str
    probability: float
    report_at: float | None
    is_asked: bool
    reason: str


class World:
    """What surrounds the product: time, noise, and a witness of what was released."""

    def __init__(self, case: Case, folder: Path, server: Any = None) -> None:
        self.case, self.folder, self.server = case, folder, server
        self.now = START
        self.released: list[list[float]] = []
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> World:
        set_to = self._patch.setattr
        set_to(Experiment, "clock", staticmethod(lambda: self.now))
        set_to(experiment, "secure_tape", self.tape)
        for kind in (Decider, BatchDecider):
            set_to(kind, "released", self._witness(kind.released))
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()

    @property
    def readable(self) -> bool:
        return bool(self.case["noise"] == "readable")

    def tape(self, *, choices: bytes | None = None, log: int = 0, positions: int = 0) -> Tape:
        """Return a real tape, or one whose noise of scale b is b * TINY, so that it can be read off."""
        real = secure_tape(choices=choices, log=log, positions=positions)
        return real._replace(kind=2, recorded=_uniforms()) if self.readable else real

    def _witness(self, told: Any) -> Any:
        def released(decider: Any, tape: Any, n: int, record: Any) -> Any:
            values = told(decider, tape, n, record)
            self.released.append(list(values))
            return values

        return released


_shared: list[np.ndarray] = []


def _uniforms() -> np.ndarray:
    if not _shared:
        made = np.random.default_rng(0).random((21, _ROUNDS, _INDICES))
        made[NOISE] = 0.5 + TINY / 2
        _shared.append(made)
    return _shared[0]


def edges_of(case: Case) -> list[tuple[int, int]]:
    """Return which options show each other's rewards."""
    n = range(1, len(NAMES))
    return {"star": [(0, i) for i in n], "path": [(i - 1, i) for i in n]}.get(case["graph"], [])


def shows(case: Case) -> dict[str, list[str]]:
    """Return whose rewards each option shows, its own first."""
    out = {name: [name] for name in NAMES}
    for i, j in edges_of(case):
        out[NAMES[i]].append(NAMES[j])
        out[NAMES[j]].append(NAMES[i])
    return out


def description(case: Case) -> dict[str, Any]:
    """Return an experiment as a file describes it."""
    policy: dict[str, Any] = {"name": case["policy"], "epsilon": EPSILON.get(case["policy"], 1.0)}
    if case["graph"] != "none":
        policy |= {"graph": {"name": case["graph"], "n_nodes": len(NAMES)}}
    if case["unit"] == "round" and case["policy"] in ("dp-imed", "dp-klucb"):
        policy |= {"unit": "round"}
    given: dict[str, Any] = {"options": NAMES}
    if case["policy"] in CONTEXTS:
        policy |= {"dimension": 1}
        given = {"people": PEOPLE}
    return {
        "name": "x",
        "policy": policy,
        **given,
        "mode": case["mode"],
        "explore": case["explore"],
        "reward": {"kind": "bounded", "default": DEFAULT, "report_after": AFTER},
        "grace": GRACE,
        **({"budget": caps} if (caps := first_caps(case)) else {}),
    }


def first_caps(case: Case) -> dict[str, float]:
    caps = {"lifetime": {"lifetime": 4.0}, "day": {"day": 2.0, "lifetime": 6.0}}.get(
        case["budget"], {}
    )
    return {period: most * cap_unit(case) for period, most in caps.items()}


def cap_unit(case: Case) -> float:
    """Return what the dearest report costs."""
    several = case["graph"] != "none" and case["unit"] == "reward"
    return float(len(NAMES)) if several else 1.0


def policy_of(case: Case) -> Any:
    """Return the policy of a case."""
    given = description(case)["policy"]
    sizes = {"n_users": len(PEOPLE)} if case["policy"] in CONTEXTS else {"n_arms": len(NAMES)}
    given = {key: value for key, value in given.items() if key not in ("name", "graph")}
    if case["graph"] != "none":
        given["graph"] = Graph.from_edges(edges_of(case), n_nodes=len(NAMES))
    return policy_named(case["policy"])(**sizes, **given)


def visit_scale(case: Case) -> float:
    """Return the standard deviation of the noise that hides a visit."""
    (mechanism,) = policy_of(case).mechanisms
    return float(mechanism.scale)


class Front:
    """What a life does with the product; a verb that a front end has not got is not in `verbs`."""

    verbs: frozenset[str]
    is_device = False
    """Whether devices report by themselves, at their time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._sent: dict[str, Any] = {}
        self._asked: dict[str, Any] = {}

    def is_announced(self, id: str) -> bool:
        """Return whether the product was told of every showing."""
        return True

    def _device(self, id: str, rewards: dict[str, float], option: str) -> Any:
        """Return the report of a device, the same on every retry."""
        if id not in self._sent:
            reporter = Reporter(self._asked[id], id=id, max_epsilon=None)
            self._sent[id] = reporter.report(rewards[option])
            if len(rewards) > 1:
                self._sent[id]["value"] = dict(rewards)
        return self._sent[id]


class LearnerFront(Front):
    """`tacit.Learner`, in memory or with a store."""

    _common = ("decide", "show", "report", "repeat", "cancel", "change", "look", "wait")

    def __init__(self, world: World) -> None:
        super().__init__(world)
        stored = world.case["front"] == "store"
        more = ("restart", "crash", "backup", "restore") if stored else ("save", "load")
        self.verbs = frozenset((*self._common, *more))
        self._file = world.folder / "learner.db" if stored else None
        self._requests: dict[str, Any] = {}
        self.learner = self._open()

    def _given(self) -> dict[str, Any]:
        case = self.world.case
        return {
            "explore": case["explore"],
            **({"people": PEOPLE} if case["policy"] in CONTEXTS else {}),
        }

    def _open(self, **more: Any) -> Any:
        case = self.world.case
        options = {} if case["policy"] in CONTEXTS else {"options": NAMES}
        return tacit.Learner(
            policy_of(self.world.case),
            **options,
            **self._given(),
            mode=case["mode"],
            store=self._file,
            report_after=AFTER if case["time"] == "due" else None,
            grace=GRACE,
            default=DEFAULT,
            budget=first_caps(case) or None,
            **more,
        )

    def decide(self, id: str, *, person: Any, eligible: Any, contexts: Any, shown: bool) -> Answer:
        request = {"person": person, "eligible": eligible, "contexts": contexts, "shown": shown}
        with _refusals():
            made = self.learner.decide(id=id, **request)
        self._requests[id] = request
        asked = made.instructions
        self._asked[id] = asked
        return Answer(made.option, made.probability, made.report_at, asked is not None, made.reason)

    def show(self, id: str) -> Answer:
        with _refusals():
            self.learner.show(id)
        # Asked again: a decision that was made before a restart is another object now.
        return self.decide(id, **self._requests[id])

    def report(self, id: str, rewards: dict[str, float], option: str) -> str:
        with _refusals():
            return str(self.learner.learn(self._device(id, rewards, option)).status)

    def repeat(self, id: str) -> str:
        with _refusals():
            return str(self.learner.learn(self._sent[id]).status)

    def cancel(self, id: str) -> None:
        with _refusals():
            self.learner.cancel(id)

    def change(self, wanted: dict[str, Any]) -> None:
        with _refusals():
            if "mode" in wanted:
                self.learner.set_mode(wanted["mode"])
            for name in wanted.get("add_options", ()):
                self.learner.add_option(name)
            for name in wanted.get("retire_options", ()):
                self.learner.retire(name)

    def wait(self, seconds: float) -> None:
        self.world.now += round(1000 * seconds)
        self.learner.tick()

    def facts(self) -> Any:
        """Return what anybody may see, to compare."""
        made = self.learner
        return {
            "counts": made.counts,
            "options": made.options,
            "open": made.open_decisions,
            "rounds": made.rounds,
            "sentence": made.guarantee().sentence(),
        }

    def tallies(self) -> None:
        return None

    def guarantee(self) -> Guarantee:
        stated: Guarantee = self.learner.guarantee()
        return stated

    def pages(self) -> dict[str, str]:
        return {"facts": json.dumps(self.facts()), "repr": repr(self.learner)}

    def restart(self) -> None:
        self.learner.close()
        self.learner = self._open()

    def crash(self) -> None:
        self.learner._owned.close()
        self.learner = self._open()

    def backup(self) -> None:
        back_up(self._file, self.world.folder / "copy.db")

    def restore(self) -> None:
        self.learner.close()
        for suffix in ("-wal", "-shm"):
            Path(f"{self._file}{suffix}").unlink(missing_ok=True)
        shutil.copy(self.world.folder / "copy.db", self._file)
        self.learner = self._open(restored=True)

    def save(self, name: str) -> None:
        self.learner.save(self.world.folder / name)

    def load(self, name: str) -> None:
        file = self.world.folder / name
        with _refusals():
            self.learner = tacit.Learner.load(
                file, policy_of(self.world.case), again=True, **self._given()
            )

    def close(self) -> None:
        self.learner.close()


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except (ValueError, ServiceError) as error:
        raise RefusedCommandError(str(error)) from None


class Reply(NamedTuple):
    status: int
    chunks: list[bytes]

    @property
    def text(self) -> str:
        return b"".join(self.chunks).decode()

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class HttpFront(Front):
    """The service, asked in this process through ASGI, on SQLite or PostgreSQL."""

    verbs = frozenset(
        (
            "decide",
            "show",
            "report",
            "repeat",
            "change",
            "look",
            "wait",
            "restart",
            "crash",
            "backup",
            "restore",
        )
    )

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.loop = asyncio.new_event_loop()
        if world.case["front"] == "postgres":
            self.schema = world.server.fresh()
            self._store, self._beside = world.server.address(self.schema), world.folder / "outside"
        else:
            self._store, self._beside = world.folder / "s.db", None
        self.token = ""
        self._probes = 0
        self._open()
        made = self._create(description(world.case))
        assert made.status in (200, 201), made.text
        world.released.clear()

    def _open(self) -> None:
        self.opened = open_service(self._store, beside=self._beside)
        self.token = self.opened.first_token or self.token
        self._life = self.opened.app.router.lifespan_context(self.opened.app)
        self.loop.run_until_complete(self._life.__aenter__())

    def ask(self, method: str, where: str, body: Any = None) -> Reply:
        return self.loop.run_until_complete(self.send(method, where, body))

    async def send(self, method: str, where: str, body: Any = None) -> Reply:
        content = b"" if body is None else json.dumps(body).encode()
        headers = [(b"authorization", f"Bearer {self.token}".encode())]
        scope = {
            "type": "http",
            "method": method,
            "path": where,
            "raw_path": where.encode(),
            "query_string": b"",
            "headers": headers,
            "root_path": "",
            "scheme": "http",
            "http_version": "1.1",
            "server": ("testserver", 80),
            "client": ("tests", 1),
        }
        chunks: list[bytes] = []
        status = 0
        waiting = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive() -> Any:
            if waiting:
                return waiting.pop()
            await asyncio.Event().wait()

        async def send(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message.get("body"):
                chunks.append(message["body"])

        await self.opened.app(scope, receive, send)
        return Reply(status, chunks)

    def _done(self, reply: Reply) -> Any:
        assert reply.status < 500, f"{reply.status}: {reply.text}"
        if reply.status >= 400:
            raise RefusedCommandError(reply.text)
        return reply.json

    def decide(self, id: str, *, person: Any, eligible: Any, contexts: Any, shown: bool) -> Answer:
        given = {"id": id, "person": person, "eligible": eligible, "contexts": contexts}
        body = {key: value for key, value in given.items() if value is not None}
        said = self._done(self.ask("POST", "/v1/experiments/x/decisions", {**body, "shown": shown}))
        self._asked[id] = said["instructions"]
        return _answer(said)

    def show(self, id: str) -> Answer:
        said = self._done(self.ask("POST", f"/v1/experiments/x/decisions/{id}/shown", {}))
        asked = said["report_at"] is not None
        return Answer("", math.nan, said["report_at"], asked, "" if asked else said["reason"])

    def report(self, id: str, rewards: dict[str, float], option: str) -> str:
        report = self._device(id, rewards, option)
        return str(self._done(self.ask("POST", "/v1/experiments/x/reports", report))["status"])

    def repeat(self, id: str) -> str:
        return str(
            self._done(self.ask("POST", "/v1/experiments/x/reports", self._sent[id]))["status"]
        )

    def change(self, wanted: dict[str, Any]) -> None:
        self._done(self.ask("PATCH", "/v1/experiments/x", wanted))

    def is_makeable(self, changes: dict[str, Any]) -> bool:
        """Return whether an experiment with these changes can be made."""
        self._probes += 1
        told = list(self.world.released)
        wanted = {**description(self.world.case), "name": f"probe{self._probes}", **changes}
        reply = self._create(wanted)
        self.world.released[:] = told
        return reply.status in (200, 201)

    def _create(self, wanted: dict[str, Any]) -> Any:
        """Make an experiment, however long its kernels are compiled."""
        reply = self.ask("POST", "/v1/experiments", wanted)
        while "compiling" in reply.text and reply.status in (200, 202):
            self.loop.run_until_complete(asyncio.sleep(0.2))
            reply = self.ask("GET", f"/v1/experiments/{wanted['name']}/creation")
        return reply

    def wait(self, seconds: float) -> None:
        self.world.now += round(1000 * seconds)
        self.loop.run_until_complete(self.opened.manager.experiments["x"].ask(Core.tick))

    def facts(self) -> Any:
        return [
            self._done(self.ask("GET", f"/v1/experiments/x{place}"))
            for place in ("", "/statistics")
        ]

    def tallies(self) -> dict[str, dict[str, int]] | None:
        said = self._done(self.ask("GET", "/v1/experiments/x/statistics"))["options"]
        return {
            row["option"]: {key: row[key] for key in ("decided", "shown", "learned")}
            for row in said
        }

    def guarantee(self) -> Guarantee:
        said = self._done(self.ask("GET", "/v1/experiments/x"))
        return Guarantee.from_json(json.dumps(said["guarantee"]))

    def export(self) -> list[list[dict[str, Any]]]:
        """Return what was released, as lines, in the pieces that it was sent in."""
        reply = self.ask("GET", "/v1/experiments/x/released")
        assert reply.status == 200, reply.text
        return [[json.loads(line) for line in piece.splitlines()] for piece in reply.chunks]

    def pages(self) -> dict[str, str]:
        places = (
            "/v1/experiments",
            "/v1/experiments/x",
            "/v1/experiments/x/statistics",
            "/v1/experiments/x/released",
            "/metrics",
        )
        return {place: self.ask("GET", place).text for place in places}

    def restart(self) -> None:
        self.loop.run_until_complete(self._life.__aexit__(None, None, None))
        self._open()

    def crash(self) -> None:
        self._drop()
        self._open()

    def _drop(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.opened.manager.store.close()

    def backup(self) -> None:
        if self._beside is None:
            back_up(self._store, self.world.folder / "copy.db")
        else:
            self.world.server.dump(self.schema, self.world.folder / "copy.sql")

    def restore(self) -> None:
        self.loop.run_until_complete(self._life.__aexit__(None, None, None))
        if self._beside is None:
            restore(self._store, self.world.folder / "copy.db")
        else:
            self.world.server.put_back(self.schema, self.world.folder / "copy.sql")
            restore(self._store, beside=self._beside)
        self._open()

    def close(self) -> None:
        self._drop()
        self.loop.close()


def _answer(said: Any) -> Answer:
    asked = said["instructions"] is not None
    return Answer(
        said["option"],
        said["probability"],
        said["report_at"],
        asked,
        "" if asked else said["reason"],
    )


def front_of(world: World) -> Any:
    """Return the front end of a case, opened."""
    name = world.case["front"]
    if name in ("memory", "store"):
        return LearnerFront(world)
    if name in ("sqlite", "postgres"):
        return HttpFront(world)
    from together.devices import device_front

    return device_front(world)
