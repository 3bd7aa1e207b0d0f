"""A durable record of the privacy spent on each person.

Spend first, release afterwards: once :meth:`Ledger.spend` returns, the charge is on disk and no
crash can forget it. The file is SQLite, its rows are only ever added, and amounts are whole numbers
(a millionth of epsilon, 1e-15 of delta) rounded up when spent and down when allowed, so that sums
are exact and every rounding is against the spender. Charges add up by basic composition, which
holds even when later charges depend on earlier answers.
"""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

__all__ = ["Budget", "BudgetExceededError", "Charge", "Entry", "Ledger", "LedgerError"]

MICRO, FEMTO = 10**6, 10**15
_LIMIT = 10**18  # below 2**63, so that no sum of an accepted charge and a total overflows
_EVERYBODY = ""
_APPLICATION, _VERSION = 0x7AC17, 1

_SCHEMA = """
CREATE TABLE budgets (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    subject TEXT NOT NULL,
    micro_epsilon INTEGER NOT NULL CHECK (micro_epsilon >= 0),
    femto_delta INTEGER NOT NULL CHECK (femto_delta >= 0),
    time TEXT NOT NULL
) STRICT;
CREATE INDEX budgets_by_subject ON budgets (subject, id);
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    subject TEXT NOT NULL,
    key TEXT NOT NULL,
    micro_epsilon INTEGER NOT NULL CHECK (micro_epsilon >= 0),
    femto_delta INTEGER NOT NULL CHECK (femto_delta >= 0),
    total_micro_epsilon INTEGER NOT NULL CHECK (total_micro_epsilon >= micro_epsilon),
    total_femto_delta INTEGER NOT NULL CHECK (total_femto_delta >= femto_delta),
    note TEXT NOT NULL,
    time TEXT NOT NULL,
    UNIQUE (subject, key)
) STRICT;
CREATE INDEX entries_by_subject ON entries (subject, id);
CREATE TRIGGER budgets_stay BEFORE DELETE ON budgets
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER budgets_keep BEFORE UPDATE ON budgets
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entries_keep BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""
_COLUMNS = (
    "id, subject, key, micro_epsilon, femto_delta, total_micro_epsilon, total_femto_delta, "
    "note, time"
)


class LedgerError(ValueError):
    """A charge, a budget or a file that the ledger does not accept."""


class BudgetExceededError(LedgerError):
    """A charge would exceed a subject's budget: nothing was recorded, nothing may be released."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a subject may lose, or has left, in whole units."""

    micro_epsilon: int
    femto_delta: int

    @property
    def epsilon(self) -> float:
        """The same in units of epsilon."""
        return self.micro_epsilon / MICRO

    @property
    def delta(self) -> float:
        """The same in units of delta."""
        return self.femto_delta / FEMTO


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One release to be paid for: whose data, how much, and a key that names the release."""

    subject: str
    key: str
    epsilon: float | int | Decimal | Fraction
    delta: float | int | Decimal | Fraction = 0.0
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One row of the ledger."""

    id: int
    subject: str
    key: str
    micro_epsilon: int
    femto_delta: int
    total_micro_epsilon: int
    """What the subject had spent once this entry was made."""
    total_femto_delta: int
    note: str
    time: str
    repeated: bool = False
    """True if an earlier call had already made this entry, so that nothing was charged now."""


class Ledger:
    """An append-only ledger in one SQLite file, shared by any number of threads and processes.

    Parameters
    ----------
    path : str or path
        The file; created if missing. It must lie on a local disk: the write-ahead log
        of SQLite does not work over a network.
    timeout : float
        How many seconds to wait for other writers before giving up.

    Notes
    -----
    *Nothing lost*: a commit is forced to disk (``synchronous=FULL``) before `spend` returns.
    *Nothing under-counted*: a crash between `spend` and the release leaves the charge standing.
    *Never overspent*: check and charge are one write transaction, so writers cannot interleave.
    A float stands for the decimal number that it prints as: 0.1 is exactly a tenth.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(pathlib.Path(folder.name) / "ledger.sqlite")
    >>> ledger.allow(1.0)
    >>> ledger.spend("ada", 0.7, key="round 1").total_micro_epsilon
    700000
    >>> try:
    ...     ledger.spend("ada", 0.7, key="round 2")
    ... except BudgetExceededError:
    ...     print("no answer for ada: only", ledger.remaining("ada").epsilon, "left")
    no answer for ada: only 0.3 left
    >>> ledger.close()
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 30.0) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._process = os.getpid()
        try:
            self._connection = sqlite3.connect(
                self.path, timeout=timeout, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise LedgerError(f"Ledger: cannot open {self.path}: {error}") from error
        try:
            self._prepare(timeout)
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while True:  # switching to the write-ahead log ignores SQLite's own waiting
            try:
                mode = self._connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise LedgerError(f"Ledger: cannot open {self.path}: {error}") from error
                time.sleep(0.005)
            except sqlite3.DatabaseError as error:
                raise LedgerError(f"Ledger: {self.path} is not a ledger: {error}") from error
        if mode != "wal":
            raise LedgerError(f"Ledger: expected a file on a local disk, got {self.path}")
        self._connection.execute("PRAGMA synchronous = FULL")
        with self._writing() as connection:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            empty = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
            if empty:
                for statement in _statements(_SCHEMA):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {_VERSION}")
            elif (application, version) != (_APPLICATION, _VERSION):
                raise LedgerError(f"Ledger: {self.path} is a database but not a ledger")

    @contextlib.contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        if os.getpid() != self._process:
            raise LedgerError("Ledger: opened before a fork; open the file again in this process")
        with self._lock:
            try:
                yield self._connection
            except sqlite3.ProgrammingError as error:
                raise LedgerError(f"Ledger: {self.path} is closed") from error
            except sqlite3.OperationalError as error:
                raise LedgerError(f"Ledger: {self.path}: {error}") from error

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def allow(
        self,
        epsilon: float | Decimal | Fraction,
        delta: float | Decimal | Fraction = 0.0,
        *,
        subject: str | None = None,
    ) -> None:
        """Set the budget of `subject`, or of everybody who has none of their own.

        A budget counts from the beginning: lowered below what is spent, it leaves nothing.
        """
        name = _EVERYBODY if subject is None else _subject(subject)
        row = (
            name,
            _units("epsilon", epsilon, MICRO, math.floor),
            _units("delta", delta, FEMTO, math.floor),
            _now(),
        )
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO budgets (subject, micro_epsilon, femto_delta, time)"
                " VALUES (?, ?, ?, ?)",
                row,
            )

    def spend(
        self,
        subject: str,
        epsilon: float | Decimal | Fraction,
        delta: float | Decimal | Fraction = 0.0,
        *,
        key: str,
        note: str = "",
    ) -> Entry:
        """Charge `subject`, durably, before something about them is released.

        Parameters
        ----------
        subject : str
            Whose budget is charged.
        epsilon, delta : number
            What the release costs; rounded up to whole units.
        key : str
            Names the release. The same charge under the same key is charged once: the entry
            comes back with ``repeated=True``, which permits the *same* answer to be sent again,
            never a second one with fresh noise.
        note : str
            Free text.

        Raises
        ------
        BudgetExceededError
            If the budget does not allow it. Nothing is recorded then.
        LedgerError
            If the subject has no budget, or the key stands for a different charge.
        """
        charge = Charge(subject=subject, key=key, epsilon=epsilon, delta=delta, note=note)
        return self.spend_all([charge])[0]

    def spend_all(self, charges: Iterable[Charge]) -> list[Entry]:
        """Make all charges in one transaction, or none of them."""
        prepared = [
            (
                _subject(charge.subject),
                _text("key", charge.key),
                _units("epsilon", charge.epsilon, MICRO, math.ceil),
                _units("delta", charge.delta, FEMTO, math.ceil),
                charge.note,
            )
            for charge in charges
        ]
        with self._writing() as connection:
            return [_charge(connection, *row) for row in prepared]

    def spent(self, subject: str) -> Budget:
        """Return what was spent on `subject` so far."""
        with self._using() as connection:
            return _spent(connection, _subject(subject))

    def remaining(self, subject: str) -> Budget:
        """Return what may still be spent on `subject`."""
        with self._using() as connection:
            connection.execute("BEGIN")
            try:
                return _remaining(connection, _subject(subject))
            finally:
                connection.execute("COMMIT")

    def entries(self, subject: str | None = None) -> list[Entry]:
        """Return the entries in the order they were made, of one subject or of all."""
        where, values = ("", ()) if subject is None else ("WHERE subject = ?", (subject,))
        with self._using() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM entries {where} ORDER BY id", values)
            return [_entry(row) for row in rows]

    def verify(self) -> None:
        """Check the file and recompute every running total; raise `LedgerError` if one is wrong."""
        with self._using() as connection:
            try:
                verdict = connection.execute("PRAGMA integrity_check").fetchone()[0]
            except sqlite3.DatabaseError as error:
                verdict = str(error)
        if verdict != "ok":
            raise LedgerError(f"Ledger: {self.path} is damaged: {verdict}")
        totals: dict[str, tuple[int, int]] = {}
        for entry in self.entries():
            epsilon, delta = totals.get(entry.subject, (0, 0))
            totals[entry.subject] = epsilon + entry.micro_epsilon, delta + entry.femto_delta
            recorded = entry.total_micro_epsilon, entry.total_femto_delta
            if recorded != totals[entry.subject]:
                raise LedgerError(
                    f"Ledger: entry {entry.id} of {entry.subject!r} states a total of "
                    f"{recorded}, its entries add up to {totals[entry.subject]}"
                )

    def export_csv(self, path: str | os.PathLike[str]) -> None:
        """Write all entries as comma-separated values with a header line."""
        rows = [asdict(entry) for entry in self.entries()]
        names = [name for name in Entry.__dataclass_fields__ if name != "repeated"]
        with _whole_file(path) as file:
            writer = csv.DictWriter(file, names, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

    def export_json(self, path: str | os.PathLike[str]) -> None:
        """Write all entries as JSON, with the names of the units."""
        rows = [asdict(entry) for entry in self.entries()]
        for row in rows:
            del row["repeated"]
        units = {"micro_epsilon": "1e-6 epsilon", "femto_delta": "1e-15 delta"}
        with _whole_file(path) as file:
            json.dump({"units": units, "entries": rows}, file, indent=1)
            file.write("\n")

    def close(self) -> None:
        """Close the file; what was spent is safe without it."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _charge(
    connection: sqlite3.Connection, subject: str, key: str, epsilon: int, delta: int, note: str
) -> Entry:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM entries WHERE subject = ? AND key = ?", (subject, key)
    ).fetchone()
    if row is not None:
        entry = _entry(row, repeated=True)
        if (entry.micro_epsilon, entry.femto_delta) != (epsilon, delta):
            raise LedgerError(
                f"Ledger: key {key!r} of {subject!r} already stands for "
                f"{_amount(entry.micro_epsilon, entry.femto_delta)}, got {_amount(epsilon, delta)}"
            )
        return entry
    left = _remaining(connection, subject)
    if epsilon > left.micro_epsilon or delta > left.femto_delta:
        raise BudgetExceededError(
            f"Ledger: {subject!r} has {_amount(left.micro_epsilon, left.femto_delta)} left, "
            f"too little for {_amount(epsilon, delta)} (key {key!r})"
        )
    total = _spent(connection, subject)
    row = connection.execute(
        "INSERT INTO entries (subject, key, micro_epsilon, femto_delta, total_micro_epsilon,"
        f" total_femto_delta, note, time) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING {_COLUMNS}",
        (
            subject,
            key,
            epsilon,
            delta,
            total.micro_epsilon + epsilon,
            total.femto_delta + delta,
            note,
            _now(),
        ),
    ).fetchone()
    return _entry(row)


def _spent(connection: sqlite3.Connection, subject: str) -> Budget:
    row = connection.execute(
        "SELECT total_micro_epsilon, total_femto_delta FROM entries"
        " WHERE subject = ? ORDER BY id DESC LIMIT 1",
        (subject,),
    ).fetchone() or (0, 0)
    return Budget(micro_epsilon=row[0], femto_delta=row[1])


def _remaining(connection: sqlite3.Connection, subject: str) -> Budget:
    for name in (subject, _EVERYBODY):
        row = connection.execute(
            "SELECT micro_epsilon, femto_delta FROM budgets"
            " WHERE subject = ? ORDER BY id DESC LIMIT 1",
            (name,),
        ).fetchone()
        if row is not None:
            total = _spent(connection, subject)
            return Budget(
                micro_epsilon=max(0, row[0] - total.micro_epsilon),
                femto_delta=max(0, row[1] - total.femto_delta),
            )
    raise LedgerError(f"Ledger: {subject!r} has no budget; set one with allow(...)")


def _units(name: str, value: Any, unit: int, rounding: Any) -> int:
    try:
        exact = Fraction(repr(float(value)) if isinstance(value, float) else value)
    except (ValueError, TypeError, OverflowError):
        raise LedgerError(f"Ledger: expected {name} a finite number, got {value!r}") from None
    if exact < 0:
        raise LedgerError(f"Ledger: expected {name} >= 0, got {value!r}")
    units = int(rounding(exact * unit))
    if units > _LIMIT:
        raise LedgerError(f"Ledger: expected {name} <= {_LIMIT // unit}, got {value!r}")
    return units


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise LedgerError(f"Ledger: expected {name} a non-empty string, got {value!r}")
    return value


def _subject(value: Any) -> str:
    return _text("subject", value)


def _entry(row: Any, *, repeated: bool = False) -> Entry:
    names = [name.strip() for name in _COLUMNS.split(",")]
    return Entry(**dict(zip(names, row, strict=True)), repeated=repeated)


def _amount(micro_epsilon: int, femto_delta: int) -> str:
    return f"epsilon {micro_epsilon / MICRO:.15g} and delta {femto_delta / FEMTO:.15g}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextlib.contextmanager
def _whole_file(path: str | os.PathLike[str]) -> Iterator[IO[str]]:
    """Write beside `path` and rename, so that no reader ever sees half a file."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", newline="", encoding="utf-8") as file:
            yield file
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
