"""The SQLite store: durable, owned by one process, honest about copies, clean when it deletes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import tacit
from tacit.arms import DPSE, KLUCBCF
from tacit.serving import SQLiteStore, StoreError

POLICY = DPSE(n_arms=2, epsilon=1.0, horizon=10_000)
LOCAL = KLUCBCF(n_arms=2, epsilon=1.0)

LOAD = """
import sys, tacit
from tacit.arms import DPSE
learner = tacit.Learner(DPSE(n_arms=2, epsilon=1.0, horizon=10_000), store=sys.argv[1])
while True:
    made = learner.decide_many([{}] * 3)
    print("decided", *[each.id for each in made], flush=True)
    done = learner.learn_many([{"v": 1, "id": each.id, "value": 1.0} for each in made])
    print("learned", *[each.id for each in done], flush=True)
"""


def some(learner, n=10, value=1.0):
    made = [learner.decide() for _ in range(n)]
    for each in made:
        learner.learn({"v": 1, "id": each.id, "value": value})
    return made


def test_a_killed_process_loses_nothing_that_it_answered(tmp_path):
    store = tmp_path / "x.db"
    decided, learned = set(), set()
    for _ in range(3):
        worker = subprocess.Popen(
            [sys.executable, "-c", LOAD, str(store)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(40):
            word, *ids = worker.stdout.readline().split()
            (decided if word == "decided" else learned).update(ids)
        os.kill(worker.pid, signal.SIGKILL)
        rest = worker.stdout.read().splitlines()
        for line in rest:
            word, *ids = line.split()
            if len(ids) == 3 and len(ids[-1]) == 32:
                (decided if word == "decided" else learned).update(ids)
        worker.wait()
    with tacit.Learner(POLICY, store=store) as learner:
        core = learner._core
        assert core.decided >= len(decided)
        assert core.learned >= len(learned)
        for id in learned:
            assert learner.learn({"v": 1, "id": id, "value": 1.0}).status == "repeated"
        for id in decided - learned:
            assert learner.learn({"v": 1, "id": id, "value": 1.0}).status in ("learned", "repeated")
        learner._experiment.verify()


def test_a_second_process_is_refused_in_one_line(tmp_path):
    with (
        tacit.Learner(POLICY, store=tmp_path / "x.db"),
        pytest.raises(StoreError, match=f"in use by process {os.getpid()}; only one may write"),
    ):
        SQLiteStore(tmp_path / "x.db")
    SQLiteStore(tmp_path / "x.db").close()


def test_readers_may_look_while_it_runs(tmp_path):
    with tacit.Learner(POLICY, store=tmp_path / "x.db") as learner:
        some(learner)
        reader = sqlite3.connect(f"file:{tmp_path}/x.db?mode=ro", uri=True)
        assert reader.execute("SELECT count(*) FROM events").fetchone()[0] == 20
        some(learner)
        reader.close()


def test_files_are_their_owners_only(tmp_path):
    with tacit.Learner(POLICY, store=tmp_path / "x.db") as learner:
        some(learner)
        for file in tmp_path.iterdir():
            assert file.stat().st_mode & 0o077 == 0, file


def test_an_old_copy_is_refused_and_costs_what_was_lost(tmp_path):
    store, copied = tmp_path / "x.db", tmp_path / "copy.db"
    budget = {"ever": 25.0}
    with tacit.Learner(LOCAL, store=store, budget=budget) as learner:
        for _ in range(10):
            learner.decide(person="ada")
    shutil.copy(store, copied)
    with tacit.Learner(LOCAL, store=store, budget=budget) as learner:
        for _ in range(12):
            learner.decide(person="bob")
    for suffix in ("-wal", "-shm"):
        Path(f"{store}{suffix}").unlink(missing_ok=True)
    shutil.copy(copied, store)
    with pytest.raises(StoreError, match="old copy"):
        tacit.Learner(LOCAL, store=store, budget=budget)
    with tacit.Learner(LOCAL, store=store, budget=budget, restored=True) as learner:
        # Twelve decisions were lost; each may have been anybody's.
        reasons = [learner.decide(person="bob").reason for _ in range(20)]
        assert reasons == [""] * 13 + ["budget"] * 7
        assert "restored" in learner.guarantee().sentence()
    with tacit.Learner(LOCAL, store=store, budget=budget) as learner:
        assert learner.decide(person="bob").reason == "budget"


def test_a_copy_of_an_abandoned_history_is_refused_though_it_is_longer(tmp_path):
    store = tmp_path / "x.db"
    with tacit.Learner(POLICY, store=store) as learner:
        some(learner, 5)
    shutil.copy(store, tmp_path / "short.db")
    with tacit.Learner(POLICY, store=store) as learner:
        some(learner, 50)
    shutil.copy(store, tmp_path / "long.db")
    shutil.copy(tmp_path / "short.db", store)
    with tacit.Learner(POLICY, store=store, restored=True) as learner:
        some(learner, 5)
    shutil.copy(tmp_path / "long.db", store)
    with pytest.raises(StoreError, match="old copy"):
        tacit.Learner(POLICY, store=store)


def test_a_file_without_its_mark_is_refused(tmp_path):
    with tacit.Learner(POLICY, store=tmp_path / "x.db") as learner:
        some(learner)
    (tmp_path / "x.db.mark").unlink()
    with pytest.raises(StoreError, match=r"x\.db\.mark"):
        tacit.Learner(POLICY, store=tmp_path / "x.db")


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


def test_names_and_noise_are_not_in_the_files(tmp_path):
    with tacit.Learner(LOCAL, store=tmp_path / "x.db", budget={"day": 9.0}) as learner:
        learner.learn(learner.decide(person="ada@example.org").device.report(1.0))
        noise = learner._core.tape.key[4:].tobytes()
        files = [file.read_bytes() for file in tmp_path.iterdir()]
        assert not any(b"ada@example.org" in data for data in files)
        assert not any(noise in data or noise.hex().encode() in data for data in files)
        pseudonym = learner._pseudonym("ada@example.org")
    with tacit.Learner(LOCAL, store=tmp_path / "x.db", budget={"day": 9.0}) as again:
        assert again._pseudonym("ada@example.org") == pseudonym
    key = (tmp_path / "x.db.key").read_bytes()
    assert not any(key in f.read_bytes() for f in tmp_path.iterdir() if f.suffix != ".key")


def test_a_store_is_held_against_what_is_asked_for(tmp_path):
    with tacit.Learner(POLICY, store=tmp_path / "x.db", options=["a", "b"]) as learner:
        some(learner)
    for changed in (
        {"policy": DPSE(n_arms=2, epsilon=2.0, horizon=10_000)},
        {"options": ["a", "c"]},
        {"report_after": 5.0},
    ):
        given = {"policy": POLICY, "options": ["a", "b"], **changed}
        with pytest.raises(ValueError, match="as in the store"):
            tacit.Learner(given.pop("policy"), store=tmp_path / "x.db", **given)


def test_a_full_disk_answers_nothing_and_goes_on_afterwards(tmp_path):
    with tacit.Learner(POLICY, store=tmp_path / "x.db") as learner:
        some(learner, 3)
        store = learner._experiment._store
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="full"):
            some(learner, 300)
        before = learner._core.decided
        store._connection.execute("PRAGMA max_page_count = 1073741823")
        some(learner, 3)
        assert learner._core.decided == before + 3
        learner._experiment.verify()


def test_a_log_of_another_machine_is_refused_where_its_choices_differ(tmp_path):
    with tacit.Learner(LOCAL, store=tmp_path / "x.db") as learner:
        some(learner, 4, value=1)
        learner._experiment._snapshot_at = learner._experiment.seq
    db = sqlite3.connect(tmp_path / "x.db")
    seq, body = db.execute("SELECT seq, body FROM events WHERE kind = 'decide'").fetchone()
    changed = json.dumps({**json.loads(body), "probability": 0.25})
    db.execute("UPDATE events SET body = ? WHERE seq = ?", (changed, seq))
    db.commit()
    db.close()
    with pytest.raises(ValueError, match="as the log has it"):
        tacit.Learner(LOCAL, store=tmp_path / "x.db")


def test_a_fork_is_refused(tmp_path):
    program = """
    import os, sys, tacit
    from tacit.arms import DPSE
    policy = DPSE(n_arms=2, epsilon=1.0, horizon=100)
    learners = [tacit.Learner(policy), tacit.Learner(policy, store=sys.argv[1])]
    for learner in learners:
        learner.decide()
    if os.fork() == 0:
        for learner in learners:
            try:
                learner.decide()
            except RuntimeError as error:
                print("refused" if "fork" in str(error) else error, flush=True)
        os._exit(0)
    os.wait()
    for learner in learners:
        learner.decide()
    print("parent", flush=True)
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), str(tmp_path / "x.db")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["refused", "refused", "parent"]


def test_threads_that_wait_for_the_disk_share_a_commit(tmp_path, monkeypatch):
    commits, whole = [], SQLiteStore.append

    def slow(self, experiment, seq, events):
        commits.append(len(events))
        time.sleep(0.005)
        whole(self, experiment, seq, events)

    monkeypatch.setattr(SQLiteStore, "append", slow)
    with tacit.Learner(LOCAL, store=tmp_path / "x.db") as learner:
        refused = []

        def work():
            for _ in range(20):
                decision = learner.decide()
                learner.learn({"v": 1, "id": decision.id, "value": 1})
                try:
                    learner.learn({"v": 1, "id": decision.id, "value": 0})
                except ValueError as error:
                    refused.append(error.reason)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert learner.counts["learned"] == 160
        assert refused == ["answered"] * 160
        assert sum(commits) == 320
        assert len(commits) < 300
        learner._experiment.verify()


def test_a_failed_commit_fails_everybody_in_it_and_nobody_else(tmp_path, monkeypatch):
    whole = SQLiteStore.append

    def failing(self, experiment, seq, events):
        if seq % 3 == 0:
            raise StoreError("disk full")
        whole(self, experiment, seq, events)

    monkeypatch.setattr(SQLiteStore, "append", failing)
    made, failed = [], []
    with tacit.Learner(LOCAL, store=tmp_path / "x.db") as learner:
        monkeypatch.setattr(SQLiteStore, "append", whole)
        some(learner, 1, value=1)
        monkeypatch.setattr(SQLiteStore, "append", failing)

        def work():
            for _ in range(10):
                try:
                    made.append(learner.decide().id)
                except StoreError:
                    failed.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) + len(failed) == 40
        assert set(learner._core.open) == set(made)
        learner._experiment.verify()
