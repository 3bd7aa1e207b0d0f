"""Agents who learn one model, served by somebody trusted: what is released, when, and of whom."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from serving.test_visits import NAMES, serve, visits, whole
from tacit.contextual import FedUCB
from tacit.core.tapes import NOISE
from tacit.privacy.exact import secure_gaussian

M = 5


def policy_of(**changes):
    given = {"n_users": 3, "dimension": 2, "epsilon": 4.0, "reward_range": (-1.0, 1.0)}
    return FedUCB(**(given | changes))


def released_by(learner, seen):
    """Return what must have been released: each agent's whole sums and the noise of the tape."""
    (mechanism,) = learner.policy.mechanisms
    step, sigma, tape = mechanism.step, mechanism.secure_release.sigma, learner._core.tape
    out, since, due = [], [], 3
    for t, visit in enumerate(seen):
        since.append(visit)
        if len(since) < due:
            continue
        told = []
        for agent in range(3):
            own = [whole(x, r, step) for who, x, r in since if who == agent]
            sums = [sum(column) for column in zip(*own, strict=True)] or [0] * M
            draws = [secure_gaussian(tape, t, agent * M + j, NOISE, sigma) for j in range(M)]
            told += [step * (s + int(z)) for s, z in zip(sums, draws, strict=True)]
        out.append(told)
        since, due = [], 2 * due
    return out


def model_of(policy, released, noisy):
    """Return matrix and estimate from what was released, `noisy` sums of agents in all."""
    total = np.sum([np.reshape(each, (-1, M)).sum(axis=0) for each in released], axis=0)
    (mechanism,) = policy.mechanisms
    ridge = 1.0 + mechanism.scale * math.sqrt(2 * 2 * noisy)
    off = total[1] / math.sqrt(2)
    inverse = np.linalg.inv(np.array([[total[0], off], [off, total[2]]]) + ridge * np.eye(2))
    return inverse, inverse @ total[3:]


def logged_of(learner):
    events = learner._owned.events("learner", 0)
    return [event.body["released"] for event in events if "released" in event.body]


def test_what_is_released_is_everybodys_whole_sums_plus_whole_noise(tmp_path):
    with tacit.Learner(policy_of(), people=NAMES, store=tmp_path / "x.db") as learner:
        expected = released_by(learner, serve(learner, 50))
        assert logged_of(learner) == expected
        assert len(expected) == 4  # after 3, 9, 21 and 45 visits
        assert learner.counts["releases"] == 4 * 3 * M
        state = learner._core.decider.state
        inverse, mean = model_of(learner.policy, expected, 4 * 3)
        for agent in range(3):
            np.testing.assert_allclose(state.covariance[agent], inverse, rtol=1e-9)
            np.testing.assert_allclose(state.mean[agent], mean, rtol=1e-9)


def test_a_learner_that_began_anew_knows_what_it_knew(tmp_path):
    policy = policy_of()
    for stop in (7, 20):
        with tacit.Learner(policy, people=NAMES, store=tmp_path / "x.db") as learner:
            serve(learner, stop, seed=stop)
            learner._experiment.verify()
            before = learner._core.snapshot()
        with tacit.Learner(policy, people=NAMES, store=tmp_path / "x.db") as learner:
            assert learner._core.snapshot() == before
            assert len(logged_of(learner)) == {7: 1, 20: 3}[stop]


def test_no_true_sum_outlives_its_release():
    """Beside what was released it would give the noise away to whoever reads a file later."""
    learner = tacit.Learner(policy_of(), people=NAMES)
    serve(learner, 9)
    state = learner._core.decider.state
    assert state.rounds.tolist() == [9, 0, 12, 2, 6]
    assert state.nodes.size == 0
    assert not state.opened.any()


def test_decisions_are_made_of_released_moments_alone():
    """Another visit in an open batch changes no decision, for anybody, until it is released."""
    seen = []
    for reward, context in ((-1.0, [1.0, 0.0]), (1.0, [0.0, 1.0])):
        learner = tacit.Learner(policy_of(), people=NAMES, seed=3)
        serve(learner, 10)
        decision = learner.decide(person=NAMES[0], contexts=[context])
        learner.learn(decision.device.report(reward))
        chosen = serve(learner, 9, seed=9)
        assert learner._core.decider.state.rounds[1] == 11
        last = learner._core.decider.state.mean.copy()
        serve(learner, 1, seed=4)
        assert learner._core.decider.state.rounds[1] == 0
        assert (last != learner._core.decider.state.mean).any()
        seen.append((str(chosen), last.tolist(), learner._core.decider.state.mean.tolist()))
    assert seen[0][:2] == seen[1][:2]
    assert seen[0][2] != seen[1][2]  # the twin: once released, it does


def test_only_how_many_visits_were_learned_says_when_to_release():
    """Late, in any order, twice, cancelled: each visit that is learned counts once, nothing else does."""
    learner = tacit.Learner(policy_of(), people=NAMES)
    made = [learner.decide(person="ada-l", contexts=[[x, 0.0]]) for x in (1.0, 0.5, 0.0, 0.7, 0.1)]
    rounds = learner._core.decider.state.rounds
    reports = [decision.device.report(1.0) for decision in made]
    learner.cancel(made[0])
    with pytest.raises(ValueError, match="cancelled"):
        learner.learn(reports[0])
    for report in (reports[4], reports[1]):
        assert learner.learn(report).status == "learned"
        assert learner.learn(report).status == "repeated"
    assert rounds.tolist() == [2, 2, 3, 0, 0]
    assert learner.learn(reports[3]).status == "learned"
    assert rounds.tolist() == [3, 0, 6, 1, 3]
    assert learner.counts["releases"] == 3 * M


def test_silence_counts_as_any_visit():
    """With a time for reports, who answered and when moves no release."""
    released = []
    for answers in (0, 1, 3):
        learner = tacit.Learner(policy_of(), people=NAMES, report_after=60.0, default=0.5)
        now = learner._experiment.clock()
        learner._experiment.clock = lambda at=now: at
        made = [learner.decide(person=name, contexts=[[1.0, 0.0]]) for name in NAMES]
        for decision in made[:answers]:
            assert learner.learn(decision.device.report(-1.0)).status == "held"
        assert learner.counts["releases"] == 0
        learner._core.tick(now + 200_000)
        released.append((learner.counts["releases"], learner.counts["learned"]))
        assert learner.counts["silent"] == 3 - answers
        assert "arrives" not in learner.guarantee().sentence()
    assert released == [(3 * M, 3)] * 3
    learner = tacit.Learner(policy_of(), people=NAMES)
    assert "arrives" in learner.guarantee().sentence()


def test_an_old_copy_releases_nothing_twice():
    learner = tacit.Learner(policy_of(), people=NAMES)
    serve(learner, 14)
    decider = learner._core.decider
    released, mean = decider.state.released.copy(), decider.state.mean.copy()
    assert decider.state.opened.any()
    decider.discard()
    assert not decider.state.opened.any()
    assert decider.state.rounds.tolist() == [14, 0, 12, 2, 6]
    np.testing.assert_array_equal(decider.state.released, released)
    np.testing.assert_array_equal(decider.state.mean, mean)


def test_somebody_new_knows_what_all_know_and_batches_go_on(tmp_path):
    policy = policy_of()
    with tacit.Learner(policy, people=NAMES, store=tmp_path / "x.db") as learner:
        serve(learner, 14)
        before = learner._core.decider.state
        learner.add_person("di-o")
        after = learner._core.decider.state
        assert after.rounds.tolist() == before.rounds.tolist() == [14, 5, 12, 2, 6]
        np.testing.assert_array_equal(after.opened[:3], before.opened)
        assert not after.opened[3].any()
        for agent in range(4):
            np.testing.assert_array_equal(after.mean[agent], before.mean[0])
            np.testing.assert_array_equal(after.covariance[agent], before.covariance[0])
        for _ in range(7):
            decision = learner.decide(person="di-o", contexts={"tea": [1.0, 0.0], "milk": [0, 1.0]})
            assert learner.learn(decision.device.report(1.0)).status == "learned"
        assert after.rounds.tolist() == [21, 0, 24, 3, 10]  # noise of 3, 3 and 4 agents
        inverse, mean = model_of(policy, logged_of(learner), 10)
        np.testing.assert_allclose(after.covariance[3], inverse, rtol=1e-9)
        np.testing.assert_allclose(after.mean[3], mean, rtol=1e-9)
        learner._experiment.verify()
        with pytest.raises(ValueError, match="nobody: all learn one model"):
            learner.add_person("ed-p", near=["ada-l"])
        with pytest.raises(ValueError, match="it joins no people"):
            learner.set_edges(graph=np.eye(4))
        summary = learner._core.snapshot()
    with tacit.Learner(policy, people=NAMES, store=tmp_path / "x.db") as learner:
        assert learner._core.snapshot() == summary


def test_exploring_says_its_chance_and_keeps_to_what_is_eligible():
    learner = tacit.Learner(policy_of(), people=NAMES, explore=0.3, seed=2)
    serve(learner, 20)
    chances = set()
    for _ in range(40):
        decision = learner.decide(person="ada-l", contexts=np.eye(2)[[0, 1, 0]], eligible=[1, 2])
        chances.add((decision.option in (1, 2), round(decision.probability, 12)))
    assert chances == {(True, 0.85), (True, 0.15)}


def test_the_server_is_trusted_and_the_guarantee_says_so():
    learner = tacit.Learner(policy_of(), people=NAMES)
    stated = learner.guarantee()
    assert (round(stated.epsilon, 9), stated.delta, stated.unit) == (4.0, 1e-6, "visit")
    assert (learner.trust, stated.trust) == ("central", "central")
    assert "but the server" in stated.sentence()
    assert "Joint: decisions of all other rounds" in stated.note
    assert "the agent makes" not in stated.note
    assert "the server, which sees true values" in stated.open_to_all
    assert "whether and when anything is sent" in stated.open_to_all
    assert learner.policy.guarantee(1).trust == "local"  # where agents are on their own
    plain = tacit.Learner(policy_of(epsilon=None), people=NAMES)
    serve(plain, 5)
    assert not plain.guarantee().private
    assert plain.counts["releases"] == 0
    assert plain._core.decider.state.rounds[3] == 1


@pytest.mark.parametrize("more", [{}, {"epsilon": None}])
@pytest.mark.parametrize("seed", [None, 3])
def test_as_published_it_is_refused(more, seed):
    policy = policy_of(variant="published", horizon=100, **more)
    with pytest.raises(ValueError, match=r"expected variant 'corrected': .* by true contexts"):
        tacit.Learner(policy, people=NAMES, seed=seed)


def test_a_saved_learner_goes_on_without_what_is_open(tmp_path):
    policy = policy_of()
    learner = tacit.Learner(policy, people=NAMES)
    serve(learner, 5)
    learner.save(tmp_path / "saved")
    again = tacit.Learner.load(tmp_path / "saved", policy, people=NAMES)
    # Finding P6: two visits were open, which the learner that was saved may release.
    assert learner._core.decider.state.rounds[1] == 2
    assert again._core.decider.state.rounds[1] == 0
    assert not again._core.decider.state.opened.any()
    with pytest.raises(ValueError, match="loaded before"):
        tacit.Learner.load(tmp_path / "saved", policy, people=NAMES)
    for person, items, rewards in list(visits(4, seed=7)):
        decision = again.decide(person=person, contexts=items)
        again.learn(decision.device.report(rewards[decision.option]))
    assert again._core.decider.state.rounds.tolist() == [9, 4, 6, 1, 3]
