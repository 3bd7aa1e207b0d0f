"""Theorem 5.1 of paper 001: the queues by hand, and a verdict that can fail both ways."""

from __future__ import annotations

import math

import pytest

from tacit.graphs import complete, star
from tacit_studies.tao2022.theorem_5_1 import THEOREM_5_1, count_slots, measure_walks


def test_tokens_wait_where_all_of_them_meet():
    """On a star half a leaf's proposals go to the centre, which forwards one leaf's worth a slot."""
    slots, queue = count_slots(star(21), tokens=4, steps=30, seed=1)
    assert slots > 30
    assert queue > 4
    assert count_slots(complete(50), tokens=40, steps=1, seed=1) == (1, 40)


def test_no_slot_does_more_than_it_may():
    """Every step of every token is a forwarding; agents forward at most their tokens in a slot."""
    slots, _ = count_slots(complete(30), tokens=2, steps=12, seed=3)
    assert 12 <= slots <= 2 * 12


def outcomes(random, ring):
    sizes = (101, 301, 1001)
    said = {"steps": 10.0, "queue": 1.5}
    return {f"random/{N}": {**said, "slots": random(N)} for N in sizes} | {
        f"ring/{N}": {**said, "slots": ring(N)} for N in sizes
    }


def test_the_verdict_needs_both_networks():
    square = lambda N: 3 * math.log(N) ** 2  # noqa: E731
    assert THEOREM_5_1.judge(outcomes(square, square), True).verdict == "reproduced"
    assert THEOREM_5_1.judge(outcomes(square, lambda N: N**2), True).verdict == "partly"
    assert THEOREM_5_1.judge(outcomes(lambda N: N, lambda N: N), True).verdict == "not reproduced"


@pytest.mark.parametrize(("network", "least"), [("random", 1.0), ("ring", 100.0)])
def test_a_ring_takes_longer_by_orders(network, least):
    assert measure_walks(network, 51, 1)["steps"] > least * math.log(51)
