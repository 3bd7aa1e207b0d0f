"""The audit refutes false claims by the right event and true ones with probability at most alpha."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from audited import (
    ball,
    bounded_noise,
    bounded_probabilities,
    clamped_laplace,
    gaussian,
    geometric,
    l2_calibrated_laplace,
    laplace,
    randomized_response,
    repeated_response,
    silent_or_not,
)

from tacit.privacy import LaplaceRelease, RandomizedResponseRelease
from tacit.privacy.auditing import NeighbouringPair, audit, audit_one_run, check_declared, search
from tacit.privacy.auditing import core as audit_core
from tacit.privacy.auditing.events import candidates
from tacit.privacy.auditing.scores import make_scores
from tiers import tiered

E1 = np.eye(5)[0]
DENSE = np.full(5, 5**-0.5)


@pytest.mark.parametrize(
    ("run", "left", "right", "options"),
    [
        (randomized_response, 0, 1, {}),
        (geometric, 0, 1, {}),
        (repeated_response, 0, 1, {}),
        (laplace, 0.0, 1.0, {"low_bits": False}),
        (clamped_laplace, 0.0, 1.0, {"low_bits": False}),
        (ball, 0 * E1, E1, {"low_bits": False}),
        (ball, 0 * E1, DENSE, {"low_bits": False}),
    ],
)
def test_a_claim_is_refuted_only_if_the_noise_is_halved(run, left, right, options):
    """All cost exactly 1; seeds are fixed, so the 5% of false alarms happened when it was written.

    With the noise halved the same runs cost 2, and a claim of 1 must fall.
    """
    true = audit(run, left, right, epsilon=1.0, runs=100_000, **options)
    assert true.verdict == "not refuted"
    assert true.lower_bound > 0.75
    doubled = 2 * (0.2 if run is repeated_response else 1.0)
    halved = audit(
        lambda x, n, s: run(x, n, s, doubled), left, right, epsilon=1.0, runs=100_000, **options
    )
    assert halved.verdict == "refuted"


@pytest.mark.parametrize("ones", [0, 1, 133])
def test_distances_do_not_tell_low_bits_that_are_not_to_be_looked_at(ones):
    """Alpha is 1e-6. With half the noise the same outputs fall."""

    def run(value, runs, seed, epsilon=1.0):
        noised = value / 267 + laplace(0.0, runs, seed, epsilon)[:, 0] / 267
        return np.column_stack([noised, np.zeros(runs)])

    terms = {"epsilon": 1.0, "runs": 20_000, "alpha": 1e-6, "low_bits": False}
    honest = audit(run, ones, ones + 1, **terms)
    assert not honest.refuted, honest.sentence()
    cheat = audit(lambda x, n, s: run(x, n, s, 2.0), ones, ones + 1, **terms)
    assert cheat.refuted, cheat.sentence()


@pytest.mark.parametrize(
    "run",
    [randomized_response, geometric, pytest.param(repeated_response, marks=pytest.mark.slow)],
)
def test_a_true_claim_is_refuted_at_most_alpha_of_the_time(run):
    """120 audits at alpha = 0.2: at most 0.2 + 5 standard errors, 0.39; false alarm below 3e-7."""
    alpha, audits = 0.2, 120
    limit = alpha + 5 * math.sqrt(alpha * (1 - alpha) / audits)
    refuted = [
        audit(run, 0, 1, epsilon=1.0, runs=1000, alpha=alpha, seed=seed).refuted
        for seed in range(audits)
    ]
    assert np.mean(refuted) <= limit


def test_choosing_and_testing_on_the_same_runs_would_be_caught(monkeypatch):
    """The twin: reuse the learning runs for choice and test, and the level is broken."""
    alpha, audits = 0.2, 100
    limit = alpha + 5 * math.sqrt(alpha * (1 - alpha) / audits)
    monkeypatch.setattr(audit_core, "_CHOOSE", audit_core._LEARN)
    monkeypatch.setattr(audit_core, "_TEST", audit_core._LEARN)
    refuted = [
        audit(
            laplace, 0.0, 0.0, epsilon=0.0, runs=1000, alpha=alpha, seed=seed, low_bits=False
        ).refuted
        for seed in range(audits)
    ]
    assert np.mean(refuted) > limit


def test_identical_inputs_are_rarely_told_apart():
    """The same as above with fresh runs: equal inputs at epsilon = 0, level 0.2 + 5 errors."""
    refuted = [
        audit(laplace, 0.0, 0.0, epsilon=0.0, runs=1000, alpha=0.2, seed=seed).refuted
        for seed in range(200)
    ]
    assert np.mean(refuted) <= 0.2 + 5 * math.sqrt(0.2 * 0.8 / 200)


def test_randomized_response_is_measured_to_three_percent():
    result = audit(randomized_response, 0, 1, epsilon=1.0)
    assert 0.97 < result.lower_bound <= 1.0


def test_the_gaussian_at_its_exact_delta():
    """The claim (epsilon, delta) of a Gaussian holds at the exact delta, fails at a tenth of it."""
    phi = lambda x: 0.5 * math.erfc(-x / math.sqrt(2))  # noqa: E731
    epsilon = 1.0
    delta = phi(0.5 - epsilon) - math.e**epsilon * phi(-0.5 - epsilon)
    options = {"epsilon": epsilon, "runs": 200_000, "low_bits": False}
    assert not audit(gaussian, 0.0, 1.0, delta=delta, **options).refuted
    assert audit(gaussian, 0.0, 1.0, delta=delta / 10, **options).refuted


def test_bounded_noise_is_refuted_by_its_atom():
    result = audit(bounded_noise, 0.0, 1.0, epsilon=0.1, runs=200_000, low_bits=False)
    assert result.refuted
    assert result.lower_bound > 3
    assert "exactly" in result.event or "one of" in result.event or "ratio" in result.event


def test_bounded_probabilities_are_refuted_by_their_atoms():
    p, q = np.full(5, 0.2), np.array([0.3, 0.1, 0.2, 0.2, 0.2])
    result = audit(bounded_probabilities, p, q, epsilon=0.1, runs=20_000, low_bits=False)
    assert result.lower_bound > 3


@pytest.mark.parametrize(
    ("runs", "least"), tiered([(2_000, 2.0), (6_000, 3.0)], lambda each: each[0] == 2_000)
)
def test_laplace_with_an_l2_sensitivity_is_refuted_in_many_dimensions(runs, least):
    d = 2500
    value = np.zeros(d)
    result = audit(
        l2_calibrated_laplace, value, value + d**-0.5, epsilon=2.0, runs=runs, low_bits=False
    )
    assert result.lower_bound > least


def test_float_laplace_is_refuted_through_its_low_bits():
    result = audit(
        lambda x, n, s: laplace(x, n, s, 0.1), 0.0, 1.0, epsilon=0.1, delta=0.01, runs=100_000
    )
    assert result.refuted
    assert result.event.startswith("lowest bit")


def test_silence_is_an_output():
    result = audit(silent_or_not, False, True, epsilon=1.0, delta=0.5, runs=10_000)
    assert result.lower_bound > 5
    assert result.event == "output missing"


def test_two_entries_that_only_tell_together():
    """Each entry alone is uniform under both inputs; only together they reveal the input."""

    def shifted(bit, runs, seed):
        rng = np.random.default_rng(seed)
        first = rng.integers(0, 8, runs)
        second = (3 * first + 4 * bit + (rng.random(runs) < 0.1)) % 8
        return np.stack([first, second], axis=1).astype(float)

    def alone(bit, runs, seed):
        return shifted(bit, runs, seed)[:, 1:]

    assert audit(shifted, 0, 1, epsilon=1.0, runs=20_000).lower_bound > 5
    assert not audit(alone, 0, 1, epsilon=0.1, runs=20_000).refuted


def test_whole_rows_are_found_and_shown():
    rows = np.tile([[0.0, 1.0, 2.0], [2.0, -0.0, 1.0]], (50, 1))
    scores = make_scores(rows, rows, low_bits=True)
    label = next(
        score for score in scores if not score.ordered and score.words == "the whole output"
    )
    events = [event for event in candidates(label, label(rows), label(rows)) if event.kind == "in"]
    assert {tuple(sorted(label.examples.values()))} == {((0.0, 1.0, 2.0), (2.0, 0.0, 1.0))}
    assert any(
        "exactly (2, 0, 1)" in event.words or "(2, -0, 1)" in event.words for event in events
    )


def test_the_lowest_bit_against_fractions():
    """The largest power of two of which a float is a whole multiple, by exact arithmetic."""
    values = np.concatenate(
        [np.random.default_rng(1).laplace(size=200), [1.0, -0.75, 3.5, 2.0**-1060, 5e-324, -12.0]]
    )[:, None]
    score = next(s for s in make_scores(values, values, low_bits=True) if "lowest" in s.words)
    for value, place in zip(values[:, 0], score(values), strict=True):
        exact = Fraction(float(value)) / Fraction(2) ** int(place)
        assert exact.denominator == 1
        assert exact.numerator % 2 == 1


def test_same_seed_same_audit():
    first, second, third = (
        audit(geometric, 0, 1, epsilon=1.0, runs=4000, seed=seed) for seed in (3, 3, 4)
    )
    assert first.to_json() == second.to_json()
    assert first.to_json() != third.to_json()


def test_result_speaks(tmp_path):
    result = audit(geometric, 0, 1, epsilon=0.5, runs=20_000)
    record = json.loads(result.to_json())
    assert record["verdict"] == "refuted"
    assert result.event in result.sentence()
    assert "proved" not in result.sentence()
    for name in ("picture.png", "picture.svg"):
        result.picture(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5000


def test_pictures_of_rows_and_of_densities(tmp_path):
    audit(repeated_response, 0, 1, epsilon=0.5, runs=20_000).picture(tmp_path / "rows.png")
    audit(laplace, 0.0, 1.0, epsilon=0.5, runs=20_000).picture(tmp_path / "bits.png")
    audit(laplace, 0.0, 1.0, epsilon=0.5, runs=20_000, low_bits=False).picture(tmp_path / "d.svg")
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": 1.0, "delta": 2.0}, "delta"),
        ({"epsilon": 1.0, "alpha": 0.0}, "alpha"),
        ({"epsilon": 1.0, "runs": 3}, "runs"),
    ],
)
def test_bad_parameters_name_themselves(options, word):
    with pytest.raises(ValueError, match=f"audit: expected {word}"):
        audit(laplace, 0.0, 1.0, **options)


def test_search_finds_the_worst_pair():
    def coordinates(value, runs, seed):
        return ball(value, runs, seed, 3.0)

    pairs = [
        NeighbouringPair(0 * E1, s * E1, f"length {s}") for s in (0.1, 0.2, 0.4, 0.5, 0.7, 1.0)
    ]
    found = search(coordinates, pairs, epsilon=1.0, runs=50_000, low_bits=False)
    assert found.worst.words == "length 1.0"
    assert found.result.refuted
    assert found.candidates == 6
    with pytest.raises(ValueError, match="neighbours"):
        search(coordinates, [], epsilon=1.0)


def _canary_scores(included, seed, epsilon=1.0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(len(included)) < 1 / (1 + math.exp(-epsilon)), included, ~included)


def test_one_run_refutes_halved_noise_and_measures():
    result = audit_one_run(lambda x, s: _canary_scores(x, s, 2.0), 100_000, epsilon=1.0)
    assert result.refuted
    assert 1.95 < result.lower_bound < 2.0
    assert "refuted by one run" in result.sentence()


def test_one_run_refutes_a_true_claim_at_most_alpha_of_the_time():
    """600 audits at alpha = 0.2: at most 0.2 + 5 standard errors; the twin leaks a bit more."""
    limit = 0.2 + 5 * math.sqrt(0.2 * 0.8 / 600)

    def share(epsilon):
        return np.mean(
            [
                audit_one_run(
                    lambda x, s: _canary_scores(x, s, epsilon),
                    400,
                    epsilon=1.0,
                    alpha=0.2,
                    seed=seed,
                ).refuted
                for seed in range(600)
            ]
        )

    assert share(1.0) <= limit < share(1.3)


def test_one_run_ties_are_broken_by_coins():
    result = audit_one_run(lambda x, s: np.zeros(len(x)), 10_000, epsilon=0.1, guesses=5_000)
    assert abs(result.correct - 2500) < 5 * math.sqrt(5000) / 2
    with pytest.raises(ValueError, match="guesses"):
        audit_one_run(lambda x, s: np.zeros(len(x)), 10, epsilon=0.1, guesses=11)


def test_declared_releases():
    keep = 1 / (1 + math.exp(-1.0))
    response = RandomizedResponseRelease(keep_one=keep, keep_zero=keep)
    assert check_declared([(response, 3)], epsilon=3.0).covered
    short = check_declared([(response, 100)], epsilon=3.0, delta=1e-6)
    assert not short.covered
    assert short.accounted_epsilon == pytest.approx(83.5, abs=1)
    assert "do not cover" in short.sentence()
    assert check_declared([(LaplaceRelease(scale=10.0), 500)], epsilon=12.5, delta=1e-6).covered
