"""The Kullback-Leibler index against fifty digits, and against bisection."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oracles.arms import divergence, last_true
from tacit.arms.divergence import negative_entropy, upper_root

FEW = settings(max_examples=200, deadline=None)
SHARE = st.one_of(
    st.floats(0.0, 1.0), st.integers(0, 50).map(lambda k: k / 50), st.floats(1e-12, 1e-3)
)
BOUND = st.one_of(st.floats(1e-9, 50.0), st.floats(1e-3, 3.0))


def root(p: float, bound: float) -> float:
    return float(upper_root(p, bound))


def exact_root(p: float, bound: float) -> float:
    """Bisect in fifty digits."""
    with localcontext() as context:
        context.prec = 50
        P, B = Decimal(p), Decimal(bound)

        def d(q: Decimal) -> Decimal:
            total = (1 - P) * ((1 - P) / (1 - q)).ln() if P < 1 else Decimal(0)
            return total + (P * (P / q).ln() if P > 0 else Decimal(0))

        low, high = P, Decimal(1)
        for _ in range(90):
            middle = (low + high) / 2
            low, high = (middle, high) if d(middle) <= B else (low, middle)
        return float(low)


@settings(max_examples=40, deadline=None)
@given(SHARE, BOUND)
def test_it_is_exact_to_1e_12(p, bound):
    assume(p < 1.0)
    # Where the bound is tiny the root moves by more than 1e-12 for the last bit of the bound.
    assert root(p, bound) == pytest.approx(exact_root(p, bound), abs=1e-12)


@FEW
@given(SHARE, BOUND)
def test_it_agrees_with_bisection(p, bound):
    expected = last_true(lambda q: q <= p or divergence(p, q) <= bound, p, 1.0)
    assert root(p, bound) == pytest.approx(expected, abs=1e-8)


@FEW
@given(SHARE, BOUND, BOUND)
def test_it_lies_between_the_mean_and_one_and_grows_with_the_bound(p, one, two):
    low, high = sorted((one, two))
    assert p <= root(p, low) + 1e-15
    assert root(p, low) <= root(p, high) + 1e-12
    assert root(p, high) <= 1.0


def test_the_ends():
    assert root(1.0, 0.3) == 1.0
    assert root(0.4, 0.0) == 0.4
    assert root(0.0, 0.5) == pytest.approx(1 - math.exp(-0.5), abs=1e-15)
    assert negative_entropy(0.0) == negative_entropy(1.0) == 0.0
    assert negative_entropy(0.5) == pytest.approx(-math.log(2), abs=1e-15)
