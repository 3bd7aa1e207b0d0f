"""Processes that fork while a store is in use: children that end, decide, save and close."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
import weakref

import pytest

import tacit
from commands import start_python
from forked import child
from tacit.arms import DPSE, KLUCBCF
from tacit.core import processes
from tacit.serving.storage import NotOwnedError, SQLiteStore

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
POLICY = KLUCBCF(n_arms=3, epsilon=1.0)
CENTRAL = DPSE(n_arms=2, epsilon=1.0, horizon=1000)


def held_while_forking(store, patience):
    """Fork while another thread is in a transaction; return what the child finds of it."""
    inside, over = threading.Event(), threading.Event()

    def write():
        with store.database.transaction():
            inside.set()
            over.wait(0.3)

    writer = threading.Thread(target=write)
    writer.start()
    inside.wait(10)
    found = child(lambda: store.database.connection.in_transaction, patience)
    over.set()
    writer.join()
    return found


def test_a_fork_waits_for_the_end_of_a_transaction(tmp_path, monkeypatch):
    """A copied one would be rolled back in the parent's file, when the child ends."""
    store = SQLiteStore(tmp_path / "x.db")
    assert held_while_forking(store, 30) == "False"
    monkeypatch.setattr(processes, "_locks", weakref.WeakKeyDictionary())  # who waits for nobody
    assert held_while_forking(store, 30) == "True"
    store.close()


def test_locks_that_are_taken_in_another_order_do_not_keep_a_fork():
    class Owner:
        pass

    owners, first, second = [Owner(), Owner()], threading.RLock(), threading.RLock()
    for owner, lock in zip(owners, (first, second), strict=True):
        processes.wait_for(owner, lock)
    started, done = threading.Event(), threading.Event()

    def nested():
        with second:
            started.set()
            time.sleep(0.1)
            with first:
                done.set()

    thread = threading.Thread(target=nested)
    thread.start()
    started.wait(10)
    assert child(done.is_set) == "True"
    thread.join()


@pytest.mark.parametrize("how", ["collected", "closed"])
def test_children_that_end_disturb_nobody(how, tmp_path):
    """They end while threads decide and learn; nothing is lost, and no child hangs."""
    learner = tacit.Learner(POLICY, store=tmp_path / "x.db")
    done, answered, failed = threading.Event(), [], []

    def work():
        while not done.is_set():
            try:
                made = learner.decide_many([{}] * 8)
                learner.learn_many([each.device.report(1.0) for each in made])
                answered.extend(each.id for each in made)
            except Exception as error:
                failed.append(error)

    def end():
        if how == "closed":
            learner.close()
        learner._owned.database.connection.close()  # as a collected object does
        return "ended"

    workers = [threading.Thread(target=work) for _ in range(2)]
    for each in workers:
        each.start()
    said = []
    for _ in range(12):
        time.sleep(random.random() * 0.01)
        said.append(child(end))
    done.set()
    for each in workers:
        each.join()
    assert said == ["ended"] * 12
    assert not failed
    learner._experiment.verify()
    learner.close()
    with tacit.Learner(POLICY, store=tmp_path / "x.db") as again:
        assert again.counts["learned"] == len(answered)
        assert all(again._owned.find("learner", id) for id in answered)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize(
    "use",
    [
        lambda learner, path: learner.decide(),
        lambda learner, path: learner.decide_many([{}]),
        lambda learner, path: learner.learn({"v": 1, "id": "a", "value": 1.0}),
        lambda learner, path: learner.save(path),
        lambda learner, path: learner.add_option("more"),
    ],
    ids=["decide", "decide_many", "learn", "save", "add_option"],
)
def test_a_learner_is_its_parents_whatever_threads_did(use, stored, tmp_path):
    """Another thread has its lock at the fork, and never lets go of it in the child."""
    store = tmp_path / "x.db" if stored else None
    learner = tacit.Learner(CENTRAL, store=store)
    before = learner.decide(id="a")
    busy, over = threading.Event(), threading.Event()

    def hold():
        with learner._experiment.lock:
            busy.set()
            over.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    busy.wait(10)
    said = child(lambda: use(learner, tmp_path / "saved"), patience=10)
    closed = child(learner.close, patience=10)
    over.set()
    holder.join()
    assert said is not None
    assert said.startswith("RuntimeError: Learner: made before a fork")
    assert "make or load it in the process that uses it" in said
    assert closed == "None"
    assert not (tmp_path / "saved").exists()
    assert learner.learn(before.device.report(1.0)).status == "learned"
    assert learner.decide().id != before.id
    learner.close()


PARENT = """
import os, signal, sys, time, tacit
from tacit.arms import KLUCBCF
from tacit.serving.storage import open_store
store = open_store(sys.argv[1], beside=sys.argv[2])
learner = tacit.Learner(KLUCBCF(n_arms=3, epsilon=1.0), store=store)
learner.decide(id="a")
child = os.fork()
if child == 0:
    os.close(1)
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_child_that_outlives_its_parent_keeps_nobody_out(place):
    parent = start_python("-c", PARENT, place.address, place.beside, stdout=subprocess.PIPE)
    heir = int(parent.communicate(timeout=60)[0])
    try:
        assert parent.returncode == -signal.SIGKILL
        os.kill(heir, 0)
        with taken_over(place) as learner:
            assert learner.counts["decided"] == 1
    finally:
        os.kill(heir, signal.SIGKILL)


@contextlib.contextmanager
def taken_over(place, patience=5.0):
    """The learner of a place once it can be had: a database notices a moment later that somebody died."""
    until = time.monotonic() + patience
    while True:
        with contextlib.ExitStack() as stack:
            try:
                learner = stack.enter_context(place.learner(POLICY))
            except NotOwnedError:
                assert time.monotonic() < until
                time.sleep(0.02)
                continue
            yield learner
            return


def test_what_a_child_says_to_a_database_is_not_its_parents_word(database):
    with database.learner(POLICY) as learner:
        store = learner._experiment.store
        session = database.run("SELECT pid FROM pg_locks WHERE locktype = 'advisory'")
        assert child(store.database.connection.close) == "None"  # with a farewell
        made = learner.decide()
        assert learner.learn(made.device.report(1.0)).status == "learned"
        assert database.run("SELECT pid FROM pg_locks WHERE locktype = 'advisory'") == session


def test_a_child_does_not_take_over_what_it_inherited(tmp_path):
    """In its memory SQLite still believes in its parent's locks."""
    learner = tacit.Learner(POLICY, store=tmp_path / "x.db")
    heir, said = os.pipe(), []

    def take_over():
        os.read(heir[0], 1)
        return tacit.Learner(POLICY, store=tmp_path / "x.db")

    waiting = threading.Thread(target=lambda: said.append(child(take_over)))
    waiting.start()
    time.sleep(0.3)
    learner.close()
    os.write(heir[1], b"!")
    waiting.join()
    assert "StoreError" in said[0]
    assert "before a fork in this process's parent" in said[0]
    with tacit.Learner(POLICY, store=tmp_path / "x.db") as again:
        again.decide()


def test_a_child_opens_a_store_of_its_own(tmp_path):
    learner = tacit.Learner(POLICY, store=tmp_path / "x.db")

    def other():
        with tacit.Learner(POLICY, store=tmp_path / "y.db") as own:
            return own.learn(own.decide().device.report(1.0)).status

    def same():
        return tacit.Learner(POLICY, store=tmp_path / "x.db")

    assert child(other) == "learned"
    assert "only one may write" in (child(same) or "")
    learner.close()
