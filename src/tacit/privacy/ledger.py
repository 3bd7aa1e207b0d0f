"""A durable record of the privacy spent on each person.

Spend first, release afterwards: once :meth:`Ledger.spend` returns, the charge is on disk and no
crash can forget it. Rows are only ever added, to a SQLite file or to a PostgreSQL database
(:mod:`tacit.privacy.ledger_storage`). What fits is decided by :mod:`tacit.privacy.budgets`; here it is kept.
Callers that come at once share one commit.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tacit.core.csv_escape import plain
from tacit.core.files import write_atomically
from tacit.core.processes import Owner, wait_for
from tacit.privacy import budgets
from tacit.privacy.budgets import Amount, Cap, Number, Outcome, Period, decide, left_of
from tacit.privacy.ledger_storage import Book, Connection, LedgerError, open_book

_EVERYBODY = ""
_MOST_TOGETHER = 4096
_MOMENT = 0.004  # seconds, less than a disk takes to make a commit durable

_COLUMNS = (
    "id, subject, key, epsilon_units, delta_units, total_epsilon_units, total_delta_units, "
    "note, time"
)


class BudgetExceededError(LedgerError, budgets.BudgetExceededError):
    """A charge would exceed a subject's budget: nothing was recorded, nothing may be released."""


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
        self._lock = threading.RLock()
        self._owner = Owner()
        self._queue = threading.Lock()
        self._waiting: deque[_Waiting] = deque()
        self._leading = False
        self._shared = 0
        self._seen = 0
        self._book: Book = open_book(path, timeout)
        self.path = self._book.path
        wait_for(self, self._lock)

    def _require_process(self) -> None:
        if self._owner.is_inherited:
            raise LedgerError("Ledger: opened before a fork; open it again in this process")

    def _require_history(self, connection: Connection) -> None:
        """Make sure that no entry is gone that this process has seen."""
        last = _last_id(connection)
        if last < self._seen:
            raise LedgerError(
                f"Ledger: {self.path} has {last:,} entries and had {self._seen:,}: an old copy took "
                "its place; nothing may be released"
            )

    @contextlib.contextmanager
    def _using(self) -> Iterator[Connection]:
        self._require_process()
        with self._lock, self._book.reading() as connection:
            yield connection

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Connection]:
        self._require_process()
        with self._lock:
            with self._book.writing() as connection:
                self._require_history(connection)
                yield connection
                made = _last_id(connection)
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
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO caps (id, subject, period, epsilon_units, delta_units, time)"
                " VALUES ((SELECT coalesce(max(id), 0) + 1 FROM caps), ?, ?, ?, ?, ?)",
                (name, period, epsilon, delta, _stamp(_now())),
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
        self._require_process()
        mine = _Waiting(rows, together)
        with self._queue:
            self._waiting.append(mine)
            leads = not self._leading
            self._leading = True
        if not leads:
            mine.ready.wait()
        if mine.outcome is None:
            try:
                self._gather()
                self._serve()
            finally:
                with self._queue:  # hand on to the first who waits
                    self._leading = bool(self._waiting)
                    if self._waiting:
                        self._waiting[0].ready.set()
        outcome = mine.outcome
        if isinstance(outcome, list):
            return outcome
        raise outcome or LedgerError("Ledger: the charge was not made")

    def _gather(self) -> None:
        """Give those who shared the latest commit a moment to come again: they cost nothing more."""
        until = time.monotonic() + _MOMENT
        while len(self._waiting) < self._shared and time.monotonic() < until:
            time.sleep(_MOMENT / 20)

    def _serve(self) -> None:
        group: list[_Waiting] = []
        with self._queue:
            while self._waiting and sum(len(each.rows) for each in group) < _MOST_TOGETHER:
                group.append(self._waiting.popleft())
        # Those who left do not come again; one more may.
        self._shared = len(group) if len(group) > 1 else 0
        try:
            with self._writing() as connection:
                found = [_charged(connection, each.rows, each.together) for each in group]
        except BaseException as error:
            for each in group:
                each.outcome = error
        else:
            for each, outcome in zip(group, found, strict=True):
                each.outcome = outcome
        for each in group:
            each.ready.set()

    def spent(self, subject: str, period: str = "lifetime") -> Amount:
        """Return what was spent on `subject` in the present window of a period."""
        with self._using() as connection:
            return _spent(connection, _text("subject", subject), Period(period), _now())

    def remaining(self, subject: str) -> Amount:
        """Return what may still be spent on `subject` now, under every cap."""
        with self._using() as connection:
            name, now = _text("subject", subject), _now()
            caps = _caps(connection, name)
            spent = {cap.period: _spent(connection, name, cap.period, now) for cap in caps}
            return left_of(caps, spent)

    def caps(self, subject: str | None = None) -> tuple[Cap, ...]:
        """Return the caps that hold for `subject`, or everybody's; empty if there are none."""
        with self._using() as connection:
            return _caps_for(connection, _EVERYBODY if subject is None else subject)

    def subjects(self) -> list[str]:
        """Return who was charged or has a budget of their own."""
        with self._using() as connection:
            rows = connection.execute(
                "SELECT subject FROM entries UNION SELECT subject FROM caps WHERE subject != ''"
            )
            return sorted(row[0] for row in rows)

    def entries(self, subject: str | None = None) -> list[Entry]:
        """Return the entries in the order they were made, of one subject or of all."""
        where, values = ("", ()) if subject is None else ("WHERE subject = ?", (subject,))
        with self._using() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM entries {where} ORDER BY id", values)
            return [_entry(row, Outcome.REPEATED) for row in rows]

    def verify(self) -> None:
        """Check the file and recompute every running total; raise `LedgerError` if one is wrong."""
        self._require_process()
        with self._lock:
            damage = self._book.damage()
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
            row.update({name: plain(row[name]) for name in ("subject", "key", "note")})

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
        with self._using() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM entries ORDER BY id")
            return [dict(zip(_EXPORTED, row, strict=True)) for row in rows]

    def close(self) -> None:
        """Close the file; what was spent is safe without it."""
        if not self._owner.is_inherited:  # what was inherited in a fork is its owner's to close
            with self._lock:
                self._book.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


_EXPORTED = [name.strip() for name in _COLUMNS.split(",")]


@dataclass(frozen=True)
class _Row:
    subject: str
    key: str
    amount: Amount
    note: str


class _Waiting:
    """Charges of one caller, and what became of them."""

    def __init__(self, rows: list[_Row], together: bool) -> None:
        self.rows, self.together = rows, together
        self.ready = threading.Event()
        self.outcome: list[Entry | LedgerError] | BaseException | None = None


def _row(charge: Charge) -> _Row:
    return _Row(
        _text("subject", charge.subject),
        _text("key", charge.key),
        _amount(Amount.spent, charge.epsilon, charge.delta),
        charge.note,
    )


def _charged(
    connection: Connection, rows: Sequence[_Row], together: bool
) -> list[Entry | LedgerError]:
    """Make charges inside a transaction: each that fits, or all or none."""
    found: list[Entry | LedgerError] = []
    connection.execute("SAVEPOINT charges")
    for row in rows:
        try:
            found.append(_charge(connection, row))
        except LedgerError as error:
            if together:
                connection.execute("ROLLBACK TO charges")
                found = [error]
                break
            found.append(error)
    connection.execute("RELEASE charges")
    return found


def _charge(connection: Connection, row: _Row) -> Entry:
    known = connection.execute(
        f"SELECT {_COLUMNS} FROM entries WHERE subject = ? AND key = ?", (row.subject, row.key)
    ).fetchone()
    if known is not None:
        entry = _entry(known, Outcome.REPEATED)
        if entry.amount != row.amount:
            raise LedgerError(
                f"Ledger: key {row.key!r} of {row.subject!r} already stands for {entry.amount}, "
                f"got {row.amount}"
            )
        return entry
    last = connection.execute(
        "SELECT total_epsilon_units, total_delta_units, time FROM entries"
        " WHERE subject = ? ORDER BY id DESC LIMIT 1",
        (row.subject,),
    ).fetchone() or (0, 0, "")
    # A clock that was set back must not open a window again.
    now = max(_now(), datetime.fromisoformat(last[2])) if last[2] else _now()
    caps = _caps(connection, row.subject)
    spent = {cap.period: _spent(connection, row.subject, cap.period, now) for cap in caps}
    try:
        decide(row.subject, row.key, row.amount, caps, spent)
    except budgets.BudgetExceededError as error:
        raise BudgetExceededError(f"Ledger: {error}") from None
    total = Amount(last[0], last[1]) + row.amount
    values = (row.subject, row.key, *_pair(row.amount), *_pair(total), row.note, _stamp(now))
    made = connection.execute(
        "INSERT INTO entries (id, subject, key, epsilon_units, delta_units, total_epsilon_units,"
        " total_delta_units, note, time) VALUES ((SELECT coalesce(max(id), 0) + 1 FROM entries),"
        f" ?, ?, ?, ?, ?, ?, ?, ?) RETURNING {_COLUMNS}",
        values,
    ).fetchone()
    return _entry(made, Outcome.CHARGED)


def _spent(connection: Connection, subject: str, period: Period, now: datetime) -> Amount:
    """Return the total now less the total when the window began."""
    totals = "SELECT total_epsilon_units, total_delta_units FROM entries WHERE subject = ? "
    whole = connection.execute(f"{totals} ORDER BY id DESC LIMIT 1", (subject,)).fetchone()
    if whole is None:
        return Amount(0)
    if period is Period.LIFETIME:
        return Amount(*whole)
    start = _stamp(budgets.window_start(period, now))
    before = connection.execute(
        f"{totals} AND time < ? ORDER BY time DESC, id DESC LIMIT 1", (subject, start)
    ).fetchone() or (0, 0)
    return Amount(whole[0] - before[0], whole[1] - before[1])


def _last_id(connection: Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM entries").fetchone()[0])


def _caps(connection: Connection, subject: str) -> tuple[Cap, ...]:
    caps = _caps_for(connection, subject)
    if not caps:
        raise LedgerError(f"Ledger: {subject!r} has no budget; set one with allow(...)")
    return caps


def _caps_for(connection: Connection, subject: str) -> tuple[Cap, ...]:
    """Return the caps that hold for somebody: for each period their own, or else everybody's."""
    held = {**_own_caps(connection, _EVERYBODY), **_own_caps(connection, subject)}
    return tuple(held[period] for period in Period if period in held)


def _own_caps(connection: Connection, subject: str) -> dict[Period, Cap]:
    rows = connection.execute(
        "SELECT period, epsilon_units, delta_units FROM caps WHERE id IN"
        " (SELECT max(id) FROM caps WHERE subject = ? GROUP BY period)",
        (subject,),
    )
    caps = [Cap(Amount(row[1], row[2]), Period(row[0])) for row in rows if row[1] is not None]
    return {cap.period: cap for cap in caps}


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
    return Entry(
        id=row[0],
        subject=row[1],
        key=row[2],
        amount=Amount(row[3], row[4]),
        total=Amount(row[5], row[6]),
        note=row[7],
        time=row[8],
        outcome=outcome,
    )


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds")


def _now() -> datetime:
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)
