"""Without noise a policy is its plain twin; its noise is what it declared; the audit believes it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from battery.cases import ROUNDS, arrays, assert_same, cases, play
from tacit.privacy import audit
from tacit.tapes import seeded_tape

every_case = pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)

RUNS = 2000
# Of a true claim refuted by chance, for each audit.
ALPHA = 1e-6


@every_case
def test_without_noise_it_is_the_plain_policy(case):
    for world, private, plain, tape in case.room.silent(case):
        one = play(private, world, ROUNDS, tape=tape)
        assert_same(one.trace, play(plain, world, ROUNDS, tape=tape).trace)


@every_case
def test_with_noise_it_is_not(case):
    for world, _, plain, _ in case.room.silent(case):
        noisy = play(case.build(world, 400), world, 400)
        quiet = play(plain, world, 400)
        assert any(
            array.tobytes() != arrays(quiet.trace)[name].tobytes()
            for name, array in arrays(noisy.trace).items()
        )


@every_case
def test_noise_drawn_is_noise_declared(case):
    world, policy = case.easy()
    declared = case.room.noise_draws(case, policy, world, ROUNDS)
    assert play(policy, world, ROUNDS).tape.reads[1] == declared
    result = tacit.simulate(policy, world, horizon=ROUNDS, repetitions=2, threads=1)
    assert result.noise_draws.tolist() == [declared, declared]
    assert declared > 0 or policy.guarantee(ROUNDS).epsilon in (0.0, math.inf)


@every_case
def test_a_policy_without_noise_claims_nothing_it_cannot_have(case):
    world, policy = case.easy()
    guarantee = policy.guarantee(ROUNDS)
    if case.room.noise_draws(case, policy, world, ROUNDS) == 0 and guarantee.basis != "none":
        # Only a policy whose decisions do not depend on rewards may claim without noise.
        left, right = (play(policy, w, ROUNDS) for w in case.room.relabelled(case.kind))
        assert guarantee.epsilon == 0.0
        assert (left.trace.decisions == right.trace.decisions).all()


def outputs(policy, world, rounds, log):
    """Return what the audit runs: everything released and every decision, one row a run."""

    def run(table, runs, seed):
        checkpoints = np.array([rounds])
        rows = []
        for i in range(runs):
            tape = seeded_tape(seed, i, log=log)
            trace = world.trace(rounds, checkpoints, record=True)
            policy.play(policy.start(table), table, tape, trace, 0, rounds)
            rows.append(np.concatenate([tape.log, decisions(trace)]))
        return np.array(rows, dtype=float)

    return run


def decisions(trace):
    return np.ravel(trace.decisions if hasattr(trace, "decisions") else trace.choices)


@every_case
def test_the_audit_refutes_only_the_twin_with_half_the_noise(case):
    world = case.room.easy(case.kind)
    for left, right, policy, half_noise, rounds, log in case.room.audited(case):
        claim = policy.guarantee(rounds)
        # Seeded noise is floating point and says so: its low bits are not part of the claim.
        terms = {"epsilon": claim.epsilon, "delta": claim.delta, "low_bits": False}
        terms |= {"runs": RUNS, "alpha": ALPHA}
        honest = audit(outputs(policy, world, rounds, log), left, right, **terms)
        assert not honest.refuted, honest.sentence()
        cheat = audit(outputs(half_noise, world, rounds, log), left, right, **terms)
        assert cheat.refuted, cheat.sentence()
