"""A seeded simulator: clients, the network between, the service and its disk, all failing at random.

The clients are the real ones without their sockets, the service is the real app without its own; requests and
answers are lost, doubled, delayed and reordered, either side crashes at any write, old copies are put back. A
model knows only what went over the wire and what was committed. A failing seed is the bug report.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from service.disorder import Disorder
from serving.simulator import CrashError, FaultyMemory, MemoryDisk
from serving.toy import Account, Toy, ToyDecider
from tacit.client.flows import Answer, Flows, ServiceError
from tacit.client.outbox import Outbox
from tacit.service import ExperimentManager
from tacit.service.app import make_app
from tacit.service.messages import ExperimentRequest
from tacit.service.tokens import Tokens
from tacit.serving import Experiment
from tacit.serving.description import Description

HOME = "/v1/experiments/x"
DAY, EVER = 2_000_000, 4_000_000
PEOPLE = 5


class Disk(FaultyMemory):
    """A store that remembers that its process died, and which events a copy of it lacks."""

    gap: tuple[int, int] | None = None
    crashed = False

    def append(self, experiment: str, seq: int, events: Any) -> None:
        try:
            super().append(experiment, seq, events)
        except CrashError:
            self.crashed = True
            raise

    def find_loss(self, experiment: str) -> tuple[int, int] | None:
        return self.gap


class Device:
    """A client that can be switched off at any moment; its outbox is on its disk."""

    def __init__(self, world: World, person: str) -> None:
        self.person, self.outbox = person, Outbox()
        self.flows = Flows(HOME, self.outbox, None, world.time)
        self.decisions: list[Any] = []


class World:
    """Everything, from one seed."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed, self.random = seed, random.Random(seed)
        self.now, self.steps = 1_700_000_000_000, 0
        self.account = Account()
        self.toy = Toy(local=self.random.random() < 0.5)
        self.budget = self.random.random() < 0.5
        tokens = Tokens(folder / f"tokens{seed}")
        self.secret = tokens.create("all", ["admin"])
        self.disk = MemoryDisk()
        self.disk.store = Disk()
        self.app = make_app(ExperimentManager(self.disk.store, bytes(32)), tokens, rate=1e12)
        self.http = Disorder(self.app, self.secret, 0)
        self.devices = [Device(self, f"p{i}") for i in range(PEOPLE)]
        self.flying: list[tuple[Any, Any, Device]] = []
        """Requests on their way: the flow that waits (None for a double), what is asked, by whom."""
        self.sent: dict[str, bytes] = {}
        """The report of each decision as it was first seen on the wire."""
        self.told: dict[str, Any] = {}
        self.learned: set[str] = set()
        self.spent: Counter[tuple[str, str]] = Counter()
        self.seen = 0
        self.answers: Counter[int] = Counter()
        self.epochs = 0

    def time(self) -> float:
        return self.now / 1000

    @property
    def hosted(self) -> Any:
        return self.app.state.manager.experiments["x"]

    @property
    def store(self) -> Any:
        return self.disk.store

    # Begin and go on

    async def create(self) -> None:
        wanted = {
            "name": "x",
            "policy": {"name": "klucb-cf", "epsilon": 1.0},
            "options": ["a", "b", "c"],
            "reward": {"report_after": 1},
            "grace": 4,
            "retention": 20,
            "max_open": 30,
        }
        if self.budget:
            wanted["budget"] = {"day": DAY / 1e6, "lifetime": EVER / 1e6}
        self.app.state.manager.create(msgspec.convert(wanted, ExperimentRequest))

    def start(self) -> None:
        """A new process on the same disk; it may die while it starts."""
        while True:
            self.store.crashed = False
            try:
                self.app.state.manager = ExperimentManager(self.store, bytes(32))
            except CrashError:
                continue
            if self.store.gap is not None:
                self.epochs += 1
            self.store.gap, self.store.crashed = None, False
            return

    async def step(self) -> None:
        self.steps += 1
        pick = self.random
        self.now += pick.choice((0, 0, 1, 5, 20, 60))
        if pick.random() < 0.0005:
            self.now += 86_400_000
        actions = (self.deliver, self.act, self.crash, self.back_up, self.restore, self.change)
        if pick.random() < 0.08:
            self.store.fate = pick.choice(("lost", "unknown", "crash before", "crash after"))
        action = pick.choices(actions, (55, 40, 1, 1, 0.4, 1.5))[0]
        await action()
        self.store.fate = ""
        if self.store.crashed:
            self.start()
        self.look()

    async def act(self) -> None:
        """A person or a device does something; what it asks for is on its way."""
        device = self.random.choice(self.devices)
        what = self.random.random()
        if what < 0.4:
            self.begin(device, device.flows.decide(device.person, None, None))
        elif what < 0.6 and device.decisions:
            shown = device.decisions[self.random.randrange(len(device.decisions))]
            self.begin(device, device.flows.shown(shown))
        elif what < 0.7 and device.decisions:
            device.flows.reward(self.random.choice(device.decisions), float(what < 0.65))
        elif what < 0.72:
            # Switched off: what it owes is on its disk, what it was doing is gone.
            self.flying = [(None if d is device else f, ask, d) for f, ask, d in self.flying]
            device.flows = Flows(HOME, device.outbox, None, self.time)
            device.decisions.clear()
        else:
            self.begin(device, device.flows.flush())

    def begin(self, device: Device, flow: Any) -> None:
        with contextlib.suppress(StopIteration):
            self.flying.append((flow, next(flow), device))

    def resume(self, device: Device, flow: Any, answer: Answer) -> None:
        try:
            self.flying.append((flow, flow.send(answer), device))
        except StopIteration as done:
            if done.value is not None and hasattr(done.value, "option"):
                device.decisions = [*device.decisions[-5:], done.value]
        except ServiceError:
            return

    async def deliver(self) -> None:
        if not self.flying:
            return
        flow, ask, device = self.flying.pop(self.random.randrange(len(self.flying)))
        fate = self.random.random()
        if fate < 0.1:
            answer = Answer(0, None)
        else:
            answer = await self.ask("POST", HOME + ask.path, ask.body)
            if fate < 0.25:
                self.flying.append((None, ask, device))
            if fate > 0.9:
                answer = Answer(0, None)
        if flow is not None:
            self.resume(device, flow, answer)

    async def ask(self, method: str, path: str, body: Any) -> Answer:
        text = json.dumps(body).encode()
        if path.endswith("/reports"):
            # However often it is sent, it is the same.
            assert self.sent.setdefault(body["id"], text) == text, f"two reports of {body['id']}"
        headers = [(b"authorization", f"Bearer {self.secret}".encode())]
        status, said = await self.http.ask(method, path, text, headers)
        if self.store.crashed:
            # The process is gone, and with it the answer.
            self.start()
            return Answer(0, None)
        self.answers[status] += 1
        assert status != 500, said
        found = json.loads(said)
        if path.endswith("/decisions") and status == 200:
            fixed = (found["option"], found["probability"], found["report_at"])
            before = self.told.setdefault(found["id"], (fixed[:2], fixed[2], self.epochs))
            if before[2] == self.epochs:
                assert before[0] == fixed[:2], f"{found['id']} was answered in two ways"
        if path.endswith("/reports") and status == 200 and found["status"] == "learned":
            assert found["id"] not in self.learned, f"{found['id']} counts twice"
            self.learned.add(found["id"])
        if status == 404 and body.get("id") in self.told:
            # Forgotten after its retention, or with a history that was lost.
            assert self.epochs or self.now > 1_700_000_000_000 + 20_000
        return Answer(status, found)

    async def crash(self) -> None:
        self.start()

    async def back_up(self) -> None:
        if self.disk.copied is None or self.random.random() < 0.5:
            self.disk.copy()

    async def restore(self) -> None:
        self.look()
        lost = self.disk.put_back()
        if lost is None:
            return
        self.store.gap = lost
        # Of the history that is gone, the wire remembers what nobody else does.
        self.learned.clear()
        self.start()
        self.seen = 0
        self.look(again=True)

    async def change(self) -> None:
        what = self.random.random()
        if what < 0.3 and len(self.hosted.core.options) < 6:
            name = f"o{self.steps}"
            await self.ask("PATCH", HOME, {"add_options": [name]})
        elif what < 0.8:
            mode = self.random.choice(["learn", "learn", "frozen", "off"])
            await self.ask("PATCH", HOME, {"mode": mode})
        else:
            self.hosted.prune()

    # Invariants

    def look(self, again: bool = False) -> None:
        """Read what was committed since, and hold it against what must be."""
        last = self.store.load("x").seq
        for event in self.store.events("x", self.seen, last):
            for person, window, amount in () if again else event.charges:
                self.spent[person, window] += amount
        self.seen = last
        allowed = {"day": DAY, "lifetime": EVER} if self.budget else {}
        for (_, window), amount in self.spent.items():
            assert amount <= allowed.get(window.partition(" ")[0], amount), "a budget is exceeded"
        assert not self.account.twice, f"noise used for two sums: {self.account.twice[:1]}"
        core = self.hosted.core
        assert len(core.open) <= 30
        if self.steps % 200 == 0:
            self.hosted.verify()
            kinds = Counter(event.kind for event in self.store.events("x", 0))
            if self.toy.local and not self.epochs and not core.late:
                assert kinds["learn"] <= core.learned, "learned without a trace"


def play(seed: int, steps: int, folder: Path) -> World:
    """Run one simulation; on failure say which seed and step."""
    world = World(seed, folder)
    # As it stands in the class: read from there, a static method would come back as a plain function.
    kept = vars(Experiment)["clock"], Description.make_decider, Description.check_served
    Experiment.clock = staticmethod(lambda: world.now)
    Description.make_decider = lambda self: ToyDecider(world.toy, world.account)
    Description.check_served = lambda self: ToyDecider(world.toy, world.account)

    async def run() -> None:
        await world.create()
        for _ in range(steps):
            await world.step()

    try:
        asyncio.run(run())
    except Exception as error:
        raise AssertionError(
            f"seed {seed}, step {world.steps}: {type(error).__name__}: {error}"
        ) from error
    finally:
        Experiment.clock, Description.make_decider, Description.check_served = kept
    return world
