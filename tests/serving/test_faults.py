"""Seeded simulation of clients, clock, crashes at every write and restored copies, against a model."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from serving import simulator
from serving.places import Disk, FilePlace
from serving.simulator import Faulty, MemoryDisk, play
from serving.toy import ToyDecider
from serving.watched import WatchedDecider
from tacit.core.tapes import secure_tape
from tacit.serving import Core, Experiment, experiment

SOAK = int(os.environ.get("TACIT_SOAK_STEPS", "1000000"))


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_lost_doubled_or_released_twice(seed):
    play(seed, 500)


@pytest.mark.parametrize("seed", range(4))
def test_neither_is_what_people_taught_one_model(seed):
    played = play(seed, 500, together=True)
    assert len(played.released) > 10


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_same_in_every_store(seed, together, place):
    played = play(seed, 200, disk=Disk(place, Faulty), together=together)
    assert played.x.core.decided > 0
    played.store.close()


@pytest.mark.soak
def test_a_million_steps():
    steps = 0
    while steps < SOAK:
        play(10_000 + steps, 2_000, together=steps % 20_000 == 0)
        steps += 2_000


@pytest.mark.soak
def test_a_million_steps_in_files():
    """On the real store, in memory if the machine has such a file system: crashes are the simulator's."""
    steps, seeds = 0, range(20_000, 30_000)
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    while steps < SOAK:
        with tempfile.TemporaryDirectory(dir=memory) as folder:
            disk, together = Disk(FilePlace(Path(folder)), Faulty), steps % 20_000 == 0
            played = play(seeds[steps // 2_000], 2_000, disk=disk, together=together)
            played.store.close()
        steps += 2_000


def first_failure(seeds=60, steps=300, **given):
    for seed in range(seeds):
        try:
            play(seed, steps, **given)
        except AssertionError as error:
            return str(error)
    return "none"


def test_a_store_that_forgets_charges_is_noticed(monkeypatch):
    monkeypatch.setattr(simulator.FaultyMemory, "spent", lambda *_: 0)
    assert "a budget is exceeded" in first_failure()


@pytest.mark.parametrize("together", [False, True])
def test_noise_that_is_repeated_after_a_failure_is_noticed(together, monkeypatch):
    def same_noise(**given):
        tape = secure_tape(**given)
        tape.key[4:] = np.arange(4)
        return tape

    monkeypatch.setattr(experiment, "secure_tape", same_noise)
    assert "noise used for two sums" in first_failure(local=False, together=together)


@pytest.mark.parametrize("kind", [ToyDecider, WatchedDecider])
def test_sums_kept_over_a_restored_copy_are_noticed(kind, monkeypatch):
    monkeypatch.setattr(kind, "discard", lambda self: None)
    said = first_failure(local=False, together=kind is WatchedDecider)
    assert "released more than once" in said


def test_decisions_kept_open_over_a_restored_copy_are_noticed(monkeypatch):
    whole = Core.begin_epoch

    def without_closing(self, now, lost, since):
        self.open, kept = {}, self.open
        whole(self, now, lost, since)
        self.open = kept

    monkeypatch.setattr(Core, "begin_epoch", without_closing)
    said = first_failure(local=False)
    assert "released more than once" in said or "changed the state" in said


def test_answering_before_the_commit_is_noticed(monkeypatch):
    whole = Experiment._commit

    def hopeful(self, core):
        try:
            whole(self, core)
        except Exception:
            self._core = None

    monkeypatch.setattr(Experiment, "_commit", hopeful)
    said = first_failure()
    assert "acknowledged and is lost" in said or "accepted twice" in said


def test_a_release_that_is_not_in_the_log_is_noticed(monkeypatch):
    whole = Core._read_releases

    def unlogged(self, decision):
        return whole(self, decision)._replace(state=None)

    monkeypatch.setattr(Core, "_read_releases", unlogged)
    assert "releases" in first_failure(local=False)


def test_forgotten_budgets_of_a_gap_are_noticed(monkeypatch):
    whole = MemoryDisk.put_back

    def forgetful(self):
        lost = whole(self)
        return None if lost is None else (0, lost[1])

    monkeypatch.setattr(MemoryDisk, "put_back", forgetful)
    assert "a budget is exceeded" in first_failure()
