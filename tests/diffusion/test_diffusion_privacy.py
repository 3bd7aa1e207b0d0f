"""Guarantees of the diffusion bandits: the numbers, and that secrets pass through releases only."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from tacit.core.registry import build_pair
from tacit.core.tapes import CHOICE, NOISE, SIGNAL, recorded_tape, seeded_tape
from tacit.diffusion import (
    ChangingTruth,
    DiffusionBandit,
    OutsiderPrivateDiffusion,
    SpyPrivateDiffusion,
    edit_losses,
    edit_signals,
)

T = 40


def beliefs(policy, table, tape, environment):
    trace = environment.trace(T, np.arange(1, T + 1), record=True)
    policy.play(policy.start(table), table, tape, trace, 0, T)
    return trace.beliefs


@pytest.mark.parametrize(("b", "delta"), [(math.log(400), 2.63e-3), (math.log(500), 2.11e-3)])
def test_the_published_noise_has_a_delta(b, delta):
    policy = OutsiderPrivateDiffusion(
        n_states=5, epsilon=0.1, variant="published", noise_bound=b / 0.1
    )
    guarantee = policy.guarantee(500)
    assert guarantee.delta == pytest.approx(delta, abs=0.005e-3)
    assert guarantee.epsilon == pytest.approx(0.1)
    assert guarantee.claim is not None
    assert not guarantee.claim.holds
    for larger in (0.2, 1.0, 10.0):
        assert math.isclose(policy.loss_release.delta(larger), guarantee.delta, rel_tol=1e-9)


def test_published_messages_protect_nothing():
    policy = SpyPrivateDiffusion(n_states=5, epsilon=0.1, variant="published", horizon=500)
    guarantee = policy.guarantee(500)
    assert not guarantee.private
    assert "90.5%" in guarantee.note
    assert "0.99999" in guarantee.note
    assert policy.signal_release.delta(0.1) >= 0.9
    tape = seeded_tape(1, log=3 * 6 * T)
    environment = ChangingTruth()
    table = environment.table(1, 0, T)
    beliefs(policy, table, tape, environment)
    # 3 agents, 5 probabilities: of each message some coordinate is a probability plus 1/2.
    log = tape.log.reshape(T, 18)[:, :15].reshape(T * 3, 5)
    shown = ((log - 0.5 >= 0) & (log - 0.5 <= 1)).any(axis=1)
    assert shown.mean() > 0.99


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("block", [1, 2, 9, 100])
def test_one_loss_moves_a_report_by_epsilon_and_no_more(epsilon, block):
    """Every pair of neighbouring blocks, enumerated; a slightly truer report would break it."""
    policy = OutsiderPrivateDiffusion(n_states=5, epsilon=epsilon, block=block)

    def worst(flip):
        one = flip + (1 - 2 * flip) * np.arange(block + 1) / block
        return max(abs(np.diff(np.log(one))).max(), abs(np.diff(np.log(1 - one))).max())

    flip = policy.params.flip
    assert worst(flip) <= epsilon
    assert worst(flip) == pytest.approx(epsilon, rel=1e-9)
    assert worst(0.99 * flip) > epsilon
    one, zero = 1 - flip, flip
    assert policy.block_release.epsilon == pytest.approx(math.log(one / zero), rel=1e-9)


@pytest.mark.parametrize("mechanism", ["response", "laplace"])
def test_the_corrected_guarantee_is_pure_for_the_whole_run(mechanism):
    policy = OutsiderPrivateDiffusion(n_states=5, epsilon=0.1, mechanism=mechanism)
    for horizon in (10, 5000):
        guarantee = policy.guarantee(horizon)
        assert (guarantee.epsilon, guarantee.delta) == (pytest.approx(0.1), 0.0)
        assert (guarantee.unit, guarantee.trust, guarantee.span) == ("loss", "local", "run")
    with pytest.raises(ValueError, match="releases"):
        guarantee.for_user(rounds=100)


@pytest.mark.parametrize("mechanism", ["response", "laplace"])
def test_sharing_seldom_spends_less(mechanism):
    """At the same cost of a report, an agent's whole history costs once a block, not once a round."""
    settings = {"n_states": 5, "report_epsilon": 0.8, "signal_epsilon": 0.1, "mechanism": mechanism}
    often = SpyPrivateDiffusion.with_report_epsilon(block=1, **settings)
    seldom = SpyPrivateDiffusion.with_report_epsilon(block=50, **settings)
    assert often.history_guarantee(500).epsilon == pytest.approx(500 * 0.9)
    assert seldom.history_guarantee(500).epsilon == pytest.approx(10 * 0.9)
    assert seldom.history_guarantee(500).unit == "agent"
    assert seldom.guarantee(500).epsilon < often.guarantee(500).epsilon
    delta = 1e-6
    often, seldom = (p.history_guarantee(500, delta=delta).epsilon for p in (often, seldom))
    assert seldom < 0.2 * often


def test_a_longer_block_at_the_same_epsilon_tells_more_in_one_report():
    short = OutsiderPrivateDiffusion(n_states=5, epsilon=0.1, block=1)
    long = OutsiderPrivateDiffusion(n_states=5, epsilon=0.1, block=50)
    assert short.guarantee(500).epsilon == pytest.approx(long.guarantee(500).epsilon)
    report = math.log(1 + 50 * math.expm1(0.1))
    assert long.history_guarantee(500).epsilon == pytest.approx(10 * report)
    assert short.history_guarantee(500).epsilon == pytest.approx(500 * 0.1)


def test_500_published_rounds_show_some_loss_to_73_percent():
    policy = OutsiderPrivateDiffusion(
        n_states=5, epsilon=0.1, variant="published", noise_bound=math.log(400) / 0.1
    )
    at_larger = policy.loss_release.delta(5.0)
    assert 1 - (1 - at_larger) ** 500 == pytest.approx(0.73, abs=0.01)


CORRECTED = [
    OutsiderPrivateDiffusion(n_states=5, epsilon=0.5),
    SpyPrivateDiffusion(n_states=5, epsilon=0.5, block=1),
]


@pytest.mark.parametrize("policy", CORRECTED, ids=lambda p: p.name)
def test_a_loss_passes_through_its_report_only(policy):
    """On a tape whose noise drowns every report, changing all losses changes no belief at all."""
    environment = ChangingTruth()
    table = environment.table(2, 0, T)
    other = edit_losses(
        table, [(t, k, s, 0.5) for t in range(T) for k in range(3) for s in range(5)]
    )
    rng = np.random.default_rng(3)
    uniforms = {purpose: rng.random((T, 3)) for purpose in (CHOICE, NOISE, SIGNAL)}
    uniforms[NOISE] = np.where(uniforms[NOISE] < 0.5, 0.001, 0.999)
    same = [beliefs(policy, each, recorded_tape(uniforms), environment) for each in (table, other)]
    np.testing.assert_array_equal(*same)
    plain = DiffusionBandit(n_states=5, rates="adaptive")
    differ = [beliefs(plain, each, recorded_tape(uniforms), environment) for each in (table, other)]
    assert np.abs(differ[0] - differ[1]).max() > 0.01


def test_a_signal_passes_through_what_is_told_only():
    """Signals moved within the cell of their nearest state change nothing, except in the open."""
    environment = ChangingTruth()
    table = environment.table(2, 0, T)
    entries = [(t, k, 2.3) for t in range(T) for k in range(3)]
    moved = [(t, k, 1.7) for t, k, _ in entries]
    pair = [edit_signals(table, entries), edit_signals(table, moved)]
    hidden, shown = CORRECTED[1], dataclasses.replace(CORRECTED[0], block=1)
    a, b = (beliefs(hidden, each, seeded_tape(4), environment) for each in pair)
    np.testing.assert_array_equal(a, b)
    a, b = (beliefs(shown, each, seeded_tape(4), environment) for each in pair)
    assert np.abs(a - b).max() > 1e-6


def test_even_a_huge_signal_epsilon_never_shares_the_signal_itself():
    policy = SpyPrivateDiffusion(n_states=5, epsilon=1.0, signal_epsilon=30.0)
    environment = ChangingTruth()
    table = environment.table(2, 0, T)
    pair = [edit_signals(table, [(0, 0, s)]) for s in (2.3, 1.7)]
    a, b = (beliefs(policy, each, seeded_tape(4), environment) for each in pair)
    np.testing.assert_array_equal(a, b)


def test_answers_about_signals_have_the_odds_promised():
    """Frequencies of told states within 5 standard errors; half the epsilon is told apart."""
    policy = SpyPrivateDiffusion(n_states=4, epsilon=5.0, signal_epsilon=1.2, block=1)
    environment = ChangingTruth(n_states=4)
    rounds = 4000
    table = environment.table(1, 0, rounds)._replace(signals=np.full((rounds, 3), 2.2))
    tape = seeded_tape(6, log=6 * rounds)
    trace = environment.trace(rounds, np.array([rounds]))
    policy.play(policy.start(table), table, tape, trace, 0, rounds)
    told = tape.log.reshape(rounds, 6)[:, :3].astype(int).ravel()
    counts = np.bincount(told, minlength=4)

    def fits(epsilon):
        keep = math.exp(epsilon) / (math.exp(epsilon) + 3)
        p = np.full(4, (1 - keep) / 3)
        p[2] = keep
        return bool(np.all(np.abs(counts - told.size * p) <= 5 * np.sqrt(told.size * p * (1 - p))))

    assert fits(1.2)
    assert not fits(0.6)


def test_a_guarantee_names_one_agents_share_of_a_round_and_what_is_sent_openly():
    outsiders = OutsiderPrivateDiffusion(n_states=5, epsilon=1.0)
    spies = SpyPrivateDiffusion(n_states=5, epsilon=1.0)
    sentence = outsiders.guarantee(10).sentence()
    assert "one agent's loss in one round" in sentence
    assert "Not protected:" in sentence
    assert "signals, and the beliefs that show them" in sentence
    assert "signals" not in spies.guarantee(10).not_protected
    assert spies.guarantee(10).unit == "message"
    for policy in (outsiders, spies):
        assert "graph" in policy.guarantee(10).not_protected
        assert policy.history_guarantee(10).unit == "agent"


@pytest.mark.parametrize("horizon", [40, 500, 10_000])
def test_the_published_bound_follows_the_horizon_however_it_is_asked_for(horizon):
    kinds = {
        "diffusion-outsiders": OutsiderPrivateDiffusion,
        "diffusion-spies": SpyPrivateDiffusion,
    }
    for name, kind in kinds.items():
        spec = {"name": name, "epsilon": 0.1, "variant": "published"}
        written = build_pair(spec, {"name": "changing-truth"}, horizon)[0]
        made = kind(n_states=5, epsilon=0.1, variant="published", horizon=horizon)
        assert written.bound == made.bound == pytest.approx(math.log(horizon) / 0.1)
        with pytest.raises(ValueError, match="expected noise_bound given, or a horizon T"):
            kind(n_states=5, epsilon=0.1, variant="published")
