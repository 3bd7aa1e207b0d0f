"""What is charged is what is released; it is kept, and no copy, change or clock gives it back."""

from __future__ import annotations

import json
import time
import zipfile

import pytest

import tacit
from tacit.arms import DPIMED, DPSE, GAP, KLUCBCF
from tacit.graphs import Graph
from tacit.serving import Allowance, Core, Experiment, RefusedError
from tacit.serving.core.budget import WINDOWS, amount_of

LOCAL = KLUCBCF(n_arms=2, epsilon=1.0)
STAR = Graph.from_edges([(0, leaf) for leaf in range(1, 6)], n_nodes=6)
YEAR = 366 * 86_400_000


def ask(learner, person="ada", **words):
    """Decide and report; return why the device was not asked, empty if it was."""
    decision = learner.decide(person=person, **words)
    if not decision.reason:
        learner.learn(decision.device.report(1.0))
    return decision.reason


def spent(learner, person="ada"):
    """Return what was spent on somebody, by kind of window."""
    found = dict.fromkeys(WINDOWS, 0)
    for who, window, amount in learner._core.budget.charges():
        if who == learner._experiment.pseudonyms.of(person):
            found[window.partition(" ")[0]] += amount
    return found


def everywhere(epsilon):
    return dict.fromkeys(WINDOWS, amount_of(epsilon))


def test_a_saved_learner_knows_what_was_spent(tmp_path):
    # Finding P3
    learner = tacit.Learner(LOCAL, budget={"lifetime": 2.0})
    asked = 0
    for turn in range(4):
        asked += not ask(learner)
        learner.save(tmp_path / f"{turn}")
        learner = tacit.Learner.load(tmp_path / f"{turn}", LOCAL)
        assert spent(learner) == everywhere(min(turn + 1, 2))
    assert asked == 2
    assert "after this state was saved" in learner.guarantee().sentence()
    with pytest.raises(ValueError, match="each spend what is left"):
        tacit.Learner.load(tmp_path / "3", LOCAL)
    again = tacit.Learner.load(tmp_path / "3", LOCAL, again=True)
    assert "loaded 2 times" in again.guarantee().sentence()
    assert ask(again) == "budget"
    assert ask(again, "bob") == ""


def test_a_learner_that_was_saved_out_of_a_store_knows_it_too(place, tmp_path):
    # Finding P3
    with place.learner(LOCAL, budget={"lifetime": 2.0}) as learner:
        assert ask(learner) == ""
        learner.save(tmp_path / "saved")
    again = tacit.Learner.load(tmp_path / "saved", LOCAL)
    assert [ask(again), ask(again)] == ["", "budget"]
    with pytest.raises(ValueError, match="store not given"):
        tacit.Learner.load(tmp_path / "saved", LOCAL, again=True, store=tmp_path / "other.db")


def test_a_file_of_version_0_2_counts_all_as_spent_on_everybody(tmp_path):
    learner = tacit.Learner(LOCAL, budget={"lifetime": 2.0})
    ask(learner)
    ask(learner, "bob")
    learner.save(tmp_path / "saved")
    with zipfile.ZipFile(tmp_path / "saved") as archive:
        head, state = json.loads(archive.read("about.json")), archive.read("state.bin")
    # What 0.2.0 wrote.
    del head["charges"]
    head |= {"format": 1, "secret": None}
    with zipfile.ZipFile(tmp_path / "saved", "w") as archive:
        archive.writestr("about.json", json.dumps(head))
        archive.writestr("state.bin", state)
    again = tacit.Learner.load(tmp_path / "saved", LOCAL)
    assert ask(again) == "budget"
    assert "counted as spent" in again.guarantee().sentence()


def test_a_cap_that_comes_later_counts_what_was_spent_before(place):
    # Finding P4
    with place.learner(LOCAL) as learner:
        assert [ask(learner) for _ in range(3)] == ["", "", ""]
        assert spent(learner) == everywhere(3.0)
        learner._experiment.run(Core.change, allowances={"lifetime": 4.0})
        assert [ask(learner), ask(learner)] == ["", "budget"]
        learner._experiment.run(Core.change, allowances={"year": 5.0})
        assert [ask(learner), ask(learner)] == ["", "budget"]
        assert spent(learner) == everywhere(5.0)
        # Without a person nothing can be charged, and with a cap nobody is asked.
        learner._experiment.run(Core.change, allowances={})
        later = learner.decide(shown=False)
        learner._experiment.run(Core.change, allowances={"lifetime": 10.0})
        learner.show(later)
        assert later.reason == "budget"


def test_a_store_of_version_0_2_says_since_when_all_windows_are_counted(place):
    # Finding P4
    with place.learner(LOCAL) as learner:
        ask(learner)
        learner._experiment.run(Core.change, allowances={"lifetime": 4.0})
        assert "budgets of that time" not in learner.guarantee().sentence()
    place.run("UPDATE experiments SET counted = at")
    with place.learner(LOCAL) as learner:
        assert "beyond what the budgets of that time counted" in learner.guarantee().to_json()


@pytest.mark.parametrize("kind", [GAP, DPIMED])
def test_a_report_costs_every_reward_that_it_may_carry(kind, place):
    # Finding P5
    more = {"horizon": 1000} if kind is GAP else {}
    policy = kind(n_arms=6, epsilon=1.0, graph=STAR, **more)
    with place.learner(policy) as learner:
        decision = learner.decide(person="ada", eligible=["0"])
        rewards = dict.fromkeys(learner.options, 1.0)
        learner.learn({"v": 1, "id": decision.id, "value": rewards})
        whole = policy.guarantee(1000).for_user(6).epsilon
        assert spent(learner) == everywhere(whole) == everywhere(6.0)
        # The isolated end of a star shows its centre and itself.
        ask(learner, "bob", eligible=["3"])
        assert spent(learner, "bob") == everywhere(2.0)
    with pytest.raises(ValueError, match="at least 6, what one report costs"):
        tacit.Learner(policy, budget={"lifetime": 5.0})
    capped = tacit.Learner(policy, budget={"lifetime": 7.0})
    assert [ask(capped, eligible=["0"]) for _ in range(2)] == ["", "budget"]


def test_what_was_served_is_charged_in_shadow_mode_too():
    # Findings P1 and P5
    policy = DPIMED(n_arms=6, epsilon=1.0, graph=STAR)
    learner = tacit.Learner(policy, mode="shadow", baseline=0)
    ask(learner)
    assert spent(learner) == everywhere(6.0)
    whole = tacit.Learner(DPIMED(n_arms=6, epsilon=1.0, graph=STAR, unit="round"), baseline=0)
    ask(whole, eligible=["0"])
    assert spent(whole) == everywhere(1.0)
    for mode in ("off", "frozen"):
        learner.set_mode(mode)
        assert ask(learner) == mode
    assert spent(learner) == everywhere(6.0)


def test_a_loaded_central_state_releases_nothing_of_what_was_open(tmp_path):
    # Finding P6
    policy = DPIMED(n_arms=2, epsilon=0.5)
    learner = tacit.Learner(policy)
    for _ in range(3):
        ask(learner, eligible=["0"])
    waits = learner.decide(eligible=["0"])
    learner.save(tmp_path / "saved")
    copy = (tmp_path / "saved").read_bytes()
    learner.learn(waits.device.report(1.0))
    learner.decide()
    assert learner.counts["releases"] == 1
    for turn in range(2):
        # Whoever loads, from whichever copy.
        (tmp_path / f"copy {turn}").write_bytes(copy)
        again = tacit.Learner.load(tmp_path / f"copy {turn}", policy)
        blocks = again._core.decider.state.blocks
        assert blocks.open_counts.sum() == 0
        assert not blocks.open_sums.any()
        assert again.open_decisions == 0
        with pytest.raises(RefusedError, match="it was lost"):
            again.learn({"v": 1, "id": waits.id, "value": 1.0})
        assert "were discarded" in again.guarantee().sentence()
        again.decide()
        assert again.counts["releases"] == 0


def test_a_clock_that_was_ahead_is_set_back(place, monkeypatch):
    # Finding S5
    real = time.time_ns() // 1_000_000
    at = [real]
    monkeypatch.setattr(Experiment, "clock", lambda self: at[0])
    with place.learner(LOCAL, budget={"day": 2.0}, report_after=60.0) as learner:
        assert ask(learner) == ""
        at[0] = real + YEAR
        waits = learner.decide(person="ada")
        assert learner._core.clock_lead(real) == YEAR
        at[0] = real + 1000
        stuck = learner.decide(person="bob", shown=False)
        assert stuck.report_at > (real + YEAR) / 1000
    with place.learner(LOCAL, budget={"day": 2.0}, report_after=60.0) as learner:
        assert learner._core.clock_lead(at[0]) == YEAR - 1000
        before = spent(learner)
        learner.reset_clock()
        assert learner._core.clock_lead(at[0]) == 0
        assert learner.open_decisions == 0
        with pytest.raises(RefusedError, match="it was lost"):
            learner.learn({"v": 1, "id": waits.id, "value": 1})
        # Spent today and under the false clock: nothing is left of today, and nothing was refunded.
        assert ask(learner) == "budget"
        assert all(amount >= before[window] for window, amount in spent(learner).items())
        assert learner.decide(person="cy").report_at == pytest.approx(at[0] / 1000 + 60)
        with pytest.raises(RefusedError, match="expected a clock that is ahead"):
            learner.reset_clock()
        learner._experiment.verify()
        at[0] += 86_400_000
        assert ask(learner) == ""
        # Rows of the false time go when the others do.
        at[0] += 40 * 86_400_000
        learner.tick()
        learner.prune()
        assert not place.run("SELECT 1 FROM events WHERE expires IS NOT NULL AND kind != 'close'")
    with place.learner(LOCAL, budget={"day": 2.0}, report_after=60.0) as learner:
        assert learner._core.clock_lead(at[0]) == 0


def test_windows_that_were_forgotten_are_not_opened_again(monkeypatch):
    # Finding S5
    monkeypatch.setattr("tacit.serving.core.budget._CROWDED", 8)
    at = [1_700_000_000_000]
    monkeypatch.setattr(Experiment, "clock", lambda self: at[0])
    learner = tacit.Learner(LOCAL, budget={"day": 1.0})
    assert ask(learner) == ""
    at[0] += YEAR
    for person in ("bob", "cy", "di"):
        ask(learner, person)
    at[0] -= YEAR
    with pytest.raises(RefusedError, match="cannot be set back so far"):
        learner.reset_clock()


def test_more_sums_than_four_thousand_are_released_at_once(tmp_path):
    # Finding S16
    n = 4200
    policy = DPIMED(n_arms=n, epsilon=8.0)
    options = [str(i) for i in range(n)]
    with tacit.Learner(policy, options=options, store=tmp_path / "s.db") as learner:
        made = learner.decide_many({"eligible": [name]} for name in options)
        learner.learn_many(each.device.report(1.0) for each in made)
        learner.decide()
        assert learner.counts["releases"] == n
        learner._experiment.verify()
    with tacit.Learner(policy, options=options, store=tmp_path / "s.db") as learner:
        assert learner.counts["releases"] == n


def test_what_cannot_be_logged_is_not_used(monkeypatch):
    # Finding S16
    learner = tacit.Learner(DPIMED(n_arms=2, epsilon=8.0))
    ask(learner, eligible=["0"])

    def fail(*given):
        raise ValueError("no room")

    monkeypatch.setattr(type(learner._core.decider), "released", fail)
    with pytest.raises(RuntimeError, match="no room"):
        learner.decide()
    with pytest.raises(RuntimeError, match="failed half-way"):
        learner.decide()


def test_restored_gaps_are_in_the_json(place):
    # Finding P12
    policy = DPSE(n_arms=2, epsilon=1.0, horizon=1000)
    with place.learner(policy) as learner:
        ask(learner)
        place.copy()
        ask(learner)
    place.put_back()
    with place.learner(policy, restored=True) as learner:
        stated = json.loads(learner.guarantee().to_json())
    assert any("an old copy was restored" in each for each in stated["not_protected"])


def test_the_word_of_version_0_2_for_a_lifetime_is_read():
    assert Allowance(epsilon=1.0, window="ever") == Allowance(epsilon=1.0, window="lifetime")
    learner = tacit.Learner(KLUCBCF(n_arms=2, epsilon=1.0), budget={"ever": 2.0})
    assert [learner.decide(person="ada").reason for _ in range(3)] == ["", "", "budget"]
