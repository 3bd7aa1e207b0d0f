"""Probabilities are the integers' own: counted over all random words, and met by drawn reports."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest

from device.exactness import CHANNELS, FINITE, halved, hashable, seeded, words
from oracles.device import bit_probabilities, estimator, probabilities
from tacit.device import Channel
from tacit.device.channel import _discrete_laplace, _happens_exp

SMALL = {"v": 1, "trust": "local", "default": 0}
QUARTERS = {"low": 0, "high": 1, "levels": 2}


def levels(n):
    return {"low": 0, "high": n - 1, "levels": n}


# Small integers, so that every random word that matters can be tried.
COUNTED = {
    "window": (levels(2), {"kind": "window", "cells": 2, "width": 1, "weights": [3, 1]}, [4]),
    "k-ary": (levels(4), {"kind": "window", "cells": 4, "width": 1, "weights": [5, 2]}, [11]),
    "wide": (levels(6), {"kind": "window", "cells": 8, "width": 3, "weights": [7, 2]}, [31]),
    "table": (levels(3), {"kind": "table", "rows": [[5, 2, 1], [1, 6, 1], [2, 3, 3]]}, [8]),
    "labels": (
        {"cuts": [0.25, 0.75], "labels": [0, 1, 0]},
        {"kind": "window", "cells": 2, "width": 1, "weights": [3, 1]},
        [4],
    ),
    "unary": (levels(3), {"kind": "unary", "bits": 3, "rows": [[3, 1], [2, 2]]}, [4, 4, 4]),
    "none": (levels(4), {"kind": "unary", "bits": 3, "rows": [[5, 2], [1, 6]]}, [7, 7, 7]),
    "subset": (
        levels(5),
        {"kind": "subset", "cells": 5, "width": 2, "weights": [3, 1]},
        [9, 4, 3, 2],
    ),
}
REWARDS = [-1, 0, 0.25, 0.5, 0.75, 1, 1.25, 2, 2.5, 3.75, 4, 9]


def counted(asked, reward, sizes):
    """Return the share of every report among all words: 4 to round, then all below each size."""
    channel, seen = Channel(asked), Counter()
    for drawn in itertools.product([j << 51 for j in range(4)], *map(range, sizes)):
        seen[hashable(channel.draw(reward, words(*drawn)))] += 1
    return {value: Fraction(n, 4 * math.prod(sizes)) for value, n in seen.items()}


@pytest.mark.parametrize("name", COUNTED)
def test_counting_all_words_gives_the_stated_probabilities(name):
    question, answer, sizes = COUNTED[name]
    asked = SMALL | {"question": question, "answer": answer}
    for reward in REWARDS:
        stated = probabilities(asked, reward)
        assert sum(stated.values()) == 1
        assert counted(asked, reward, sizes) == stated


def test_a_wrong_probability_would_be_noticed():
    question, answer, sizes = COUNTED["window"]
    asked = SMALL | {"question": question, "answer": answer}
    other = SMALL | {"question": question, "answer": answer | {"weights": [2, 2]}}
    assert counted(asked, 1, sizes) != probabilities(other, 1)


def largest_ratio(asked):
    """Return the largest ratio of two probabilities of one report, over all symbols."""
    question = asked["question"]
    if "cuts" in question:
        cuts = question["cuts"]
        rewards = [cuts[0] - 1, *cuts[1:], cuts[-1] + 1]
    else:
        step = (question["high"] - question["low"]) / (question["levels"] - 1)
        rewards = [question["low"] + step * i for i in range(question["levels"])]
    rows = [probabilities(asked, reward) for reward in rewards]
    return max(
        one[value] / other[value] for one, other in itertools.permutations(rows, 2) for value in one
    )


@pytest.mark.parametrize("name", COUNTED)
def test_epsilon_is_the_logarithm_of_the_largest_ratio(name):
    mpmath = pytest.importorskip("mpmath")
    question, answer, _ = COUNTED[name]
    asked = SMALL | {"question": question, "answer": answer}
    ratio = largest_ratio(asked)
    with mpmath.workdps(50):
        true = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert true <= Channel(asked).epsilon <= true * (1 + mpmath.mpf(10) ** -14)


def explored(draw, least=2e-5):
    """Return the probabilities of what `draw(below)` returns, and the mass of paths left out.

    Every path of uniform integers is followed until its probability is below `least`.
    """
    found, left_out, open_paths = Counter(), 0.0, [((), 1.0)]

    class Undecided(Exception):  # noqa: N818
        pass

    while open_paths:
        path, mass = open_paths.pop()
        rest = iter(path)

        def below(n, rest=rest):
            if n == 1:
                return 0
            drawn = next(rest, None)
            if drawn is None:
                raise Undecided(n)
            return drawn

        try:
            found[draw(below)] += mass
        except Undecided as undecided:
            (n,) = undecided.args
            if mass / n < least:
                left_out += mass
            else:
                open_paths += [((*path, i), mass / n) for i in range(n)]
    return found, left_out


@pytest.mark.parametrize(("a", "b"), [(0, 3), (1, 1), (1, 3), (2, 3), (3, 3), (5, 7)])
def test_a_coin_of_exp_is_exact(a, b):
    found, left_out = explored(lambda below: _happens_exp(a, b, below))
    assert found[True] <= math.exp(-a / b) + 1e-12 <= found[True] + left_out + 2e-12
    assert left_out < 0.05


@pytest.mark.parametrize("scale", [1, 2])
def test_discrete_laplace_is_exact(scale):
    found, left_out = explored(lambda below: _discrete_laplace(scale, below), least=5e-6)
    assert left_out < 0.1
    q = math.exp(-1 / scale)
    for x in range(-2, 3):
        true = (1 - q) / (1 + q) * q ** abs(x)
        assert found[x] <= true + 1e-12 <= found[x] + left_out + 2e-12


N = 20_000


def expected(name, reward):
    """Return the probabilities of reports, tails gathered where there are infinitely many."""
    asked = CHANNELS[name]
    if name != "discrete-laplace":
        return probabilities(asked, reward)
    q = math.exp(-1 / asked["answer"]["scale"])
    symbol = round(reward * 4)
    return {y: (1 - q) / (1 + q) * q ** abs(y - symbol) for y in range(symbol - 15, symbol + 16)}


def deviations(name, asked, reward, seed):
    """Return how many standard errors each report's frequency is from what `name` should give."""
    channel, random = Channel(asked), seeded(seed)
    seen = Counter(hashable(channel.draw(reward, random)) for _ in range(N))
    return {
        value: abs(seen[value] - N * p) / math.sqrt(N * p * (1 - p))
        for value, p in ((value, float(p)) for value, p in expected(name, reward).items())
        if 0 < p < 1
    }


# False alarm: 6e-7 for each value, so below 1e-4 for all of the below; the bytes are seeded.
@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("reward", [0, 1])
def test_reports_follow_the_exact_probabilities(name, reward):
    assert max(deviations(name, CHANNELS[name], reward, 1).values()) < 5


@pytest.mark.parametrize("name", CHANNELS)
def test_half_the_threshold_is_noticed(name):
    assert max(deviations(name, halved(CHANNELS[name]), 1, 1).values()) > 5


@pytest.mark.parametrize("name", ["randomized-response", "asymmetric", "piecewise", "k-ary"])
@pytest.mark.parametrize("reward", [0, 0.25, 0.3, 0.875, 1])
def test_the_estimator_is_unbiased(name, reward):
    asked = CHANNELS[name]
    slope, intercept = estimator(asked)
    mean = sum(p * (slope * value + intercept) for value, p in probabilities(asked, reward).items())
    assert abs(mean - Fraction(reward)) < Fraction(1, 2**48)


def test_the_estimator_of_noise_is_unbiased():
    asked = CHANNELS["discrete-laplace"]
    slope, intercept = estimator(asked)
    mean = sum(
        p * float(slope * value + intercept)
        for value, p in expected("discrete-laplace", 0.75).items()
    )
    assert abs(mean - 0.75) < 0.05


@pytest.mark.parametrize("name", [name for name in FINITE if name.startswith(("unary", "subset"))])
def test_bit_probabilities_are_those_of_the_reports(name):
    asked = CHANNELS[name]
    p, q = bit_probabilities(asked)
    told = probabilities(asked, 0)
    for place in range(len(next(iter(told)))):
        one = sum(chance for value, chance in told.items() if value[place])
        assert one == (p if place == 0 else q)
