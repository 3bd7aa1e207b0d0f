"""The engine ray: a small real cluster, the same bytes, errors that travel, Ctrl-C that is heard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engines import working
from tacit.engines import JSON, Cluster, Store, engine_named, run_jobs
from tacit.simulation import Study, run_study

pytest.importorskip("ray", reason="Ray is not installed: pip install 'tacit[ray]'")

TESTS = Path(__file__).parents[1]
STUDY = Study(
    name="small",
    environment={"name": "riser"},
    policies=({"name": "ucb1"}, {"name": "klucb-cf"}),
    horizon=300,
    repetitions=20,
)


@pytest.fixture(scope="module")
def cluster():
    """One local cluster for all tests of this file."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": paths}},
    )
    yield Cluster()
    ray.shutdown()


def test_a_study_has_the_same_bytes(cluster, tmp_path):
    here = run_study(STUDY, tmp_path / "here", engine="here").path.read_bytes()
    there = run_study(STUDY, tmp_path / "there", engine=cluster).path.read_bytes()
    assert here == there


def test_outcomes_errors_and_what_is_kept(cluster, tmp_path):
    store = Store(tmp_path / "jobs", JSON)
    run_jobs(working.square, {str(i): (float(i),) for i in range(9)}, store, engine=cluster)
    assert [store.get(str(i)) for i in range(9)] == [float(i * i) for i in range(9)]
    failing = Store(tmp_path / "failing", JSON)
    with pytest.raises(ValueError, match="three is not allowed"):
        run_jobs(working.fail, {str(i): (float(i),) for i in range(30)}, failing, engine=cluster)
    assert "3" not in failing
    assert "29" not in failing


def test_the_engine_has_a_name_and_an_address():
    assert isinstance(engine_named("ray"), Cluster)
    assert engine_named(None, address="auto").address == "auto"
    with pytest.raises(ValueError, match="expected address with the engine ray only"):
        engine_named("here", address="auto")


DRIVER = """
import sys
from tacit.signals import stop_once, stopped
from tacit.engines import JSON, Cluster, Store, run_jobs
from engines import working

if __name__ == "__main__":
    stop_once()
    folder = sys.argv[1]
    jobs = {str(i): (folder + "/pids", 0.0 if i < 2 else 60.0) for i in range(6)}
    try:
        run_jobs(working.note_process, jobs, Store(folder + "/jobs", JSON), engine=Cluster(workers=2))
    except KeyboardInterrupt:
        stopped()
        print("stopped", flush=True)
        sys.exit(130)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_ctrl_c_stops_and_keeps_what_was_finished(tmp_path):
    (tmp_path / "driver.py").write_text(DRIVER)
    (tmp_path / "pids").mkdir()
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "driver.py"), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while len(list((tmp_path / "jobs").glob("[0-9]*"))) < 2:
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    assert process.stdout.readline() == "stopped\n"
    # Two seconds to hear it and leave the jobs; Ray's own processes end on their own time.
    assert time.monotonic() - begun < 8
    assert process.wait(60) == 130
    assert sorted(p.name for p in (tmp_path / "jobs").glob("[0-9]*")) == ["0.json", "1.json"]
