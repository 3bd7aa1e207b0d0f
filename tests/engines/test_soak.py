"""Longer than its news is worth on every run: a study that is killed again and again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tacit.simulation import Study, run_study

STUDY = """
name = "often"
horizon = 30000
repetitions = 160
[environment]
name = "riser"
[[policy]]
name = "klucb"
[[policy]]
name = "ucb1"
"""


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_stopped_at_any_time_ends_with_the_same_bytes(number, tmp_path):
    file = tmp_path / "often.toml"
    file.write_text(STUDY)
    study = Study.from_toml(file)
    whole = run_study(study, tmp_path / "whole", workers=1).path.read_bytes()
    rng, out = np.random.default_rng(int(number)), tmp_path / "out"
    for _ in range(12):
        process = subprocess.Popen(
            [sys.executable, "-m", "tacit", "run", str(file), "--out", str(out)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(float(rng.uniform(0.5, 6.0)))
        os.kill(process.pid, number)
        process.wait(30)
    assert run_study(study, out, workers=2).path.read_bytes() == whole
    kept = [path.name for path in out.glob(".often-*") if path.is_dir()]
    assert kept == [], "parts of a finished study"
    assert not (out / ".often.lock").exists()
