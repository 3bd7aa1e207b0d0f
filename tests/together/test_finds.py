"""Each fault that 0.2.0 had where two features meet is put back once, and the harness finds it."""

from __future__ import annotations

import pytest

from tacit.arms import DPIMED
from tacit.arms.decider import ArmsDecider
from tacit.client import Outbox
from tacit.serving.core import Core, budget
from tacit.serving.core import core as machine
from tacit.serving.experiment import Experiment
from together.life import live
from together.model import ViolationError
from together.options import sample
from together.script import shrink, violation_of

SEEDS, STEPS = 24, 150


def serve_what_the_policy_wished(patch):
    patch.setattr(DPIMED, "kernels", DPIMED.kernels._replace(serve=None))


def write_before_sending(patch):
    report = Outbox.report

    def written(self, place, id):
        self._mark(place, id, 4)
        return report(self, place, id)

    patch.setattr(Outbox, "report", written)


def forget_charges_in_a_file(patch):
    take = budget.Budget.take

    def forgetful(self, charges):
        if isinstance(charges, tuple):  # those of a decision, not of a file
            take(self, charges)

    patch.setattr(budget.Budget, "take", forgetful)


def charge_one_window(patch):
    patch.setattr(budget, "WINDOWS", ("day",))


def charge_one_reward(patch):
    patch.setattr(ArmsDecider, "rewards", lambda self, option: 1)


def keep_the_open_block(patch):
    patch.setattr(Core, "discard", lambda self: None)


def export_contexts(patch):
    patch.setattr(Experiment, "hides_contexts", False)


def change_a_budget_unchecked(patch):
    patch.setattr(machine, "require_budget", lambda *_: None)


def change_in_parts(patch):
    whole = Experiment.change

    def change(self, core, now, **wanted):
        for name in ("budget", "add_options", "retire_options", "mode", "add_people", "edges"):
            if name in wanted:
                whole(self, core, now, **{name: wanted[name]})

    patch.setattr(Experiment, "change", change)


ARMS = {"policy": "dp-imed", "modes": "stay", "mode": "learn", "noise": "readable"}
BITS = {"policy": "klucb-cf", "modes": "stay", "mode": "learn", "options": "stay"}
STAR = {**ARMS, "graph": "star", "side": "shown"}

FAULTS = {
    "P1 in a shadow": (
        serve_what_the_policy_wished,
        "noise",
        {**STAR, "front": "memory", "unit": "round", "mode": "shadow", "budget": "none"},
    ),
    "P1 exploring, over HTTP": (
        serve_what_the_policy_wished,
        "noise",
        {**STAR, "front": "sqlite", "unit": "round", "explore": 0.3, "budget": "none"},
    ),
    "P2": (write_before_sending, "devices", {**BITS, "front": "client-file", "budget": "none"}),
    "P3": (
        forget_charges_in_a_file,
        "budget",
        {**BITS, "front": "memory", "again": "save", "budget": "lifetime"},
    ),
    "P4": (charge_one_window, "budget", {**BITS, "front": "sqlite", "budget": "later"}),
    "P5": (
        charge_one_reward,
        "budget",
        {**STAR, "front": "store", "unit": "reward", "budget": "lifetime"},
    ),
    "P6": (
        keep_the_open_block,
        "noise",
        {**ARMS, "front": "memory", "graph": "none", "again": "save", "time": "at once"},
    ),
    "P7": (export_contexts, "export", {"front": "sqlite", "policy": "private-contexts"}),
    "P11": (
        change_a_budget_unchecked,
        "change",
        {"front": "sqlite", "policy": "fed-ucb", "budget": "later"},
    ),
    "S6": (change_in_parts, "nothing changes", {**BITS, "front": "sqlite", "modes": "change"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_is_put_back_is_found(name, tmp_path, monkeypatch):
    fault, invariant, fixed = FAULTS[name]
    fault(monkeypatch)
    assert any(finds(invariant, fixed, seed, tmp_path) for seed in range(SEEDS))


def finds(invariant, fixed, seed, folder):
    """Return whether a life with these options breaks the invariant, and still does when it is shortened."""
    (case,) = sample(1, seed, **fixed)
    mine = folder / str(seed)
    mine.mkdir()
    try:
        live(case, seed, STEPS, mine)
    except ViolationError as error:
        if error.invariant != invariant:
            return False
        short = shrink(case, error.commands, invariant)
        return violation_of(case, short) == invariant
    return False
