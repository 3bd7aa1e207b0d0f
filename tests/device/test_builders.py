"""What builders make spends at most the epsilon asked for, in exact arithmetic, and is never dear."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest

from oracles import device as probabilities
from tacit.device import MAX_EPSILON, Channel, instructions
from tacit.device.instructions import MIN_EPSILON

BUILDERS = {
    "randomized-response": instructions.randomized_response,
    "k-ary-2": lambda epsilon: instructions.k_ary(epsilon, 2),
    "k-ary-7": lambda epsilon: instructions.k_ary(epsilon, 7),
    "k-ary-1000": lambda epsilon: instructions.k_ary(epsilon, 1000),
    "cuts": lambda epsilon: instructions.cuts(epsilon, [0.1, 0.2, 0.3]),
    "labels": lambda epsilon: instructions.cuts(epsilon, [0.1, 0.2], labels=[0, 1, 0]),
    "unary": lambda epsilon: instructions.unary(epsilon, 5),
    "unary-none": lambda epsilon: instructions.unary(epsilon, 5, none=True),
    "unary-one": lambda epsilon: instructions.unary(epsilon, 1, none=True),
    "unary-optimised": lambda epsilon: instructions.unary(epsilon, 5, optimised=True),
    "subset": lambda epsilon: instructions.subset(epsilon, 12),
    "subset-3": lambda epsilon: instructions.subset(epsilon, 12, size=3),
    "discrete-laplace": instructions.discrete_laplace,
    "piecewise": instructions.piecewise,
    "piecewise-fine": lambda epsilon: instructions.piecewise(epsilon, cells=2**16),
}
EPSILONS = [
    1e-9,
    1.5e-9,
    1e-6,
    1e-3,
    0.1,
    0.5,
    1.0,
    math.log(3),
    2.0,
    5.0,
    10.0,
    20.0,
    29.999,
    30.0,
]


def true_epsilon(asked):
    """Return epsilon from the integers, by the definition of each answer, to 60 digits."""
    answer = asked["answer"]
    if answer["kind"] == "noise":
        return mpmath.mpf(asked["question"]["levels"] - 1) / answer["scale"]
    if answer["kind"] in ("window", "subset"):
        inside, outside = answer["weights"]
        ratio = max(Fraction(inside, outside), Fraction(outside, inside))
    elif answer["kind"] == "table":
        columns = list(zip(*answer["rows"], strict=True))
        ratio = max(Fraction(max(column), min(column)) for column in columns)
    else:
        cold, hot = answer["rows"]
        zero, one = (max(Fraction(cold[b], hot[b]), Fraction(hot[b], cold[b])) for b in (0, 1))
        ratio = zero * one if answer["bits"] > 1 else max(zero, one)
    return mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", BUILDERS)
def test_what_is_spent_is_at_most_what_was_asked(name, epsilon):
    asked = BUILDERS[name](epsilon)
    stated = Channel(asked).epsilon
    with mpmath.workdps(60):
        true = true_epsilon(asked)
        assert true <= stated <= epsilon
        assert stated <= true * (1 + mpmath.mpf(10) ** -14)
    # Little is given away: whole steps of the grid at the ends of the range, else 1e-6.
    assert stated >= epsilon * (0.99 if "fine" in name else 0.999)
    if epsilon >= 1e-3 and name != "discrete-laplace":
        assert stated >= epsilon * (1 - 1e-6)


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("epsilon", [0.0, -1.0, 0.99e-9, 30.0001, 36.0, 1e9, math.inf, math.nan])
def test_epsilon_outside_the_range_is_refused(name, epsilon):
    with pytest.raises(ValueError, match=r"^\w+: expected epsilon between 1e-09 and 30, got"):
        BUILDERS[name](epsilon)


def test_the_range_is_the_stated_one():
    assert (MIN_EPSILON, MAX_EPSILON) == (1e-9, 30.0)


@pytest.mark.parametrize(
    "keep", [(0.9, 0.6), (0.5, 0.5), (0.2, 0.3), (0.999999, 1e-7), (1 / 3, 0.9)]
)
def test_keeping_is_rounded_against_the_spender(keep):
    zero, one = map(Fraction, keep)
    ratios = [one / (1 - zero), zero / (1 - one)]
    asked_for = max(max(ratio, 1 / ratio) for ratio in ratios)
    asked = instructions.asymmetric_response(*keep)
    columns = list(zip(*asked["answer"]["rows"], strict=True))
    spent = max(Fraction(max(column), min(column)) for column in columns)
    assert spent <= max(asked_for, 1 + Fraction(1, 2**50))
    assert float(spent) == pytest.approx(float(asked_for), rel=1e-8)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3.0, 12.0])
def test_probabilities_are_those_of_the_textbook(epsilon):
    grown = math.exp(epsilon)
    told = probabilities.probabilities(instructions.k_ary(epsilon, 5), 3)
    assert float(told[3]) == pytest.approx(grown / (grown + 4), rel=1e-9)
    assert float(told[0]) == pytest.approx(1 / (grown + 4), rel=1e-9)
    p, q = probabilities.bit_probabilities(instructions.unary(epsilon, 5, optimised=True))
    assert p == Fraction(1, 2)
    assert float(q) == pytest.approx(1 / (grown + 1), rel=1e-9)
    p, q = probabilities.bit_probabilities(instructions.unary(epsilon, 5))
    assert float(p) == pytest.approx(1 / (1 + math.exp(-epsilon / 2)), rel=1e-9)
    assert q == 1 - p
    asked = instructions.subset(epsilon, 12, size=3)
    p, q = probabilities.bit_probabilities(asked)
    # Ye and Barg: w e^eps / (w e^eps + k - w), and the rest of the w places is shared.
    assert float(p) == pytest.approx(3 * grown / (3 * grown + 9), rel=1e-9)
    assert float(q) == pytest.approx((3 - float(p)) / 11, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_the_grid_of_the_piecewise_mechanism_has_its_variance(epsilon):
    asked = instructions.piecewise(epsilon, low=-1, high=1, default=0, cells=4096)
    slope, intercept = map(float, probabilities.estimator(asked))
    h = math.exp(epsilon / 2)
    for reward in (-1.0, 0.0, 0.5):
        told = probabilities.probabilities(asked, reward)
        variance = sum(
            float(p) * (slope * value + intercept - reward) ** 2 for value, p in told.items()
        )
        published = reward**2 / (h - 1) + (h + 3) / (3 * (h - 1) ** 2)
        assert variance == pytest.approx(published, rel=5e-3)


def test_defaults_of_the_reward():
    assert instructions.randomized_response(1.0, low=-1)["default"] == -1
    assert instructions.randomized_response(1.0, low=-1, default=0)["default"] == 0
    assert instructions.subset(1.0, 10)["answer"]["width"] == 3
    assert instructions.subset(5.0, 10)["answer"]["width"] == 1


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: instructions.k_ary(1.0, 1), r"k_ary: expected symbols between 2 and 65536, got 1"),
        (
            lambda: instructions.k_ary(1.0, 3, default=3),
            r"expected default to be in \[0, 2\], got 3.0",
        ),
        (
            lambda: instructions.cuts(1.0, []),
            r"cuts: expected question.cuts to be a list of 1 to 1024",
        ),
        (
            lambda: instructions.cuts(1.0, [0.0, math.inf]),
            r"cuts: expected question.cuts to be a number",
        ),
        (
            lambda: instructions.cuts(1.0, [0.0, math.nan]),
            r"cuts: expected question.cuts to be a number",
        ),
        (
            lambda: instructions.cuts(1.0, [1.0, 0.0]),
            r"cuts: expected question.cuts to rise strictly",
        ),
        (
            lambda: instructions.cuts(1.0, [1.0], labels=[0]),
            r"cuts: expected question.labels to have 2",
        ),
        (
            lambda: instructions.cuts(1.0, [1.0], labels=[1, 1]),
            r"cuts: expected question.labels to use",
        ),
        (
            lambda: instructions.randomized_response(1.0, low=1, high=1),
            r"question.high > low = 1, got 1.0",
        ),
        (
            lambda: instructions.randomized_response(1.0, default=2),
            r"default to be in \[0, 1\], got 2.0",
        ),
        (lambda: instructions.asymmetric_response(1.0, 0.5), r"keep_zero in \(0, 1\), got 1.0"),
        (
            lambda: instructions.asymmetric_response(1 - 2**-52, 0.5),
            r"expected epsilon <= 30, got 3",
        ),
        (lambda: instructions.unary(1.0, 0), r"unary: expected options between 2 and 65536, got 0"),
        (
            lambda: instructions.subset(1.0, 4, size=4),
            r"subset: expected size between 1 and 3, got 4",
        ),
        (
            lambda: instructions.discrete_laplace(1.0, steps=2**17),
            r"steps between 1 and 65536, got 131072",
        ),
        (lambda: instructions.identity(low=0, high=math.inf), r"identity: expected question.high"),
        (
            lambda: probabilities.probabilities(instructions.discrete_laplace(1.0), 0),
            r"probabilities: expected an answer of finitely many values, got 'noise'",
        ),
        (
            lambda: probabilities.probabilities(instructions.unary(1.0, 30), 0),
            r"probabilities: expected at most 65536 values, got 1073741824",
        ),
        (
            lambda: probabilities.estimator(instructions.cuts(1.0, [0.5])),
            r"estimator: expected a question of levels and an answer linear in them, got 'window'",
        ),
        (
            lambda: probabilities.estimator(instructions.asymmetric_response(0.5, 0.5)),
            r"estimator: expected an answer that depends on the reward",
        ),
        (
            lambda: probabilities.bit_probabilities(instructions.k_ary(1.0, 3)),
            r"bit_probabilities: expected an answer of bits, got 'window'",
        ),
    ],
)
def test_bad_parameters_are_named(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
