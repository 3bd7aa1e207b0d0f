"""A policy learns what can be learned, and does not care what things are called."""

from __future__ import annotations

import numpy as np
import pytest

import tacit
from battery.cases import Case, cases
from tacit.arms import UCB1
from tiers import tiered

FIRST = {case.kind: case.name for case in reversed(cases())}
REPETITIONS = 40


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_it_learns_on_an_easy_table(case):
    rounds = case.setting.reading(case.kind)
    environment, policy = case.easy(rounds)
    result = tacit.simulate(policy, environment, horizon=rounds, repetitions=4, seed=2)
    final = {name: values[:, -1] for name, values in result.measures.items()}
    assert case.setting.learned(case, final), final


def finals(case, environment, seed):
    rounds = max(300, case.rounds)
    policy = case.build(environment, rounds)
    result = tacit.simulate(policy, environment, horizon=rounds, repetitions=REPETITIONS, seed=seed)
    return result.final("regret")


def standard_errors(one, two):
    spread = np.sqrt((one.var(ddof=1) + two.var(ddof=1)) / REPETITIONS)
    return abs(one.mean() - two.mean()) / max(spread, 1e-12)


@pytest.mark.parametrize(
    "case", tiered(cases(), lambda case: case.name == FIRST[case.kind], lambda case: case.name)
)
def test_labels_do_not_matter(case):
    # Means of 40 repetitions each, 5 standard errors: false alarm below 1e-4 with the heavy tails
    # of a t distribution with 78 degrees of freedom (4e-6).
    environment, other = case.setting.relabelled(case.kind)
    assert standard_errors(finals(case, environment, 1), finals(case, other, 2)) < 5


class Favourite(UCB1):
    """UCB1 that believes arm 0 has paid a hundred times."""

    def start(self, table=None):
        state = super().start(table)
        state.counts[0] = state.sums[0] = 100
        state.means[0] = 1.0
        return state


def test_a_favourite_label_is_noticed():
    case = Case(Favourite)
    environment, other = case.setting.relabelled(case.kind)
    assert standard_errors(finals(case, environment, 1), finals(case, other, 2)) > 5
