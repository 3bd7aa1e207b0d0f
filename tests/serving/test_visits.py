"""Whole visits hidden by a trusted server: what is released, from what, after restarts and copies."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import tacit
from tacit.contextual import PrivateContexts
from tacit.core.tapes import NOISE, secure_tape, seeded_tape
from tacit.privacy.exact import secure_gaussian
from tacit.serving import RefusedError

NAMES = ["ada-l", "bob-m", "cy-n"]


def policy_of(**changes):
    given = {"n_users": 3, "dimension": 2, "epsilon": 4.0, "reward_range": (-1.0, 1.0)}
    return PrivateContexts(**(given | changes))


def visits(rounds, seed=0):
    """Return who comes, what may be shown and what each item would earn."""
    rng = np.random.default_rng(seed)
    for t in range(rounds):
        items = rng.normal(size=(4, 2))
        items /= np.linalg.norm(items, axis=1, keepdims=True) * rng.uniform(1, 3, (4, 1))
        yield NAMES[int(rng.integers(0, 3)) if t else 0], items, rng.uniform(-1, 1, 4)


def serve(learner, rounds, seed=0):
    """Serve visits; return of each whose it was, the context that was chosen, and its reward."""
    seen = []
    for person, items, rewards in visits(rounds, seed):
        decision = learner.decide(person=person, contexts=items)
        learner.learn(decision.device.report(rewards[decision.option]))
        seen.append((NAMES.index(person), items[decision.option], rewards[decision.option]))
    return seen


def whole(x, r, step):
    """Return the moments of one visit in whole steps, by fractions: the oracle's own reading."""
    d = len(x)
    found = []
    for a in range(d):
        found += [math.sqrt(2) * float(x[a]) * float(x[b]) for b in range(a)]
        found.append(float(x[a]) * float(x[a]))
    found += [float(x[a]) * r for a in range(d)]
    return [round(Fraction(each) / Fraction(step)) for each in found]


def released_by(learner, seen):
    """Return what a learner must have released: whole sums and the noise of its own tape."""
    (mechanism,) = learner.policy.mechanisms
    step, sigma = mechanism.step, mechanism.secure_release.sigma
    open_, due, out = {}, {}, []
    for t, (person, x, r) in enumerate(seen):
        batch = open_.setdefault(person, [])
        batch.append(whole(x, r, step))
        if len(batch) == due.setdefault(person, 1):
            sums = [sum(column) for column in zip(*batch, strict=True)]
            tape = learner._core.tape
            noise = [secure_gaussian(tape, t, j, NOISE, sigma) for j in range(len(sums))]
            out.append((person, [step * (s + int(z)) for s, z in zip(sums, noise, strict=True)]))
            open_[person], due[person] = [], 2 * due[person]
    return out


def test_what_is_released_is_whole_sums_plus_whole_noise(tmp_path):
    with tacit.Learner(policy_of(), people=NAMES, store=tmp_path / "x.db") as learner:
        seen = serve(learner, 40)
        expected = released_by(learner, seen)
        events = learner._owned.events("learner", 0)
        logged = [event.body["released"] for event in events if "released" in event.body]
        assert logged == [values for _, values in expected]
        assert len(logged) >= 9
        assert learner.counts["releases"] == 5 * len(logged)
        state = learner._core.decider.state
        for person in range(3):
            own = [values for whose, values in expected if whose == person]
            np.testing.assert_array_equal(state.sums[person], np.sum(own, axis=0))
    fine, coarse = (whole([0.6, 0.8], 1.0, step) for step in (2.0**-10, 2.0**-9))
    assert fine != [2 * each for each in coarse]  # another grid would be noticed


def test_a_learner_that_began_anew_knows_what_it_knew(tmp_path):
    policy = policy_of()
    for stop in (7, 20):
        with tacit.Learner(policy, people=NAMES, store=tmp_path / "x.db") as learner:
            serve(learner, stop, seed=stop)
            learner._experiment.verify()
            before = learner._core.snapshot()
        with tacit.Learner(policy, people=NAMES, store=tmp_path / "x.db") as learner:
            assert learner._core.snapshot() == before
    files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert not any(name.encode() in files for name in NAMES)


@pytest.mark.parametrize("times", [2000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_neighbours_stay_as_far_apart_as_declared(times):
    """A sum past 2^20 rounds what it takes in otherwise than one below; whole steps do not."""
    policy = policy_of(n_users=1, epsilon=1.0, delta=1e-6)
    (mechanism,) = policy.mechanisms
    little = [math.sqrt(1.25 * 2.0**-33), 0.0]
    apart = {}
    for name, tape in (("seeded", seeded_tape(0)), ("secure", secure_tape())):
        kept = []
        for first in ([0.5, math.sqrt(0.75)], [-1.0, 0.0]):
            state = policy.open()
            state.counts[0] = 2**20, 2**21, 21  # a batch that is half full
            state.opened[0, 0] = 2.0**20 - 0.5
            for x in [first, *[little] * times]:
                policy.update(state, tape, 0, x, 1.0)
            kept.append(state.opened[0].copy())
        apart[name] = math.dist(*kept)
    release = mechanism.secure_release
    assert apart["seeded"] > mechanism.sensitivity
    assert apart["secure"] / mechanism.step <= release.steps
    assert release.delta(1.0) <= 1e-6 < release.group(2).delta(1.0)


def test_the_edge_takes_no_longer_context_than_the_noise_hides():
    """What passes the edge at 1 + 1e-9 is within what is accounted for; half of a step is not."""
    (mechanism,) = policy_of().mechanisms
    longer = 1 + 1e-9
    ends = [whole([0.5 * longer, math.sqrt(0.75) * longer], 1.0, mechanism.step)]
    ends.append(whole([-longer, 0.0], 1.0, mechanism.step))
    far = math.dist(*ends)
    assert far <= mechanism.secure_release.steps
    assert far > mechanism.secure_release.steps - 4  # and nearly all of it is used
    learner = tacit.Learner(policy_of(), people=NAMES)
    learner.decide(person="ada-l", contexts=[[longer, 0.0]])
    with pytest.raises(ValueError, match="expected contexts of length <= 1, got"):
        learner.decide(person="ada-l", contexts=[[1.0001, 0.0]])
    assert learner.rounds == 1


def test_decisions_are_made_of_released_moments_alone():
    """Another reward in an open batch changes no decision until the batch is released."""
    options = []
    for reward in (-1.0, 1.0):
        learner = tacit.Learner(policy_of(), people=NAMES, seed=3)
        serve(learner, 12)
        chosen = []
        counts = learner._core.decider.state.counts
        person = int(np.argmax(counts[:, 1] - counts[:, 0]))
        decision = learner.decide(person=NAMES[person], contexts=[[0.6, 0.8]])
        assert counts[person, 1] - counts[person, 0] > 1
        learner.learn(decision.device.report(reward))
        for _, items, _ in visits(30, seed=9):
            chosen.append(learner.decide(person=NAMES[person], contexts=items).option)
        options.append(chosen)
    assert options[0] == options[1]
    assert len(set(options[0])) > 1


def test_an_old_copy_releases_nothing_twice():
    learner = tacit.Learner(policy_of(), people=NAMES)
    serve(learner, 30)
    decider = learner._core.decider
    released, mean = decider.state.sums.copy(), decider.state.mean.copy()
    assert decider.state.opened.any()
    decider.discard()
    assert not decider.state.opened.any()
    assert not decider.state.counts[:, 0].any()
    np.testing.assert_array_equal(decider.state.sums, released)
    np.testing.assert_array_equal(decider.state.mean, mean)


def test_people_come_and_nobody_is_joined():
    learner = tacit.Learner(policy_of(), people=NAMES, seed=1)
    serve(learner, 25)
    before = [array.copy() for array in learner._core.decider.state]
    learner.add_person("di-o")
    after = learner._core.decider.state
    for name, old, new in zip(after._fields, before, after, strict=True):
        kept = len(old) if name in ("rounds", "latest") else 3
        np.testing.assert_array_equal(new[:kept], old[:kept])
    decision = learner.decide(person="di-o", contexts={"tea": [1.0, 0.0], "milk": [0.0, 1.0]})
    assert learner.learn(decision.device.report(1.0)).status == "learned"
    assert after.counts[3].tolist() == [0, 2, 1]
    with pytest.raises(ValueError, match="nobody: each person learns alone"):
        learner.add_person("ed-p", near=["ada-l"])
    with pytest.raises(ValueError, match="it joins no people"):
        learner.set_edges(graph=np.eye(4))


def test_silence_is_one_record_with_the_visit():
    learner = tacit.Learner(policy_of(), people=NAMES, report_after=0.0, grace=0.0, default=0.5)
    learner.decide(person="ada-l", contexts=[[1.0, 0.0]])
    learner._core.tick(learner._experiment.clock() + 10)
    assert learner.counts["silent"] == learner.counts["learned"] == 1
    assert learner.counts["releases"] == 5
    assert "arrives" not in learner.guarantee().sentence()


def test_exploring_says_its_chance():
    learner = tacit.Learner(policy_of(), people=NAMES, explore=0.3, seed=2)
    serve(learner, 20)
    chances = set()
    for _ in range(40):
        decision = learner.decide(person="ada-l", contexts=np.eye(2))
        chances.add(round(decision.probability, 12))
    assert chances == {0.85, 0.15}


def test_what_it_states_and_what_it_refuses():
    learner = tacit.Learner(policy_of(), people=NAMES)
    stated = learner.guarantee()
    assert (round(stated.epsilon, 9), stated.delta, stated.unit) == (4.0, 1e-6, "visit")
    assert "multiples of 2^-" in stated.note
    assert learner.numerics == "secure"
    with pytest.raises(ValueError, match=r"'central'.*never leave the device.*LinUCB\(epsilon"):
        tacit.Learner(policy_of(trust="local"))
    with pytest.raises(ValueError, match="only where delta is 0"):
        tacit.Learner(policy_of(), people=NAMES, budget={"lifetime": 10.0})
    with pytest.raises(RefusedError, match="expected a person who was added"):
        learner.decide(person="eve", contexts=[[1.0, 0.0]])
    plain = tacit.Learner(policy_of(epsilon=None), people=NAMES)
    serve(plain, 5)
    assert not plain.guarantee().private
    assert plain.counts["releases"] == 0
