"""The pairs of tables that an environment offers to the audit."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.arms import Bernoulli, GraphFeedback, TruncatedNormal
from tacit.arms.table import reward
from tacit.graphs import path

T = 40
ENVIRONMENT = TruncatedNormal(means=(0.3, 0.5, 0.7))


def tables(pair):
    return pair.left, pair.right


def rewards(table):
    return np.array([[reward(table, t, a) for a in range(3)] for t in range(T)])


@pytest.mark.parametrize(("unit", "changed"), [("reward", 1), ("round", 3), ("user", 3 * T)])
def test_a_pair_differs_in_all_that_a_unit_contains_and_in_nothing_else(unit, changed):
    pairs = ENVIRONMENT.neighbours(unit, T)
    assert pairs
    for left, right in map(tables, pairs):
        differ = rewards(left) != rewards(right)
        assert differ.sum() == changed
        assert (rewards(left)[differ] == 0).all()
        assert (rewards(right)[differ] == 1).all()
        if unit == "round":
            assert differ.any(axis=1).sum() == 1


def test_the_rest_is_the_own_table_or_all_alike():
    backgrounds = set()
    for left, right in map(tables, ENVIRONMENT.neighbours("reward", T)):
        rest = rewards(left)[rewards(left) == rewards(right)]
        backgrounds.add("all 0" if not rest.any() else "all 1" if (rest == 1).all() else "own")
    assert {"all 0", "all 1", "own"} <= backgrounds


def test_early_rounds_come_first_and_later_ones_are_there():
    def rounds(pairs):
        return [
            int(np.argwhere(rewards(left) != rewards(right))[0][0])
            for left, right in map(tables, pairs)
        ]

    found = rounds(ENVIRONMENT.neighbours("round", T, limit=12))
    assert found[0] == 0
    assert max(found) == T - 1


def test_the_graph_stays():
    environment = GraphFeedback(environment=Bernoulli(means=(0.5,) * 3), graph=path(3))
    for left, right in map(tables, environment.neighbours("round", T, limit=4)):
        assert left.indices.tolist() == right.indices.tolist() == [0, 1, 0, 1, 2, 1, 2]


def test_an_unknown_unit_is_refused():
    with pytest.raises(ValueError, match=r"expected unit one of reward, round, user, got 'arm'"):
        ENVIRONMENT.neighbours("arm", T)
