"""Exact audits: every discrete policy of the registry costs what it states, and half the noise more."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from battery.cases import LIKE, Case, cases
from battery.small_games import less_private
from tacit.arms import GAP, KLUCBCF, UCB1, Bernoulli, Corruption
from tacit.cli import app
from tacit.contextual import Synthetic
from tacit.diffusion import ChangingTruth
from tacit.dynamics import SocialOptions
from tacit.graphs import complete
from tacit.privacy import NeighbouringPair
from tacit.privacy.auditing.enumeration import (
    ContinuousDrawError,
    Draws,
    enumerate_outputs,
    exact_audit,
)
from tacit.privacy.auditing.mechanisms import build_mechanism, mechanism_kinds
from tacit.simulation.audits import neighbours_of, releasing_horizon
from tacit.simulation.exact_audits import audit_exactly, audit_mechanism_exactly
from tiers import tiered

FINITE = {
    "asymmetric-response": {"keep_one": 0.75, "keep_zero": 0.6},
    "k-ary-response": {"epsilon": 1.0, "options": 4},
    "piecewise": {"epsilon": 1.0},
    "randomized-response": {"epsilon": 1.0},
    "shuffled-bits": {"epsilon": 1.0, "reports": 4},
    "subset-selection": {"epsilon": 1.0, "options": 5},
    "unary-encoding": {"epsilon": 1.0, "options": 3},
}
"""Mechanisms of few outcomes."""
NOISY = {
    "clamped-laplace": {"epsilon": 1.0, "low": -1.0, "high": 2.0},
    "laplace": {"epsilon": 1.0},
}
"""Discrete Laplace noise, which is tried at a few values and bounded at all others."""
OTHERS = {
    "binary-tree": {"epsilon": 1.0, "horizon": 2},
    "square-root-toeplitz": {"epsilon": 1.0, "delta": 1e-6, "horizon": 2},
    "bounded-noise": {"epsilon": 1.0, "bound": 6.0},
    "gaussian": {"epsilon": 1.0, "delta": 1e-6},
    "gaussian-moments": {"epsilon": 1.0, "delta": 1e-6, "dimension": 2},
    "l2-ball": {"epsilon": 1.0, "dimension": 2},
    "l2-calibrated-laplace": {"epsilon": 1.0, "dimension": 2},
    "staircase": {"epsilon": 1.0},
}
"""From a continuum, from a fine grid, or of several noises that are added up."""
LEFT_OUT = {
    "gapu": "its random sets compare draws with each other; its noise and phases are those of gap",
    "lazy-dp-ts": "it decides by samples of a normal distribution",
    "engine=crowd": "the numbers of messages are drawn as whole binomials",
    "'kind': 'published'": "its noise is not discrete",
    "outsiders-epsilon=1.0-variant=published": "its noise is not discrete",
    "'kind': 'noisy-sums'": "released sums hold several noises, or Gaussian ones of unbounded loss",
    "private-contexts": "Gaussian noise has an unbounded loss",
    "fed-ucb": "Gaussian noise has an unbounded loss",
}
"""Private policies that are not enumerated, by what their cases' names contain, and why."""
PATIENT = ("gap", "dpse")
"""Policies that release nothing in three rounds, and are followed until they do, on one pair of tables."""
SMALL = {
    "arms": (Bernoulli(means=(0.3, 0.7)), {"block": 2}, 3),
    "users": (Synthetic(n_users=1, dimension=2, n_items=1, n_shown=1), {}, 1),
    "diffusion": (ChangingTruth(n_states=2, network=complete(1)), {"block": 1}, 1),
    "dynamics": (SocialOptions(qualities=(0.9, 0.1), network=complete(1)), {"tokens": 1}, 1),
}
BERNOULLI = SMALL["arms"][0]


def small(case: Case):
    environment, changes, horizon = SMALL[case.kind.setting]
    known = {f.name for f in dataclasses.fields(case.kind)}
    changes = {name: value for name, value in changes.items() if name in known}
    return environment, case.build(environment, horizon, **changes), horizon


def private_cases():
    """Every case of the registry that states a finite epsilon."""
    found = []
    for case in cases():
        _, policy, horizon = small(case)
        guarantee = policy.guarantee(horizon)
        if guarantee.private and 0 < guarantee.epsilon < math.inf:
            found.append(case)
    return found


def left_out(case: Case) -> bool:
    return any(f"-{words}" in f"-{case.name}" or words in case.name for words in LEFT_OUT)


def test_every_mechanism_is_known_to_be_finite_or_not():
    assert {*FINITE, *NOISY, *OTHERS} == set(mechanism_kinds())


@pytest.mark.parametrize("name", FINITE)
def test_a_finite_mechanism_costs_what_its_release_says(name):
    mechanism = build_mechanism(name, FINITE[name])
    found = audit_mechanism_exactly(mechanism)
    assert not found.refuted, found.sentence()
    assert found.found == pytest.approx(mechanism.release.epsilon, rel=1e-9)
    for epsilon in (0.0, 0.3 * found.found, found.found):
        assert found.delta_at(epsilon) == pytest.approx(mechanism.release.delta(epsilon), abs=1e-9)
    assert audit_mechanism_exactly(mechanism, epsilon=found.found / 2).refuted


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 9.0, 30.0])
def test_the_ends_of_the_range_of_epsilon_hold_too(epsilon):
    for name in ("randomized-response", "unary-encoding", "subset-selection", "k-ary-response"):
        options = {} if name == "randomized-response" else {"options": 3}
        found = audit_mechanism_exactly(build_mechanism(name, {"epsilon": epsilon, **options}))
        assert found.found <= epsilon * (1 + 1e-9), (name, found.found)


@pytest.mark.parametrize("name", OTHERS)
def test_any_other_mechanism_is_refused_and_not_guessed(name):
    with pytest.raises(ContinuousDrawError, match="audit by sampling"):
        audit_mechanism_exactly(build_mechanism(name, OTHERS[name]))


@pytest.mark.parametrize("name", NOISY)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 9.0])
def test_laplace_noise_costs_what_its_grid_says(name, epsilon):
    mechanism = build_mechanism(name, NOISY[name] | {"epsilon": epsilon})
    found = audit_mechanism_exactly(mechanism)
    assert found.noisy
    assert found.found == found.most
    # The release allows for one step more, by which rounding may move a value.
    release = mechanism.secure_release
    assert found.found == pytest.approx((release.steps - 1) / release.scale, rel=1e-12)
    assert epsilon * (1 - 2e-3) < found.found < release.epsilon <= epsilon
    assert found.delta_at(epsilon) == 0.0
    assert math.isnan(found.delta_at(epsilon / 2))
    assert audit_mechanism_exactly(mechanism, epsilon=0.99 * epsilon).refuted


PRIVATE = private_cases()


def is_quick(case: Case) -> bool:
    """Of a family one policy, of one that is followed for long its first case; no report of many values."""
    first = next(each for each in PRIVATE if each.kind is case.kind)
    short = case.kind.name not in PATIENT or case is first
    return case.kind.name not in LIKE and short and "piecewise" not in case.name


@pytest.mark.parametrize("case", tiered(PRIVATE, is_quick, lambda case: case.name))
def test_every_discrete_policy_costs_exactly_what_it_states(case):
    environment, policy, horizon = small(case)
    if left_out(case):
        with pytest.raises(ContinuousDrawError):
            audit_exactly(policy, environment, horizon=horizon)
        return
    stated = policy.guarantee(horizon)
    terms = {"horizon": horizon, "epsilon": stated.epsilon, "delta": stated.delta}
    if case.kind.name in PATIENT:
        assert audit_exactly(policy, environment, horizon=horizon).verdict == "nothing was released"
        rounds = releasing_horizon(lambda h: case.build(environment, h), environment)
        policy = case.build(environment, rounds)
        pairs = neighbours_of(environment, rounds, unit=stated.unit, limit=1)
        terms |= {"horizon": rounds, "pairs": pairs}
    found = audit_exactly(policy, environment, **terms)
    assert found.verdict == "true of this game", found.sentence()
    assert found.most == found.found
    # Whole steps of a grid, and what is calibrated to a delta, may be a little more private.
    near = 1e-4 if found.noisy or stated.delta > 0 else 1e-9
    assert found.found == pytest.approx(stated.epsilon, rel=near)
    cheat = audit_exactly(less_private(policy), environment, **terms)
    assert cheat.verdict == "refuted", cheat.sentence()


def test_whoever_is_left_out_is_in_the_registry_and_the_page_names_it():
    names = [case.name for case in PRIVATE]
    for words in LEFT_OUT:
        assert any(words in name for name in names), words
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    for name in ("gapu", "lazy-dp-ts", "crowd", "published", "noisy-sums"):
        assert f"`{name}`" in page


def test_noise_with_more_in_it_than_a_centre_is_found_out():
    """Centres off the grid tell themselves; a decision by the reward tells all; a scale by it, far out."""

    def off_grid(secret, draws):
        return (draws.noise(10) * Fraction(1, 8) + secret * Fraction(1, 3)).release()

    def peeking(secret, draws):
        return draws.noise(10).release(), secret

    def scaled(secret, draws):
        return draws.noise(10 + secret).release()

    def honest(secret, draws):
        return (draws.noise(10) + 4 * secret).release(), (draws.noise(20) + secret).release()

    pair = [NeighbouringPair(0, 1, "0 against 1")]
    for cheat in (off_grid, peeking, scaled):
        assert exact_audit(cheat, pair, epsilon=3.0).found == math.inf
    found = exact_audit(honest, pair, epsilon=0.45)
    assert found.found == found.most == pytest.approx(0.45, rel=1e-12)
    assert found.verdict == "true of this game"
    with pytest.raises(ValueError, match="expected delta 0 where there is Laplace noise"):
        exact_audit(honest, pair, epsilon=0.45, delta=0.1)


def test_noise_in_a_bound_of_its_own_is_one_output():
    """Clamped at 2 steps beyond the centres 0 and 1: the atoms' probabilities are sums of a geometric row."""

    def clamped(secret, draws):
        value = min(max(draws.noise(4) + secret, -2), 3)
        return value if isinstance(value, int) else value.release()

    found = exact_audit(clamped, [NeighbouringPair(0, 1, "0 against 1")], epsilon=0.25)
    assert found.found == found.most == 0.25
    with pytest.raises(ContinuousDrawError, match="compared before it is released"):
        enumerate_outputs(lambda draws: draws.noise(4) < 1, noises={})


def test_probabilities_are_those_of_the_binomial_written_out():
    """Two draws of a quarter: (1/4)^2, twice 3/16, 9/16, without any rounding."""

    def hits(draws: Draws) -> int:
        return draws.happens(0.25) + draws.happens(Fraction(1, 4))

    ninth = enumerate_outputs(hits)
    assert ninth == {2: Fraction(1, 16), 1: Fraction(6, 16), 0: Fraction(9, 16)}


def test_a_draw_can_be_scaled_compared_and_rounded_down():
    def number(draws: Draws) -> int:
        u = draws.uniform()
        if u < np.float64(0.5):
            return int((u - 0.25) * 8 + 2)
        return 10 + (1.0 - u) // 0.25

    assert enumerate_outputs(number) == {
        **{n: Fraction(1, 8) for n in range(4)},
        10: Fraction(1, 4),
        11: Fraction(1, 4),
    }


def test_what_cannot_be_followed_is_refused():
    for use in (float, math.log, lambda u: u * u, np.log, lambda u: int(u * 10**6)):
        with pytest.raises(ContinuousDrawError):
            enumerate_outputs(lambda draws, use=use: use(draws.uniform()))
    with pytest.raises(ValueError, match="at most 1,000 paths"):
        enumerate_outputs(lambda draws: tuple(draws.happens(0.5) for _ in range(16)), limit=1000)


def test_what_only_one_input_can_show_has_no_epsilon():
    found = exact_audit(
        lambda secret, draws: secret if draws.happens(0.01) else -1,
        [NeighbouringPair(0, 1, "0 against 1")],
        epsilon=3.0,
    )
    assert found.found == math.inf
    assert found.excess == pytest.approx(0.01)
    within = exact_audit(
        lambda secret, draws: secret if draws.happens(0.01) else -1,
        [NeighbouringPair(0, 1, "0 against 1")],
        epsilon=3.0,
        delta=0.01,
    )
    assert within.verdict == "true of this game"


def test_a_policy_without_noise_has_no_epsilon_and_one_that_waits_released_nothing():
    assert audit_exactly(UCB1(n_arms=2), BERNOULLI, epsilon=1.0).found == math.inf
    gap = GAP(n_arms=2, epsilon=1.0, horizon=2000)
    assert audit_exactly(gap, BERNOULLI).verdict == "nothing was released"


def test_arms_with_responses_of_their_own_cost_what_the_worst_one_costs():
    corruption = Corruption(values=((0.25, 0.75), (0.9, 0.6)))
    policy = KLUCBCF(n_arms=2, corruption=corruption)
    found = audit_exactly(policy, BERNOULLI, horizon=2)
    assert found.found == pytest.approx(math.log(0.4 / 0.1), rel=1e-9)
    assert found.found == pytest.approx(policy.guarantee(2).epsilon, rel=1e-9)


def test_too_large_a_table_is_refused_before_it_is_tried():
    with pytest.raises(ValueError, match="horizon <= 4 for 2 arms"):
        audit_exactly(KLUCBCF(n_arms=2, epsilon=1.0), BERNOULLI, horizon=5)


def test_the_command_line_says_it_in_one_sentence_and_by_its_exit_code():
    def run(*words):
        return CliRunner().invoke(app, ["audit", *words, "--exact"])

    done = run("klucb-cf:epsilon=1", "--horizon", "2")
    assert done.exit_code == 0
    assert "epsilon is exactly 1 over all 32 pairs" in done.output
    assert run("klucb-cf:epsilon=2", "--horizon", "2", "--epsilon", "1").exit_code == 1
    assert run("gap:epsilon=1").exit_code == 3
    done = run("unary-encoding:epsilon=1,options=3", "--json")
    assert json.loads(done.output)["verdict"] == "true of this game"
    done = run("laplace:epsilon=1")
    assert "epsilon is exactly 0.999998" in done.output
    assert "Laplace noise was tried at a few values" in done.output
    for words in (["staircase:epsilon=1"], ["klucb-cf:epsilon=1", "--runs", "10"]):
        assert isinstance(run(*words).exception, ValueError)
