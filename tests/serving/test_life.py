"""The table of a decision's life says what the core does, in every state and for every event."""

from __future__ import annotations

import itertools

import pytest

import tacit
from tacit.arms import DPIMED, KLUCBCF
from tacit.serving import RefusedError
from tacit.serving.core import Core, OpenDecision, events, format_life
from tacit.serving.core.decisions import LIFE, STEPS

RECORDS = {
    "show": events.Show(),
    "unask": events.Show(reason="budget"),
    "report": events.Report(1),
    "learn": events.Learn(1),
    "close": events.Close(),
    "cancel": events.Cancel(),
    "lose": events.Lose(),
}
ENDS = {state for row in LIFE.values() for state in row.values()} - set(LIFE)


def decision_in(state):
    """Return a decision that came to a state by the steps of the table."""
    decision = OpenDecision("d", 0, report_at=10)
    decision.begin(grace=5)
    ways = {
        "unshown": [],
        "awaited": ["show"],
        "held": ["show", "report"],
        "unasked": ["unask"],
        "lapsed": ["close"],
        "silent": ["show", "close"],
        "answered": ["show", "learn"],
        "cancelled": ["cancel"],
        "lost": ["lose"],
    }
    for step in ways[state]:
        decision.follow(RECORDS[step], grace=5)
    return decision


@pytest.mark.parametrize("state", sorted({*LIFE, *ENDS} - {"new"}))
def test_a_decision_follows_the_table_and_nothing_else(state):
    for step, record in RECORDS.items():
        decision = decision_in(state)
        assert decision.state == state
        wanted = LIFE.get(state, {}).get(step)
        if wanted is None:
            before = decision.row()
            with pytest.raises(RefusedError):
                decision.follow(record, grace=5)
            assert decision.row() == before
        else:
            decision.follow(record, grace=5)
            assert decision.state == wanted


def test_a_row_keeps_the_state():
    for state in {*LIFE, *ENDS} - {"new"}:
        decision = decision_in(state)
        again = OpenDecision.of(decision.row())
        assert (again.state, again.row()) == (state, decision.row())


def test_every_event_but_the_first_has_a_record_and_a_column():
    assert set(RECORDS) | {"decide"} == set(STEPS)
    header, *rows = format_life().splitlines()
    assert header.split() == ["state", *STEPS]
    assert [row.split()[0] for row in rows] == list(LIFE)


@pytest.mark.parametrize("later", [False, True])
def test_a_life_that_was_lived_is_looked_up_as_it_ended(tmp_path, later):
    """Live, replayed and looked up, the three ways to a state, agree."""
    policy = DPIMED(n_arms=2, epsilon=1.0) if later else KLUCBCF(n_arms=2, epsilon=1.0)
    clock = itertools.count(1_700_000_000_000, 5)
    with tacit.Learner(
        policy, store=tmp_path / "x.db", report_after=60.0 if later else None
    ) as learner:
        learner._experiment.clock = lambda: next(clock)
        value = 1.0 if later else 1
        for shown, what in itertools.product((True, False), ("", "cancel", "show", "learn")):
            id = learner.decide(shown=shown).id
            if what == "learn" and shown:
                learner.learn({"v": 1, "id": id, "value": value})
            elif what in ("cancel", "show"):
                getattr(learner, what)(id)
        now = next(clock) + 600_000
        learner._experiment.clock = lambda: now
        learner._experiment.run(Core.tick)
        core, store = learner._core, learner._experiment.store
        ids = [event.id for event in store.events("learner", 0) if event.kind == "decide"]
        assert len(ids) == 8
        for id in ids:
            lived = core.open.get(id) or core.decisions.closed.pop(id)
            found = core.decisions.find_closed(id)
            assert lived.is_open if found is None else found.row() == lived.row()
        learner._experiment.verify()
