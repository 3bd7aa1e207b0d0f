"""Reports that a device owes, kept so that each survives a crash and is sent as it was first sent.

One SQLite file (or memory) holds them. A report is drawn and stored when its decision is shown, for the
default reward; a reward replaces it before its time. So a record looks the same with and without a reward,
and sending only reads it. What is decided about a report is decided inside a transaction, so that two
processes with one file send the same report, and whatever a budget was charged stays charged.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tacit.core.processes import wait_for
from tacit.device import Budget, Reporter

T = TypeVar("T")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS owed (
  place TEXT NOT NULL, id TEXT NOT NULL, due REAL NOT NULL, told INTEGER NOT NULL,
  reporter TEXT NOT NULL, PRIMARY KEY (place, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spent (one INTEGER PRIMARY KEY CHECK (one = 1), budget TEXT NOT NULL);
"""
_CONFIRMED, _SENT = 1, 2
"""The bits of ``told``: the service knows that it was shown; it was sent, and the answer was lost."""


class Owed(NamedTuple):
    """A report that has to go out."""

    id: str
    due: float
    """Seconds since 1970."""
    confirmed: bool
    """Whether the service knows that the decision was shown."""


class Outbox:
    """What one device owes, for any number of experiments, and what it has spent.

    Parameters
    ----------
    path : path, optional
        A file that only this user may read; memory, which a crash empties, unless given.
    budget : float, optional
        The most that all reports of this outbox may cost together.
    random : callable
        Random bytes; the operating system's unless given, which is for tests.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        budget: float | None = None,
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        if path is not None:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._database = sqlite3.connect(
            ":memory:" if path is None else path,
            isolation_level=None,
            check_same_thread=False,
            timeout=10,
        )
        # What was replaced or dropped does not stay in the file.
        self._database.executescript(f"PRAGMA synchronous=FULL; PRAGMA secure_delete=ON; {_SCHEMA}")
        self._budget, self.random = budget, random
        self._process, self._lock = os.getpid(), threading.RLock()
        wait_for(self, self._lock)

    def owe(self, place: str, reporter: Reporter, due: float) -> bool:
        """Charge for a decision that is being shown and note its report; False if refused."""

        def work() -> bool:
            if self._row("SELECT 1 FROM owed WHERE place = ? AND id = ?", place, reporter.id):
                return True
            kept = self._row("SELECT budget FROM spent")
            budget = Budget.from_json(kept[0], self._budget) if kept else Budget(self._budget)
            if not budget.charge(reporter):
                return False
            self._run("INSERT OR REPLACE INTO spent VALUES (1, ?)", budget.to_json())
            text = reporter.to_json()
            self._run("INSERT INTO owed VALUES (?, ?, ?, 0, ?)", place, reporter.id, due, text)
            return True

        return self._together(work)

    def replace(self, place: str, id: str, reward: object, clock: Callable[[], float]) -> bool:
        """Draw the report of a decision for a reward, if its time has not come; return whether it was.

        The clock is read while no other process can read the report: what comes later is never sent.
        """

        def work() -> bool:
            row = self._row(
                "SELECT reporter, due, told FROM owed WHERE place = ? AND id = ?", place, id
            )
            if row is None or row[2] & _SENT or clock() >= row[1]:
                return False
            reporter = self._reporter(row[0])
            reporter.replace(reward)
            self._keep(place, reporter)
            return True

        return self._together(work)

    def report(self, place: str, id: str) -> dict[str, Any] | None:
        """Return the report of a decision as it is stored; None if none is owed."""

        def work() -> dict[str, Any] | None:
            row = self._row("SELECT reporter FROM owed WHERE place = ? AND id = ?", place, id)
            if row is None:
                return None
            reporter = self._reporter(row[0])
            if not reporter.fixed:  # written by 0.2.0, which drew at the reward or at its time
                self._keep(place, reporter)
            return reporter.report()

        return self._together(work)

    def _reporter(self, text: str) -> Reporter:
        # Checked against the client's bound when it was owed; a budget has paid for it.
        return Reporter.from_json(text, max_epsilon=None, random=self.random)

    def _keep(self, place: str, reporter: Reporter) -> None:
        text = reporter.to_json()
        update = "UPDATE owed SET reporter = ? WHERE place = ? AND id = ?"
        self._run(update, text, place, reporter.id)

    def confirm(self, place: str, id: str) -> None:
        """Note that the service knows that the decision was shown."""
        self._tell(place, id, _CONFIRMED)

    def seal(self, place: str, id: str) -> None:
        """Note that a report was sent, perhaps in vain: it stays as it is, should a clock be set back."""
        self._tell(place, id, _SENT)

    def _tell(self, place: str, id: str, bit: int) -> None:
        with self._turn():
            self._run("UPDATE owed SET told = told | ? WHERE place = ? AND id = ?", bit, place, id)

    def forget(self, place: str, id: str) -> None:
        """Drop what was sent, or what the service will never take."""
        with self._turn():
            self._run("DELETE FROM owed WHERE place = ? AND id = ?", place, id)

    def owed(self, place: str) -> list[Owed]:
        """Return what is owed to one experiment, the earliest first."""
        with self._turn():
            rows = self._database.execute(
                "SELECT id, due, told FROM owed WHERE place = ? ORDER BY due", (place,)
            ).fetchall()
        return [Owed(id, due, bool(told & _CONFIRMED)) for id, due, told in rows]

    @property
    def spent(self) -> float:
        """The epsilon of all reports so far; infinite once a reward itself was sent."""
        with self._turn():
            kept = self._row("SELECT budget FROM spent")
        return Budget.from_json(kept[0], None).spent if kept else 0.0

    def close(self) -> None:
        """Close the file; one that was inherited in a fork is its owner's to close."""
        if not self.inherited:
            with self._lock:
                self._database.close()

    @property
    def inherited(self) -> bool:
        """Whether another process opened it, from which this one was forked."""
        return os.getpid() != self._process

    def check_process(self) -> None:
        """Raise ``RuntimeError`` in a forked process, which would report beside its parent."""
        if self.inherited:
            raise RuntimeError(
                "Outbox: opened before a fork; two processes would answer for the same decision, so open it, "
                "and make its client, in the process that uses it"
            )

    @contextmanager
    def _turn(self) -> Iterator[None]:
        self.check_process()
        with self._lock:
            yield

    def _together(self, work: Callable[[], T]) -> T:
        with self._turn():
            self._run("BEGIN IMMEDIATE")
            try:
                result = work()
                self._run("COMMIT")
            except BaseException:
                self._run("ROLLBACK")
                raise
        return result

    def _run(self, statement: str, *values: Any) -> None:
        self._database.execute(statement, values)

    def _row(self, statement: str, *values: Any) -> Any:
        return self._database.execute(statement, values).fetchone()
