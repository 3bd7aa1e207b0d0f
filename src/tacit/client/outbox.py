"""Reports that a device owes, kept so that each is fixed once and survives a crash.

One SQLite file (or memory) holds them. What is decided about a report is decided inside a
transaction, so that two processes with one file come to the same report, and whatever a budget was
charged stays charged. A forked process must open the file anew: two copies of a report that is not fixed yet
would be drawn twice.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tacit.device import Budget, Reporter
from tacit.forks import wait_for

__all__ = ["Outbox", "Owed"]

T = TypeVar("T")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS owed (
  place TEXT NOT NULL, id TEXT NOT NULL, due REAL NOT NULL, told INTEGER NOT NULL,
  reporter TEXT NOT NULL, PRIMARY KEY (place, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spent (one INTEGER PRIMARY KEY CHECK (one = 1), budget TEXT NOT NULL);
"""
"""In files ``told`` is what is called confirmed here."""


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
        self._database.executescript(f"PRAGMA synchronous=FULL; {_SCHEMA}")
        self._budget, self._random = budget, random
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

    def fix(self, place: str, id: str, reward: object = None) -> dict[str, Any] | None:
        """Return the report of a decision, drawn for this reward unless it is fixed; None if none."""

        def work() -> dict[str, Any] | None:
            row = self._row("SELECT reporter FROM owed WHERE place = ? AND id = ?", place, id)
            if row is None:
                return None
            # Checked against the client's bound when it was owed; a budget has paid for it.
            reporter = Reporter.from_json(row[0], max_epsilon=None, random=self._random)
            fixed = reporter.fixed
            report = reporter.report(reward)
            if not fixed:
                text = reporter.to_json()
                self._run(
                    "UPDATE owed SET reporter = ? WHERE place = ? AND id = ?", text, place, id
                )
            return report

        return self._together(work)

    def confirm(self, place: str, id: str) -> None:
        """Note that the service knows that the decision was shown."""
        with self._turn():
            self._run("UPDATE owed SET told = 1 WHERE place = ? AND id = ?", place, id)

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
        return [Owed(id, due, bool(confirmed)) for id, due, confirmed in rows]

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
