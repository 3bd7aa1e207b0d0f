"""Noise follows from what was served, not from what a policy would have chosen."""

from __future__ import annotations

import numpy as np
import pytest

import tacit
from tacit.arms import DPIMED, DPKLUCB, GAP, GAPU
from tacit.arms.elimination import PHASE
from tacit.core.tapes import NOISE, seeded_tape
from tacit.graphs import Graph
from tacit.privacy.mechanisms.laplace import standard_laplace

ALONE, HUB, K = 0, 6, 7
STAR = Graph.from_edges([(HUB, leaf) for leaf in range(1, 6)], n_nodes=K)  # and an isolated arm
EPSILON, SEED = 1.0, 4


def play(policy, rounds, *, waits=0, eligible=None, modes=None, **given):
    """Serve `rounds` decisions; return what each round costs and what was served.

    Noise divided by the draw it was made of is its scale, so costs are exact: a round costs the sum of
    1 / scale over the blocks its rewards went into.
    """
    learner = tacit.Learner(policy, seed=SEED, **given)
    blocks = learner._core.decider.state.blocks
    rng, tape = np.random.default_rng(SEED), seeded_tape(SEED)
    rewards = rng.random((rounds, K))
    open_blocks = [[] for _ in range(K)]  # (round, reward) of each reward
    cost, served, waiting, sums = np.zeros(rounds), [], [], np.zeros(K)
    for t in range(rounds):
        if modes and t in modes:
            learner.set_mode(modes[t])
        may = None if eligible is None else eligible[t % len(eligible)]
        decision = learner.decide(eligible=may)
        for arm in np.flatnonzero(blocks.sums != sums):
            true = sum(reward for _, reward in open_blocks[arm])
            draw = standard_laplace(tape, t, int(arm), NOISE)
            scale = (blocks.sums[arm] - sums[arm] - true) / draw
            for when, _ in open_blocks[arm]:
                cost[when] += 1.0 / scale
            open_blocks[arm] = []
        sums = blocks.sums.copy()
        served.append(int(decision.option))
        waiting.append((t, decision))
        while len(waiting) > waits:
            when, late = waiting.pop(rng.integers(len(waiting)))
            shown = sorted(policy.shown_with(int(late.option)))
            value = {arm: float(rewards[when, arm]) for arm in shown}
            receipt = learner.learn({"v": 1, "id": late.id, "value": value})
            assert receipt.status == "learned"
            for arm in shown:
                open_blocks[arm].append((when, rewards[when, arm]))
    return cost, served


# Finding P1
@pytest.mark.parametrize("kind", [DPIMED, DPKLUCB])
@pytest.mark.parametrize(
    "given",
    [
        {"mode": "shadow", "baseline": HUB},
        {"explore": 0.7},
        {"mode": "shadow", "baseline": HUB, "waits": 9},
        {"explore": 0.7, "waits": 9, "eligible": [None, [1, 2, ALONE], [HUB, ALONE]]},
        {"baseline": HUB, "modes": {20: "shadow", 120: "learn", 200: "shadow"}},
    ],
    ids=["shadow", "explore", "late", "subsets", "changes"],
)
def test_a_served_round_costs_at_most_what_is_stated(kind, given):
    policy = kind(n_arms=K, epsilon=EPSILON, unit="round", graph=STAR)
    cost, served = play(policy, 300, **given)
    assert HUB in served
    assert cost.max() == pytest.approx(EPSILON)  # never more, and the noise is not wasted


def test_the_noise_of_one_reward_does_not_hide_a_round_of_the_hub():
    """The twin: what the policy of 0.2.0 drew when it wished for one arm and the hub was served."""
    policy = DPIMED(n_arms=K, epsilon=EPSILON, unit="reward", graph=STAR)
    cost, _ = play(policy, 300, mode="shadow", baseline=HUB)
    assert cost.max() == pytest.approx(6 * EPSILON)


@pytest.mark.parametrize("kind", [GAP, GAPU])
def test_eliminations_refuse_what_others_choose(kind):
    policy = kind(n_arms=K, horizon=99, unit="round", graph=STAR)
    with pytest.raises(ValueError, match="learns only from arms that it chose itself"):
        tacit.Learner(policy, explore=0.1)
    with pytest.raises(ValueError, match="learns only from arms that it chose itself"):
        tacit.Learner(policy, seed=SEED).set_mode("shadow")


@pytest.mark.parametrize("kind", [GAP, GAPU])
def test_an_elimination_that_is_told_of_another_arm_hides_its_round(kind):
    """Whoever gets past that refusal is no worse off: the noise is for the hub, which was served."""
    policy = kind(
        n_arms=K, epsilon=EPSILON, horizon=99, failure_prob=0.99, unit="round", graph=STAR
    )
    decider, tape = policy.decider(), seeded_tape(SEED)
    state, everything, t = decider.state, decider.asked({}), 0
    while True:
        decider.choose(tape, t, everything)
        if state.now[PHASE] == 2:
            break
        arm = HUB if t < 5 else [ALONE, *range(1, 6)][t % 6]
        seen = dict.fromkeys(sorted(policy.shown_with(arm)), 0.5)
        decider.learn(tape, t, arm, None, seen)
        counts = state.counts.copy()
        t += 1
    draws = np.array([standard_laplace(tape, t, a, NOISE) for a in range(K)])
    hub = sorted(policy.shown_with(HUB))
    cost = np.sum(draws[hub] / (state.means[hub] - 0.5) / counts[hub])
    assert cost <= EPSILON * (1 + 1e-9)
