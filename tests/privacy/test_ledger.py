"""The ledger's promises: exact sums, no overspending, one charge a key, rows that stay."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import sqlite3
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.privacy.ledger import BudgetExceededError, Charge, Ledger, LedgerError


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as opened:
        yield opened


def test_ten_tenths_are_exactly_one(ledger):
    ledger.allow(1.0)
    for i in range(10):
        ledger.spend("ada", 0.1, key=str(i))
    assert ledger.remaining("ada").micro_epsilon == 0
    with pytest.raises(BudgetExceededError):
        ledger.spend("ada", 1e-9, key="one more")


@settings(max_examples=60, deadline=None)
@given(st.decimals(min_value=0, max_value=1000, places=12))
def test_rounding_is_against_the_spender(tmp_path_factory, amount):
    path = tmp_path_factory.mktemp("rounding") / "ledger.sqlite"
    with Ledger(path) as ledger:
        ledger.allow(10_000, 1.0)
        ledger.spend("ada", amount, Decimal(amount) / 10**9, key="a")
        spent = ledger.spent("ada")
        assert 0 <= Fraction(spent.micro_epsilon, 10**6) - Fraction(amount) < Fraction(1, 10**6)
        ledger.allow(amount, subject="ada")
        # what is allowed rounds down, what is spent rounds up: equal amounts may just not fit
        assert ledger.remaining("ada").micro_epsilon == 0


def test_rounding_directions(ledger):
    ledger.allow(0.1234567)
    with pytest.raises(BudgetExceededError):
        ledger.spend("ada", 0.1234567, key="a")
    assert ledger.spend("ada", 0.1234559, 0.0, key="b").micro_epsilon == 123456


def test_delta_has_its_own_budget(ledger):
    ledger.allow(10.0, 1e-6)
    ledger.spend("ada", 1.0, 6e-7, key="a")
    with pytest.raises(BudgetExceededError, match="delta 4e-07 left"):
        ledger.spend("ada", 1.0, 5e-7, key="b")
    assert ledger.spent("ada").femto_delta == 600_000_000


def test_a_key_is_charged_once(ledger):
    ledger.allow(1.0)
    first = ledger.spend("ada", 0.6, key="round 1")
    again = ledger.spend("ada", 0.6, key="round 1")
    assert (first.repeated, again.repeated, first.id) == (False, True, again.id)
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
    assert ledger.remaining("ada").micro_epsilon == 0


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


def test_rows_stay(ledger):
    ledger.allow(1.0)
    ledger.spend("ada", 0.5, key="a")
    with sqlite3.connect(ledger.path) as other:
        for statement in (
            "DELETE FROM entries",
            "UPDATE entries SET micro_epsilon = 0",
            "DELETE FROM budgets",
            "UPDATE budgets SET micro_epsilon = 9000000",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                other.execute(statement)


def test_verify_notices_a_forged_total(ledger):
    ledger.allow(1.0)
    ledger.spend("ada", 0.5, key="a")
    ledger.verify()
    with sqlite3.connect(ledger.path) as other:
        other.execute(
            "INSERT INTO entries (subject, key, micro_epsilon, femto_delta, total_micro_epsilon,"
            " total_femto_delta, note, time) VALUES ('ada', 'b', 0, 0, 1, 0, '', '')"
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


def test_survives_reopening(tmp_path):
    path = tmp_path / "ledger.sqlite"
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
    assert entries[-1]["total_micro_epsilon"] == 1_250_000
    assert sorted(p.name for p in tmp_path.glob("*.part")) == []


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


def test_concurrent_writers_cannot_overspend(tmp_path):
    path = tmp_path / "ledger.sqlite"
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
        assert ledger.remaining("ada").micro_epsilon == 0


def test_concurrent_creation(tmp_path):
    path = tmp_path / "ledger.sqlite"
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
