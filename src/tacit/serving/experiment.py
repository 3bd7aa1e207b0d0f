"""An experiment that is kept: a core, the store it is committed to, and what happens when that fails."""

from __future__ import annotations

import contextlib
import operator
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from tacit.core.decider import Decider
from tacit.core.tapes import Tape
from tacit.serving.core import BrokenError, Core, Event, ExperimentConfig, RefusedError
from tacit.serving.storage import Snapshot, Store, StoreError

A = TypeVar("A")
_EVERY = 10_000
_BITE = 2_000
"""Decisions that are deleted at once; others wait meanwhile."""


class Experiment:
    """Commands go in, answers come out once they are durable.

    Parameters
    ----------
    decider : callable
        Makes the decider with a state that has seen nothing.
    tape : callable
        Makes the tape: choices under the experiment's key, noise under a fresh one.
    config : ExperimentConfig
    options, people : iterable of str
        Names of the options, and pseudonyms of the people, at the start.
    aliases : mapping
        What else people were called, by pseudonym.
    store : Store, optional
        Without it a crash forgets everything.
    name : str
        In the store, which has it already.
    """

    def __init__(
        self,
        decider: Callable[[], Decider],
        tape: Callable[[], Tape],
        config: ExperimentConfig,
        *,
        options: Iterable[str] = (),
        people: Iterable[str] = (),
        aliases: Mapping[str, Sequence[str]] = MappingProxyType({}),
        store: Store | None = None,
        name: str = "learner",
    ) -> None:
        self._decider, self._tape, self._config = decider, tape, config
        self.options, self._people, self._aliases = list(options), list(people), aliases
        self._store, self.name = store, name
        self.lock = threading.RLock()
        self._forks = len(_forks)
        self._snapshot_at = self._covered = 0
        self.seq = 0
        self._waiting: deque[Ticket] = deque()
        self._core: Core | None = None
        self._outdated = False
        if store is not None and not store.read_only:
            store.acquire(name)
        self._core = self._build()
        self._upgrade()

    @property
    def core(self) -> Core:
        """The core as it is now, to read."""
        core = self._core
        if core is None:
            with self.lock:
                core = self._core = self._core or self._rebuilt()
        return core

    def run(self, command: Callable[..., A], *arguments: Any, **keywords: Any) -> A:
        """Carry out one command and return its answer once it is durable.

        Commands of threads that wait for the disk at the same time share a commit.
        """
        if self._store is not None:
            ticket = self.submit(command, *arguments, **keywords)
            self.serve(ticket)
            if ticket.error is not None:
                raise ticket.error
            answer: A = ticket.answer
            return answer
        self.check_process()
        with self.lock:
            core = self._core or self.core
            try:
                return command(core, *arguments, **keywords)
            except ValueError:
                raise
            except BaseException:
                self._core = None
                raise

    def run_many(
        self, commands: Iterable[tuple[Callable[..., A], tuple[Any, ...], dict[str, Any]]]
    ) -> list[A | RefusedError]:
        """Carry out several commands with one commit; a refused one does not stop the others."""
        self._require_writer()
        tickets = [Ticket(*each) for each in commands]
        # At once: another thread may serve what waits at any time.
        self._waiting.extend(tickets)
        self.serve(*tickets)
        return [ticket.outcome() for ticket in tickets]

    def submit(self, command: Callable[..., Any], *arguments: Any, **keywords: Any) -> Ticket:
        """Let a command wait for the next `serve`, in this thread or in another."""
        self._require_writer()
        ticket = Ticket(command, arguments, keywords)
        self._waiting.append(ticket)
        return ticket

    def serve(self, *tickets: Ticket) -> None:
        """Carry out all that waits with one commit, unless another thread did so with these tickets."""
        with self.lock:
            if not all(ticket.done for ticket in tickets):
                self._serve()

    def _serve(self) -> None:
        batch = []
        try:
            core = self.core
            while self._waiting:
                ticket = self._waiting.popleft()
                batch.append(ticket)
                try:
                    ticket.answer = ticket.command(core, *ticket.arguments, **ticket.keywords)
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

    def snapshot(self) -> None:
        """Keep the state, so that a start need not replay all that came before."""
        with self.lock:
            if self._store is not None and not self._store.read_only:
                core = self.core
                self._store.save_snapshot(
                    self.name, Snapshot(self.seq, *core.summary(), core.rows())
                )
                self._snapshot_at = self.seq

    def prune(self, now: int) -> int:
        """Delete what expired; only after the snapshot that covers it was verified."""
        with self.lock:
            self.checkpoint()
            return sum(iter(lambda: self.prune_some(now), 0))

    def checkpoint(self) -> None:
        """Keep a snapshot and verify it: what expired before it may then be deleted."""
        with self.lock:
            if self._store is not None:
                self.verify()
                self.snapshot()
                self._covered = self.seq

    def prune_some(self, now: int) -> int:
        """Delete a bit of what expired and is covered; return how many events went, 0 at the end."""
        with self.lock:
            if self._store is None:
                return 0
            return self._store.prune(self.name, now, self._covered, _BITE)

    def verify(self) -> None:
        """Fold the log once more and hold it against the state in memory."""
        with self.lock:
            if self._store is None:
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
        """Keep a snapshot; the store is its owner's to close, and after a fork all is the parent's."""
        if self._forks != len(_forks):
            return
        with self.lock:
            current = self._core is not None
            if self._store is not None and current and self.seq > self._snapshot_at:
                self.snapshot()

    def check_process(self) -> None:
        """Raise ``RuntimeError`` in a forked process, whose locks may be another thread's for ever."""
        if self._forks != len(_forks):
            raise RuntimeError(
                "Learner: made before a fork; two processes would release the same sums and repeat "
                "identities, so make or load it in the process that uses it"
            )

    def _require_writer(self) -> None:
        self.check_process()
        if self._store is not None and self._store.read_only:
            raise StoreError(
                f"{self.name} cannot be changed here, because it was opened to read; ask the process "
                "that serves it instead"
            )

    def _commit(self, core: Core) -> None:
        if not core.staged:
            return
        store = self._store
        assert store is not None
        try:
            store.append(self.name, self.seq, core.staged)
        except BaseException:
            self._core = None
            raise
        self.seq += len(core.staged)
        core.committed()
        if self.seq - self._snapshot_at >= _EVERY + 2 * len(core.open):
            # What was committed is answered, whether or not this succeeds; the next one tries again.
            with contextlib.suppress(StoreError):
                self.snapshot()

    def _build(self) -> Core:
        journal = None if self._store is None else _Journal(self._store, self.name)
        core = Core(
            self._decider(),
            self._config,
            self._tape(),
            journal=journal,
            options=self.options,
            people=self._people,
            aliases=self._aliases,
            remember=50_000 if journal is None else 1_000,
        )
        if self._store is not None:
            kept = self._store.load(self.name)
            assert kept is not None
            core.budget.counted = kept.counted
            after = 0
            if kept.snapshot is not None:
                after = kept.snapshot.seq
                core.restore(kept.snapshot.about, kept.snapshot.state, kept.snapshot.decisions)
                self._outdated = "forgotten" not in kept.snapshot.about
            self._snapshot_at = after
            self.seq = after + core.replay(self._store.events(self.name, after, kept.seq))
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

    def _rebuilt(self) -> Core:
        if self._store is None:
            raise BrokenError("Learner: a command failed half-way; load the last save")
        if not self._store.read_only:
            self._store.acquire(self.name)
        return self._build()


class Ticket:
    """A command that waits for its turn, and what came of it once it is done."""

    __slots__ = ("answer", "arguments", "command", "done", "error", "keywords")

    def __init__(self, command: Callable[..., Any], arguments: Any, keywords: Any) -> None:
        self.command, self.arguments, self.keywords = command, arguments, keywords
        self.answer: Any = None
        self.error: BaseException | None = None
        self.done = False

    def outcome(self) -> Any:
        """Return the answer, or why it was refused; raise what kept it from being carried out."""
        error = self.error
        if error is None or isinstance(error, RefusedError):
            return self.answer if error is None else error
        if isinstance(error, ValueError):
            return RefusedError("invalid", str(error))
        raise error


class _Journal:
    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name

    def find(self, id: str) -> list[Event]:
        return self._store.find(self._name, id)

    def spent(self, person: str, window: str) -> int:
        return self._store.spent(self._name, person, window)

    def charges(self) -> list[tuple[str, str, int]]:
        return self._store.charges(self._name)


_forks: list[int] = []


def _forked() -> None:
    _forks.append(os.getpid())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
