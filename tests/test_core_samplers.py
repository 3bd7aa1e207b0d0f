"""Normals, betas, binomials and multinomials by position, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tacit.core.kernels import INTERPRETED, kernel
from tacit.core.samplers import beta, binomial, block, chooser_of, multinomial, normal, source_of
from tacit.core.tapes import CHOICE, recorded_tape, secure_tape, seeded_tape

DRAWS = 2_000 if INTERPRETED else 200_000
#: The chance of a chi-square beyond five standard deviations of a normal, two-sided.
RARE = 5.7e-7


@kernel
def normals(tape, out):
    source = source_of(tape)
    for i in range(out.size // 4):
        w0, w1, w2, w3 = block(source, 1, 0, i, 0)
        out[4 * i] = normal(w0, source, 1, 0, i, 0)
        out[4 * i + 1] = normal(w1, source, 1, 0, i, 1)
        out[4 * i + 2] = normal(w2, source, 1, 0, i, 2)
        out[4 * i + 3] = normal(w3, source, 1, 0, i, 3)


@kernel
def betas(tape, a, b, out):
    chooser = chooser_of(tape)
    for i in range(out.size):
        out[i] = beta(chooser, CHOICE, i, 3, a, b)


@kernel
def beta_table(tape, out):
    chooser = chooser_of(tape)
    for t in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[t, j] = beta(chooser, CHOICE, t, j, 2.0, 3.0)


@kernel
def binomials(tape, n, p, out):
    source = source_of(tape)
    for i in range(out.size):
        out[i] = binomial(source, 1, 0, i, n, p)


@kernel
def multinomials(tape, n, weights, out):
    source = source_of(tape)
    for i in range(out.shape[0]):
        multinomial(source, 1, i, 0, n, weights, out[i])


def chi_square(draws, law):
    """Return the p-value of the draws over about 30 equally likely cells of a law."""
    cuts = np.unique(law.ppf(np.linspace(0.02, 0.98, 30)))
    expected = np.diff(np.concatenate([[0.0], law.cdf(cuts), [1.0]]))
    counts = np.bincount(np.searchsorted(cuts, draws), minlength=cuts.size + 1)
    keep = expected * draws.size > 1
    return stats.chisquare(
        counts[keep], expected[keep] * counts[keep].sum() / expected[keep].sum()
    ).pvalue


@pytest.mark.parametrize("tape", [seeded_tape(1), secure_tape()], ids=["seeded", "secure"])
def test_normals_are_normal(tape):
    out = np.empty(DRAWS)
    normals(tape, out)
    assert chi_square(out, stats.norm()) > RARE
    tails = np.mean(np.abs(out) > 3.5) / (2 * stats.norm.sf(3.5))
    assert abs(tails - 1) < 5 / np.sqrt(DRAWS * 2 * stats.norm.sf(3.5))


def test_the_test_notices_a_wrong_normal():
    out = np.empty(DRAWS)
    normals(seeded_tape(1), out)
    assert chi_square(out * (1.3 if INTERPRETED else 1.02), stats.norm()) < RARE


BINOMIALS = [
    (1, 0.3),
    (7, 0.5),
    (100, 0.02),
    (100, 0.2),
    (1000, 0.995),
    (41142, 1e-4),
    (41142, 1 / 3000),
    (10**6, 0.9),
    (10**8, 0.1),
    (10**11, 1e-9),
    (2**40, 0.25),
]


@pytest.mark.parametrize(("n", "p"), BINOMIALS)
def test_binomials_are_binomial(n, p):
    out = np.empty(DRAWS, np.int64)
    binomials(seeded_tape(2), n, p, out)
    assert chi_square(out, stats.binom(n, p)) > RARE
    deviation = np.sqrt(n * p * (1 - p))
    assert abs(out.mean() - n * p) < 5 * deviation / np.sqrt(DRAWS)
    assert abs(out.var() / deviation**2 - 1) < 5 * np.sqrt((2 + 1 / deviation**2) / DRAWS)


@pytest.mark.parametrize(("n", "p"), [(100, 0.02), (41142, 1 / 3000), (10**8, 0.1)])
def test_the_test_notices_a_wrong_binomial(n, p):
    out = np.empty(DRAWS, np.int64)
    binomials(seeded_tape(2), n, p, out)
    far = 0.5 if INTERPRETED else 0.05
    wrong = p + far * np.sqrt(p * (1 - p) / n)
    assert chi_square(out, stats.binom(n, wrong)) < RARE


def test_binomials_at_the_edges():
    out = np.empty(4, np.int64)
    for n, p, expected in [(0, 0.5, 0), (9, 0.0, 0), (9, 1.0, 9), (-3, 0.5, 0)]:
        binomials(seeded_tape(0), n, p, out)
        assert (out == expected).all()


def test_multinomials_add_up_and_covary():
    weights, n = np.array([2.0, 0.0, 5.0, 3.0]), 50
    out = np.empty((DRAWS // 4, 4), np.int64)
    multinomials(seeded_tape(3), n, weights, out)
    share = weights / weights.sum()
    assert (out.sum(axis=1) == n).all()
    assert (out[:, 1] == 0).all()
    error = np.sqrt(n * share * (1 - share) / len(out))
    assert (np.abs(out.mean(axis=0) - n * share) <= 5 * error).all()
    wanted = n * (np.diag(share) - np.outer(share, share))
    # The standard error of a covariance is at most that of the largest variance, about 12.5.
    assert np.abs(np.cov(out.T) - wanted).max() < 5 * 12.5 * np.sqrt(2 / len(out))


def test_draws_depend_on_their_position_alone():
    whole, again = np.empty(64, np.int64), np.empty(64, np.int64)
    binomials(seeded_tape(5), 1000, 0.4, whole)
    binomials(seeded_tape(5), 1000, 0.4, again[:7])
    np.testing.assert_array_equal(whole[:7], again[:7])
    binomials(seeded_tape(6), 1000, 0.4, again)
    assert (whole != again).any()


@pytest.mark.parametrize(
    ("a", "b"), [(1.0, 1.0), (1.0, 2.0), (3.5, 1.0), (40.0, 12.0), (1.3, 900.0)]
)
@pytest.mark.parametrize("tape", [seeded_tape(2), secure_tape()], ids=["seeded", "secure"])
def test_betas_are_beta(tape, a, b):
    """And one that has seen a tenth of a success more is told from it."""
    out = np.empty(DRAWS)
    betas(tape, a, b, out)
    assert chi_square(out, stats.beta(a, b)) > RARE
    assert stats.kstest(out, stats.beta(a, b).cdf).pvalue > RARE
    if not INTERPRETED:
        assert chi_square(out, stats.beta(1.1 * a, b)) < RARE


def test_betas_of_other_positions_are_independent():
    """Correlations of neighbours in round and arm: 5 standard errors, a false alarm in 10^6 runs."""
    n = 40 if INTERPRETED else 120
    table = np.empty((n, n))
    beta_table(seeded_tape(4), table)
    for one, other in ((table[1:], table[:-1]), (table[:, 1:], table[:, :-1])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 5 / n
    assert np.corrcoef(table.ravel(), table.ravel())[0, 1] > 5 / n


def test_a_recorded_tape_has_no_words():
    with pytest.raises(ValueError, match="expected a seeded or secure tape"):
        chooser_of(recorded_tape({CHOICE: [[0.5]]}))
