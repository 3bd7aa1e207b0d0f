"""A seeded simulator of faults: clients, clock, crashes at every write, restored copies.

A model beside it knows only what was acknowledged. After every step the invariants of the page
"Deciding for real people" are checked; a failing seed is the bug report.
"""

from __future__ import annotations

import random
from typing import Any

from serving.toy import Account, Toy, ToyDecider
from serving.watched import PEOPLE, watched
from tacit.serving import (
    Allowance,
    Core,
    Experiment,
    ExperimentConfig,
    MemoryStore,
    RefusedError,
    StoreError,
)
from tacit.serving.description import Description

CHOICES = bytes(range(32))
ALLOWED = 8_000_000


class Made(Description):
    """An experiment whose decider is made here."""

    def make_decider(self) -> Any:
        return self.given["make"]()


class CrashError(Exception):
    """The process ends here."""


class Faulty:
    """A store whose commits fail before or after they are durable, when it is told to."""

    fate = ""

    def append(self, experiment: str, seq: int, events: Any) -> None:
        fate, self.fate = self.fate, ""
        if fate == "lost":
            raise StoreError("disk full")
        if fate == "crash before":
            raise CrashError
        super().append(experiment, seq, events)  # type: ignore[misc]
        if fate == "unknown":
            raise StoreError("the answer of the disk was lost")
        if fate == "crash after":
            raise CrashError


class RecordingMemory(MemoryStore):
    """In memory, where events come back with their charges, so that these can be counted."""

    def __init__(self) -> None:
        super().__init__()
        self.charged: dict[Any, Any] = {}

    def append(self, experiment: str, seq: int, events: Any) -> None:
        super().append(experiment, seq, events)
        self.charged |= {(event.kind, event.id, event.at): event.charges for event in events}

    def events(self, experiment: str, after: int, until: int | None = None) -> Any:
        for event in super().events(experiment, after, until):
            yield event._replace(charges=self.charged[event.kind, event.id, event.at])


class FaultyMemory(Faulty, RecordingMemory):
    """In memory, and failing."""

    def copy(self) -> FaultyMemory:
        """Return a store with the same rows."""
        made = type(self)()
        self.database.connection.backup(made.database.connection)
        made.charged = dict(self.charged)
        return made


class MemoryDisk:
    """Where a store in memory lies, and its copy."""

    def __init__(self) -> None:
        self.store, self.copied = FaultyMemory(), None

    def reopen(self) -> None:
        pass

    def copy(self) -> None:
        self.copied = self.store.copy()

    def put_back(self) -> tuple[int, int] | None:
        if self.copied is None:
            return None
        now, then = self.store.load("x"), self.copied.load("x")
        if now.seq == then.seq:
            return None
        self.store = self.copied.copy()
        return now.charged - then.charged, then.at


class Simulator:
    """One experiment, its clients and its accidents, all from one seed."""

    def __init__(
        self, seed: int, *, disk: Any = None, local: bool | None = None, together: bool = False
    ) -> None:
        self.seed, self.random = seed, random.Random(seed)
        self.account = Account()
        self.local = self.random.random() < 0.4 if local is None else local
        self.together = together
        """Whether people with contexts are served by a real policy, FedUCB, instead of the toy."""
        later = self.random.random() < 0.6
        self.terms = ExperimentConfig(
            report_after=1000 if later else None,
            grace=200,
            retention=5_000,
            max_open=25,
            allowances=(
                (
                    Allowance(epsilon=ALLOWED / 1e6, window="lifetime"),
                    Allowance(epsilon=3.0, window="day"),
                )
                if self.random.random() < 0.5
                else ()
            ),
        )
        self.disk = disk or MemoryDisk()
        self.store.create("x", {})
        self.now, self.step_number = 1_700_000_000_000, 0
        self.decided: dict[str, dict[str, Any]] = {}
        """By identity: what the caller was told, and what is known of its report."""
        self.unsure: set[str] = set()
        """Identities of commands whose fate the caller does not know."""
        self.released: dict[str, int] = {}
        """How often each decision's report is in a release that was answered."""
        self.lineage: dict[int, str] = {}
        """Which decision a round belongs to, in the history that is going on."""
        self.spent: dict[tuple[str, str], int] = {}
        """What was ever committed of everybody's spending, in histories that were lost too."""
        self.seen = 0
        self.faults = 0
        self.start()

    @property
    def store(self) -> Any:
        return self.disk.store

    def start(self) -> None:
        self.disk.reopen()
        self.make()

    def make(self) -> None:
        described = Made(
            name="x",
            policy=Toy(local=self.local),
            spec={},
            config=self.terms,
            options=() if self.together else ["a", "b", "c"],
            people=[f"p{i}" for i in range(PEOPLE)] if self.together else (),
            choices=CHOICES,
            given={"make": self.decider},
        )
        self.x = Experiment(described, self.store, key=bytes(32))
        self.x.clock = lambda: self.now

    def decider(self) -> Any:
        if self.together:
            return watched(self.account)
        return ToyDecider(Toy(local=self.local), self.account)

    # Steps

    def step(self) -> None:
        self.step_number += 1
        self.now += self.random.choice((0, 0, 1, 5, 40, 400))
        if self.random.random() < 0.001:
            self.now += 86_400_000
        if self.random.random() < 0.1:
            self.store.fate = self.random.choice(("lost", "unknown", "crash before", "crash after"))
            self.faults += 1
        action = self.random.choices(
            (
                self.decide,
                self.report,
                self.repeat,
                self.show,
                self.cancel,
                self.tick,
                self.batch,
                self.restart,
                self.back_up,
                self.restore,
                self.change,
                self.clean,
            ),
            (30, 30, 8, 5, 2, 4, 6, 2, 1, 0.5, 1, 1),
        )[0]
        try:
            action()
        except CrashError:
            self.start()
        except StoreError as error:
            expect("lost" in str(error) or "full" in str(error), error)
        except RefusedError as error:
            # Its time came with this very command.
            expect(error.reason == "closed", error)
        self.store.fate = ""
        assert not self.account.twice, f"noise used for two sums: {self.account.twice[:1]}"
        self.learn_of_releases()
        self.check()

    def run(self, ids: Any, command: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            return self.x.run(command, *arguments, **keywords)
        except (StoreError, CrashError):
            self.unsure |= set(ids)
            raise

    def decide(self) -> None:
        id = f"d{self.step_number}"
        shown = self.random.random() < 0.8
        person = f"p{self.random.randrange(len(self.x.core.people) or PEOPLE)}"
        query: dict[str, Any] | None = {"eligible": [0, 2]} if self.random.random() < 0.3 else None
        if query and not set(query["eligible"]) - self.x.core.retired:
            query = None
        if self.together:
            contexts = [[self.random.uniform(-1, 1)] for _ in range(3)]
            query = {**(query or {}), "person": person, "contexts": contexts}
        request = {"query": query, "person": person, "shown": shown, "digest": f"{query}"}
        self.decided[id] = {"request": request, "told": None, "report": None, "receipt": None}
        try:
            answer = self.run([id], Core.decide, id, query, **_without(request, "query"))
        except RefusedError as error:
            expect(error.reason == "full", error)
            assert len(self.x.core.open) >= self.terms.max_open
            del self.decided[id]
            return
        self.told(id, answer)

    def told(self, id: str, answer: Any) -> None:
        known = self.decided[id]
        known["told"] = (answer.round, answer.option, answer.probability)
        known["report_at"] = answer.report_at
        known["shown"], known["reason"] = answer.shown, answer.reason
        self.lineage[answer.round] = id

    def repeat(self) -> None:
        """The same request again: the same answer; another one with the same identity: refused."""
        if not self.decided:
            return
        id = self.random.choice(list(self.decided)[-40:])
        known = self.decided[id]
        digest = known["request"]["digest"]
        again = self.x.run(lambda core, now: core.find_repeat(id, digest))
        if again is None:
            assert known["told"] is None, f"{id} was acknowledged and is lost"
            return
        if known["told"] is None:
            self.told(id, again)
        assert (again.round, again.option, again.probability) == known["told"]
        # It counts from when it was shown.
        assert (again.report_at or 0) >= (known["report_at"] or 0)
        try:
            self.x.run(lambda core, now: core.find_repeat(id, "other"))
        except RefusedError as error:
            expect(error.reason == "conflict", error)
        else:
            raise AssertionError("another request got this answer")

    def value_for(self, id: str) -> Any:
        known = self.decided[id]
        if known["report"] is None or self.random.random() < 0.05:
            value = self.random.randint(0, 1)
            whole = self.local and not self.together
            return (value if whole else float(value)), known["report"] is None
        return known["report"], False

    def report(self) -> None:
        if not self.decided:
            return
        ids = list(self.x.core.open) if self.random.random() < 0.8 else list(self.decided)[-60:]
        if not ids:
            return
        id = self.random.choice(ids)
        if id not in self.decided:
            return
        self.send(id)

    def send(self, id: str) -> None:
        known = self.decided[id]
        value, first = self.value_for(id)
        if first:
            known["report"] = value
        try:
            receipt = self.run([id], Core.report, id, value)
        except RefusedError as error:
            if error.reason == "answered":
                assert value != known["report"] or id in self.unsure or known["receipt"] is None
            return
        self.received(id, value, receipt)

    def received(self, id: str, value: Any, receipt: Any) -> None:
        known = self.decided[id]
        if receipt.status in ("learned", "held", "repeated"):
            if known["receipt"] is not None:
                assert value == known["receipt"], "two different reports were accepted"
                assert receipt.status == "repeated", "a report was accepted twice as new"
            known["receipt"] = value
            known["report"] = value

    def show(self) -> None:
        for id in self.x.core.open:
            if not self.x.core.open[id].shown and id in self.decided:
                decision = self.run([id], Core.show, id)
                self.decided[id]["shown"] = True
                self.decided[id]["reason"] = decision.reason
                return

    def cancel(self) -> None:
        for id in self.x.core.open:
            if self.decided.get(id, {}).get("receipt") is None:
                self.run([id], Core.cancel, id)
                return

    def tick(self) -> None:
        self.now += self.random.choice((0, 300, 1500))
        self.run([], Core.tick)

    def batch(self) -> None:
        """Several reports with one commit."""
        ids = [id for id in list(self.x.core.open)[:5] if id in self.decided]
        sent = []
        for id in ids:
            value, first = self.value_for(id)
            if first:
                self.decided[id]["report"] = value
            sent.append((id, value))
        try:
            answers = self.x.run_many([(Core.report, each) for each in sent])
        except (StoreError, CrashError):
            self.unsure |= set(ids)
            raise
        for (id, value), answer in zip(sent, answers, strict=True):
            if not isinstance(answer, RefusedError):
                self.received(id, value, answer)

    def restart(self) -> None:
        before = self.x.core.snapshot()
        self.start()
        assert self.x.core.snapshot() == before, "a restart changed the state"

    def back_up(self) -> None:
        self.disk.copy()

    def restore(self) -> None:
        """Put an old copy back: what was lost counts as spent, open sums are never released."""
        self.learn_of_releases()
        lost = self.disk.put_back()
        self.make()
        if lost is None:
            return
        self.x.run(Core.begin_epoch, *lost)
        # The callers of the lost history know of decisions that this one does not.
        self.decided = {
            id: known
            for id, known in self.decided.items()
            if self.store.find("x", id) or id in self.x.core.open
        }
        for known in self.decided.values():
            known["told"] = known["receipt"] = None
        self.lineage = {t: id for t, id in self.lineage.items() if t < self.x.core.rounds}
        self.seen = self.x.seq

    def change(self) -> None:
        core = self.x.core
        what = self.random.randrange(3)
        if self.together and what < 2:
            if len(core.people) < 2 * PEOPLE:
                self.run([], Core.change, people=[(f"p{len(core.people)}", ())])
        elif what == 0 and len(core.options) < 6:
            self.run([], Core.change, options=[f"o{len(core.options)}"])
        elif what == 1 and len(core.options) - len(core.retired) > 3:
            option = self.random.randrange(3, len(core.options))
            self.run([], Core.change, retire=[option])
        else:
            self.run([], Core.change, mode=self.random.choice(("learn", "learn", "frozen", "off")))

    def clean(self) -> None:
        self.x.prune()
        gone = [
            id for id in self.decided if id not in self.x.core.open and not self.store.find("x", id)
        ]
        for id in gone:
            del self.decided[id]

    # Invariants

    def learn_of_releases(self) -> None:
        """Count, for every committed release, the reports that are in it."""
        last = self.store.load("x").seq
        for event in self.store.events("x", self.seen, last):
            if event.kind == "decide":
                self.lineage[event.body["round"]] = str(event.id)
            for person, window, amount in event.charges:
                self.spent[person, window] = self.spent.get((person, window), 0) + amount
            if "released" in event.body:
                rounds = self.account.told.get(tuple(event.body["released"]))
                assert rounds is not None, "a release that nobody drew"
                for t in rounds:
                    id = self.lineage[t]
                    self.released[id] = self.released.get(id, 0) + 1
        self.seen = last

    def check(self) -> None:
        again = {id: n for id, n in self.released.items() if n > 1}
        assert not again, f"released more than once: {again}"
        core = self.x.core
        assert len(core.open) <= self.terms.max_open
        allowed = {each.window: each.amount for each in self.terms.allowances}
        for (_, window), amount in self.spent.items():
            assert amount <= allowed.get(window.partition(" ")[0], amount), "a budget is exceeded"
        if self.step_number % 100 == 0:
            self.x.verify()
            for id, known in self.decided.items():
                if known["told"] is not None:
                    found = core.find_repeat(id, known["request"]["digest"])
                    assert found is not None, f"{id} was acknowledged and is lost"
                    if known["receipt"] is not None and not found.reason:
                        assert found.value == known["receipt"], f"the report of {id} is lost"


def _without(mapping: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key != name}


def expect(holds: bool, what: object) -> None:
    """Fail unless this kind of failure was meant to be."""
    if not holds:
        raise AssertionError(f"unexpected: {what}")


def play(seed: int, steps: int, **given: Any) -> Simulator:
    """Run one simulation; on failure say which seed and step."""
    simulator = Simulator(seed, **given)
    try:
        for _ in range(steps):
            simulator.step()
    except Exception as error:
        raise AssertionError(
            f"seed {seed}, step {simulator.step_number}: {type(error).__name__}: {error}"
        ) from error
    return simulator
