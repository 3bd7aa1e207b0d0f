"""A million reports of the device half at epsilon 1 against the exact probabilities."""

from __future__ import annotations

import os
from math import sqrt

import pytest

from oracles.device import probabilities
from tacit.device import Channel, instructions
from tiers import tiered

N = 1_000_000
ASKED = instructions.randomized_response(1.0)


def deviation(asked, n):
    """Return how many standard errors the share of ones is from what `ASKED` gives for a 1."""
    draw, p = Channel(asked).draw, float(probabilities(ASKED, 1)[1])
    ones = sum(draw(1.0, os.urandom) for _ in range(n))
    return abs(ones - n * p) / sqrt(n * p * (1 - p))


# False alarm: 6e-7 (5 standard errors).
@pytest.mark.parametrize("n", tiered((N // 5, N), lambda n: n < N))
def test_a_million_reports_are_within_five_standard_errors(n):
    assert deviation(ASKED, n) < 5


@pytest.mark.parametrize("half", [0, 1])
def test_a_halved_weight_is_noticed(half):
    weights = list(ASKED["answer"]["weights"])
    weights[half] //= 2
    asked = {**ASKED, "answer": {**ASKED["answer"], "weights": weights}}
    assert deviation(asked, 20_000) > 5
