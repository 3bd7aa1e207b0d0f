"""What only PostgreSQL brings: owners that die, sleep or lose their database; copies; lax settings."""

from __future__ import annotations

import time

import pytest

from serving.test_stores import LOCAL, POLICY, some
from tacit.serving import StoreError
from tacit.serving.storage import NotOwnedError
from tacit.serving.storage.postgres import PostgresStore


def test_a_silent_owner_is_ended_and_wakes_up_powerless(database):
    with database.learner(POLICY) as sleeper:
        some(sleeper, 3)
        sleeper._experiment.store.announce("nowhere")
        with pytest.raises(NotOwnedError), database.learner(POLICY):
            pass
        sleeper._experiment.store._heartbeat.stop()
        database.run("UPDATE servers SET seen = seen - interval '1 hour'")
        with database.learner(POLICY) as heir:
            some(heir, 2)
            with pytest.raises(StoreError):
                sleeper.decide()
            for _ in range(3):
                with pytest.raises(NotOwnedError):
                    sleeper.decide()
            assert heir.counts["learned"] == 5
            some(heir, 1)
            heir._experiment.verify()
        # Nobody owns it now.
        some(sleeper, 1)
        assert sleeper.counts["learned"] == 7


def test_a_database_that_goes_away_and_comes_back(database, postgres):
    with database.learner(POLICY) as learner:
        made = some(learner, 5)
        waiting = learner.decide()
        postgres.stop()
        for _ in range(3):
            with pytest.raises(StoreError, match="postgresql://"):
                learner.decide()
        postgres.start()
        until = time.monotonic() + 10
        while True:
            try:
                learner.decide()
                break
            except StoreError:
                assert time.monotonic() < until
                time.sleep(0.05)
        assert learner.counts["learned"] == 5
        for each in made:
            again = {"v": 1, "id": each.id, "value": 1.0}
            assert learner.learn(again).status == "repeated"
        assert learner.learn({"v": 1, "id": waiting.id, "value": 1.0}).status == "learned"
        learner._experiment.verify()


def test_an_old_copy_is_refused_though_it_came_while_the_process_ran(database):
    with database.learner(POLICY) as learner:
        some(learner, 3)
        database.copy()
        some(learner, 3)
        database.run("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
        database.put_back()
        with pytest.raises(StoreError):
            learner.decide()
        with pytest.raises(StoreError, match="old copy"):
            learner.decide()


def test_a_copy_in_another_database_is_refused(database, postgres, tmp_path):
    with database.learner(LOCAL, budget={"lifetime": 4.0}) as learner:
        for _ in range(3):
            learner.decide(person="ada")
    with postgres.connect() as db:
        db.execute(f"CREATE DATABASE {database.schema} TEMPLATE postgres")
    there = postgres.address(database.schema, database.schema)
    with pytest.raises(StoreError, match="old copy"):
        PostgresStore(there, beside=database.beside)
    store = PostgresStore(there, beside=database.beside, restored=True)
    assert store.find_loss("learner")[0] == 0
    store.close()


def test_what_is_not_durable_is_refused_or_mended(database, postgres):
    lax = database.address.replace("options=", "options=-csynchronous_commit%3Doff%20")
    store = PostgresStore(lax, beside=database.beside)
    assert store.database.query("SHOW synchronous_commit") == [("on",)]
    store.close()
    with postgres.connect() as db:
        try:
            db.execute("ALTER SYSTEM SET fsync = off")
            db.execute("SELECT pg_reload_conf()")
            until = time.monotonic() + 10
            while postgres.connect().execute("SHOW fsync").fetchone() == ("on",):
                assert time.monotonic() < until
                time.sleep(0.02)
            with pytest.raises(StoreError, match="fsync is off"):
                database.open()
        finally:
            db.execute("ALTER SYSTEM RESET fsync")
            db.execute("SELECT pg_reload_conf()")
            while postgres.connect().execute("SHOW fsync").fetchone() == ("off",):
                time.sleep(0.02)


def test_another_database_is_refused_and_no_password_is_repeated(database):
    database.run("CREATE TABLE experiments (x INTEGER)")
    with pytest.raises(StoreError, match="not a store of experiments"):
        database.open()
    for wrong in ("postgresql://me:secret@[::1", "postgresql://me:secret@127.0.0.1:1/x"):
        with pytest.raises(StoreError) as refused:
            PostgresStore(wrong, beside=database.beside)
        assert "secret" not in str(refused.value)
        assert "\n" not in str(refused.value)


def test_a_decision_that_the_database_cannot_name_is_unknown(database):
    with database.learner(POLICY) as learner:
        with pytest.raises(ValueError, match="made here"):
            learner.learn({"v": 1, "id": "a\0b", "value": 1.0})
        some(learner, 1)


def test_a_role_that_may_only_read_and_write_rows_is_enough(database):
    database.open().close()
    role, schema = f"writer_{database.schema}", database.schema
    database.run(f"CREATE ROLE {role} LOGIN")
    database.run(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    rights = "SELECT, INSERT, UPDATE, DELETE"
    database.run(f"GRANT {rights} ON ALL TABLES IN SCHEMA {schema} TO {role}")
    database.address = database.address.replace("postgres@", f"{role}@", 1)
    with database.learner(POLICY) as learner:
        store = learner._experiment.store
        store.announce("nowhere")
        store.require_key(learner._experiment.pseudonyms.key)
        with pytest.raises(StoreError, match="key of pseudonyms"):
            store.require_key(bytes(31) + b"1")
        store.check()
        some(learner, 2)
        learner.prune()
        assert store.orphans() == []
