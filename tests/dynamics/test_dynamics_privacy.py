"""What the learning dynamics protect: enumerated, composed, and looked for in the code itself."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import seeded_tape
from tacit.dynamics import LearningDynamics, SocialOptions, edit_adoption

M = 3


def policy(**changes):
    setting = {"n_options": M, "n_agents": 4, "epsilon": 1.0, "engine": "mixed", "tokens": 8}
    return LearningDynamics(**{**setting, **changes})


def probability(message, option, release):
    """Return the chance of a perturbed vector, from eq. (6) or its optimised twin."""
    chance = 1.0
    for j, bit in enumerate(message):
        one = release.keep_one if j == option else 1 - release.keep_zero
        chance *= one if bit else 1 - one
    return chance


@pytest.mark.parametrize("encoding", ["plain", "optimised"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_epsilon_is_the_largest_log_ratio_of_any_message(encoding, epsilon):
    chosen = policy(encoding=encoding, epsilon=epsilon)
    worst = {"speech": 0.0, "silence": 0.0}
    for message in itertools.product((0, 1), repeat=M):
        chances = [probability(message, x, chosen.release) for x in (*range(M), None)]
        for left, right in itertools.permutations(range(M + 1), 2):
            kind = "silence" if M in (left, right) else "speech"
            worst[kind] = max(worst[kind], math.log(chances[left] / chances[right]))
    assert worst["speech"] == pytest.approx(epsilon)
    assert worst["silence"] < epsilon
    assert chosen.message_guarantee().epsilon == pytest.approx(epsilon)
    if encoding == "plain":
        assert worst["silence"] == pytest.approx(epsilon / 2)


def test_optimised_encoding_has_less_variance():
    noise = {}
    for encoding in ("plain", "optimised"):
        release = policy(encoding=encoding).release
        p, q = release.keep_one, 1 - release.keep_zero
        noise[encoding] = q * (1 - q) / (p - q) ** 2
    assert noise["optimised"] / noise["plain"] == pytest.approx(0.94, abs=0.005)


def exact_epsilon(rounds, delta):
    """Return epsilon of `rounds` messages of epsilon 1: 2 R bits, each worth 1/2 or -1/2."""
    keep = 1 / (1 + math.exp(-0.5))
    right = np.arange(2 * rounds + 1)
    chance, loss = stats.binom.pmf(right, 2 * rounds, keep), right - rounds
    low, high = 0.0, float(rounds)
    for _ in range(60):
        middle = (low + high) / 2
        excess = chance @ -np.expm1(np.minimum(middle - loss, 0.0))
        low, high = (middle, high) if excess > delta else (low, middle)
    return high


@pytest.mark.parametrize(("rounds", "about"), [(100, 55), (1_000, 347), (10_000, 2_787)])
def test_composition_over_rounds(rounds, about):
    pytest.importorskip("dp_accounting")
    run = policy(delta=1e-6).guarantee(rounds)
    assert run.epsilon == pytest.approx(exact_epsilon(rounds, 1e-6), rel=1e-6)
    assert run.epsilon == pytest.approx(about, rel=0.006)
    assert (run.unit, run.trust, run.span) == ("agent", "local", "run")
    assert policy().guarantee(rounds).epsilon == pytest.approx(rounds)


def test_the_curve_of_a_history():
    pytest.importorskip("dp_accounting")
    one = policy().message_guarantee()
    curve = dict(one.curve((1, 10, 100), delta=1e-6))
    assert curve[100] == pytest.approx(55, abs=0.6)
    assert curve[1] < curve[10] < curve[100]


def test_published_protects_nothing_and_says_so():
    chosen = policy(variant="published")
    for guarantee in (chosen.guarantee(10), chosen.message_guarantee()):
        assert guarantee.basis == "none"
        assert guarantee.claim is not None
        assert not guarantee.claim.holds
    assert policy().message_guarantee().claim.holds


@pytest.mark.parametrize("variant", ["corrected", "published"])
def test_without_noise_nothing_is_claimed(variant):
    for guarantee in (
        policy(epsilon=math.inf, variant=variant).guarantee(10),
        policy(epsilon=math.inf, variant=variant).message_guarantee(),
    ):
        assert guarantee.basis == "none"
        assert guarantee.claim is None


def test_memoised_protects_values_but_not_changes():
    chosen = policy(memoised=True)
    assert chosen.guarantee(10).basis == "none"
    assert chosen.value_guarantee(changes=3).epsilon == pytest.approx(3.0)
    assert not policy(memoised=True, variant="published").value_guarantee(3).private
    with pytest.raises(ValueError, match="memoised"):
        policy().value_guarantee(3)


def first_messages(chosen, option, runs):
    """Return what agent 0 sends in round 0 in each run: bits, or -1 for silence."""
    environment = SocialOptions(qualities=(0.5,) * M, n_agents=4)
    table = edit_adoption(environment.table(0, 0, 1), 0, option)
    start, sent = chosen.start(table), []
    for run in range(runs):
        state = type(start)(*(array.copy() for array in start))
        trace = environment.trace(1, np.array([1]))
        chosen.play(state, table, seeded_tape(9, run), trace, 0, 1)
        word = int(state.message[0, 0])
        sent.append(word & (2**M - 1) if word >> 63 else -1)
    return np.array(sent)


RUNS = 800 if INTERPRETED else 20_000


def test_what_is_sent_has_the_declared_probabilities():
    chosen = policy()
    sent = first_messages(chosen, 1, RUNS)
    for word in range(2**M):
        bits = [(word >> j) & 1 for j in range(M)]
        chance = probability(bits, 1, chosen.release)
        # Eight cells at five standard errors: a false alarm rate below 5e-6.
        error = math.sqrt(chance * (1 - chance) / RUNS)
        assert abs(np.mean(sent == word) - chance) < 5 * error


def test_that_test_notices_half_the_noise():
    release, sent = policy().release, first_messages(policy(epsilon=2.0), 1, RUNS)
    z = []
    for word in range(2**M):
        chance = probability([(word >> j) & 1 for j in range(M)], 1, release)
        z.append(abs(np.mean(sent == word) - chance) / math.sqrt(chance * (1 - chance) / RUNS))
    assert max(z) > 5


def test_silence_is_visible_if_published_and_not_if_corrected():
    assert (first_messages(policy(variant="published"), -1, 50) == -1).all()
    assert (first_messages(policy(variant="published"), 0, 50) >= 0).all()
    assert (first_messages(policy(), -1, 50) >= 0).all()


def test_a_memoised_message_changes_only_with_the_adoption():
    environment = SocialOptions(qualities=(0.9, 0.5, 0.1), n_agents=30)
    table, trace = environment.table(0, 0, 40), environment.trace(40, np.array([40]))
    chosen = policy(n_agents=30, memoised=True, beta=0.95, tokens=500)
    state, repeated = chosen.start(table), 0
    before = last = None
    for t in range(40):
        adoption = state.adoption.copy()
        chosen.play(state, table, seeded_tape(2), trace, t, t + 1)
        if before is not None:
            same = adoption == before
            assert (state.message[0, same] == last[same]).all()
            repeated += int(same.sum())
        before, last = adoption, state.message[0].copy()
    assert repeated > 100
    assert state.public[1] > 0
