"""Clients, network, service and disk that fail at random, from a seed, against a model."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from service import network
from service.network import play
from tacit.client.outbox import Outbox
from tacit.serving import Core, Experiment
from tacit.serving.core import Receipt

SOAK = int(os.environ.get("TACIT_SOAK_STEPS", "1000000"))


def test_whatever_gets_lost_nothing_acknowledged_is(tmp_path):
    seen = Counter()
    for seed in range(6):
        world = play(seed, 500, tmp_path)
        seen += world.answers
        seen["reports"] += len(world.sent)
        seen["gaps"] += world.epochs
    assert min(seen[what] for what in (200, 503, "reports", "gaps")) > 5


@pytest.mark.soak
def test_a_million_steps_of_a_network(tmp_path):
    for begun in range(0, SOAK, 2_000):
        play(10_000 + begun, 2_000, tmp_path)


def first_failure(folder, seeds=25, steps=400):
    for seed in range(seeds):
        try:
            play(seed, steps, folder)
        except AssertionError as error:
            return str(error)
    return "none"


def test_charges_that_are_forgotten_are_noticed(monkeypatch, tmp_path):
    monkeypatch.setattr(network.Disk, "spent", lambda *_: 0)
    assert "a budget is exceeded" in first_failure(tmp_path)


def test_a_device_that_draws_again_is_noticed(monkeypatch, tmp_path):
    """A report made anew for every try would average the noise away."""
    from tacit.client import outbox

    whole = Outbox.report

    def again(self, place, id):
        made = whole(self, place, id)
        if isinstance(made, dict) and made["value"] in (0, 1):
            made = {**made, "value": int(os.urandom(1)[0] % 2)}
        return made

    monkeypatch.setattr(outbox.Outbox, "report", again)
    assert "two reports" in first_failure(tmp_path)


def test_a_service_that_answers_before_it_commits_is_noticed(monkeypatch, tmp_path):
    whole = Experiment._commit

    def hopeful(self, core):
        try:
            whole(self, core)
        except Exception:
            self._core = None

    monkeypatch.setattr(Experiment, "_commit", hopeful)
    said = first_failure(tmp_path, seeds=60)
    assert "two ways" in said or "counts twice" in said or "500" in said, said


def test_a_service_that_learns_twice_is_noticed(monkeypatch, tmp_path):
    whole = Core.report

    def forgetful(self, now, id, value):
        done = whole(self, now, id, value)
        return Receipt(done.id, "learned") if done.status == "repeated" else done

    monkeypatch.setattr(Core, "report", forgetful)
    assert "counts twice" in first_failure(tmp_path)
