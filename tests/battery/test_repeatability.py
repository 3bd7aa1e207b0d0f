"""A run depends on its seed and on nothing else: not on order, chunks, threads or compilation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tacit
from battery.cases import arrays, assert_same, cases, digest, play
from tacit.simulation.run import checkpoints_of
from tacit.state import load, save
from tacit.tapes import secure_tape, seeded_tape

CASES = cases()
LARGEST = 10**6
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def test_there_are_cases_of_every_policy():
    from tacit.registry import policies

    assert {case.kind for case in CASES} == set(policies().values())
    assert len({case.name for case in CASES}) == len(CASES)


@every_case
def test_same_seed_same_run(case):
    environment, policy = case.easy()
    assert_same(play(policy, environment, case.rounds), play(policy, environment, case.rounds))


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


@every_case
def test_chunked_equals_whole(case):
    environment, policy = case.easy()
    whole = play(policy, environment, case.rounds)
    for chunk in (1, 7, case.rounds - 1):
        assert_same(whole, play(policy, environment, case.rounds, chunk=chunk))


@every_case
def test_saved_and_restored_mid_run_continues_the_same(case, tmp_path):
    environment, policy = case.easy()
    whole = play(policy, environment, case.rounds)
    table, half = environment.table(5, 0, case.rounds), case.rounds // 2 + 1
    state, trace = (
        policy.start(table),
        environment.trace(case.rounds, checkpoints_of(case.rounds, 10), record=True),
    )
    policy.play(state, table, seeded_tape(5), trace, 0, half)
    save(tmp_path / "state.npz", state, {"rounds": half})
    restored, about = load(tmp_path / "state.npz", policy.start(table))
    assert about["rounds"] == half
    for array in arrays(state).values():
        assert array.dtype != object
    policy.play(
        restored, environment.table(5, 0, case.rounds), seeded_tape(5), trace, half, case.rounds
    )
    assert_same(restored, whole.state)
    assert_same(trace, whole.trace)


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
    assert digest(case) == interpreted[case.name]


@every_case
def test_the_fingerprint_notices_another_seed(case):
    environment, policy = case.easy()
    one, two = (
        play(policy, environment, case.rounds, seed=5),
        play(policy, environment, case.rounds, seed=6),
    )
    assert any(
        not np.array_equal(array, arrays(two.trace)[name], equal_nan=True)
        for name, array in arrays(one.trace).items()
    )
