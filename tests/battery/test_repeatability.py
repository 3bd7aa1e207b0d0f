"""A run depends on its seed and on nothing else: not on order, chunks, threads or compilation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from llvmlite import binding

import tacit
from battery.cases import arrays, assert_same, cases, digest, play
from tacit.core.tapes import secure_tape, seeded_tape

CASES = cases()
LARGEST = 10**6
FROZEN = json.loads((Path(__file__).parents[1] / "frozen/v0_2_0/digests.json").read_text())
HERE = {
    "processor": binding.get_host_cpu_name(),
    "numpy": np.__version__,
    "numba": numba.__version__,
}
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


_DIGESTS: dict[str, str] = {}


def fingerprint(case):
    """Return the digest of a case, worked out once."""
    if case.name not in _DIGESTS:
        _DIGESTS[case.name] = digest(case)
    return _DIGESTS[case.name]


def test_there_are_cases_of_every_policy():
    from tacit.core.registry import policies

    assert {case.kind for case in CASES} == set(policies().values())
    assert len({case.name for case in CASES}) == len(CASES)


@every_case
def test_a_new_tape_leaves_the_table_alone(case):
    environment, policy = case.easy()
    table = environment.table(1, 0, case.rounds)
    before = {name: array.copy() for name, array in arrays(table).items()}
    first = play(policy, environment, case.rounds, table=table, tape=seeded_tape(1))
    second = play(policy, environment, case.rounds, table=table, tape=seeded_tape(2))
    for name, array in arrays(table).items():
        assert array.tobytes() == before[name].tobytes(), name
    if case.setting.noise_draws(case, policy, environment, case.rounds) > 0:
        differs = [
            name
            for name, array in arrays(first.state).items()
            if array.tobytes() != arrays(second.state)[name].tobytes()
        ]
        assert differs, "a private policy does not depend on its tape"


def positions(run, limit):
    """Return where noise was read, one row a position."""
    assert run.tape.reads[1] <= limit
    rows = run.tape.positions
    return rows[rows[:, 0] >= 0]


@every_case
def test_no_noise_is_read_for_two_values(case):
    """Whatever the numerics and the chunks; what was read twice would tell a difference."""
    environment, policy = case.easy()
    noise = case.setting.noise_draws(case, policy, environment, case.rounds)
    limit = 2 * min(noise, LARGEST) + 1  # other noise may lead to a few more releases
    tapes = [(seeded_tape, {"seed": 5}, chunk) for chunk in (None, 7)]
    if policy.secure:
        tapes.append((secure_tape, {}, None))
    for make, how, chunk in tapes:
        tape = make(**how, positions=limit)
        found = positions(play(policy, environment, case.rounds, tape=tape, chunk=chunk), limit)
        assert len(np.unique(found, axis=0)) == len(found)
        assert (len(found) > 0) == (noise > 0)


@every_case
def test_any_number_of_threads(case):
    environment, policy = case.easy()
    one, four = (
        tacit.simulate(
            policy, environment, horizon=case.rounds, repetitions=5, seed=9, threads=n, record=True
        )
        for n in (1, 4)
    )
    for name in one.measures:
        assert one.measures[name].tobytes() == four.measures[name].tobytes(), name
    for left, right in zip(one.traces, four.traces, strict=True):
        assert_same(left, right)
    assert (one.noise_draws == four.noise_draws).all()
    assert any(
        arrays(one.traces[0])[name].tobytes() != array.tobytes()
        for name, array in arrays(one.traces[1]).items()
    ), "two repetitions are the same"


@pytest.fixture(scope="module")
def interpreted() -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "battery.digests"],
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


@every_case
def test_compiled_equals_interpreted(case, interpreted):
    assert fingerprint(case) == interpreted[case.name]


@pytest.mark.skipif(
    any(FROZEN[name] != value for name, value in HERE.items()),
    reason=f"0.2.0 was fingerprinted on another kind of machine: {FROZEN['processor']}",
)
@every_case
def test_the_same_run_as_0_2_0(case):
    """A number that moves is news: it stands in the change log, and then in the frozen file."""
    assert fingerprint(case) == FROZEN["digests"].get(case.name, fingerprint(case))


def test_no_case_of_0_2_0_is_lost():
    assert set(FROZEN["digests"]) <= {case.name for case in CASES}
