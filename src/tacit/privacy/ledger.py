"""A durable record of the privacy spent on each person.

Spend first, release afterwards: once :meth:`Ledger.spend` returns, the charge is on disk and no
crash can forget it. Rows are only ever added, to a SQLite file or to a PostgreSQL database
(:mod:`tacit.core.database`). What fits is decided by :mod:`tacit.privacy.budgets`; here it is kept.
Callers that come at once share one commit.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tacit.core.database import Database, Schema, StoreError, connect_postgres, is_database
from tacit.core.files import write_atomically
from tacit.core.sqlite import SQLiteDatabase
from tacit.core.text import escape_formula
from tacit.privacy.budgets import (
    Amount,
    Cap,
    LedgerError,
    Number,
    Outcome,
    Period,
    left_of,
    require_within,
    window_start,
)

_VERSION_1 = """
CREATE TABLE budgets (
    id {counted}, subject TEXT NOT NULL, micro_epsilon INTEGER NOT NULL,
    femto_delta INTEGER NOT NULL, time TEXT NOT NULL
) STRICT;
CREATE TABLE entries (
    id {counted}, subject TEXT NOT NULL, key TEXT NOT NULL, micro_epsilon INTEGER NOT NULL,
    femto_delta INTEGER NOT NULL, total_micro_epsilon INTEGER NOT NULL,
    total_femto_delta INTEGER NOT NULL, note TEXT NOT NULL, time TEXT NOT NULL
) STRICT;
"""
_MAKE_ROOM = """
DROP TRIGGER IF EXISTS budgets_stay;
DROP TRIGGER IF EXISTS budgets_keep;
DROP TRIGGER IF EXISTS entries_stay;
DROP TRIGGER IF EXISTS entries_keep;
DROP INDEX IF EXISTS entries_by_subject;
ALTER TABLE entries RENAME TO old_entries;
"""
_TABLES = """
CREATE TABLE caps (
    id {counted},
    subject TEXT NOT NULL,
    period TEXT NOT NULL CHECK (period IN ('day', 'month', 'year', 'lifetime')),
    epsilon_units {integer} CHECK (epsilon_units >= 0),
    delta_units {integer} CHECK (delta_units >= 0),
    time {time} NOT NULL
){strict};
CREATE INDEX caps_by_subject ON caps (subject, period, id);
CREATE TABLE entries (
    id {counted},
    subject TEXT NOT NULL,
    key TEXT NOT NULL,
    epsilon_units {integer} NOT NULL CHECK (epsilon_units >= 0),
    delta_units {integer} NOT NULL CHECK (delta_units >= 0),
    total_epsilon_units {integer} NOT NULL CHECK (total_epsilon_units >= epsilon_units),
    total_delta_units {integer} NOT NULL CHECK (total_delta_units >= delta_units),
    note TEXT NOT NULL,
    time {time} NOT NULL,
    UNIQUE (subject, key)
){strict};
CREATE INDEX entries_by_subject ON entries (subject, id);
CREATE INDEX entries_by_time ON entries (subject, time, id);
"""
_COPY_ROWS = """
INSERT INTO caps (subject, period, epsilon_units, delta_units, time)
    SELECT subject, 'lifetime', micro_epsilon * 1000000, femto_delta * 1000, time
    FROM budgets ORDER BY id;
INSERT INTO entries
    SELECT id, subject, key, micro_epsilon * 1000000, femto_delta * 1000,
    total_micro_epsilon * 1000000, total_femto_delta * 1000, note, time
    FROM old_entries ORDER BY id;
DROP TABLE old_entries;
DROP TABLE budgets;
"""
_APPEND_ONLY = """
CREATE TRIGGER caps_stay BEFORE DELETE ON caps
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER caps_keep BEFORE UPDATE ON caps
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entries_keep BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""
_SHARED_APPEND_ONLY = """
CREATE TABLE tacit_ledger (
    one BOOLEAN PRIMARY KEY DEFAULT true CHECK (one), version INTEGER NOT NULL
);
INSERT INTO tacit_ledger (version) VALUES (0);
CREATE FUNCTION tacit_ledger_stays() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER caps_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON caps
    FOR EACH STATEMENT EXECUTE FUNCTION tacit_ledger_stays();
CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION tacit_ledger_stays();
"""
_SCHEMA = Schema(
    kind="a ledger",
    application=0x7AC17,
    sqlite=(_VERSION_1, _MAKE_ROOM + _TABLES + _COPY_ROWS + _APPEND_ONLY),
    postgres=("", _TABLES + _SHARED_APPEND_ONLY),
    version_table="tacit_ledger",
    landmark="entries",
)
_EVERYBODY = ""
_MOST_TOGETHER = 4096
_AMOUNTS = "epsilon_units, delta_units, total_epsilon_units, total_delta_units"
_COLUMNS = f"id, subject, key, {_AMOUNTS}, note, time"


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One release to be paid for: whose data, how much, and a key that names the release."""

    subject: str
    key: str
    epsilon: Number
    delta: Number = 0
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One row of the ledger. It is neither true nor false: `outcome` says what may be released."""

    id: int
    subject: str
    key: str
    amount: Amount
    total: Amount
    """What the subject had spent in all once this entry was made."""
    note: str
    time: str
    outcome: Outcome = Outcome.CHARGED
    """Whether it was charged now, or stood there before."""

    def __bool__(self) -> bool:
        raise TypeError(
            "Entry: neither true nor false; a new answer may be released only if its outcome is "
            "Outcome.CHARGED"
        )


class Ledger:
    """An append-only ledger in one SQLite file or PostgreSQL database, for any number of processes.

    Parameters
    ----------
    path : str or path
        The file; created if missing. It must lie on a local disk. Or the address of a database,
        ``postgresql://...``, where any number of machines may spend.
    timeout : float
        How many seconds to wait for other writers before giving up.

    Notes
    -----
    *Nothing lost*: a commit is forced to disk before `spend` returns.
    *Nothing under-counted*: a crash between `spend` and the release leaves the charge standing.
    *Never overspent*: check and charge are one write transaction, so writers cannot interleave.
    *Nothing spent on a file that is gone*: a ledger whose file was deleted, replaced or overwritten
    with an older one refuses.
    A float stands for the decimal number that it prints as: 0.1 is exactly a tenth.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from tacit.privacy import BudgetExceededError
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(pathlib.Path(folder.name) / "ledger.sqlite")
    >>> ledger.allow(1.0, period="year")
    >>> print(ledger.spend("ada", 0.7, key="round 1").total)
    epsilon 0.7 and delta 0
    >>> try:
    ...     ledger.spend("ada", 0.7, key="round 2")
    ... except BudgetExceededError:
    ...     print("no answer for ada: only", ledger.remaining("ada").epsilon, "left")
    no answer for ada: only 0.3 left
    >>> ledger.close()
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 30.0) -> None:
        self._waiting: deque[_Ticket] = deque()
        self._leading = threading.Lock()
        self._database: Database
        with _explain():
            if is_database(path):
                self._database = connect_postgres(os.fspath(path), _SCHEMA, timeout=timeout)
                self.path: Any = self._database.place
            else:
                self.path = Path(path)
                if str(path) == ":memory:":
                    raise StoreError("expected a file on a local disk, got :memory:")
                self._database = SQLiteDatabase(self.path, _SCHEMA, timeout=timeout)
            self._seen = self._last_id()

    def _require_history(self) -> None:
        """Make sure that no entry is gone that this process has seen."""
        last = self._last_id()
        if last < self._seen:
            raise LedgerError(
                f"Ledger: {self.path} has {last:,} entries and had {self._seen:,}: an old copy took "
                "its place; nothing may be released"
            )

    def _last_id(self) -> int:
        return int(self._database.query("SELECT coalesce(max(id), 0) FROM entries")[0][0])

    @contextlib.contextmanager
    def _read(self) -> Iterator[None]:
        with _explain(), self._database.read():
            yield

    @contextlib.contextmanager
    def _write(self) -> Iterator[None]:
        with _explain(), self._database.lock:
            with self._database.transaction("caps", "entries"):
                self._require_history()
                yield
                made = self._last_id()
            self._seen = made

    def allow(
        self,
        epsilon: Number,
        delta: Number = 0,
        *,
        period: str = "lifetime",
        subject: str | None = None,
    ) -> None:
        """Set a cap for `subject`, or for everybody who has none of their own for this period.

        Caps of several periods hold at once. A cap counts from the beginning of its window: lowered
        below what is spent, it leaves nothing.

        Parameters
        ----------
        epsilon, delta : number
            At most so much in each window.
        period : {"day", "month", "year", "lifetime"}
            How long a window is, by the calendar of UTC.
        subject : str, optional
            Whose cap; one of their own replaces everybody's of the same period only.
        """
        amount = _amount(Amount.allowed, epsilon, delta)
        self._set_cap(period, subject, amount.epsilon_units, amount.delta_units)

    def lift(self, period: str, *, subject: str | None = None) -> None:
        """Take away the cap of one period, from `subject` or from everybody."""
        self._set_cap(period, subject, None, None)

    def _set_cap(
        self, period: str, subject: str | None, epsilon: int | None, delta: int | None
    ) -> None:
        known = [each.value for each in Period]
        if period not in known:
            raise LedgerError(f"Ledger: expected period one of {', '.join(known)}, got {period!r}")
        name = _EVERYBODY if subject is None else _text("subject", subject)
        with self._write():
            self._database.run(
                "INSERT INTO caps (id, subject, period, epsilon_units, delta_units, time)"
                " VALUES ((SELECT coalesce(max(id), 0) + 1 FROM caps), ?, ?, ?, ?, ?)",
                *(name, period, epsilon, delta, _stamp(_now())),
            )

    def spend(
        self, subject: str, epsilon: Number, delta: Number = 0, *, key: str, note: str = ""
    ) -> Entry:
        """Charge `subject`, durably, before something about them is released.

        Threads that call at once share a commit.

        Parameters
        ----------
        subject : str
            Whose budget is charged.
        epsilon, delta : number
            What the release costs; rounded up to whole units.
        key : str
            Names the release. The same charge under the same key is charged once: the entry
            comes back with ``Outcome.REPEATED``, which permits the *same* answer to be sent
            again, never a second one with fresh noise.
        note : str
            Free text.

        Raises
        ------
        BudgetExceededError
            If a cap does not allow it. Nothing is recorded then.
        LedgerError
            If the subject has no budget, or the key stands for a different charge.
        """
        charge = Charge(subject=subject, key=key, epsilon=epsilon, delta=delta, note=note)
        return self.spend_all([charge])[0]

    def spend_all(self, charges: Iterable[Charge]) -> list[Entry]:
        """Make all charges in one transaction, or none of them."""
        entries = []
        for outcome in self._commit([_row(charge) for charge in charges], together=True):
            if isinstance(outcome, LedgerError):
                raise outcome
            entries.append(outcome)
        return entries

    def spend_many(self, charges: Iterable[Charge]) -> list[Entry | LedgerError]:
        """Make each charge that fits, all of them in one commit: thousands a second.

        Returns
        -------
        list of Entry or LedgerError
            For each charge its entry, or why it was refused; nothing may be released for those.
        """
        return self._commit([_row(charge) for charge in charges], together=False)

    def _commit(self, rows: list[_Row], *, together: bool) -> list[Entry | LedgerError]:
        """Wait for a commit; whoever comes while none is under way makes one for all who wait."""
        with _explain():
            self._database.check_process()
        ticket = _Ticket(rows, together)
        self._waiting.append(ticket)
        while ticket.outcome is None:
            if not self._leading.acquire(blocking=False):
                ticket.ready.wait()
                ticket.ready.clear()
                continue
            try:
                self._serve()
            finally:
                self._leading.release()
                with contextlib.suppress(IndexError):
                    # Whoever came too late for this commit leads the next one.
                    self._waiting[0].ready.set()
        if isinstance(ticket.outcome, BaseException):
            raise ticket.outcome
        return ticket.outcome

    def _serve(self) -> None:
        group: list[_Ticket] = []
        try:
            with self._write():
                while self._waiting and sum(len(each.rows) for each in group) < _MOST_TOGETHER:
                    group.append(self._waiting.popleft())
                found = [self._charge_all(each.rows, each.together) for each in group]
            for each, outcome in zip(group, found, strict=True):
                each.outcome = outcome
        except BaseException as error:
            group = group or [self._waiting.popleft() for _ in range(len(self._waiting))]
            for each in group:
                each.outcome = error
        finally:
            for each in group:
                each.ready.set()

    def _charge_all(self, rows: list[_Row], together: bool) -> list[Entry | LedgerError]:
        """Make charges inside a transaction: each that fits, or all or none."""
        found: list[Entry | LedgerError] = []
        self._database.run("SAVEPOINT charges")
        for row in rows:
            try:
                found.append(self._charge(row))
            except LedgerError as error:
                if together:
                    self._database.run("ROLLBACK TO charges")
                    found = [error]
                    break
                found.append(error)
        self._database.run("RELEASE charges")
        return found

    def _charge(self, row: _Row) -> Entry:
        query = self._database.query
        for known in query(
            f"SELECT {_COLUMNS} FROM entries WHERE subject = ? AND key = ?", row.subject, row.key
        ):
            entry = _entry(known, Outcome.REPEATED)
            if entry.amount != row.amount:
                raise LedgerError(
                    f"Ledger: key {row.key!r} of {row.subject!r} already stands for {entry.amount}, "
                    f"got {row.amount}"
                )
            return entry
        last = query(
            "SELECT total_epsilon_units, total_delta_units, time FROM entries"
            " WHERE subject = ? ORDER BY id DESC LIMIT 1",
            row.subject,
        )
        # A clock that was set back must not open a window again.
        now = max([_now(), *(datetime.fromisoformat(time) for _, _, time in last)])
        caps = self._caps(row.subject)
        spent = {cap.period: self._spent(row.subject, cap.period, now) for cap in caps}
        require_within(row.subject, row.key, row.amount, caps, spent)
        total = sum((Amount(*units) for *units, _ in last), row.amount)
        values = (row.subject, row.key, *_pair(row.amount), *_pair(total), row.note, _stamp(now))
        [made] = query(
            f"INSERT INTO entries ({_COLUMNS}) VALUES ((SELECT coalesce(max(id), 0) + 1 FROM entries),"
            f" ?, ?, ?, ?, ?, ?, ?, ?) RETURNING {_COLUMNS}",
            *values,
        )
        return _entry(made, Outcome.CHARGED)

    def _spent(self, subject: str, period: Period, now: datetime) -> Amount:
        """Return the total now less the total when the window began."""
        query = self._database.query
        totals = "SELECT total_epsilon_units, total_delta_units FROM entries WHERE subject = ? "
        whole = query(f"{totals} ORDER BY id DESC LIMIT 1", subject) or [(0, 0)]
        if period is Period.LIFETIME:
            return Amount(*whole[0])
        start = _stamp(window_start(period, now))
        before = query(
            f"{totals} AND time < ? ORDER BY time DESC, id DESC LIMIT 1", subject, start
        ) or [(0, 0)]
        return Amount(*whole[0]).less(Amount(*before[0]))

    def _caps(self, subject: str) -> tuple[Cap, ...]:
        caps = self._caps_for(subject)
        if not caps:
            raise LedgerError(f"Ledger: {subject!r} has no budget; set one with allow(...)")
        return caps

    def _caps_for(self, subject: str) -> tuple[Cap, ...]:
        """Return the caps that hold for somebody: for each period their own, or else everybody's."""
        held: dict[Period, Cap] = {}
        for name in (_EVERYBODY, subject):
            rows = self._database.query(
                "SELECT period, epsilon_units, delta_units FROM caps WHERE id IN"
                " (SELECT max(id) FROM caps WHERE subject = ? GROUP BY period)",
                name,
            )
            caps = [Cap(Amount(*most), Period(of)) for of, *most in rows if most[0] is not None]
            held |= {cap.period: cap for cap in caps}
        return tuple(held[period] for period in Period if period in held)

    def spent(self, subject: str, period: str = "lifetime") -> Amount:
        """Return what was spent on `subject` in the present window of a period."""
        with self._read():
            return self._spent(_text("subject", subject), Period(period), _now())

    def remaining(self, subject: str) -> Amount:
        """Return what may still be spent on `subject` now, under every cap."""
        with self._read():
            name, now = _text("subject", subject), _now()
            caps = self._caps(name)
            return left_of(caps, {cap.period: self._spent(name, cap.period, now) for cap in caps})

    def caps(self, subject: str | None = None) -> tuple[Cap, ...]:
        """Return the caps that hold for `subject`, or everybody's; empty if there are none."""
        with self._read():
            return self._caps_for(_EVERYBODY if subject is None else subject)

    def subjects(self) -> list[str]:
        """Return who was charged or has a budget of their own."""
        with self._read():
            rows = self._database.query(
                "SELECT subject FROM entries UNION SELECT subject FROM caps WHERE subject != ''"
            )
        return sorted(subject for (subject,) in rows)

    def entries(self, subject: str | None = None) -> list[Entry]:
        """Return the entries in the order they were made, of one subject or of all."""
        return [_entry(row, Outcome.REPEATED) for row in self._rows(subject)]

    def _rows(self, subject: str | None = None) -> list[Any]:
        where, values = ("", ()) if subject is None else ("WHERE subject = ?", (subject,))
        with self._read():
            return self._database.query(
                f"SELECT {_COLUMNS} FROM entries {where} ORDER BY id", *values
            )

    def verify(self) -> None:
        """Check the file and recompute every running total; raise `LedgerError` if one is wrong."""
        with _explain():
            damage = self._database.find_damage()
        if damage:
            raise LedgerError(f"Ledger: {self.path} is damaged: {damage}")
        totals: dict[str, Amount] = {}
        latest: dict[str, str] = {}
        for number, entry in enumerate(self.entries(), start=1):
            if entry.id != number:
                raise LedgerError(f"Ledger: entry {number} is missing")
            totals[entry.subject] = totals.get(entry.subject, Amount(0)) + entry.amount
            if entry.total != totals[entry.subject]:
                raise LedgerError(
                    f"Ledger: entry {entry.id} of {entry.subject!r} states a total of "
                    f"{entry.total}, its entries add up to {totals[entry.subject]}"
                )
            if entry.time < latest.get(entry.subject, ""):
                raise LedgerError(f"Ledger: entry {entry.id} is older than the one before it")
            latest[entry.subject] = entry.time

    def export_csv(self, path: str | os.PathLike[str]) -> None:
        """Write all entries as comma-separated values with a header line; no text is a formula there."""
        rows = self._exported()
        for row in rows:
            row.update({name: escape_formula(row[name]) for name in ("subject", "key", "note")})

        def write(place: Path) -> None:
            with place.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, _EXPORTED, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)

        write_atomically(Path(path), write, mode=0o600)

    def export_json(self, path: str | os.PathLike[str]) -> None:
        """Write all entries as JSON, with the names of the units."""
        units = {"epsilon_units": "1e-12 epsilon", "delta_units": "1e-18 delta"}
        text = json.dumps({"units": units, "entries": self._exported()}, indent=1) + "\n"
        write_atomically(Path(path), lambda file: file.write_text(text, "utf-8"), mode=0o600)

    def _exported(self) -> list[dict[str, Any]]:
        return [dict(zip(_EXPORTED, row, strict=True)) for row in self._rows()]

    def close(self) -> None:
        """Close the file; what was spent is safe without it."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


_EXPORTED = _COLUMNS.split(", ")


class _Row(NamedTuple):
    subject: str
    key: str
    amount: Amount
    note: str


class _Ticket:
    """Charges of one caller, and what became of them."""

    def __init__(self, rows: list[_Row], together: bool) -> None:
        self.rows, self.together = rows, together
        self.ready = threading.Event()
        self.outcome: list[Entry | LedgerError] | BaseException | None = None


@contextlib.contextmanager
def _explain() -> Iterator[None]:
    """Let what a database says be the ledger's word."""
    try:
        yield
    except StoreError as error:
        raise LedgerError(f"Ledger: {error}") from error


def _row(charge: Charge) -> _Row:
    return _Row(
        _text("subject", charge.subject),
        _text("key", charge.key),
        _amount(Amount.spent, charge.epsilon, charge.delta),
        charge.note,
    )


def _amount(rounded: Any, epsilon: Any, delta: Any) -> Amount:
    try:
        amount: Amount = rounded(epsilon, delta)
    except ValueError as error:
        raise LedgerError(str(error).replace("Amount", "Ledger", 1)) from None
    return amount


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise LedgerError(f"Ledger: expected {name} a non-empty string, got {value!r}")
    return value


def _pair(amount: Amount) -> tuple[int, int]:
    return amount.epsilon_units, amount.delta_units


def _entry(row: Any, outcome: Outcome) -> Entry:
    id, subject, key, *units, note, time = row
    return Entry(
        id=id,
        subject=subject,
        key=key,
        amount=Amount(*units[:2]),
        total=Amount(*units[2:]),
        note=note,
        time=time,
        outcome=outcome,
    )


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds")


def _now() -> datetime:
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)
