"""The ledger's promises: exact sums, no overspending, one charge a key, rows that stay."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import shutil
import sqlite3
import threading
import time
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tacit.cli import app
from tacit.privacy import Amount, BudgetExceededError, Charge, Entry, Ledger, LedgerError, Outcome
from tacit.privacy import ledger as module


@pytest.fixture(params=["sqlite", "postgres"])
def book(request, tmp_path):
    """Where a ledger is kept; the test runs on each kind."""
    if request.param == "sqlite":
        return tmp_path / "ledger.sqlite"
    server = request.getfixturevalue("postgres")
    return server.address(server.fresh())


@pytest.fixture
def ledger(book):
    with Ledger(book) as opened:
        yield opened


@pytest.fixture
def in_a_file(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as opened:
        yield opened


def run(book, statement):
    """Carry out a statement behind the ledger's back."""
    if isinstance(book, Path):
        with sqlite3.connect(book) as other:
            return other.execute(statement)
    import psycopg

    with psycopg.connect(book) as other:
        return other.execute(statement)


def test_ten_tenths_are_exactly_one(ledger):
    ledger.allow(1.0)
    for i in range(10):
        ledger.spend("ada", 0.1, key=str(i))
    assert ledger.remaining("ada") == Amount(0)
    with pytest.raises(BudgetExceededError):
        ledger.spend("ada", 1e-12, key="one more")


@settings(max_examples=60, deadline=None)
@given(st.decimals(min_value=0, max_value=1000, places=16))
def test_rounding_is_against_the_spender(tmp_path_factory, amount):
    path = tmp_path_factory.mktemp("rounding") / "ledger.sqlite"
    with Ledger(path) as ledger:
        ledger.allow(10_000, 1.0)
        ledger.spend("ada", amount, Decimal(amount) / 10**9, key="a")
        spent = ledger.spent("ada")
        over = Fraction(spent.epsilon_units, 10**12) - Fraction(amount)
        assert 0 <= over < Fraction(1, 10**12)
        ledger.allow(amount, subject="ada")
        # what is allowed rounds down, what is spent rounds up: equal amounts may just not fit
        assert ledger.remaining("ada").epsilon_units == 0


def test_rounding_directions(ledger):
    third = Fraction(1, 3)
    ledger.allow(third)
    with pytest.raises(BudgetExceededError):
        ledger.spend("ada", third, key="a")
    spent = ledger.spend("ada", Decimal("0.3333333333325"), key="b")
    assert spent.amount.epsilon_units == 333_333_333_333


def test_delta_has_its_own_budget(ledger):
    ledger.allow(10.0, 1e-6)
    ledger.spend("ada", 1.0, 6e-7, key="a")
    with pytest.raises(BudgetExceededError, match=r"delta 0\.0000004 left"):
        ledger.spend("ada", 1.0, 5e-7, key="b")
    assert ledger.spent("ada").delta_units == 600_000_000_000


def test_a_key_is_charged_once(ledger):
    ledger.allow(1.0)
    first = ledger.spend("ada", 0.6, key="round 1")
    again = ledger.spend("ada", 0.6, key="round 1")
    assert (first.outcome, again.outcome) == (Outcome.CHARGED, Outcome.REPEATED)
    assert first.id == again.id
    assert ledger.spent("ada").epsilon == 0.6
    with pytest.raises(LedgerError, match=r"already stands for epsilon 0\.6"):
        ledger.spend("ada", 0.3, key="round 1")
    ledger.spend("bob", 0.6, key="round 1")
    assert len(ledger.entries()) == 2


def test_all_or_nothing(ledger):
    ledger.allow(1.0)
    charges = [Charge(subject=name, key="round 1", epsilon=0.8) for name in ("ada", "bob", "ada")]
    charges[2] = Charge(subject="ada", key="round 2", epsilon=0.8)
    with pytest.raises(BudgetExceededError):
        ledger.spend_all(charges)
    assert ledger.entries() == []
    assert len(ledger.spend_all(charges[:2])) == 2


def test_budgets_of_one_and_of_everybody(ledger):
    with pytest.raises(LedgerError, match="no budget"):
        ledger.spend("ada", 0.1, key="a")
    ledger.allow(1.0)
    ledger.allow(2.0, subject="ada")
    assert ledger.remaining("ada").epsilon == 2.0
    assert ledger.remaining("bob").epsilon == 1.0
    ledger.spend("ada", 1.5, key="a")
    ledger.allow(1.0, subject="ada")
    assert ledger.remaining("ada") == Amount(0)


def test_an_own_cap_replaces_that_of_the_same_period_only(ledger):
    # Finding P13
    ledger.allow(1.0)
    ledger.allow(3.0, period="day")
    ledger.allow(5.0, period="day", subject="ada")
    assert [cap.amount.epsilon for cap in ledger.caps("ada")] == [5.0, 1.0]
    assert ledger.caps("bob") == ledger.caps()
    ledger.spend("ada", 0.75, key="a")
    with pytest.raises(BudgetExceededError, match="left of epsilon 1 and delta 0 in all"):
        ledger.spend("ada", 0.75, key="b")
    ledger.allow(4.0, subject="ada")
    ledger.lift("day", subject="ada")
    assert [cap.amount.epsilon for cap in ledger.caps("ada")] == [3.0, 4.0]
    assert ledger.remaining("ada").epsilon == 2.25


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), "x", None, 1e300])
def test_bad_amounts_name_themselves(ledger, bad):
    ledger.allow(1.0)
    with pytest.raises(LedgerError, match="Ledger: expected epsilon"):
        ledger.spend("ada", bad, key="a")
    assert ledger.entries() == []


@pytest.mark.parametrize(("subject", "key"), [("", "a"), ("ada", ""), (3, "a"), ("ada", None)])
def test_bad_names_raise(ledger, subject, key):
    ledger.allow(1.0)
    with pytest.raises(LedgerError, match="non-empty string"):
        ledger.spend(subject, 0.1, key=key)


def test_rows_stay(ledger, book):
    ledger.allow(1.0)
    ledger.spend("ada", 0.5, key="a")
    for statement in (
        "DELETE FROM entries",
        "UPDATE entries SET epsilon_units = 0",
        "DELETE FROM caps",
        "UPDATE caps SET epsilon_units = 9000000",
    ):
        with pytest.raises(Exception, match="append-only"):
            run(book, statement)
    assert ledger.spent("ada").epsilon == 0.5


def test_verify_notices_a_forged_total(ledger, book):
    ledger.allow(1.0)
    ledger.spend("ada", 0.5, key="a")
    ledger.verify()
    run(
        book,
        "INSERT INTO entries (id, subject, key, epsilon_units, delta_units, total_epsilon_units,"
        " total_delta_units, note, time) VALUES (2, 'ada', 'b', 0, 0, 1, 0, '', '9999')",
    )
    with pytest.raises(LedgerError, match="add up to"):
        ledger.verify()


def test_other_files_are_refused(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database at all, but long enough to have a header" * 20)
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(text)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (x)")
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(other)
    with pytest.raises(LedgerError, match="local disk"):
        Ledger(":memory:")
    with pytest.raises(LedgerError, match="cannot open"):
        Ledger(tmp_path / "missing" / "ledger.sqlite")


def test_survives_reopening(book):
    path = book
    with Ledger(path) as ledger:
        ledger.allow(1.0)
        ledger.spend("ada", 0.4, key="a", note="first")
    with pytest.raises(LedgerError, match="closed"):
        ledger.spent("ada")
    with Ledger(path) as ledger:
        assert ledger.remaining("ada").epsilon == 0.6
        assert ledger.entries("ada")[0].note == "first"


def test_exports_agree(ledger, tmp_path):
    ledger.allow(5.0, 1e-3)
    for i in range(5):
        ledger.spend("ada, the first", 0.25, 1e-5, key=str(i), note='with "quotes"\nand lines')
    ledger.export_csv(tmp_path / "out.csv")
    ledger.export_json(tmp_path / "out.json")
    with (tmp_path / "out.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    entries = json.loads((tmp_path / "out.json").read_text())["entries"]
    assert [{k: str(v) for k, v in row.items()} for row in entries] == table
    assert entries[-1]["total_epsilon_units"] == 1_250_000_000_000
    assert sorted(p.name for p in tmp_path.glob("*.part")) == []


def test_no_subject_is_a_formula_in_a_spreadsheet(ledger, tmp_path):
    ledger.allow(5.0)
    ledger.spend("=1+1", 0.25, key="-a", note="@b")
    ledger.export_csv(tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["subject"], row["key"], row["note"]) == ("'=1+1", "'-a", "'@b")
    assert row["epsilon_units"] == "250000000000"


def _spender(path: Path, who: int, tries: int, results) -> None:
    accepted = 0
    with Ledger(path) as ledger:
        for i in range(tries):
            try:
                ledger.spend("ada", 0.01, key=f"{who}-{i}")
                accepted += 1
            except BudgetExceededError:
                pass
    results.put(accepted)


def test_concurrent_writers_cannot_overspend(book):
    path = book
    with Ledger(path) as ledger:
        ledger.allow(1.0)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = [context.Process(target=_spender, args=(path, i, 40, results)) for i in range(4)]
    for worker in workers:
        worker.start()
    accepted = sum(results.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join()
    with Ledger(path) as ledger:
        ledger.verify()
        assert accepted == 100 == len(ledger.entries())
        assert ledger.remaining("ada") == Amount(0)


def test_concurrent_creation(book):
    path = book
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_open_and_allow, args=(path, i)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 8
    with Ledger(path) as ledger:
        assert len(ledger.entries()) == 8


def _open_and_allow(path: Path, who: int) -> None:
    with Ledger(path) as ledger:
        ledger.allow(1.0, subject=str(who))
        ledger.spend(str(who), 1.0, key="a")


def test_a_fork_must_open_its_own(ledger):
    ledger.allow(1.0)
    child = os.fork()
    if child == 0:
        try:
            ledger.spend("ada", 0.1, key="a")
        except LedgerError as error:
            os._exit(0 if "fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def at(monkeypatch, text):
    moment = datetime.fromisoformat(text)
    monkeypatch.setattr(module, "_now", lambda: moment)


def test_a_cap_begins_anew_with_the_calendar(ledger, monkeypatch):
    ledger.allow(1.0, period="month")
    ledger.allow(2.0, period="lifetime")
    at(monkeypatch, "2026-01-31T23:59:59.999+00:00")
    ledger.spend("ada", 1.0, key="january")
    with pytest.raises(BudgetExceededError, match="left of epsilon 1 and delta 0 a month"):
        ledger.spend("ada", 0.1, key="too much")
    at(monkeypatch, "2026-02-01T00:00:00+00:00")
    assert ledger.remaining("ada").epsilon == 1.0
    ledger.spend("ada", 0.75, key="february")
    assert ledger.spent("ada", "month").epsilon == 0.75
    at(monkeypatch, "2026-03-01T08:00:00+00:00")
    assert ledger.remaining("ada").epsilon == 0.25  # what is left of a lifetime
    with pytest.raises(BudgetExceededError, match="in all"):
        ledger.spend("ada", 0.5, key="march")
    ledger.verify()


def test_windows_are_those_of_utc(ledger, monkeypatch):
    ledger.allow(1.0, period="day")
    at(monkeypatch, "2026-06-01T23:30:00-03:00")  # the second of June in Greenwich
    ledger.spend("ada", 1.0, key="a")
    at(monkeypatch, "2026-06-02T23:00:00+00:00")
    with pytest.raises(BudgetExceededError):
        ledger.spend("ada", 1.0, key="b")
    at(monkeypatch, "2026-06-03T00:00:00+00:00")
    ledger.spend("ada", 1.0, key="c")


def test_a_clock_that_is_set_back_opens_no_window(ledger, monkeypatch):
    ledger.allow(1.0, period="year")
    at(monkeypatch, "2026-01-01T00:00:01+00:00")
    ledger.spend("ada", 1.0, key="a")
    at(monkeypatch, "2025-12-31T23:59:00+00:00")
    with pytest.raises(BudgetExceededError):
        ledger.spend("ada", 1.0, key="b")


def test_a_cap_can_be_lifted(ledger):
    ledger.allow(1.0)
    ledger.allow(0.5, period="day")
    ledger.lift("day")
    assert ledger.spend("ada", 1.0, key="a").outcome is Outcome.CHARGED
    with pytest.raises(LedgerError, match="expected period one of day, month, year, lifetime"):
        ledger.allow(1.0, period="week")


def test_tiny_amounts_are_kept(ledger):
    """0.1 rounded each of these up to a millionth, so that a thousand cost a thousand times more."""
    ledger.allow(1e-9, 1e-15)
    tiny = [Charge(subject="ada", key=str(i), epsilon=1e-12, delta=1e-18) for i in range(1000)]
    assert all(isinstance(each, Entry) for each in ledger.spend_many(tiny))
    assert ledger.remaining("ada") == Amount(0)


def test_an_entry_is_no_permission_by_itself(ledger):
    ledger.allow(1.0)
    ledger.spend("ada", 0.5, key="a")
    again = ledger.spend("ada", 0.5, key="a")
    with pytest.raises(TypeError, match="neither true nor false"):
        assert again
    with pytest.raises(TypeError, match="neither true nor false"):
        assert again.outcome


def test_many_charges_share_a_commit_and_fail_each_for_itself(ledger):
    ledger.allow(1.0)
    charges = [Charge(subject=f"{i % 50}", key=str(i), epsilon=0.3) for i in range(200)]
    found = ledger.spend_many(charges)
    assert [isinstance(each, LedgerError) for each in found] == [False] * 150 + [True] * 50
    assert isinstance(found[-1], BudgetExceededError)
    assert len(ledger.entries()) == 150
    ledger.verify()


def test_threads_share_commits(in_a_file):
    ledger = in_a_file
    ledger.allow(1000.0)
    commits = []
    ledger._database.connection.set_trace_callback(
        lambda statement: commits.append(1) if statement == "COMMIT" else None
    )
    outcomes = []

    def spender(who):
        for i in range(25):
            outcomes.append(ledger.spend(who, 0.1, key=f"{who}-{i}").outcome)

    workers = [threading.Thread(target=spender, args=(str(i),)) for i in range(16)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert outcomes == [Outcome.CHARGED] * 400
    assert len(commits) < 200  # a commit each would be 400
    ledger.verify()


def test_an_error_of_one_is_not_that_of_another(ledger):
    ledger.allow(1.0)
    results = {}

    def spender(who, epsilon):
        try:
            results[who] = ledger.spend(who, epsilon, key="a").outcome
        except BudgetExceededError as error:
            results[who] = error

    with ledger._database.lock:  # so that all wait together
        workers = [
            threading.Thread(target=spender, args=(str(i), 0.5 if i % 2 else 2.0)) for i in range(6)
        ]
        for worker in workers:
            worker.start()
        while len(ledger._waiting) < 5:  # the sixth leads, and waits for the lock
            time.sleep(0.01)
    for worker in workers:
        worker.join()
    for i in range(6):
        wanted = Outcome if i % 2 else BudgetExceededError
        assert isinstance(results[str(i)], wanted)


def test_a_copy_has_everything_that_was_spent(in_a_file, tmp_path):
    """0.1 kept the last charges in a write-ahead log, which a copy of the file leaves behind."""
    ledger = in_a_file
    ledger.allow(1.0)
    ledger.spend("ada", 0.9, key="a")
    copy = tmp_path / "copy.sqlite"
    shutil.copy(ledger.path, copy)  # while it is open
    assert not list(tmp_path.glob("*-wal"))
    with Ledger(copy) as other:
        assert other.spent("ada").epsilon == 0.9
        with pytest.raises(BudgetExceededError):
            other.spend("ada", 0.2, key="b")


def test_a_deleted_or_replaced_file_is_noticed(in_a_file, tmp_path):
    ledger = in_a_file
    ledger.allow(1.0)
    ledger.spend("ada", 0.1, key="a")
    with Ledger(tmp_path / "other.sqlite") as other:
        other.allow(1.0)
    ledger.path.rename(tmp_path / "moved.sqlite")
    with pytest.raises(LedgerError, match="was deleted; nothing may be released"):
        ledger.spend("ada", 0.1, key="b")
    (tmp_path / "other.sqlite").rename(ledger.path)
    with pytest.raises(LedgerError, match="was replaced since it was opened"):
        ledger.spend("ada", 0.1, key="c")
    with Ledger(tmp_path / "moved.sqlite") as moved:
        assert [entry.key for entry in moved.entries()] == ["a"]


OLD_SCHEMA = """
CREATE TABLE budgets (id INTEGER PRIMARY KEY AUTOINCREMENT, subject TEXT NOT NULL,
    micro_epsilon INTEGER NOT NULL, femto_delta INTEGER NOT NULL, time TEXT NOT NULL) STRICT;
CREATE INDEX budgets_by_subject ON budgets (subject, id);
CREATE TABLE entries (id INTEGER PRIMARY KEY AUTOINCREMENT, subject TEXT NOT NULL, key TEXT NOT NULL,
    micro_epsilon INTEGER NOT NULL, femto_delta INTEGER NOT NULL,
    total_micro_epsilon INTEGER NOT NULL, total_femto_delta INTEGER NOT NULL, note TEXT NOT NULL,
    time TEXT NOT NULL, UNIQUE (subject, key)) STRICT;
CREATE INDEX entries_by_subject ON entries (subject, id);
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER budgets_stay BEFORE DELETE ON budgets
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
INSERT INTO budgets VALUES (1, '', 1000000, 1000000000, '2026-01-01T00:00:00.000+00:00');
INSERT INTO entries VALUES (1, 'ada', 'a', 400000, 5, 400000, 5, 'old',
    '2026-01-01T00:00:00.000+00:00');
"""


def test_a_ledger_of_version_1_is_taken_over(tmp_path):
    path = tmp_path / "old.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(OLD_SCHEMA)
        connection.execute("PRAGMA application_id = 502807")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    for _ in range(2):
        with Ledger(path) as ledger:
            ledger.verify()
            assert ledger.spent("ada") == Amount.spent(0.4, Decimal("5e-15"))
            assert ledger.remaining("ada").epsilon == 0.6
    with sqlite3.connect(path) as other, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        other.execute("DELETE FROM entries")


def test_a_later_version_is_refused(book):
    Ledger(book).close()
    file = isinstance(book, Path)
    run(book, "PRAGMA user_version = 9" if file else "UPDATE tacit_ledger SET version = 9")
    with pytest.raises(LedgerError, match=r"made by a later version \(schema 9\)"):
        Ledger(book)


def test_a_database_that_is_no_ledger_is_refused_and_no_password_is_repeated(postgres):
    book = postgres.address(postgres.fresh())
    run(book, "CREATE TABLE entries (x INTEGER)")
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(book)
    for wrong in ("postgresql://me:secret@[::1", "postgresql://me:secret@127.0.0.1:1/x"):
        with pytest.raises(LedgerError) as refused:
            Ledger(wrong)
        assert "secret" not in str(refused.value)


def test_a_database_that_goes_away_is_used_again_when_it_is_back(postgres):
    with Ledger(postgres.address(postgres.fresh())) as ledger:
        ledger.allow(1.0)
        ledger.spend("ada", 0.4, key="a")
        postgres.stop()
        for _ in range(2):
            with pytest.raises(LedgerError, match="postgresql://"):
                ledger.spend("ada", 0.4, key="b")
        postgres.start()
        assert ledger.spend("ada", 0.4, key="b").outcome is Outcome.CHARGED
        assert ledger.spend("ada", 0.4, key="a").outcome is Outcome.REPEATED
        assert ledger.remaining("ada").epsilon == 0.2
        ledger.verify()


def test_the_command_line_shows_sets_checks_and_writes(tmp_path):
    def run(*words):
        return CliRunner().invoke(app, ["ledger", *map(str, words)])

    file = tmp_path / "ledger.sqlite"
    missing = run("show", file)
    assert missing.exit_code != 0
    assert not file.exists()
    assert run("allow", file, "--epsilon", 1, "--period", "year").exit_code == 0
    assert "Nobody was charged yet" in run("show", file).output
    with Ledger(file) as ledger:
        ledger.spend("ada", 0.25, key="a", note="first")
    row = json.loads(run("show", file, "--json").output)[0]
    assert (row["subject"], row["epsilon spent"], row["epsilon left"]) == ("ada", 0.25, 0.75)
    assert "first" in run("show", file, "--subject", "ada").output
    assert "every total is right" in run("verify", file).output
    assert run("export", file, tmp_path / "out.csv").exit_code == 0
    assert "250000000000" in (tmp_path / "out.csv").read_text()
