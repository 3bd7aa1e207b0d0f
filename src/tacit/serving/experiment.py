"""An experiment that is kept: names and pseudonyms, a core, the store it is committed to, and its failures.

A command is a function of the core and the time, such as `Core.show`. `Experiment.decide` and
`Experiment.change` are commands that read names. Threads call `run`, the event loop awaits `ask`. All that
waits at the same time shares one commit.
"""

from __future__ import annotations

import asyncio
import contextlib
import operator
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tacit.core.constraints import require
from tacit.core.decider import Decider, decider_for
from tacit.core.json_codec import plain
from tacit.core.policy import AnyPolicy
from tacit.core.processes import Owner
from tacit.core.tapes import secure_tape, seeded_tape
from tacit.serving.core import BrokenError, Core, Event, OpenDecision, RefusedError
from tacit.serving.description import (
    Description,
    find_option,
    graph_of,
    read_description,
    require_new,
)
from tacit.serving.storage import Snapshot, Store, StoreError
from tacit.serving.storage.pseudonyms import Pseudonyms

A = TypeVar("A")
Command = Callable[..., A]
_EVERY = 10_000
_BITE = 2_000
"""Decisions that are deleted at once; others wait meanwhile."""
_IDS = 256


def read_clock() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Experiment:
    """Commands go in, answers come out once they are durable.

    Parameters
    ----------
    description : Description
        With pseudonyms instead of names of people.
    store : Store, optional
        It has the experiment already. Without it a crash forgets everything.
    key : bytes
        Of pseudonyms; it lies outside the store.
    seed : int, optional
        For trial runs that must repeat. Without it randomness is the operating system's.
    decider : Decider, optional
        What was made of the same description and has seen nothing; made here unless given.
    """

    def __init__(
        self,
        description: Description,
        store: Store | None = None,
        *,
        key: bytes,
        seed: int | None = None,
        decider: Decider | None = None,
    ) -> None:
        self.description, self.store, self.name = description, store, description.name
        self.policy, self._seed, self._first = description.policy, seed, decider
        self.pseudonyms = Pseudonyms(self.name, key, old=description.old_names)
        self.lock = threading.RLock()
        self._owner = Owner()
        self._snapshot_at = self._covered = 0
        self.seq = 0
        self._waiting: deque[Ticket] = deque()
        self._asked: list[tuple[Ticket, asyncio.Future[Any]]] = []
        self._ids: list[str] = []
        self._outdated = False
        self._core: Core | None = None
        reads_only = store is not None and store.read_only
        if store is not None and not reads_only:
            store.acquire(self.name)
        self._core = self._build()
        self._upgrade()
        lost = None if store is None or reads_only else store.find_loss(self.name)
        if lost is not None:
            self.run(Core.begin_epoch, *lost)

    @classmethod
    def open(
        cls, store: Store, name: str, *, key: bytes, policy: AnyPolicy | None = None
    ) -> Experiment:
        """Open an experiment that is in a store, made by a learner or by a service.

        Parameters
        ----------
        store : Store
        name : str
        key : bytes
            Of pseudonyms.
        policy : Policy, optional
            The one it was made with, where that cannot be read from the store.
        """
        kept = store.load(name)
        if kept is None:
            have = ", ".join(store.names()) or "none"
            raise ValueError(
                f"expected an experiment of {store.place}, which has {have}, got {name!r}"
            )
        return cls(read_description(name, kept, policy), store, key=key)

    clock = staticmethod(read_clock)
    """Returns the time that commands are carried out at."""

    @property
    def core(self) -> Core:
        """The core as it is now, to read."""
        core = self._core
        if core is None:
            with self.lock:
                core = self._core = self._core or self._rebuild()
        return core

    # Commands

    def decide(
        self,
        core: Core,
        now: int,
        id: str | None = None,
        person: Any = None,
        eligible: Iterable[Any] | None = None,
        contexts: Any = None,
        shown: bool = True,
        report_at: int | None = None,
    ) -> OpenDecision:
        """Decide; the same request under the same identity gets the decision that was made for it."""
        query: dict[str, Any] = {}
        names: Sequence[Any] | None = core.options or None
        if contexts is not None:
            if isinstance(contexts, Mapping):
                names, contexts = list(contexts), list(contexts.values())
                query["names"] = [str(name) for name in names]
            else:
                names = None
            query["contexts"] = plain(contexts)
        if eligible is not None:
            several = not isinstance(eligible, str | bytes) and isinstance(eligible, Iterable)
            require("decide", "eligible", "a list of options", several, eligible)
            places = [int(o) if names is None else find_option(names, o) for o in eligible]
            require("decide", "eligible", "at least one option", bool(places), places)
            query["eligible"] = places
        if core.decider.n_people is not None:
            member = None if person is None else self.pseudonyms.find(person, core.people)
            if member is None:
                raise RefusedError(
                    "person",
                    "expected a person who was added (over HTTP add_people, in Python add_person does "
                    f"it), got {person!r}",
                )
            query["person"] = member
        pseudonym = None if person is None else self.pseudonyms.of(person)
        asked = query or None
        if id is None:
            return core.decide(now, self._new_id(), asked, pseudonym, shown, report_at)
        return core.decide_once(now, id, asked, pseudonym, shown, report_at)

    def change(
        self,
        core: Core,
        now: int,
        *,
        mode: str | None = None,
        budget: Mapping[str, float] | None = None,
        add_options: Sequence[str] = (),
        retire_options: Sequence[Any] = (),
        add_people: Mapping[str, Sequence[str]] | None = None,
        edges: Sequence[tuple[str, str]] | None = None,
        joined: Any = None,
    ) -> None:
        """Change several things at once: all of them, as one event, or none.

        Parameters
        ----------
        core : Core
        now : int
        mode : {"learn", "frozen", "shadow", "off"}, optional
        budget : mapping of windows to epsilons, optional
            What may be spent on one person from now on; what was spent stays spent.
        add_options, retire_options : sequence of str
        add_people : mapping, optional
            New people, each with those they are joined to.
        edges : sequence of pairs of people, optional
            Who is joined to whom from now on ...
        joined : table, optional
            ... or how much, in numbers.
        """
        if add_options or retire_options:
            own = core.decider.n_options is not None
            rule = "given as contexts of each decision, where they come and go"
            require(self.policy, "options", rule, own, "a change of them")
        require_new("option", add_options, core.options)
        require_new("person", list(add_people or ()))
        new: dict[str, list[str]] = {}

        def find(person: str) -> str:
            return self.pseudonyms.find(person, {**core.people, **new}) or self.pseudonyms.of(
                person
            )

        for person, near in (add_people or {}).items():
            if self.pseudonyms.find(person, core.people) is not None:
                raise RefusedError(
                    "conflict", f"person {person!r}: expected a new one, got one in use"
                )
            friends = [find(friend) for friend in near]
            strangers = [
                friend
                for friend, pseudonym in zip(near, friends, strict=True)
                if pseudonym not in core.people and pseudonym not in new
            ]
            require("change", "near", "people who were added", not strangers, strangers)
            new[self.pseudonyms.of(person)] = friends
        if edges is not None:
            called = [(find(u), find(v)) for u, v in edges]

            def joined(decider: Decider, people: list[str]) -> Any:
                return decider_for(decider.policy, graph=graph_of(people, called)).joined

        core.change(
            now,
            allowances=budget,
            options=add_options,
            retire=[find_option(core.options, option) for option in retire_options],
            mode=mode,
            people=list(new.items()),
            joined=joined,
        )

    # The group commit

    def run(self, command: Command[A], *arguments: Any, **keywords: Any) -> A:
        """Carry out one command and return its answer once it is durable, in any thread."""
        if self.store is not None:
            ticket = Ticket(command, arguments, keywords)
            self._submit(ticket)
            self._serve(ticket)
            if ticket.error is not None:
                raise ticket.error
            answer: A = ticket.answer
            return answer
        self.check_process()
        with self.lock:
            try:
                return command(self._core or self.core, self.clock(), *arguments, **keywords)
            except ValueError:
                raise
            except BaseException:
                self._core = None
                raise

    def run_many(
        self, commands: Iterable[tuple[Command[A], tuple[Any, ...]]]
    ) -> list[A | RefusedError]:
        """Carry out several commands with one commit; a refused one does not stop the others."""
        tickets = [Ticket(*each, {}) for each in commands]
        self._submit(*tickets)
        self._serve(*tickets)
        return [ticket.outcome() for ticket in tickets]

    async def ask(self, command: Command[A], *arguments: Any, **keywords: Any) -> A:
        """Carry out a command with whatever else the loop has read; return its answer once durable."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[A] = loop.create_future()
        ticket = Ticket(command, arguments, keywords)
        self._submit(ticket)
        self._asked.append((ticket, answer))
        if len(self._asked) == 1:
            # The next turn of the loop: all requests that are readable now are in by then.
            loop.call_soon(self._answer)
        return await answer

    def _answer(self) -> None:
        asked, self._asked = self._asked, []
        self._serve(*(ticket for ticket, _ in asked))
        for ticket, answer in asked:
            if answer.done():
                continue
            try:
                outcome = ticket.outcome()
            except Exception as error:
                outcome = error
            if isinstance(outcome, Exception):
                answer.set_exception(outcome)
            else:
                answer.set_result(outcome)

    def _submit(self, *tickets: Ticket) -> None:
        if self._owner.is_inherited:
            self.check_process()
        if self.store is not None and self.store.read_only:
            raise StoreError(
                f"{self.name} cannot be changed here, because it was opened to read; ask the process "
                "that serves it instead"
            )
        # At once: another thread may serve what waits at any time.
        self._waiting.extend(tickets)

    def _serve(self, *tickets: Ticket) -> None:
        """Carry out all that waits with one commit, unless another thread did so with these tickets."""
        with self.lock:
            if all(ticket.done for ticket in tickets):
                return
            batch = []
            try:
                core = self.core
                while self._waiting:
                    ticket = self._waiting.popleft()
                    batch.append(ticket)
                    try:
                        ticket.answer = ticket.command(
                            core, self.clock(), *ticket.arguments, **ticket.keywords
                        )
                    except ValueError as error:
                        ticket.error = error
                self._commit(core)
            except BaseException as error:
                self._core = None
                if not batch:  # there was no core to ask
                    while self._waiting:
                        batch.append(self._waiting.popleft())
                for ticket in batch:
                    ticket.error = error
                if not isinstance(error, Exception):
                    raise
            finally:
                for ticket in batch:
                    ticket.done = True

    def _commit(self, core: Core) -> None:
        if not core.staged:
            return
        assert self.store is not None
        self.store.append(self.name, self.seq, core.staged)
        self.seq += len(core.staged)
        core.committed()
        if self.seq - self._snapshot_at >= _EVERY + 2 * len(core.open):
            # What was committed is answered, whether or not this succeeds; the next one tries again.
            with contextlib.suppress(StoreError):
                self.snapshot()

    # What is kept

    def snapshot(self) -> None:
        """Keep the state, so that a start need not replay all that came before."""
        with self.lock:
            if self.store is not None and not self.store.read_only:
                core = self.core
                self.store.save_snapshot(
                    self.name, Snapshot(self.seq, *core.summary(), core.rows())
                )
                self._snapshot_at = self.seq

    def prune(self) -> int:
        """Delete what expired; only after the snapshot that covers it was verified."""
        with self.lock:
            self.checkpoint()
            return sum(iter(self.prune_some, 0))

    def checkpoint(self) -> None:
        """Keep a snapshot and verify it: what expired before it may then be deleted."""
        with self.lock:
            if self.store is not None:
                self.verify()
                self.snapshot()
                self._covered = self.seq

    def prune_some(self) -> int:
        """Delete a bit of what expired and is covered; return how many events went, 0 at the end."""
        with self.lock:
            if self.store is None:
                return 0
            return self.store.prune(self.name, self.clock(), self._covered, _BITE)

    def verify(self) -> None:
        """Fold the log once more and hold it against the state in memory."""
        with self.lock:
            if self.store is None:
                return
            again, core = self._build(), self.core
            same = again.summary() == core.summary() and len(again.open) == len(core.open)
            if not same or any(map(operator.ne, again.rows(), core.rows())):
                raise StoreError(
                    f"{self.name}: the log leads to another state than the one in memory"
                )

    def reload(self) -> None:
        """Take the experiment once more and fold its log, as after a failure."""
        with self.lock:
            self._core = None
            _ = self.core

    def close(self) -> None:
        """Keep a snapshot. It does not close the store, and does nothing in a forked process."""
        if self._owner.is_inherited:
            return
        with self.lock:
            if self._core is not None and self.seq > self._snapshot_at:
                self.snapshot()

    def find(self, id: str) -> list[Event]:
        """Return the events of a decision, in order, for the core."""
        return [] if self.store is None else self.store.find(self.name, id)

    def spent(self, person: str, window: str) -> int:
        """Return what was spent on a person in a window, for the core."""
        return 0 if self.store is None else self.store.spent(self.name, person, window)

    def charges(self) -> list[tuple[str, str, int]]:
        """Return all that was spent: person, window, amount, for the core."""
        return [] if self.store is None else self.store.charges(self.name)

    # What is said

    @property
    def hides_contexts(self) -> bool:
        """Whether contexts are protected like rewards: the unit is a whole visit."""
        return self.core.guarantee().unit == "visit"

    def sentence(self) -> str:
        """Return what is protected here, and what is not, in words."""
        core = self.core
        text = core.guarantee().sentence()
        if core.decider.trust == "local":
            return (
                f"{text} Clients of this project report at a fixed time whatever the reward is; where "
                "leaving is itself the outcome, silence tells."
            )
        seen = "contexts and rewards" if self.hides_contexts else "rewards"
        return f"{text} The service sees {seen} and keeps them until their decisions are forgotten."

    # Inside

    def check_process(self) -> None:
        """Raise ``RuntimeError`` in a forked process, whose locks may be another thread's for ever."""
        if self._owner.is_inherited:
            raise RuntimeError(
                "Learner: made before a fork; two processes would release the same sums and repeat "
                "identities, so make or load it in the process that uses it"
            )

    def _new_id(self) -> str:
        if not self._ids:
            block = os.urandom(16 * _IDS).hex()
            self._ids = [block[at : at + 32] for at in range(0, len(block), 32)]
        return self._ids.pop()

    def _build(self) -> Core:
        description, store = self.description, self.store
        decider, self._first = self._first, None
        seed = self._seed
        core = Core(
            decider or description.make_decider(),
            description.config,
            secure_tape(choices=description.choices) if seed is None else seeded_tape(seed),
            journal=None if store is None else self,
            options=description.options,
            people=description.people,
            aliases=self.pseudonyms.aliases,
            remember=50_000 if store is None else 1_000,
        )
        if store is not None:
            kept = store.load(self.name)
            assert kept is not None
            core.budget.counted = kept.counted
            after = 0
            if kept.snapshot is not None:
                after = kept.snapshot.seq
                core.restore(kept.snapshot.about, kept.snapshot.state, kept.snapshot.decisions)
                self._outdated = "forgotten" not in kept.snapshot.about
            self._snapshot_at = after
            self.seq = after + core.replay(store.events(self.name, after, kept.seq))
            if self.seq != kept.seq:
                raise StoreError(f"{self.name}: expected {kept.seq:,} events, got {self.seq:,}")
        return core

    def _upgrade(self) -> None:
        """Drop the open block of a whole-round unit that a snapshot of 0.2 left behind.

        Version 0.2 scaled its noise by what the policy wished for, not by what was served.
        """
        core = self.core
        central = self._outdated and core.decider.releases
        if central and core.decider.guarantee(1).unit == "round":
            core.decider.discard()
            self.snapshot()
        self._outdated = False

    def _rebuild(self) -> Core:
        if self.store is None:
            raise BrokenError("Learner: a command failed half-way; load the last save")
        if not self.store.read_only:
            self.store.acquire(self.name)
        return self._build()


@dataclass(slots=True)
class Ticket:
    """A command that waits for its turn, and what came of it once it is done."""

    command: Command[Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    answer: Any = None
    error: BaseException | None = None
    done: bool = False

    def outcome(self) -> Any:
        """Return the answer, or why it was refused; raise what kept it from being carried out."""
        error = self.error
        if error is None or isinstance(error, RefusedError):
            return self.answer if error is None else error
        if isinstance(error, ValueError):
            return RefusedError("invalid", str(error))
        raise error
