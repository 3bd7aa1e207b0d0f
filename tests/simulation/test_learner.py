"""Policies at work: one step at a time, late, in batches, after a restart."""

import numpy as np
import pytest

import tacit
from tacit.arms import EXP3, GAP, KLUCBCF, SWKLUCBCF, UCB1, Bernoulli, GraphFeedback, Learner
from tacit.arms.tables import reward
from tacit.networks import path
from tacit.users import LinUCB

POLICY = SWKLUCBCF(n_arms=3, horizon=400, window=50, epsilon=1.0)
ENVIRONMENT = Bernoulli(means=(0.2, 0.5, 0.8))


def steps(learner, table, n):
    arms = []
    for _ in range(n):
        decision = learner.select()
        learner.update(decision, float(reward(table, decision.round, decision.arm)))
        arms.append(decision.arm)
    return arms


def test_steps_equal_the_simulation():
    result = tacit.simulate(POLICY, ENVIRONMENT, horizon=400, seed=5, record=True)
    arms = steps(Learner(POLICY, seed=5), ENVIRONMENT.table(5, 0, 400), 400)
    assert arms == result.traces[0].decisions.tolist()


def test_restart_continues_the_trajectory(tmp_path):
    table = ENVIRONMENT.table(5, 0, 400)
    whole = steps(Learner(POLICY, seed=5), table, 400)
    first = Learner(POLICY, seed=5)
    begun = steps(first, table, 150)
    waiting = first.select()
    first.save(tmp_path / "state.npz")
    again = Learner.load(tmp_path / "state.npz", POLICY)
    assert again.open_decisions == 1
    again.update(waiting, float(reward(table, waiting.round, waiting.arm)))
    assert [*begun, waiting.arm, *steps(again, table, 249)] == whole
    assert again.noise_draws == 400


def test_saved_file_is_plain_arrays(tmp_path):
    learner = Learner(POLICY)
    steps(learner, ENVIRONMENT.table(0, 0, 400), 20)
    learner.save(tmp_path / "state.npz")
    with np.load(tmp_path / "state.npz", allow_pickle=False) as arrays:
        assert arrays["counts"].sum() == 20
        assert not any("key" in name for name in arrays), "the tape's key must stay secret"


def test_secure_learners_differ_and_seeded_ones_do_not():
    table = Bernoulli(means=(0.5, 0.5, 0.5)).table(0, 0, 400)
    policy = KLUCBCF(n_arms=3, epsilon=0.5)
    assert steps(Learner(policy, seed=1), table, 200) == steps(Learner(policy, seed=1), table, 200)
    assert steps(Learner(policy), table, 200) != steps(Learner(policy), table, 200)
    assert Learner(policy).numerics == "secure"


STEADY = KLUCBCF(n_arms=3, epsilon=4.0)


@pytest.mark.parametrize("policy", [UCB1(n_arms=3), EXP3(n_arms=3, horizon=400), STEADY])
def test_late_and_batched_rewards(policy):
    table = ENVIRONMENT.table(0, 0, 400)
    learner = Learner(policy, seed=2)
    for _ in range(130):
        batch = [learner.select() for _ in range(3)]
        feedback = [(d, float(reward(table, d.round, d.arm))) for d in reversed(batch)]
        learner.update_many(feedback)
    late = [learner.select().arm for _ in range(10)]
    assert np.bincount(late, minlength=3).argmax() == 2


def test_a_feedback_graph_shows_more_than_was_chosen():
    environment = GraphFeedback(environment=ENVIRONMENT, graph=path(3))
    policy = GAP(n_arms=3, epsilon=2.0, horizon=3000, graph=path(3))
    table = environment.table(4, 0, 3000)
    learner = Learner(policy, seed=4)
    arms = []
    for _ in range(3000):
        decision = learner.select()
        near = table.indices[table.indptr[decision.arm] : table.indptr[decision.arm + 1]]
        rewards = {int(a): float(reward(table, decision.round, a)) for a in near}
        learner.update(decision, rewards.pop(decision.arm), seen=rewards)
        arms.append(decision.arm)
    result = tacit.simulate(policy, environment, horizon=3000, seed=4, record=True)
    assert arms == result.traces[0].decisions.tolist()
    with pytest.raises(ValueError, match="expected seen rewards of arms shown"):
        learner.update(learner.select(), 1.0, seen={3: 0.5})


def test_only_eligible_arms_are_chosen():
    learner = Learner(POLICY, seed=3)
    for _ in range(100):
        decision = learner.select(eligible=[0, 1])
        assert decision.arm in (0, 1)
        learner.update(decision, 0.5)


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan"), float("inf"), "1", None])
def test_rewards_out_of_range_are_refused_and_nothing_is_lost(bad):
    learner = Learner(POLICY, seed=0)
    decision = learner.select()
    with pytest.raises(ValueError, match=r"expected reward in \[0, 1\]"):
        learner.update(decision, bad)
    learner.update(decision, 1.0)


def test_a_decision_counts_once():
    learner = Learner(POLICY, seed=0)
    decision = learner.select()
    learner.update(decision, 1.0)
    with pytest.raises(ValueError, match="is not waiting for a reward"):
        learner.update(decision, 1.0)


@pytest.mark.parametrize("eligible", [[], [3], [-1, 0], [0.5], ["0"]])
def test_impossible_arms_are_refused(eligible):
    with pytest.raises(ValueError, match=r"expected eligible arms in 0\.\.2"):
        Learner(POLICY, seed=0).select(eligible=eligible)


def test_a_policy_of_another_room_is_refused():
    with pytest.raises(ValueError, match="expected policy of the arms setting"):
        Learner(LinUCB(n_users=2, dimension=2), seed=0)


def test_another_policy_cannot_take_over(tmp_path):
    Learner(UCB1(n_arms=3), seed=0).save(tmp_path / "state.npz")
    with pytest.raises(ValueError, match="was it saved by another policy"):
        Learner.load(tmp_path / "state.npz", UCB1(n_arms=4))
    with pytest.raises(ValueError, match="exploration"):
        Learner.load(tmp_path / "state.npz", UCB1(n_arms=3, exploration=1.0))
    (tmp_path / "junk.npz").write_bytes(b"junk")
    with pytest.raises(ValueError, match="not a saved state"):
        Learner.load(tmp_path / "junk.npz", UCB1(n_arms=3))
