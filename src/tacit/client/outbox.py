"""Reports that a device owes, kept so that each survives a crash and is sent as it was first sent.

One SQLite file (or memory) holds them. A report is drawn and stored when its decision is shown, for the
default reward; a reward replaces it before its time. So a record looks the same with and without a reward,
and sending only reads it. What is decided about a report is decided inside a transaction, so that two
processes with one file send the same report, and whatever a budget was charged stays charged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tacit.core.database import Schema
from tacit.core.sqlite import SQLiteDatabase
from tacit.device import Budget, Reporter

_TABLES = """
CREATE TABLE IF NOT EXISTS owed (
  place TEXT NOT NULL, id TEXT NOT NULL, due REAL NOT NULL, told INTEGER NOT NULL,
  reporter TEXT NOT NULL, PRIMARY KEY (place, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spent (one INTEGER PRIMARY KEY CHECK (one = 1), budget TEXT NOT NULL);
"""
# Version 0.2 gave its files no number: a table may be there already.
_SCHEMA = Schema(kind="an outbox", sqlite=(_TABLES,))
_CONFIRMED, _SENT = 1, 2
"""The bits of ``told``: the service knows that it was shown; it was sent, and the answer was lost."""


class PendingReport(NamedTuple):
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
        self._database = SQLiteDatabase(None if path is None else Path(path), _SCHEMA)
        self._budget, self.random = budget, random

    def add(self, place: str, reporter: Reporter, due: float) -> bool:
        """Charge for a decision that is being shown and store its report; False if refused."""
        with self._transaction():
            if self._find("reporter", place, reporter.id) is not None:
                return True
            budget = self._read_budget(self._budget)
            if not budget.charge(reporter):
                return False
            self._database.run("INSERT OR REPLACE INTO spent VALUES (1, ?)", budget.to_json())
            self._database.run(
                "INSERT INTO owed VALUES (?, ?, ?, 0, ?)",
                *(place, reporter.id, due, reporter.to_json()),
            )
            return True

    def replace(self, place: str, id: str, reward: object, clock: Callable[[], float]) -> bool:
        """Draw the report of a decision for a reward, if its time has not come; return whether it was.

        The clock is read while no other process can read the report: what comes later is never sent.
        """
        with self._transaction():
            found = self._find("reporter, due, told", place, id)
            if found is None or found[2] & _SENT or clock() >= found[1]:
                return False
            reporter = self._reporter(found[0])
            reporter.replace(reward)
            self._save(place, reporter)
            return True

    def report(self, place: str, id: str) -> dict[str, Any] | None:
        """Return the report of a decision as it is stored; None if none is pending."""
        with self._transaction():
            found = self._find("reporter", place, id)
            if found is None:
                return None
            reporter = self._reporter(found[0])
            if not reporter.fixed:  # written by 0.2.0, which drew at the reward or at its time
                self._save(place, reporter)
            return reporter.report()

    def confirm(self, place: str, id: str) -> None:
        """Store that the service knows that the decision was shown."""
        self._mark(place, id, _CONFIRMED)

    def mark_sent(self, place: str, id: str) -> None:
        """Store that a report was sent, perhaps in vain: it stays as it is, should a clock be set back."""
        self._mark(place, id, _SENT)

    def forget(self, place: str, id: str) -> None:
        """Drop what was sent, or what the service will never take."""
        with self._transaction():
            self._database.run("DELETE FROM owed WHERE place = ? AND id = ?", place, id)

    def pending(self, place: str) -> list[PendingReport]:
        """Return the reports that are pending for one experiment, the earliest first."""
        self.check_process()
        rows = self._database.query(
            "SELECT id, due, told FROM owed WHERE place = ? ORDER BY due", place
        )
        return [PendingReport(id, due, bool(told & _CONFIRMED)) for id, due, told in rows]

    @property
    def spent(self) -> float:
        """The epsilon of all reports so far; infinite once a reward itself was sent."""
        self.check_process()
        return self._read_budget(None).spent

    def close(self) -> None:
        """Close the file; one that was inherited in a fork is its owner's to close."""
        self._database.close()

    @property
    def inherited(self) -> bool:
        """Whether another process opened it, from which this one was forked."""
        return self._database.is_inherited

    def check_process(self) -> None:
        """Raise ``RuntimeError`` in a forked process, which would report beside its parent."""
        if self.inherited:
            raise RuntimeError(
                "Outbox: opened before a fork; two processes would answer for the same decision, so open it, "
                "and make its client, in the process that uses it"
            )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.check_process()
        with self._database.transaction():
            yield

    def _find(self, columns: str, place: str, id: str) -> Any:
        rows = self._database.query(
            f"SELECT {columns} FROM owed WHERE place = ? AND id = ?", place, id
        )
        return rows[0] if rows else None

    def _read_budget(self, most: float | None) -> Budget:
        stored = self._database.query("SELECT budget FROM spent")
        return Budget.from_json(stored[0][0], most) if stored else Budget(most)

    def _reporter(self, text: str) -> Reporter:
        # Checked against the client's bound when it was added; a budget has paid for it.
        return Reporter.from_json(text, max_epsilon=None, random=self.random)

    def _save(self, place: str, reporter: Reporter) -> None:
        self._database.run(
            "UPDATE owed SET reporter = ? WHERE place = ? AND id = ?",
            *(reporter.to_json(), place, reporter.id),
        )

    def _mark(self, place: str, id: str, bit: int) -> None:
        with self._transaction():
            self._database.run(
                "UPDATE owed SET told = told | ? WHERE place = ? AND id = ?", bit, place, id
            )
