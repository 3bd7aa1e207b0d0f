"""GAP's guarantee as a value, and the audit that tries to break it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tacit.arms import (
    DPSE,
    GAP,
    GAPU,
    Bernoulli,
    GraphFeedback,
    Recorded,
    TruncatedNormal,
    edit_rewards,
)
from tacit.arms.elimination import PHASE, WANTED
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import NOISE, SUBSET, recorded_tape, secure_tape, seeded_tape
from tacit.graphs import Graph, complete, path
from tacit.privacy import audit
from tacit.privacy.block_sums import on_grid
from tacit.simulation.audits import PolicyRun

K = 3
RUNS = 12_000
# Three arms and a failure probability near 1 make the first phase as short as it gets.
SHORT = {"n_arms": K, "horizon": 2000, "failure_prob": 0.99}
slow = pytest.mark.skipif(INTERPRETED, reason="thousands of runs need compiled kernels")


def outputs(policy, rounds):
    """Return what the audit runs: the noised means of the first phase and the decision after it."""

    environment = Bernoulli(means=(0.5,) * K)
    play = PolicyRun(policy=policy, environment=environment, horizon=rounds, released=K)

    def run(table, runs, seed):
        return play(table, runs, seed)[:, [*range(K), -1]]

    return run


def audited(policy, graph, changed, claim):
    """Audit one phase of `policy` on tables that differ in the rewards `changed` of round 0."""
    table = GraphFeedback(environment=Bernoulli(means=(0.5,) * K), graph=graph).table(1, 0, 2000)
    left, right = (edit_rewards(table, [(0, a, value) for a in changed]) for value in (0.0, 1.0))
    state = policy.start(table)
    policy.select(state, seeded_tape(0), 0, np.arange(K))
    rounds = int(state.now[WANTED] * state.chosen.sum()) + 1
    return audit(
        outputs(policy, rounds), left, right, epsilon=claim, runs=RUNS, alpha=1e-6, low_bits=False
    )


@slow
@pytest.mark.parametrize("noise", ["published", "tight"])
def test_the_audit_does_not_refute_gap(noise):
    result = audited(GAP(epsilon=1.0, noise=noise, **SHORT), path(K), [1], 1.0)
    assert not result.refuted, result.sentence()


@slow
def test_the_audit_refutes_half_the_noise():
    result = audited(GAP(epsilon=2.0, noise="tight", **SHORT), path(K), [1], 1.0)
    assert result.refuted, result.sentence()


@slow
def test_the_audit_refutes_a_whole_round_under_the_noise_of_a_reward():
    everyone = list(range(K))
    cheat = audited(GAP(epsilon=1.0, **SHORT), complete(K), everyone, 1.0)
    assert cheat.refuted, cheat.sentence()
    honest = audited(GAP(epsilon=1.0, unit="round", **SHORT), complete(K), everyone, 1.0)
    assert not honest.refuted, honest.sentence()


def shifts(policy, graph, changed):
    """Return by how much the means of the first phase move, in units of their noise's scale."""
    table = GraphFeedback(environment=Bernoulli(means=(0.5,) * K), graph=graph).table(1, 0, 2000)
    means = []
    for u, value in ((0.5, 0.0), (0.5, 1.0), (0.25, 0.0)):
        state, t = (
            policy.start(neighbour := edit_rewards(table, [(0, a, value) for a in changed])),
            0,
        )
        sets, noise = np.full((2001, K), 0.5), np.full((2001, K), u)
        tape = recorded_tape({SUBSET: sets, NOISE: noise})
        trace = Bernoulli(means=(0.5,) * K).trace(2000, np.array([2000]))
        while state.now[PHASE] < 2:
            policy.play(state, neighbour, tape, trace, t, t + 1)
            t += 1
        means.append(state.means.copy())
    scale = np.abs(means[2] - means[0]) / np.log(2.0)
    return np.abs(means[1] - means[0]) / scale


@pytest.mark.parametrize("noise", ["published", "tight"])
@pytest.mark.parametrize("kind", [GAP, GAPU])
@pytest.mark.parametrize(
    "graph", [path(K), complete(K), Graph.from_edges([], n_nodes=K)], ids=["path", "clique", "none"]
)
def test_the_shift_of_the_means_is_within_epsilon(kind, graph, noise):
    one = kind(epsilon=0.7, noise=noise, **SHORT)
    for a in range(K):
        assert shifts(one, graph, [a]).sum() <= 0.7 + 1e-9
    whole = dataclasses.replace(one, unit="round")
    assert shifts(whole, graph, list(range(K))).sum() <= 0.7 + 1e-9
    if graph == complete(K):
        # The bounds are met, and a reward's noise does not hide a round of a clique.
        assert shifts(one, graph, [0]).sum() == pytest.approx(0.7)
        assert shifts(whole, graph, list(range(K))).sum() == pytest.approx(0.7)
        assert shifts(one, graph, list(range(K))).sum() == pytest.approx(2.1)


def test_dpse_sees_one_reward_a_round():
    policy = DPSE(epsilon=0.7, **SHORT)
    assert shifts(policy, complete(K), list(range(K))).sum() == pytest.approx(0.7)


@pytest.mark.parametrize("unit", ["reward", "round"])
def test_the_guarantee_names_its_unit(unit):
    guarantee = GAP(n_arms=4, epsilon=0.3, horizon=1000, unit=unit).guarantee(1000)
    assert (guarantee.epsilon, guarantee.delta) == (pytest.approx(0.3), 0.0)
    assert (guarantee.unit, guarantee.trust, guarantee.span) == (unit, "central", "run")
    assert guarantee.claim.holds
    assert guarantee.claim.unit == "reward"


def test_secure_noise_runs_and_is_counted():
    policy, tape = GAP(epsilon=1.0, **SHORT), secure_tape(log=K)
    environment = GraphFeedback(environment=Bernoulli(means=(0.5,) * K), graph=complete(K))
    table, trace = environment.table(0, 0, 500), environment.trace(500, np.array([500]))
    state = policy.start(table)
    policy.play(state, table, tape, trace, 0, 500)
    assert tape.reads[1] == K
    counts = tape.log / state.means  # sums are released, so that their noise is on a grid
    np.testing.assert_allclose(counts, counts[0], rtol=1e-12)
    assert counts[0] == pytest.approx(round(counts[0]))
    assert counts[0] > 100  # of means it would be 1


# Four rounds are taken in at once where the table allows it, and one by one where it does not.
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("kind", [GAP, GAPU, DPSE])
def test_on_a_secure_tape_rewards_are_added_up_in_whole_steps(kind, at_once):
    environment = TruncatedNormal(means=(0.4,) * K)
    if not at_once:
        environment = Recorded(data=np.random.default_rng(0).random((90, K)))
    table = GraphFeedback(environment=environment, graph=complete(K)).table(0, 0, 90)
    policy, trace = kind(epsilon=1.0, **SHORT), environment.trace(90, np.array([90]))
    sums = {}
    for name, tape in (("secure", secure_tape()), ("seeded", seeded_tape(0))):
        state = policy.start(table)
        policy.play(state, table, tape, trace, 0, 90)
        sums[name] = state.sums[state.counts > 0] * 2**20
        assert sums[name].size > 0
    assert (sums["secure"] == np.rint(sums["secure"])).all()
    assert (sums["seeded"] != np.rint(sums["seeded"])).any()


def test_on_a_secure_tape_sums_are_exact_in_any_order():
    # In floating point the same tiny rewards after a million others are lost (finding P14).
    tape = secure_tape()
    few = [on_grid(tape, r) for r in (1 / 3, 0.1, 1e-9, 2 / 3)]
    assert all(float(r * 2**20).is_integer() for r in few)
    total = 2.0**30
    for r in few:
        total += r
    assert total - 2.0**30 == sum(reversed(few))
    assert on_grid(seeded_tape(0), 0.1) == 0.1
