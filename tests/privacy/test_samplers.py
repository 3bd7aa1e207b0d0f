"""Samplers by position: exact integers, opendp's distributions, zero noise at one half."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from oracles.privacy import Words
from privacy.integers import gaussian_integers, laplace_integers
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import (
    NOISE,
    RADIUS,
    ROUNDING,
    Tape,
    noise_word,
    recorded_tape,
    secure_tape,
    seeded_tape,
)
from tacit.privacy import RandomizedResponse, numerics_of
from tacit.privacy.exact import (
    below,
    discrete_gaussian,
    discrete_laplace,
    happens,
    whole,
)
from tacit.privacy.mechanisms.clamped_laplace import release_clamped
from tacit.privacy.mechanisms.gaussian import release_gaussian, standard_normal
from tacit.privacy.mechanisms.k_ary_response import release_option
from tacit.privacy.mechanisms.l2_ball import ball_noise, release_ball
from tacit.privacy.mechanisms.laplace import release_laplace, standard_laplace
from tacit.privacy.mechanisms.randomized_response import release_bit, round_to_bit

KEY = tuple(np.arange(1, 5, dtype=np.uint64))
FALSE_ALARM = 1e-6


def words_of(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 2**40 + 1, 2**62 + 3])
def test_below_is_the_multiplication_of_big_integers(n: int) -> None:
    words = words_of(n % 97, 64)
    oracle = Words(iter(words.tolist()))
    k = 0
    for _ in range(20):
        value, k = below(n, KEY, 0, 0, k, words)
        assert value == oracle.below(n)


@pytest.mark.parametrize(("numerator", "denominator"), [(1, 1), (7, 2), (1000, 1), (5, 12)])
def test_discrete_laplace_follows_its_paper(numerator: int, denominator: int) -> None:
    words = words_of(numerator, 3000)
    oracle = Words(iter(words.tolist()))
    k = 0
    for _ in range(60):
        value, k = discrete_laplace(numerator, denominator, KEY, 0, 0, k, words)
        assert value == oracle.laplace(numerator, denominator)


def test_the_stream_runs_on_where_the_words_end() -> None:
    """A draw begun with few words must end as it would have with many."""
    words = words_of(3, 0)
    long = np.array([below(2**62, KEY, 5, 1 << 24, k, words)[0] for k in range(40)])
    assert len(set(long.tolist())) == 40
    a, k = discrete_gaussian(1000, KEY, 5, 1 << 24, 0, words)
    b, same = discrete_gaussian(1000, KEY, 5, 1 << 24, 0, words)
    assert (a, k) == (b, same)


def chi_square(x: np.ndarray, weights: dict[int, float]) -> float:
    """Return the p-value of integers against weights, cells below 10 expected pooled."""
    total = math.fsum(weights.values())
    observed, expected, rest = [], [], [0.0, 0.0]
    counts = dict(zip(*(a.tolist() for a in np.unique(x, return_counts=True)), strict=True))
    for value, weight in weights.items():
        e = x.size * weight / total
        if e >= 10:
            observed.append(counts.pop(value, 0))
            expected.append(e)
    rest = [sum(counts.values()), x.size - math.fsum(expected)]
    if rest[1] > 0:
        observed.append(rest[0])
        expected.append(rest[1])
    return float(stats.chisquare(observed, expected).pvalue)


def laplace_weights(scale: float) -> dict[int, float]:
    reach = math.ceil(40 * scale)
    return {x: math.exp(-abs(x) / scale) for x in range(-reach, reach + 1)}


def gaussian_weights(sigma: float) -> dict[int, float]:
    reach = math.ceil(12 * sigma)
    return {x: math.exp(-0.5 * (x / sigma) ** 2) for x in range(-reach, reach + 1)}


@pytest.mark.skipif(INTERPRETED, reason="needs many draws")
@pytest.mark.parametrize("scale", [0.4, 1.0, 2.5, 30.0])
def test_discrete_laplace_has_its_distribution(scale: float) -> None:
    """False alarm 1e-6; a scale 6% wrong is found."""
    x = laplace_integers(Fraction(scale).limit_denominator(100), 200_000)
    assert chi_square(x, laplace_weights(scale)) > FALSE_ALARM
    assert chi_square(x, laplace_weights(1.06 * scale)) < FALSE_ALARM


@pytest.mark.skipif(INTERPRETED, reason="needs many draws")
@pytest.mark.parametrize("sigma", [1, 3, 40])
def test_discrete_gaussian_has_its_distribution(sigma: int) -> None:
    """False alarm 1e-6; a sigma 4% wrong is found."""
    x = gaussian_integers(sigma, 200_000)
    assert chi_square(x, gaussian_weights(sigma)) > FALSE_ALARM
    assert chi_square(x, gaussian_weights(1.04 * sigma)) < FALSE_ALARM


def two_sample(x: np.ndarray, y: np.ndarray) -> float:
    """Return the p-value that two samples of integers have one distribution."""
    edges = np.unique(np.quantile(np.concatenate([x, y]), np.linspace(0, 1, 41)))
    edges[0], edges[-1] = -np.inf, np.inf
    table = [np.histogram(sample, edges)[0] for sample in (x, y)]
    return float(stats.chi2_contingency(table).pvalue)


@pytest.mark.skipif(INTERPRETED, reason="needs many draws")
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_samplers_agree_with_opendp(kind: str) -> None:
    """Two-sample chi-square, false alarm 1e-6; a scale 10% wrong is found."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    vector = dp.vector_domain(dp.atom_domain(T=int))
    if kind == "laplace":
        theirs = dp.m.make_laplace(vector, dp.l1_distance(T=int), scale=20.0)
        ours, wrong = laplace_integers(20, 100_000), laplace_integers(22, 100_000)
    else:
        theirs = dp.m.make_gaussian(vector, dp.l2_distance(T=float), scale=20.0)
        ours, wrong = gaussian_integers(20, 100_000), gaussian_integers(22, 100_000)
    draws = np.array(theirs([0] * 30_000))
    assert two_sample(draws, ours) > FALSE_ALARM
    assert two_sample(draws, wrong) < FALSE_ALARM


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_secure_randomized_response(epsilon: float) -> None:
    """5 standard errors, and never a larger probability of truth than epsilon allows."""
    runs = 300 if INTERPRETED else 100_000
    kept = float(RandomizedResponse(epsilon=epsilon).run(1, runs).mean())
    keep = 1 / (1 + math.exp(-epsilon))
    error = math.sqrt(keep * (1 - keep) / runs)
    assert abs(kept - keep) < 5 * error
    if not INTERPRETED:
        assert abs(kept - 1 / (1 + math.exp(-epsilon - 0.4))) > 5 * error


@pytest.mark.skipif(INTERPRETED, reason="needs many draws")
@pytest.mark.parametrize("tape", [seeded_tape(1), secure_tape()], ids=["seeded", "secure"])
def test_whole_numbers_are_uniform(tape: Tape) -> None:
    found = np.bincount([whole(tape, t, 0, NOISE, 7) for t in range(20_000)], minlength=7)
    assert stats.chisquare(found).pvalue > FALSE_ALARM
    assert tape.reads[1] == 20_000


def test_noise_is_exactly_zero_at_one_half() -> None:
    tape = recorded_tape(dict.fromkeys((NOISE, RADIUS), np.full((1, 8), 0.5)))
    assert standard_laplace(tape, 0, 0, NOISE) == 0.0
    assert standard_normal(tape, 0, 0, NOISE) == 0.0
    assert release_laplace(tape, 0, 0, NOISE, 0.3, 1.0, 0.5) == 0.3
    assert release_gaussian(tape, 0, 0, NOISE, 0.3, 1.0, 2.0, 1) == 0.3
    assert release_clamped(tape, 0, 0, NOISE, 0.3, 1.0, 0.5, 0.0, 1.0) == 0.3
    assert release_bit(tape, 0, 0, NOISE, 1, 0.7, 0.7) == 1
    assert release_bit(tape, 0, 0, NOISE, 0, 0.7, 0.7) == 0
    out = np.zeros(3)
    release_ball(tape, 0, 0, NOISE, np.array([1.0, 2.0, 3.0]), 1.0, out)
    np.testing.assert_array_equal(out, [1.0, 2.0, 3.0])


def test_noise_is_finite_at_the_ends_of_the_tape() -> None:
    for u in (0.0, 1 - 2**-53):
        tape = recorded_tape({NOISE: np.full((1, 1), u)})
        assert math.isfinite(standard_laplace(tape, 0, 0, NOISE))
        assert math.isfinite(standard_normal(tape, 0, 0, NOISE))


def test_every_release_is_counted_and_logged() -> None:
    tape = seeded_tape(1, log=8)
    y = [
        release_laplace(tape, 0, 0, NOISE, 0.3, 1.0, 0.5),
        release_gaussian(tape, 0, 1, NOISE, 0.1, 1.0, 2.0, 1),
    ]
    y.append(float(release_bit(tape, 0, 2, NOISE, 1, 0.7, 0.7)))
    assert round_to_bit(tape, 0, 3, ROUNDING, 0.0) == 0
    np.testing.assert_array_equal(tape.log[:3], y)
    assert tape.reads.tolist() == [1, 3]
    tape = secure_tape(log=8)
    y = [
        release_laplace(tape, 0, 0, NOISE, 0.3, 1.0, 0.5),
        release_gaussian(tape, 0, 1, NOISE, 0.1, 1.0, 2.0, 1),
    ]
    np.testing.assert_array_equal(tape.log[:2], y)
    assert tape.reads.tolist() == [0, 2]


def test_numerics_is_chosen_by_the_tape_alone() -> None:
    assert numerics_of(seeded_tape(1)) == "research"
    assert numerics_of(recorded_tape({NOISE: [[0.5]]})) == "research"
    tape = secure_tape()
    assert numerics_of(tape) == "secure"
    assert math.isnan(standard_laplace(tape, 0, 0, NOISE))
    assert math.isnan(standard_normal(tape, 0, 0, NOISE))
    out = np.zeros(2)
    ball_noise(tape, 0, 0, NOISE, 1.0, out)
    assert np.isnan(out).all()


def test_a_bit_is_kept_exactly_below_its_threshold() -> None:
    """On a recorded tape the answer changes between two neighbouring floats."""
    keep = 0.731
    for u, answer in ((np.nextafter(keep, 0), 1), (keep, 0)):
        assert release_bit(recorded_tape({NOISE: [[u]]}), 0, 0, NOISE, 1, keep, 0.9) == answer


def test_ball_noise_points_everywhere_and_has_a_gamma_radius() -> None:
    """DKW at a false-alarm rate of 1e-6; the radius of one dimension less is found."""
    runs, d = (50 if INTERPRETED else 20_000), 5
    tape, z = seeded_tape(8), np.zeros((runs, d))
    for i, row in enumerate(z):
        ball_noise(tape, i, 0, NOISE, 2.0, row)
    bound = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * runs)) + 1 / runs
    grid = np.arange(1, runs + 1) / runs
    radius = np.sort(np.linalg.norm(z, axis=1))
    assert np.abs(grid - stats.gamma(d, scale=2.0).cdf(radius)).max() < bound
    cosine = np.sort(z[:, 1] / np.linalg.norm(z, axis=1))
    assert np.abs(grid - stats.beta(2, 2, -1, 2).cdf(cosine)).max() < bound
    if not INTERPRETED:
        assert np.abs(grid - stats.gamma(d - 1, scale=2.0).cdf(radius)).max() > bound


def test_bad_sizes_name_themselves() -> None:
    for call in (
        lambda: laplace_integers(0, 3),
        lambda: gaussian_integers(2**40, 3),
        lambda: gaussian_integers(3, -1),
    ):
        with pytest.raises(ValueError, match="expected"):
            call()


def test_tapes_give_different_noise_at_different_places() -> None:
    tape = secure_tape()
    values = [
        release_laplace(tape, t, j, NOISE, 0.0, 1.0, 0.5)
        for t, j in itertools.product(range(5), range(5))
    ]
    assert len(set(values)) == 25


@pytest.mark.skipif(INTERPRETED, reason="seconds when compiled, minutes when interpreted")
@pytest.mark.parametrize("seed", [None, 5])
def test_an_option_is_kept_or_any_other_alike(seed: int | None) -> None:
    tape = secure_tape() if seed is None else seeded_tape(seed)
    told = np.bincount(
        [release_option(tape, t, 0, NOISE, 1, 4, 0.4) for t in range(40_000)], minlength=4
    )
    assert stats.chisquare(told, 40_000 * np.array([0.2, 0.4, 0.2, 0.2])).pvalue > FALSE_ALARM
    assert stats.chisquare(told, 40_000 * np.array([0.22, 0.4, 0.2, 0.18])).pvalue < FALSE_ALARM
    assert tape.reads[1] == 40_000
    assert release_option(tape, 0, 0, NOISE, 0, 1, 0.4) == 0


def test_a_probability_is_compared_as_an_integer() -> None:
    tape = secure_tape()
    words = [int(noise_word(tape, t, 0, NOISE, 0)) >> 11 for t in range(20)]
    for t, word in enumerate(words):
        assert happens(tape, t, 0, NOISE, (word + 1) * 2.0**-53)
        assert not happens(tape, t, 0, NOISE, word * 2.0**-53)
