"""What only a SQLite file promises: it is its owner's, on a local disk, and clean when it deletes."""

from __future__ import annotations

import sqlite3

import pytest

import tacit
from serving.test_stores import LOCAL, POLICY, some
from tacit.serving import SQLiteStore, StoreError


def test_files_are_their_owners_only(tmp_path):
    with tacit.Learner(POLICY, store=tmp_path / "x.db") as learner:
        some(learner)
        for file in tmp_path.iterdir():
            assert file.stat().st_mode & 0o077 == 0, file


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text.db").write_text("not a database, but long enough to be looked at" * 50)
    with pytest.raises(StoreError, match="not a store"):
        SQLiteStore(tmp_path / "text.db")
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t (x)")
    with pytest.raises(StoreError, match="not a store"):
        SQLiteStore(tmp_path / "other.db")
    SQLiteStore(tmp_path / "later.db").close()
    sqlite3.connect(tmp_path / "later.db").execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="later version"):
        SQLiteStore(tmp_path / "later.db")
    with pytest.raises(StoreError, match="cannot be made"):
        SQLiteStore(tmp_path / "missing" / "x.db")


def test_what_is_deleted_leaves_no_bytes(tmp_path):
    store = tmp_path / "x.db"
    with tacit.Learner(LOCAL, store=store, retention=0.0) as learner:
        gone = learner.decide(id="a-decision-to-forget")
        learner.learn(gone.device.report(1.0))
        kept = learner.decide(id="a-decision-to-keep")
        assert learner.prune() == 2
        assert learner.prune() == 0
        found = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert b"a-decision-to-forget" not in found
        assert b"a-decision-to-keep" in found
        assert learner.learn(kept.device.report(0.0)).status == "learned"
    with tacit.Learner(LOCAL, store=store, retention=0.0) as learner:
        assert learner.counts["learned"] == 2


def test_a_full_disk_answers_nothing_and_goes_on_afterwards(tmp_path):
    with tacit.Learner(POLICY, store=tmp_path / "x.db") as learner:
        some(learner, 3)
        store = learner._experiment.store
        pages = store.database.connection.execute("PRAGMA page_count").fetchone()[0]
        store.database.connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="full"):
            some(learner, 300)
        before = learner._core.decided
        store.database.connection.execute("PRAGMA max_page_count = 1073741823")
        some(learner, 3)
        assert learner._core.decided == before + 3
        learner._experiment.verify()
