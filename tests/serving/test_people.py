"""People with contexts: names, private reports, new people, changed edges, restarts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tacit
from tacit.contextual import CoLin, GOBLin, LinUCB, NoisySums, PerReward, Published, Residual
from tacit.contextual.model import select
from tacit.graphs import Graph
from tacit.serving import RefusedError, StoreError

NAMES = ["ada-l", "bob-m", "cy-n", "di-o"]
PATH = Graph.from_edges([(0, 1), (1, 2), (2, 3)], n_nodes=4, labels=NAMES)
WEIGHTS = np.full((4, 4), 0.25)


def given(policy):
    return {"graph": {"graph": PATH}, "weights": {"weights": WEIGHTS}, "": {}}[policy.joined_by]


def policies(**more):
    return [kind(n_users=4, dimension=3, **more) for kind in (LinUCB, CoLin, GOBLin)]


def play(learner, rounds, seed=0):
    rng, options = np.random.default_rng(seed), []
    taste = rng.normal(size=(4, 3))
    for t in range(rounds):
        items = rng.normal(size=(5, 3))
        items /= np.linalg.norm(items, axis=1, keepdims=True)
        named = {f"item {i}": row for i, row in enumerate(items)}
        decision = learner.decide(person=NAMES[t % 4], contexts=named)
        options.append(decision.option)
        liked = rng.random() < 1 / (1 + math.exp(-named[decision.option] @ taste[t % 4]))
        learner.learn(decision.device.report(float(liked)))
    return options


def means(learner):
    state = learner._core.decider.state
    return state.ridge.mean[state.ridge.place]


@pytest.mark.parametrize("policy", policies(epsilon=2.0), ids=lambda policy: policy.name)
def test_people_and_items_have_names(policy, tmp_path):
    with tacit.Learner(policy, people=NAMES, store=tmp_path / "x.db", **given(policy)) as learner:
        play(learner, 40)
        first = learner.decide(person="ada-l", contexts={"a": [1, 0, 0], "b": [0, 1, 0]}, id="q")
        again = learner.decide(person="ada-l", contexts={"a": [1, 0, 0], "b": [0, 1, 0]}, id="q")
        assert first.option == again.option
        assert first.option in ("a", "b")
        assert first._open.name == first.option
        learner.cancel(first)
        before = learner._core.snapshot()
    with tacit.Learner(policy, people=NAMES, store=tmp_path / "x.db", **given(policy)) as learner:
        assert learner._core.snapshot() == before
        learner._experiment.verify()
    files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert not any(name.encode() in files for name in ("ada-l", "bob-m"))


@pytest.mark.parametrize("mechanism", ["bit", "piecewise", "laplace"])
def test_what_is_learned_from_reports_is_unbiased(mechanism):
    """One person, one item, reward 0.7: the estimate is within 5 standard errors."""
    policy = LinUCB(
        n_users=1,
        dimension=1,
        privacy=PerReward(epsilon=2.0, mechanism=mechanism),
        regularisation=1e-9,
    )
    learner, n = tacit.Learner(policy), 3000
    for _ in range(n):
        learner.learn(learner.decide(person="0", contexts=[[1.0]]).device.report(0.7))
    error = math.sqrt(policy.protection.variance / n)
    assert abs(means(learner)[0, 0] - 0.7) < 5 * error


def test_a_question_about_the_residual_is_fixed_when_the_decision_is_made(tmp_path):
    policy = LinUCB(n_users=4, dimension=3, privacy=Residual(epsilon=2.0), reward="symmetric")
    with tacit.Learner(policy, people=NAMES, store=tmp_path / "x.db") as learner:
        first = learner.decide(person="ada-l", contexts=np.eye(3)[:1])
        asked = first.instructions
        assert "cuts" in asked["question"]
        for _ in range(40):
            offer = learner.decide(person="ada-l", contexts=np.eye(3)[:1])
            learner.learn(offer.device.report(0.9))
        assert first.instructions == asked
        later = learner.decide(person="ada-l", contexts=np.eye(3)[:1])
        assert later.instructions["question"] != asked["question"]
        assert first.device.epsilon <= 2.0
        assert learner.learn(first.device.report(0.5)).status == "learned"
        learner._experiment.verify()


def test_a_local_policy_takes_no_true_reward():
    learner = tacit.Learner(LinUCB(n_users=4, dimension=3, epsilon=0.5), people=NAMES)
    decision = learner.decide(person="ada-l", contexts=np.eye(3))
    for value in (0.5, 2, "1", None, True):
        with pytest.raises(ValueError, match="that the instructions allow"):
            learner.learn({"v": 1, "id": decision.id, "value": value})
    assert decision.instructions["question"]["levels"] == 2
    assert decision.device.epsilon <= 0.5


@pytest.mark.parametrize("policy", policies(epsilon=2.0), ids=lambda policy: policy.name)
def test_without_noise_it_learns_what_the_policy_learns(policy):
    plain = type(policy)(n_users=4, dimension=3)
    learner = tacit.Learner(plain, people=NAMES, seed=1, **given(plain))
    state = plain.open(**given(plain))
    rng = np.random.default_rng(3)
    tape = tacit.core.tapes.seeded_tape(1)
    for t in range(50):
        items = rng.normal(size=(4, 3)) / 3
        decision = learner.decide(person=NAMES[t % 4], contexts=items)
        assert decision.option == plain.select(state, t % 4, items)
        reward = float(rng.random())
        learner.learn({"v": 1, "id": decision.id, "value": reward})
        plain.update(state, tape, t % 4, items[decision.option], reward)
    np.testing.assert_array_equal(learner._core.decider.state.ridge.mean, state.ridge.mean)


def test_changed_edges_are_as_if_they_had_always_been_there():
    policy = GOBLin(n_users=4, dimension=3, epsilon=2.0)
    ring = Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 3)], n_nodes=4)
    changed = tacit.Learner(policy, people=NAMES, graph=PATH)
    always = tacit.Learner(policy, people=NAMES, graph=ring)
    rng = np.random.default_rng(0)
    for t in range(60):
        items = rng.normal(size=(1, 3))
        made = [each.decide(person=NAMES[t % 4], contexts=items) for each in (changed, always)]
        value = made[0].device.report(float(rng.random()))["value"]
        for learner, decision in zip((changed, always), made, strict=True):
            learner.learn({"v": 1, "id": decision.id, "value": value})
    assert np.abs(means(changed) - means(always)).max() > 1e-3
    changed.set_edges(graph=ring)
    np.testing.assert_allclose(means(changed), means(always), atol=1e-10)


def test_new_people_come(tmp_path):
    policy = GOBLin(n_users=4, dimension=3, epsilon=2.0)
    with tacit.Learner(policy, people=PATH, store=tmp_path / "x.db") as learner:
        play(learner, 40)
        before = means(learner)
        with pytest.raises(RefusedError, match="who was added"):
            learner.decide(person="eve", contexts=np.eye(3))
        learner.add_person("eve", near=["ada-l"])
        with pytest.raises(RefusedError, match="one in use"):
            learner.add_person("eve")
        decision = learner.decide(person="eve", contexts=np.eye(3))
        learner.learn(decision.device.report(1.0))
        assert means(learner).shape == (5, 3)
        assert not np.allclose(means(learner)[4], 0.0)
        assert means(learner)[:4].shape == before.shape
        kept = learner._core.snapshot()
    with tacit.Learner(policy, people=PATH, store=tmp_path / "x.db") as learner:
        assert learner._core.snapshot() == kept
        learner._experiment.verify()
    alone = tacit.Learner(LinUCB(n_users=1, dimension=2), people=["a"], seed=1)
    alone.add_person("b")
    assert alone.decide(person="b", contexts=np.eye(2)).option == 0


@pytest.mark.parametrize("kind", [LinUCB, CoLin, GOBLin], ids=lambda kind: kind.name)
def test_who_comes_later_is_as_if_there_from_the_start(kind):
    """Reports do not depend on predictions here, so that the same ones lead to the same model."""
    policy = kind(n_users=4, dimension=3, epsilon=2.0)
    wide = Graph.from_edges([(0, 1), (1, 2), (2, 3), (4, 0), (4, 2)], n_nodes=5)
    joined = policy.joined_by != ""
    graphs = ({"graph": PATH}, {"graph": wide}) if joined else ({}, {})
    later = tacit.Learner(policy, people=NAMES, **graphs[0])
    larger = kind(n_users=5, dimension=3, epsilon=2.0)
    always = tacit.Learner(larger, people=[*NAMES, "eve"], **graphs[1])
    rng = np.random.default_rng(1)
    for t in range(80):
        if t == 40:
            later.add_person("eve", near=["ada-l", "cy-n"] if joined else [])
        items = rng.normal(size=(1, 3))
        person = [*NAMES, "eve"][t % (4 if t < 40 else 5)]
        made = [each.decide(person=person, contexts=items) for each in (later, always)]
        value = made[0].device.report(float(rng.random()))["value"]
        for learner, decision in zip((later, always), made, strict=True):
            learner.learn({"v": 1, "id": decision.id, "value": value})
    np.testing.assert_allclose(means(later), means(always), atol=1e-9)
    if joined:
        lonely = tacit.Learner(policy, people=NAMES, graph=PATH)
        lonely.add_person("eve")
        assert len(lonely._core.decider.joined) < len(later._core.decider.joined)


def test_exploring_and_eligible_items():
    learner = tacit.Learner(LinUCB(n_users=1, dimension=2), explore=0.5, seed=2)
    chances = set()
    for _ in range(60):
        decision = learner.decide(
            person="0", contexts={"a": [1, 0], "b": [0, 1], "c": [1, 1]}, eligible=["a", "c"]
        )
        assert decision.option in ("a", "c")
        chances.add(round(decision.probability, 9))
        learner.learn({"v": 1, "id": decision.id, "value": 1.0})
    assert chances == {0.25, 0.75}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"contexts": np.eye(3)}, "who was added"),
        ({"person": "ada-l"}, "contexts"),
        ({"person": "ada-l", "contexts": np.eye(2)}, r"shape \(n, 3\)"),
        ({"person": "ada-l", "contexts": [[1, 2, math.nan]]}, "finite"),
        ({"person": "ada-l", "contexts": "abc"}, "contexts"),
        ({"person": "ada-l", "contexts": [[1e200, 0, 0]]}, "contexts up to 1e"),
        ({"person": "ada-l", "contexts": np.eye(3), "eligible": [7]}, "eligible"),
    ],
)
def test_bad_requests_are_refused_and_change_nothing(words, said):
    learner = tacit.Learner(LinUCB(n_users=4, dimension=3, epsilon=1.0), people=NAMES)
    with pytest.raises(ValueError, match=said):
        learner.decide(**words)
    assert learner.rounds == 0


def test_a_saved_learner_knows_its_people(tmp_path):
    policy = GOBLin(n_users=4, dimension=3, epsilon=2.0)
    learner = tacit.Learner(policy, people=PATH)
    play(learner, 20)
    learner.save(tmp_path / "state")
    again = tacit.Learner.load(tmp_path / "state", policy, people=PATH)
    items = np.eye(3)
    for name in NAMES:
        one, two = (each.decide(person=name, contexts=items) for each in (learner, again))
        assert one.option == two.option


def test_edges_of_other_people_are_refused_by_name():
    learner = tacit.Learner(GOBLin(n_users=4, dimension=3, epsilon=1.0), people=PATH)
    with pytest.raises(ValueError, match="graph of 4 people"):
        learner.set_edges(graph=Graph.from_edges([(0, 1)], n_nodes=3))
    with pytest.raises(ValueError, match=r"near people who were added, got \['zoe'\]"):
        learner.add_person("eve", near=["zoe", "ada-l"])


# Noise on sums

SUMS = {
    "tree": {"visits": 30},
    "toeplitz": {"visits": 30, "continual": "toeplitz"},
    "tree on b": {"horizon": 120, "statistic": "b"},
    "toeplitz on b": {"horizon": 120, "statistic": "b", "continual": "toeplitz"},
}
every_sum = pytest.mark.parametrize("how", SUMS.values(), ids=SUMS)


def summing(how, kind=CoLin, n_users=4):
    hidden = NoisySums(epsilon=1.0, delta=1e-6, trust="central", **how)
    return kind(n_users=n_users, dimension=3, privacy=hidden)


@every_sum
def test_no_noise_is_used_for_two_sums_when_commits_fail(how, tmp_path, monkeypatch):
    """Lost or durable, a commit that failed is followed by another key, and by the log's sums."""
    policy = summing(how)
    with tacit.Learner(policy, people=NAMES, store=tmp_path / "x.db", weights=WEIGHTS) as learner:
        store, keys, fates = learner._experiment.store, set(), itertools.cycle("..b...a.")
        append = store.append

        def faulty(*what):
            fate = next(fates)
            if fate != "b":
                append(*what)
            if fate != ".":
                raise StoreError("disk full")

        monkeypatch.setattr(store, "append", faulty)
        failed = 0
        for t in range(60):
            keys.add(learner._core.tape.key[4:].tobytes())
            try:
                offer = learner.decide(person=NAMES[t % 4], contexts=np.eye(3))
                learner.learn(offer.device.report(0.75))
            except StoreError:
                failed += 1
        assert failed > 10
        keys.add(learner._core.tape.key[4:].tobytes())
        assert len(keys) == failed + 1
        learner._experiment.verify()
        released = [
            event.body["released"] for event in store.events("learner", 0) if event.kind == "learn"
        ]
        assert len({tuple(values) for values in released}) == len(released)


@every_sum
def test_what_was_not_released_is_discarded_with_an_old_copy(how):
    """Other rewards and the same released sums: then nothing tells the states apart."""
    policy, states = summing(how), []
    for reward in (0.0, 1.0):
        learner = tacit.Learner(policy, people=NAMES, weights=WEIGHTS)
        for t in range(13):
            offer = learner.decide(person=NAMES[t % 4], contexts=np.eye(3)[t % 3 :][:1])
            learner.learn(offer.device.report(reward if t == 4 else 0.5))
        states.append(learner._core.decider)
    one, other = states
    for name in ("sums", "lift", "shift", "eta"):
        getattr(other.state.sums, name)[:] = getattr(one.state.sums, name)
    assert one.pack() != other.pack()
    before = predictions(one)
    for each in states:
        each.discard()
        each.state.work[:] = 0.0
    assert one.pack() == other.pack()
    np.testing.assert_allclose(predictions(one), before, atol=1e-9)
    assert not one.state.sums.memory.any()


def predictions(decider):
    state, params = decider.state, decider.policy.params
    found = np.empty((4, 3))
    for person in range(4):
        select(params, state, person, np.eye(3), np.empty((3, 3)))
        found[person] = state.work[:3]
    return found


@pytest.mark.parametrize("how", [SUMS["tree"], SUMS["toeplitz"]], ids=["tree", "toeplitz"])
def test_sums_with_noise_are_kept_when_edges_change_and_people_come(how):
    ring = Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 3)], n_nodes=4)
    wide = Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 3), (4, 1)], n_nodes=5)
    policy = summing(how, GOBLin)
    changed = tacit.Learner(policy, people=NAMES, graph=PATH, seed=3)
    always = tacit.Learner(policy, people=NAMES, graph=ring, seed=3)
    larger = tacit.Learner(summing(how, GOBLin, 5), people=[*NAMES, "eve"], graph=wide, seed=3)
    rng = np.random.default_rng(0)
    for t in range(40):
        items, reward = rng.normal(size=(1, 3)) / 3, float(rng.random())
        for each in (changed, always, larger):
            offer = each.decide(person=NAMES[t % 4], contexts=items)
            each.learn(offer.device.report(reward))
        if t == 25:
            changed.set_edges(graph=ring)
    here, there = (predictions(each._core.decider) for each in (changed, always))
    np.testing.assert_allclose(here, there, atol=1e-9)
    changed.add_person("eve", near=["bob-m"])
    np.testing.assert_allclose(
        predictions(changed._core.decider), predictions(larger._core.decider), atol=1e-9
    )


def test_b_is_released_for_people_joined_as_they_were():
    learner = tacit.Learner(summing(SUMS["tree on b"]), people=NAMES, weights=WEIGHTS)
    with pytest.raises(ValueError, match="joined as they were"):
        learner.add_person("eve")
    with pytest.raises(ValueError, match="joined as they were"):
        learner.set_edges(weights=np.eye(4))
    assert learner.decide(person="ada-l", contexts=np.eye(3)).option in (0, 1, 2)


def test_a_stream_that_is_full_asks_no_more(tmp_path):
    policy = summing({"visits": 3})
    with tacit.Learner(policy, people=NAMES, store=tmp_path / "x.db", weights=WEIGHTS) as learner:
        early = [learner.decide(person="ada-l", contexts=np.eye(3)) for _ in range(4)]
        statuses = [learner.learn(each.device.report(1.0)).status for each in early]
        assert statuses == ["learned"] * 3 + ["late"]
        full = learner.decide(person="ada-l", contexts=np.eye(3))
        assert (full.reason, full.instructions) == ("capacity", None)
        assert learner.decide(person="bob-m", contexts=np.eye(3)).reason == ""
        with pytest.raises(ValueError, match="of length <= 1"):
            learner.decide(person="bob-m", contexts=2 * np.eye(3))
        assert learner.counts["late"] == 1
        learner._experiment.verify()


def test_silence_is_one_record_with_the_value_under_noisy_sums(tmp_path):
    policy = summing({"visits": 30})
    with tacit.Learner(
        policy, people=NAMES, store=tmp_path / "x.db", weights=WEIGHTS, report_after=5.0
    ) as learner:
        now = [1_800_000_000_000]
        learner._experiment.clock = lambda: now[0]
        made = [learner.decide(person=NAMES[t % 4], contexts=np.eye(3)) for t in range(8)]
        assert learner.learn(made[0].device.report(1.0)).status == "held"
        now[0] += 66_000
        assert learner.tick() == 8
        assert (learner.counts["learned"], learner.counts["silent"]) == (8, 7)
        learner._experiment.verify()


def test_sums_that_devices_would_keep_and_inexact_noise_are_refused():
    for local in (NoisySums(epsilon=1.0, delta=1e-6, visits=9), Published(epsilon=1.0, horizon=9)):
        with pytest.raises(
            ValueError, match="a device would have to keep its rewards and its noise"
        ):
            tacit.Learner(LinUCB(n_users=2, dimension=2, privacy=local), seed=1)
    ball = NoisySums(epsilon=1.0, horizon=100, trust="central")
    with pytest.raises(ValueError, match="noise that is exact on a secure tape"):
        tacit.Learner(LinUCB(n_users=2, dimension=2, privacy=ball))
    assert tacit.Learner(LinUCB(n_users=2, dimension=2, privacy=ball), seed=1).trust == "central"
    with pytest.raises(ValueError, match="given"):
        tacit.Learner(GOBLin(n_users=2, dimension=2, epsilon=1.0))
