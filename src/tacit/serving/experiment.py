"""An experiment that is kept: a core, the store it is committed to, and what happens when that fails."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from tacit.deciding import Decider
from tacit.serving.core import BrokenError, Core, Event, RefusedError, Terms
from tacit.serving.store import Snapshot, Store, StoreError
from tacit.tapes import Tape

__all__ = ["Experiment"]

A = TypeVar("A")
_EVERY = 10_000


class Experiment:
    """Commands go in, answers come out once they are durable.

    Parameters
    ----------
    decider : callable
        Makes the decider with a state that has seen nothing.
    tape : callable
        Makes the tape: choices under the experiment's key, noise under a fresh one.
    terms : Terms
    options, people : iterable of str
        Names of the options, and pseudonyms of the people, at the start.
    store : Store, optional
        Without it a crash forgets everything.
    name : str
        In the store, which has it already.
    """

    def __init__(
        self,
        decider: Callable[[], Decider],
        tape: Callable[[], Tape],
        terms: Terms,
        *,
        options: Iterable[str] = (),
        people: Iterable[str] = (),
        store: Store | None = None,
        name: str = "learner",
    ) -> None:
        self._decider, self._tape, self._terms = decider, tape, terms
        self.options, self._people = list(options), list(people)
        self._store, self.name = store, name
        self.lock = threading.RLock()
        self._forks = len(_forks)
        self._snapshot_at = 0
        self.seq = 0
        self._core: Core | None = self._build()

    @property
    def core(self) -> Core:
        """The core as it is now, to read."""
        if self._core is None:
            self._core = self._rebuilt()
        return self._core

    def run(self, command: Callable[..., A], *arguments: Any, **keywords: Any) -> A:
        """Carry out one command and return its answer once it is durable."""
        with self.lock:
            self._check_process()
            core = self.core
            try:
                answer = command(core, *arguments, **keywords)
            except ValueError:
                self._commit(core)
                raise
            except BaseException:
                self._core = None
                raise
            self._commit(core)
            return answer

    def run_many(
        self, commands: Iterable[tuple[Callable[..., A], tuple[Any, ...], dict[str, Any]]]
    ) -> list[A | RefusedError]:
        """Carry out several commands with one commit; a refused one does not stop the others."""
        answers: list[A | RefusedError] = []
        with self.lock:
            self._check_process()
            core = self.core
            try:
                for command, arguments, keywords in commands:
                    try:
                        answers.append(command(core, *arguments, **keywords))
                    except ValueError as error:
                        refused = isinstance(error, RefusedError)
                        answers.append(error if refused else RefusedError("invalid", str(error)))  # type: ignore[arg-type]
            except BaseException:
                self._core = None
                raise
            self._commit(core)
        return answers

    def snapshot(self) -> None:
        """Keep the state, so that a start need not replay all that came before."""
        with self.lock:
            if self._store is not None:
                self._store.keep(self.name, Snapshot(self.seq, *self.core.snapshot()))
                self._snapshot_at = self.seq

    def prune(self, now: int) -> int:
        """Delete what expired; only after the snapshot that covers it was verified."""
        with self.lock:
            if self._store is None:
                return 0
            self.verify()
            self.snapshot()
            return self._store.prune(self.name, now)

    def verify(self) -> None:
        """Fold the log once more and hold it against the state in memory."""
        with self.lock:
            if self._store is None:
                return
            again = self._build()
            if again.snapshot() != self.core.snapshot():
                raise StoreError(
                    f"{self.name}: the log leads to another state than the one in memory"
                )

    def close(self) -> None:
        """Keep a snapshot and let others use the store."""
        with self.lock:
            if self._store is not None and self._forks == len(_forks):
                if self._core is not None and self.seq > self._snapshot_at:
                    self.snapshot()
                self._store.close()

    def _check_process(self) -> None:
        if self._forks != len(_forks):
            raise RuntimeError(
                "Learner: made before a fork; two processes would release the same sums and repeat "
                "identities, so make or load it in the process that uses it"
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
            self.snapshot()

    def _build(self) -> Core:
        journal = None if self._store is None else _Journal(self._store, self.name)
        core = Core(
            self._decider(),
            self._terms,
            self._tape(),
            journal=journal,
            options=self.options,
            people=self._people,
            remember=50_000 if journal is None else 1_000,
        )
        if self._store is not None:
            kept = self._store.load(self.name)
            assert kept is not None
            after = 0
            if kept.snapshot is not None:
                after = kept.snapshot.seq
                core.restore(kept.snapshot.about, kept.snapshot.state, kept.snapshot.decisions)
            self._snapshot_at = after
            self.seq = after + core.replay(self._store.events(self.name, after))
            if self.seq != kept.seq:
                raise StoreError(f"{self.name}: expected {kept.seq:,} events, got {self.seq:,}")
        return core

    def _rebuilt(self) -> Core:
        if self._store is None:
            raise BrokenError("Learner: a command failed half-way; load the last save")
        return self._build()


class _Journal:
    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name

    def find(self, id: str) -> list[Event]:
        return self._store.find(self._name, id)

    def spent(self, person: str, window: str) -> int:
        return self._store.spent(self._name, person, window)


_forks: list[int] = []


def _forked() -> None:
    _forks.append(os.getpid())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
