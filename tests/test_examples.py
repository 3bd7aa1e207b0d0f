"""The gallery runs: each script prints what its text promises."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from subprocess import PIPE

import pytest

from commands import start_python
from tacit.core.kernels import INTERPRETED
from tiers import tiered

EXAMPLES = Path(__file__).parents[1] / "examples"
SHOWN = {
    "compare": (r"klucb .*regret", r"compare-example-regret\.png"),
    "own_environment": (r"KLUCB\(", r"SWKLUCBCF\(.*epsilon=3\.0"),
    "guarantee_and_audit": (
        r"at most 2\.718",
        r"100 rewards: epsilon 83\.5",
        r"epsilon=1 is not refuted",
        r"epsilon=0\.5 is refuted",
    ),
    "recommender": (r"shown at random", r"CoLin +epsilon 1: 0\.\d+"),
    "population": (r"10,000,000 +0\.0\d+",),
}


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What an example prints; each runs once."""
    return cache(lambda name: run(name, tmp_path_factory.mktemp(name)))


def run(name, folder):
    script = EXAMPLES / f"{name}.py"
    started = start_python(script, cwd=folder, stdout=PIPE, stderr=PIPE)
    out, err = started.communicate()
    assert started.returncode == 0, err
    return out


@pytest.mark.skipif(INTERPRETED, reason="seconds when compiled, minutes when interpreted")
@pytest.mark.parametrize("name", tiered(SHOWN, ("compare", "recommender").__contains__))
def test_an_example_prints_what_it_promises(name, printed):
    for pattern in SHOWN[name]:
        assert re.search(pattern, printed(name)), printed(name)


@pytest.mark.skipif(INTERPRETED, reason="seconds when compiled, minutes when interpreted")
def test_sharing_and_less_privacy_help_the_recommender(printed):
    values = [float(v) for v in re.findall(r"([01]\.\d+) liked", printed("recommender"))]
    at_random, alone, shared, mild, strict = values
    assert at_random < strict < mild <= shared + 0.02
    assert alone < shared
