"""Running a study: the same bytes for any number of workers, and after being killed."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from commands import start
from tacit.simulation import Study, read, run_study

STUDY = """
name = "killed"
horizon = 20000
repetitions = 64
[environment]
name = "riser"
[[policy]]
name = "sw-klucb-cf"
[[policy]]
name = "klucb"
[grid]
"policy.epsilon" = [0.5, 1.0, 2.0]
"""


def finished(out):
    """The jobs that are done; a file that was being written has a dot before its name."""
    return [p for p in out.glob(".killed-*/*.npz") if not p.name.startswith(".")]


@pytest.fixture
def study(tmp_path):
    file = tmp_path / "killed.toml"
    file.write_text(STUDY)
    return file


def test_workers_do_not_change_a_byte(tmp_path):
    """Processes are warmed up in a world of many segments, too, which a short run cannot hold."""
    study = Study(
        name="small",
        environment={"name": "riser", "segments": 20},
        policies=({"name": "ucb1"}, {"name": "klucb-cf"}, {"name": "uniform"}),
        horizon=500,
        repetitions=10,
    )
    one = run_study(study, tmp_path / "one", workers=1).path.read_bytes()
    two = run_study(study, tmp_path / "two", workers=2)
    assert two.path.read_bytes() == one
    assert two.cells[0].measures["regret"].shape == (10, 100)


def test_killed_run_continues_to_the_same_bytes(tmp_path, study):
    whole = run_study(Study.from_toml(study), tmp_path / "whole", workers=1).path.read_bytes()
    out = tmp_path / "killed"
    with Path(os.devnull).open("w") as nowhere:
        process = start("run", study, "--out", out, start_new_session=True, stdout=nowhere)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and len(finished(out)) < 3:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = finished(out)
    assert len(kept) >= 3
    assert not (out / "killed.parquet").exists(), "it finished before it was killed: make it longer"
    told = []
    result = run_study(
        Study.from_toml(study), out, workers=1, progress=lambda done, total: told.append(done)
    )
    assert told[0] == len(kept)
    assert result.path.read_bytes() == whole
    assert [p.name for p in out.iterdir()] == ["killed.parquet"]


def test_result_reads_back(tmp_path):
    study = Study(
        name="back",
        environment={"name": "bernoulli", "means": [0.2, 0.8]},
        policies=({"name": "klucb-cf"},),
        horizon=300,
        repetitions=9,
        grid={"policy.epsilon": [1.0, 4.0]},
    )
    run_study(study, tmp_path, workers=1)
    result = read(tmp_path / "back.parquet")
    assert [cell.guarantee["epsilon"] for cell in result.cells] == pytest.approx([1.0, 4.0])
    for cell in result.cells:
        assert cell.measures["regret"].shape == (9, 100)
        assert np.all(np.diff(cell.measures["regret"], axis=1) >= 0)
        assert cell.numerics == "research"
    row = result.summary()[0]
    assert row["low"] < row["mean"] < row["high"]


def test_other_files_are_refused(tmp_path):
    file = tmp_path / "x.parquet"
    file.write_bytes(b"not parquet")
    with pytest.raises(ValueError, match="not a result of tacit run"):
        read(file)
