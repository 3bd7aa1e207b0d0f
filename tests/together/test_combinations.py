"""Features meet: the real product over combinations of all that can be switched on, checked after every step.

A failing case prints the seed and a short script that does it again.
"""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from together.life import live
from together.model import ViolationError
from together.options import AXES, all_pairs, is_possible, pairs_of, pairwise, sample
from together.script import script_of, shrink

STEPS = 120
ALL = list(pairwise())


def survive(case, seed, steps, folder, server=None):
    """Live a life; if something does not hold, say how to see it again."""
    try:
        return live(case, seed, steps, folder, server)
    except ViolationError as error:
        commands = shrink(case, error.commands, error.invariant, server)
        pytest.fail(f"{error}\nseed {seed}\n{script_of(case, commands)}", pytrace=False)


def server_of(case, request):
    return request.getfixturevalue("postgres") if case["front"] == "postgres" else None


def test_all_pairs_are_covered_or_refused_by_design():
    covered = set().union(*map(pairs_of, ALL))
    for pair in all_pairs() - covered:
        part = dict(pair)
        more = (dict(zip(AXES, each, strict=True)) for each in _third_values(part))
        assert not any(map(is_possible, more)), part


def _third_values(part):
    """Yield a few whole cases with a pair, of simple values."""
    simple = {"policy": ("dp-imed", "klucb-cf", "linucb"), "graph": ("none", "star")}
    front = {"front": ("memory", "store", "sqlite", "node"), "time": ("at once", "due")}
    rest = {axis: values[:1] for axis, values in AXES.items()}
    values = {**rest, **simple, **front, **{axis: (value,) for axis, value in part.items()}}
    return itertools.product(*(values[axis] for axis in AXES))


QUICK = [
    *sample(3, 1, front="memory", again="save"),
    *sample(2, 2, front="store"),
    *sample(3, 3, front="sqlite"),
    *sample(1, 4, front="client-file"),
    *sample(1, 5, front="node"),
]


@pytest.mark.parametrize("number", range(len(QUICK)))
def test_a_random_sample_holds_together(number, tmp_path):
    survive(QUICK[number], number, STEPS, tmp_path)


def test_a_life_has_something_to_check(tmp_path):
    """The twin of the tests below: what never happens cannot be found wrong."""
    seen = Counter()
    fixed = {"noise": "readable", "mode": "learn", "modes": "stay", "policy": "dp-imed"}
    for front, budget, again in (("memory", "lifetime", "save"), ("sqlite", "later", "restart")):
        (case,) = sample(1, 0, front=front, budget=budget, again=again, **fixed)
        (tmp_path / front).mkdir()
        seen += survive(case, 0, 2 * STEPS, tmp_path / front)
    wanted = ("release", "budget", "refused", "save", "load", "restart", "repeat", "look", "show")
    assert not [each for each in wanted if not seen[each]], seen


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(ALL)))
def test_all_pairs_hold_together(number, tmp_path, request):
    case = ALL[number]
    for seed in range(2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        survive(case, seed, 200, folder, server_of(case, request))


SHARES = {
    "memory": 400,
    "store": 200,
    "sqlite": 200,
    "client-memory": 100,
    "client-file": 40,
    "node": 40,
}
"""Thousands of steps; together with PostgreSQL a million."""


@pytest.mark.soak
@pytest.mark.parametrize("front", AXES["front"])
def test_a_million_steps(front, tmp_path, request):
    for seed in range(2 * SHARES.get(front, 20)):
        (case,) = sample(1, seed, front=front)
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            survive(case, seed, 500, Path(folder), server_of(case, request))
