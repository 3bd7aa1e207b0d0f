"""What every store promises: durable, owned by one process, honest about copies and versions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import textwrap
import threading
import time

import pytest

import tacit
from commands import start_python
from tacit.arms import DPSE, KLUCBCF
from tacit.serving import StoreError

POLICY = DPSE(n_arms=2, epsilon=1.0, horizon=10_000)
LOCAL = KLUCBCF(n_arms=2, epsilon=1.0)

LOAD = """
import sys, tacit
from tacit.arms import DPSE
from tacit.serving.storage import open_store
store = open_store(sys.argv[1], beside=sys.argv[2])
learner = tacit.Learner(DPSE(n_arms=2, epsilon=1.0, horizon=10_000), store=store)
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


def test_a_killed_process_loses_nothing_that_it_answered(place):
    known = {"decided": set(), "learned": set()}
    for _ in range(3):
        worker = start_python("-c", LOAD, place.address, place.beside, stdout=subprocess.PIPE)
        for _ in range(40):
            word, *ids = worker.stdout.readline().split()
            known[word].update(ids)
        os.kill(worker.pid, signal.SIGKILL)
        for line in worker.stdout.read().splitlines():
            word, *ids = line.split()
            if len(ids) == 3 and len(ids[-1]) == 32:
                known[word].update(ids)
        worker.wait()
        until_free(place)
    with place.learner(POLICY) as learner:
        core = learner._core
        assert core.decided >= len(known["decided"])
        assert core.learned >= len(known["learned"])
        for id in known["learned"]:
            assert learner.learn({"v": 1, "id": id, "value": 1.0}).status == "repeated"
        for id in known["decided"] - known["learned"]:
            assert learner.learn({"v": 1, "id": id, "value": 1.0}).status in ("learned", "repeated")
        learner._experiment.verify()


def until_free(place):
    """A database notices within moments that a process is gone."""
    for _ in range(200):
        try:
            store = place.open()
            try:
                store.acquire("learner")
            finally:
                store.close()
            return
        except StoreError:
            time.sleep(0.02)
    raise AssertionError("the store of a killed process stays locked")


def test_a_second_process_is_refused_in_one_line(place):
    with place.learner(POLICY) as learner:
        some(learner, 1)
        with (
            pytest.raises(StoreError, match=r"only one may write|owned by another process"),
            place.learner(POLICY),
        ):
            pass
        some(learner, 1)
    with place.learner(POLICY) as learner:
        assert learner.counts["learned"] == 2


def test_readers_may_look_while_it_runs(place):
    with place.learner(POLICY) as learner:
        some(learner)
        assert place.run("SELECT count(*) FROM events") == [(20,)]
        some(learner)


def test_an_old_copy_is_refused_and_costs_what_was_lost(place):
    budget = {"lifetime": 25.0}
    with place.learner(LOCAL, budget=budget) as learner:
        for _ in range(10):
            learner.decide(person="ada")
    place.copy()
    with place.learner(LOCAL, budget=budget) as learner:
        for _ in range(12):
            learner.decide(person="bob")
    place.put_back()
    with pytest.raises(StoreError, match="old copy"), place.learner(LOCAL, budget=budget):
        pass
    with place.learner(LOCAL, budget=budget, restored=True) as learner:
        # Twelve decisions were lost; each may have been anybody's.
        reasons = [learner.decide(person="bob").reason for _ in range(20)]
        assert reasons == [""] * 13 + ["budget"] * 7
        assert "restored" in learner.guarantee().sentence()
    with place.learner(LOCAL, budget=budget) as learner:
        assert learner.decide(person="bob").reason == "budget"


def test_an_old_copy_from_before_the_first_event_goes_on_as_restored(place):
    with place.learner(POLICY):
        pass
    place.copy()
    with place.learner(POLICY) as learner:
        some(learner, 5)
    place.put_back()
    with pytest.raises(StoreError, match="old copy"):
        place.open()
    with place.learner(POLICY, restored=True) as learner:
        assert learner.counts["epoch"] == 1
        some(learner, 5)
        learner._experiment.verify()


def test_a_copy_of_an_abandoned_history_is_refused_though_it_is_longer(place):
    with place.learner(POLICY) as learner:
        some(learner, 5)
    place.copy("short")
    with place.learner(POLICY) as learner:
        some(learner, 50)
    place.copy("long")
    place.put_back("short")
    with place.learner(POLICY, restored=True) as learner:
        some(learner, 5)
    place.put_back("long")
    with pytest.raises(StoreError, match="old copy"), place.learner(POLICY):
        pass


def test_a_store_without_its_mark_is_refused(place):
    with place.learner(POLICY) as learner:
        some(learner)
    place.mark.unlink()
    with pytest.raises(StoreError, match=place.mark.name), place.learner(POLICY):
        pass


def test_the_mark_is_its_owners_only(place):
    with place.learner(POLICY) as learner:
        some(learner, 1)
        assert place.mark.stat().st_mode & 0o777 == 0o600


def test_names_and_noise_are_not_in_the_store(place):
    with place.learner(LOCAL, budget={"day": 9.0}) as learner:
        learner.learn(learner.decide(person="ada@example.org").device.report(1.0))
        noise = learner._core.tape.key[4:].tobytes()
        pseudonym = learner._experiment.pseudonyms.of("ada@example.org")
        data = place.bytes()
    assert pseudonym.encode() in data
    assert b"ada@example.org" not in data
    assert noise not in data
    assert noise.hex().encode() not in data
    with place.learner(LOCAL, budget={"day": 9.0}) as again:
        assert again._experiment.pseudonyms.of("ada@example.org") == pseudonym
    key = (place.folder / f"{place.beside.name}.key").read_bytes()
    assert key not in data
    assert key.hex().encode() not in data


def test_a_store_is_held_against_what_is_asked_for(place):
    with place.learner(POLICY, options=["a", "b"]) as learner:
        some(learner)
    for changed in (
        {"policy": DPSE(n_arms=2, epsilon=2.0, horizon=10_000)},
        {"options": ["a", "c"]},
        {"report_after": 5.0},
    ):
        given = {"policy": POLICY, "options": ["a", "b"], **changed}
        with (
            pytest.raises(ValueError, match="as in the store"),
            place.learner(given.pop("policy"), **given),
        ):
            pass


def test_a_log_of_another_machine_is_refused_where_its_choices_differ(place):
    with place.learner(LOCAL) as learner:
        some(learner, 4, value=1)
        learner._experiment._snapshot_at = learner._experiment.seq
    (seq, body) = place.run("SELECT seq, body FROM events WHERE kind = 'decide'")[0]
    changed = json.dumps({**json.loads(body), "probability": 0.25})
    place.run(f"UPDATE events SET body = '{changed}' WHERE seq = {seq}")
    with pytest.raises(ValueError, match="as the log has it"), place.learner(LOCAL):
        pass


def test_what_expired_is_deleted_a_bit_at_a_time(place, monkeypatch):
    monkeypatch.setattr("tacit.serving.experiment._BITE", 2)
    with place.learner(LOCAL, retention=0.0) as learner:
        some(learner, 5, value=1)
        experiment = learner._experiment
        experiment.clock = lambda: 2**42
        assert experiment.prune_some() == 0, "nothing is covered yet"
        experiment.checkpoint()
        some(learner, 1, value=1)
        experiment.snapshot()
        assert [experiment.prune_some() for _ in range(4)] == [4, 4, 2, 0]
        assert place.run("SELECT count(*) FROM events") == [(2,)]


def test_what_expired_is_deleted_and_the_rest_goes_on(place):
    with place.learner(LOCAL, retention=0.0) as learner:
        gone = learner.decide(id="a-decision-to-forget")
        learner.learn(gone.device.report(1.0))
        kept = learner.decide(id="a-decision-to-keep")
        assert learner.prune() == 2
        assert learner.prune() == 0
        assert place.run("SELECT decision FROM events") == [("a-decision-to-keep",)]
        assert learner.learn(kept.device.report(0.0)).status == "learned"
    with place.learner(LOCAL, retention=0.0) as learner:
        assert learner.counts["learned"] == 2


def test_a_fork_is_refused(place):
    program = """
    import os, sys, tacit
    from tacit.arms import DPSE
    from tacit.serving.storage import open_store
    policy = DPSE(n_arms=2, epsilon=1.0, horizon=100)
    store = open_store(sys.argv[1], beside=sys.argv[2])
    learners = [tacit.Learner(policy), tacit.Learner(policy, store=store)]
    for learner in learners:
        learner.decide()
    if os.fork() == 0:
        for act in (learners[0].decide, learners[1].decide, store.names):
            try:
                act()
            except RuntimeError as error:
                print("refused" if "fork" in str(error) else error, flush=True)
        os._exit(0)
    os.wait()
    for learner in learners:
        learner.decide()
    print("parent", flush=True)
    """
    words = "-c", textwrap.dedent(program), place.address, place.beside
    said, _ = start_python(*words, stdout=subprocess.PIPE).communicate(timeout=60)
    assert said.split() == ["refused", "refused", "refused", "parent"]


def test_threads_that_wait_for_the_disk_share_a_commit(place, monkeypatch):
    commits, whole = [], place.kind.append

    def slow(self, experiment, seq, events):
        commits.append(len(events))
        time.sleep(0.005)
        whole(self, experiment, seq, events)

    monkeypatch.setattr(place.kind, "append", slow)
    with place.learner(LOCAL) as learner:
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


def test_a_failed_commit_fails_everybody_in_it_and_nobody_else(place, monkeypatch):
    whole = place.kind.append

    def failing(self, experiment, seq, events):
        if seq % 3 == 0:
            raise StoreError("disk full")
        whole(self, experiment, seq, events)

    made, failed = [], []
    with place.learner(LOCAL) as learner:
        some(learner, 1, value=1)
        monkeypatch.setattr(place.kind, "append", failing)

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


def test_an_owner_whose_term_is_over_commits_nothing(place):
    with place.learner(POLICY) as learner:
        some(learner, 3)
        store = learner._experiment.store
        # As if another process had taken it meanwhile.
        place.run("UPDATE experiments SET term = term + 1")
        events = place.run("SELECT count(*) FROM events")
        with pytest.raises(StoreError, match="another writer"):
            learner.decide()
        with pytest.raises(StoreError, match="another process"):
            store.save_snapshot("learner", store.load("learner").snapshot or snapshot_of(learner))
        with pytest.raises(StoreError, match="another process"):
            store.prune("learner", 2**60, 2**40, 10)
        assert place.run("SELECT count(*) FROM events") == events
        # It takes the experiment again, and goes on from the log.
        some(learner, 1)
        learner._experiment.verify()


def snapshot_of(learner):
    from tacit.serving.storage import Snapshot

    return Snapshot(0, *tacit.Learner(learner.policy)._core.snapshot())


def test_learners_of_several_threads_may_share_a_store(place):
    store = place.open()
    learners = [tacit.Learner(LOCAL, store=store, name=f"{i}") for i in range(3)]
    failed = []

    def work(learner):
        try:
            some(learner, 15, value=1)
            learner.prune()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(learner,)) for learner in learners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    for learner in learners:
        assert learner.counts["learned"] == 15
        learner._experiment.verify()
    store.close()


def test_a_creator_that_was_killed_before_its_mark_leaves_a_store_that_goes_on(place):
    store = place.open()
    store._write_mark = lambda *_, **__: None
    tacit.Learner(LOCAL, store=store)
    store.close()
    place.mark.write_bytes(b"")
    store = place.open()
    learner = tacit.Learner(LOCAL, store=store)
    # Its first commit is the last thing that it does.
    store._write_mark = lambda *_, **__: None
    learner.decide()
    store.close()
    with place.learner(LOCAL) as learner:
        assert learner.counts["decided"] == 1
