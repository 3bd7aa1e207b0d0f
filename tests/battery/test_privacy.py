"""Without noise a policy is its plain twin; its noise is what it declared; the audit believes it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from battery.cases import Case, arrays, assert_same, cases, first_private, play
from tacit.arms import KLUCBCF, Bernoulli
from tacit.contextual import CoLin
from tacit.core.tapes import secure_tape
from tacit.privacy import audit
from tacit.simulation.audits import PolicyRun
from tiers import tiered

every_case = pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)

# Of a true claim refuted by chance, for each audit.
ALPHA = 1e-6


@every_case
def test_without_noise_it_is_the_plain_policy(case):
    for environment, private, plain, tape, plain_tape, rounding in case.setting.silent(case):
        one = play(private, environment, case.rounds, tape=tape)
        two = play(plain, environment, case.rounds, tape=plain_tape)
        assert_same(one.trace, two.trace, rounding)


@every_case
def test_with_noise_it_is_not(case):
    rounds = case.setting.reading(case.kind)
    for environment, _, plain, *_ in case.setting.silent(case):
        noisy, quiet = (
            play(policy, environment, rounds) for policy in (case.build(environment, rounds), plain)
        )
        left, right = arrays(noisy), arrays(quiet)
        assert any(
            name not in right or array.tobytes() != right[name].tobytes()
            for name, array in left.items()
            if not name.startswith(".tape")
        )


@every_case
def test_noise_drawn_is_noise_declared(case):
    environment, policy = case.easy()
    declared = case.setting.noise_draws(case, policy, environment, case.rounds)
    assert play(policy, environment, case.rounds).tape.reads[1] == declared
    result = tacit.simulate(policy, environment, horizon=case.rounds, seed=5)
    assert result.noise_draws.tolist() == [declared]
    assert declared > 0 or policy.guarantee(case.rounds).epsilon in (0.0, math.inf)


@every_case
def test_a_policy_without_noise_claims_nothing_it_cannot_have(case):
    environment, policy = case.easy()
    guarantee = policy.guarantee(case.rounds)
    if (
        case.setting.noise_draws(case, policy, environment, case.rounds) == 0
        and guarantee.basis != "none"
    ):
        # Only a policy whose decisions do not depend on rewards may claim without noise.
        left, right = (play(policy, w, case.rounds) for w in case.setting.relabelled(case.kind))
        assert guarantee.epsilon == 0.0
        assert (left.trace.decisions == right.trace.decisions).all()


def undefined(policy, environment, rounds):
    """Return what is not a number after a run on a secure tape."""
    run = play(policy, environment, rounds, tape=secure_tape(log=500))
    return [name for name, array in arrays(run).items() if np.isnan(array).any()]


@every_case
def test_a_secure_tape_gives_numbers_or_is_refused(case):
    environment, policy = case.easy()
    if policy.secure:
        assert undefined(policy, environment, case.rounds) == []
        return
    with pytest.raises(ValueError, match=rf"^{case.kind.__name__}: .*secure tape"):
        play(policy, environment, case.rounds, tape=secure_tape())
    with pytest.raises(ValueError, match=rf"^{case.kind.__name__}: .*secure tape"):
        PolicyRun(
            policy=policy, environment=environment, horizon=case.rounds, released=1, secure=True
        )


class Careless(CoLin):
    """Noise on sums that claims to have an exact sampler."""

    secure = True


def test_noise_without_an_exact_sampler_is_noticed():
    sums = {"kind": "noisy-sums", "epsilon": 2.0, "trust": "central"}
    case = Case(Careless, {"privacy": sums})
    environment, policy = case.easy()
    assert undefined(policy, environment, 10) != []


class Unknown(KLUCBCF):
    """Says nothing of its mechanisms."""

    mechanisms = None


def test_what_does_not_say_its_mechanisms_is_not_secure():
    environment, policy = Bernoulli(means=(0.3, 0.7)), Unknown(n_arms=2, epsilon=1.0)
    assert not policy.secure
    with pytest.raises(ValueError, match=r"Unknown: .*nobody knows its mechanisms"):
        play(policy, environment, 5, tape=secure_tape())


def outputs(policy, environment, rounds, log, seen):
    """Return what the audit runs: everything released and the decisions that are seen, a row a run."""
    run = PolicyRun(policy=policy, environment=environment, horizon=rounds, released=log)

    def look(table, runs, seed):
        rows = run(table, runs, seed)
        return np.concatenate([rows[:, :log], rows[:, log:][:, seen]], axis=1)

    return look


@pytest.mark.parametrize("case", tiered(cases(), first_private, lambda case: case.name))
def test_the_audit_refutes_only_the_twin_with_half_the_noise(case):
    environment = case.setting.easy(case.kind)
    for left, right, policy, half_noise, rounds, log, seen, runs in case.setting.audited(case):
        claim = policy.guarantee(rounds)
        # Seeded noise is floating point and says so: its low bits are not part of the claim.
        terms = {"epsilon": claim.epsilon, "delta": claim.delta, "low_bits": False}
        terms |= {"runs": runs, "alpha": ALPHA}
        honest = audit(outputs(policy, environment, rounds, log, seen), left, right, **terms)
        assert not honest.refuted, honest.sentence()
        cheat = audit(outputs(half_noise, environment, rounds, log, seen), left, right, **terms)
        assert cheat.refuted, cheat.sentence()
