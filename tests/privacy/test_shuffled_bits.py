"""Shuffled bits: exact against every set of bits and flips, never optimistic where cut short."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oracles import shuffled as oracle
from tacit.core.kernels import INTERPRETED
from tacit.privacy import (
    Guarantee,
    ShuffledBits,
    ShuffledBitsRelease,
    audit,
    composed_epsilon,
    keep_probability,
)
from tacit.privacy.mechanisms.shuffled_bits import _raise_to, worst_delta
from tacit.privacy.shuffler import Shuffler

slow = pytest.mark.skipif(INTERPRETED, reason="thousands of sums need compiled kernels")


def delta_of(n, p, epsilon):
    out = np.empty(1)
    worst_delta(n, p, np.array([epsilon]), out, 1.0)
    return out[0]


def delta_of_sums(n, p, k, epsilon):
    """The larger direction, for k ones among n - 1 others, by adding bits one at a time."""
    q = 1 - p
    one, zero = (oracle.sums([(k, p), (n - 1 - k, q), (1, own)]) for own in (p, q))
    grown = math.exp(epsilon)
    return max(
        sum(max(0.0, a - grown * b) for a, b in zip(one, zero, strict=True)),
        sum(max(0.0, b - grown * a) for a, b in zip(one, zero, strict=True)),
    )


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("local", [0.1, 1.0, 3.0])
def test_it_is_brute_force_over_all_bits_and_flips(n, local):
    p = keep_probability(local)
    for epsilon in (0.0, 0.1 * local, 0.5 * local, 0.9 * local, local, 2 * local):
        exact = oracle.worst_delta(n, p, epsilon)
        assert delta_of(n, p, epsilon) == pytest.approx(exact, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("n", [9, 10, 11, 12, 40])
@pytest.mark.parametrize("local", [0.5, 2.0, 4.0])
def test_it_is_the_worst_over_the_ones_of_others(n, local):
    p = keep_probability(local)
    for epsilon in (0.0, 0.05, 0.3, 0.8 * local):
        exact = max(delta_of_sums(n, p, k, epsilon) for k in range(n))
        assert delta_of(n, p, epsilon) == pytest.approx(exact, rel=1e-9, abs=1e-15)


def test_the_ends_are_not_always_worst():
    n, p, epsilon = 12, keep_probability(2.0), 0.3
    found = [delta_of_sums(n, p, k, epsilon) for k in range(n)]
    assert max(found) > 1.01 * max(found[0], found[-1])


@slow
@pytest.mark.parametrize(("n", "local", "epsilon"), [(1500, 2.0, 0.25), (4000, 4.0, 0.4)])
def test_corners_are_never_optimistic_and_lose_little(n, local, epsilon):
    p, at = keep_probability(local), np.array([epsilon])

    def over_all(reports):
        out = np.zeros(1)
        for k in range(reports):
            _raise_to(k, reports - 1 - k, p, at, out)
        return out[0]

    exact, fewer = over_all(n), over_all(n - math.ceil(n / 256))
    assert exact <= delta_of(n, p, epsilon) <= fewer * (1 + 1e-9)
    assert fewer < 1.25 * exact


@slow
def test_the_curve_of_many_reports():
    """Central epsilon at delta 1e-6 for local 1, 2, 4; a million in a moment."""
    expected = {
        10**3: (0.1266, 0.3233, 1.691),
        10**4: (0.0357, 0.0872, 0.3151),
    }
    for n, row in expected.items():
        for local, central in zip((1.0, 2.0, 4.0), row, strict=True):
            bits = ShuffledBits(epsilon=local, reports=n)
            assert bits.central_epsilon(1e-6) == pytest.approx(central, rel=3e-3)
    for n, central in ((10**5, 0.0849), (10**6, 0.02406)):
        assert 0.9e-6 < delta_of(n, keep_probability(4.0), central) < 1.1e-6


def test_more_reports_and_smaller_epsilons_hide_more():
    deltas = [delta_of(n, keep_probability(2.0), 0.4) for n in (1, 10, 100, 1000, 1025, 1050)]
    assert deltas == sorted(deltas, reverse=True)
    locals_ = [delta_of(100, keep_probability(e), 0.4) for e in (0.5, 1.0, 2.0, 4.0, 30.0)]
    assert locals_ == sorted(locals_)


@pytest.mark.parametrize("n", [1, 20, 300])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_calibrated_bits_are_the_largest(n, epsilon):
    bits = ShuffledBits.calibrate(epsilon=epsilon, delta=1e-6, reports=n)
    assert bits.epsilon >= epsilon
    assert bits.release.delta(epsilon) <= 1e-6
    assert bits.central_epsilon(1e-6) <= epsilon * (1 + 1e-9)
    more = ShuffledBits(epsilon=1.001 * bits.epsilon, reports=n)
    assert more.release.delta(epsilon) > 1e-6


def together(n, p, k, changed):
    """The laws of a block's sum where so many records of one person are all ones or all zeros."""
    q = 1 - p
    others = [(k, p), (n - changed - k, q)]
    return [np.array(oracle.sums([*others, (changed, own)])) for own in (p, q)]


@pytest.mark.parametrize("counted", [(3,), (2, 1), (1, 1, 1)])
def test_several_records_of_a_person_wherever_they_are_counted(counted):
    """Three records in one block, in two or in three: never more than the stated group."""
    n, p = 9, keep_probability(1.5)
    release = ShuffledBitsRelease(reports=n, keep=p).group(3)
    for k in (0, 3, 6):
        left, right = np.ones(1), np.ones(1)
        for changed in counted:
            one, zero = together(n, p, k, changed)
            left, right = np.outer(left, one).ravel(), np.outer(right, zero).ravel()
        for epsilon in (0.0, 0.5, 1.5, 3.0):
            grown = math.exp(epsilon)
            exact = np.maximum(0, left - grown * right).sum()
            assert exact <= release.delta(epsilon) + 1e-12
    assert release.delta(release.epsilon) == 0.0
    single = ShuffledBitsRelease(reports=n, keep=p)
    one, zero = together(n, p, 3, 3)
    assert np.maximum(0, one - math.exp(0.5) * zero).sum() > single.delta(0.5)


def test_a_guarantee_names_whom_to_trust_and_what_it_leaves_open():
    guarantee = Shuffler(epsilon=0.5, delta=1e-6, least=1000, most=4000).guarantee()
    sentence = guarantee.sentence()
    assert guarantee.trust == "shuffler"
    assert "everybody but the shuffler" in sentence
    assert "local epsilon of 3.84 only" in sentence
    assert "not randomised as said" in sentence
    assert Guarantee.from_json(guarantee.to_json()) == guarantee
    assert guarantee.at(1e-6).epsilon == pytest.approx(0.5, rel=1e-4)
    assert guarantee.at(0.0).epsilon == pytest.approx(3.835, abs=0.001)


def test_a_persons_rewards_add_up():
    guarantee = Shuffler(epsilon=0.5, delta=1e-6, least=100, most=100).guarantee()
    costs = [guarantee.for_user(m).epsilon for m in (1, 2, 5)]
    assert costs[0] == pytest.approx(0.5, rel=1e-4)
    assert 1.0 < costs[1] < 1.3
    assert 2.5 < costs[2] < 4.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Shuffler(epsilon=1.0, delta=0.0, least=9, most=9), "expected delta in"),
        (lambda: Shuffler(epsilon=1.0, delta=0.1, least=9, most=8), "expected most >= least = 9"),
        (
            lambda: Shuffler(epsilon=1.0, delta=0.1, least=9, most=9, unit="round"),
            "expected unit 'reward'",
        ),
        (
            lambda: Shuffler(epsilon=1.0, delta=0.1, least=9, most=9).bits(8),
            "expected reports >= least = 9",
        ),
        (lambda: ShuffledBitsRelease(reports=3, keep=0.4), "expected keep in"),
        (lambda: ShuffledBits(epsilon=1.0, reports=3).run(4.0), "expected value a count 0 to 3"),
        (
            lambda: ShuffledBits.calibrate(epsilon=1.0, delta=1.0, reports=3),
            "expected delta in",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@slow
def test_counts_have_their_law_and_half_the_noise_is_refuted():
    """The audit refutes a true claim once in a million."""
    n, delta = 20, 0.01
    bits = ShuffledBits.calibrate(epsilon=0.5, delta=delta, reports=n)
    law = np.array(oracle.sums([(7, bits.keep), (n - 7, 1 - bits.keep)]))
    counts = np.bincount(bits.run(7.0, 50_000, seed=3)[:, 0].astype(int), minlength=n + 1) / 50_000
    error = np.sqrt(law * (1 - law) / 50_000)
    assert (np.abs(counts - law) < 5.5 * error + 1e-4).all()
    assert bits.run(7.0, 3).max() <= n  # exact noise
    terms = {"epsilon": 0.5, "delta": delta, "runs": 40_000, "alpha": 1e-6, "low_bits": False}
    half = ShuffledBits(epsilon=2 * bits.epsilon, reports=n)
    pair = bits.worst_pairs()[0]
    assert not audit(bits.run, pair.left, pair.right, **terms).refuted
    assert audit(half.run, pair.left, pair.right, **terms).refuted


@slow
def test_blocks_compose_like_their_curve():
    """Composition of a block with itself is close to that of the exact law of two sums."""
    n, p = 30, keep_probability(1.0)
    one, zero = together(n, p, 0, 1)
    left, right = np.outer(one, one).ravel(), np.outer(zero, zero).ravel()
    stated = composed_epsilon([(ShuffledBitsRelease(reports=n, keep=p), 2)], 1e-3)
    grown = math.exp(stated)
    exact = max(
        np.maximum(0, left - grown * right).sum(), np.maximum(0, right - grown * left).sum()
    )
    assert exact <= 1e-3 < 3 * exact
