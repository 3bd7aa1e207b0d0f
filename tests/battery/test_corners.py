"""The smallest and the most awkward environments: every number stays a number."""

from __future__ import annotations

import numpy as np
import pytest

import tacit
from battery.cases import arrays, cases, play

CORNERS = [
    pytest.param(case, label, id=f"{case.name}: {label}")
    for case in cases()
    for label in case.setting.corners(case.kind)
]


@pytest.mark.parametrize(("case", "label"), CORNERS)
def test_a_corner(case, label):
    environment, horizon = case.setting.corners(case.kind)[label]
    policy = case.build(environment, horizon)
    run = play(policy, environment, horizon)
    for name, array in arrays(run.trace).items():
        assert np.isfinite(array).all(), name
    result = tacit.simulate(policy, environment, horizon=horizon, repetitions=2, threads=1)
    assert (result.checkpoints[-1], len(result.repetitions)) == (horizon, 2)
