"""A store of an earlier version is taken over in one transaction; one of a later version is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tacit.serving import Event, StoreError
from tacit.serving.storage import Snapshot, experiments, postgres

LATEST = len(experiments.SCHEMA.sqlite)


@pytest.mark.parametrize("version", range(1, LATEST))
def test_every_earlier_version_is_taken_over(place, version):
    place.make(version)
    assert place.version == version
    # Its mark is not part of it, as after a copy.
    store = place.open(restored=True)
    try:
        assert place.version == LATEST
        assert store.names() == ["news"]
        kept = store.load("news")
        assert kept[0] == {"policy": "toy"}
        # All windows are counted since the last event of before.
        assert kept[2:] == (3, 2, 1_700_000_000_300, 1_700_000_000_300)
        rows = [{"id": "second", "round": 1}]
        snapshot = kept.snapshot._replace(decisions=list(kept.snapshot.decisions))
        assert snapshot == Snapshot(2, {"rounds": 1}, b"\x00\xff", rows)
        first = store.find("news", "first")
        assert [event.kind for event in first] == ["decide", "learn"]
        assert first[1].state == b"\x00\xff"
        assert first[1].body == {"value": 1, "released": [0.5]}
        assert store.spent("news", "ada", "lifetime") == 2_000_000
        assert store.find_loss("news") is not None
        store.acquire("news")
        event = Event("epoch", 1_700_000_001_000, None, {"since": 0, "debt": 0, "lost": 0})
        store.append("news", 3, [event])
        assert store.prune("news", 1_800_000_000_000, 2**40, 10) == 2
        # Somebody was charged, so that a lost key is refused, and that which comes first is taken over.
        assert store.knows_people()
        store.require_key(bytes(32))
        with pytest.raises(StoreError, match="got another"):
            store.require_key(bytes(31) + b"1")
        store.create("other", {})
        assert store.load("other").counted == 0
        assert store.names() == ["news", "other"]
    finally:
        store.close()
    place.open().close()


def test_every_kind_of_database_takes_the_same_number_of_steps():
    assert len(experiments.SCHEMA.postgres) == LATEST


def test_a_failed_upgrade_leaves_everything_as_it_was(place, monkeypatch):
    place.make(1)
    schema, step = experiments.SCHEMA, "CREATE TABLE half (x INTEGER);\nSELECT nothing;"
    schema = replace(schema, sqlite=(*schema.sqlite, step), postgres=(*schema.postgres, step))
    for module in (experiments, postgres):
        monkeypatch.setattr(module, "SCHEMA", schema)
    with pytest.raises(StoreError):
        place.open(restored=True)
    assert place.version == 1
    with pytest.raises(Exception, match="half"):
        place.run("SELECT * FROM half")
    monkeypatch.undo()
    place.open(restored=True).close()
    assert place.version == LATEST


def test_a_later_version_is_refused_in_one_line(place):
    place.open().close()
    assert place.version == LATEST
    place.version = LATEST + 1
    with pytest.raises(StoreError, match=f"made by a later version .schema {LATEST + 1}.$"):
        place.open()
    assert place.version == LATEST + 1
