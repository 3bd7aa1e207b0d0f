"""The command line when it is stopped, started twice, or run where it cannot write."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import commands
from engines.test_engines import needs_proc, wait_for
from tacit.core.kernels import INTERPRETED
from tacit.simulation import Study, run_study

pytestmark = pytest.mark.skipif(INTERPRETED, reason="minutes when interpreted")

STUDY = """
name = "long"
horizon = {horizon}
repetitions = {repetitions}
[environment]
name = "riser"
[[policy]]
name = "klucb"
"""


def start(folder, *words):
    return commands.start(
        *words,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def worked(leader, seconds):
    """Return whether the processes of a session have used so many seconds of the processor."""
    used = 0
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = place.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                used += sum(map(int, fields[11:13]))
    return used >= seconds * os.sysconf("SC_CLK_TCK")


def finished(folder):
    return [p for p in folder.glob("results/.long-*/*.npz") if not p.name.startswith(".")]


@needs_proc
@pytest.mark.parametrize(
    ("engine", "horizon"), [("processes", 200_000), ("serial", 200_000), ("serial", 10**12)]
)
def test_a_stopped_run_says_so_keeps_its_parts_and_ends(tmp_path, engine, horizon):
    text = STUDY.format(horizon=horizon, repetitions=400)
    (tmp_path / "long.toml").write_text(text)
    process = start(tmp_path, "run", "long.toml", "--engine", engine)
    if horizon < 10**12:
        wait_for(lambda: len(finished(tmp_path)) >= 2, 120)
    else:  # one repetition would take hours: it stops in the middle of a kernel's rounds
        wait_for((tmp_path / "results" / ".long.lock").exists, 120)
        wait_for(lambda: worked(process.pid, 1.5), 120)
    begun = time.monotonic()
    for _ in range(2):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.1)
    out, complaint = process.communicate(timeout=30)
    # Two seconds, and as much again for a machine that does other things.
    assert time.monotonic() - begun < 4
    assert (process.returncode, out) == (130, "")
    assert complaint.splitlines()[-1] == "tacit: stopped; what was finished is kept"
    assert "Traceback" not in complaint
    if horizon < 10**12:
        assert len(finished(tmp_path)) >= 2
    assert not (tmp_path / "results" / "long.parquet").exists()
    assert not (tmp_path / "results" / ".long.lock").exists()


def test_a_second_run_into_the_folder_is_refused_and_the_first_goes_on(tmp_path):
    text = STUDY.format(horizon=200_000, repetitions=20)
    (tmp_path / "long.toml").write_text(text)
    first = start(tmp_path, "run", "long.toml", "--workers", "1")
    wait_for(lambda: len(finished(tmp_path)) >= 1, 120)
    first.send_signal(signal.SIGSTOP)
    second = start(tmp_path, "run", "long.toml", "--workers", "1")
    out, complaint = second.communicate(timeout=60)
    assert (second.returncode, out) == (2, "")
    assert complaint == (
        f"tacit: long.toml: results: another run of long is at work here (process {first.pid}); "
        "wait for it or choose another folder\n"
    )
    first.send_signal(signal.SIGCONT)
    _, complaint = first.communicate(timeout=120)
    assert first.returncode == 0, complaint
    whole = run_study(Study.from_toml(tmp_path / "long.toml"), tmp_path / "alone", engine="serial")
    assert whole.path.read_bytes() == (tmp_path / "results" / "long.parquet").read_bytes()


POPULATION = """
name = "crowded"
horizon = 1000000
repetitions = 2
[environment]
name = "changing-truth"
network = {name = "ring", n_nodes = 3000}
[[policy]]
name = "diffusion"
"""


@needs_proc
@pytest.mark.parametrize("engine", [pytest.param("processes", marks=pytest.mark.slow), "serial"])
def test_a_population_in_pieces_stops_too(tmp_path, engine):
    (tmp_path / "crowded.toml").write_text(POPULATION)
    process = start(tmp_path, "run", "crowded.toml", "--engine", engine, "--pieces", "3")
    wait_for((tmp_path / "results" / ".crowded.lock").exists, 120)
    wait_for(lambda: worked(process.pid, 3 if engine == "processes" else 1.5), 120)
    begun = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    out, complaint = process.communicate(timeout=30)
    # Two seconds, and as much again for a machine that does other things.
    assert time.monotonic() - begun < 4
    assert (process.returncode, out) == (130, "")
    assert complaint.splitlines()[-1] == "tacit: stopped; what was finished is kept"
    assert "Traceback" not in complaint
