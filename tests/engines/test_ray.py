"""The engine ray: a small real cluster, the same bytes, errors that travel, Ctrl-C that is heard."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engines import working
from engines.test_engines import wait_for
from tacit.engines import JSON, Cluster, Store, engine_named, run_jobs
from tacit.simulation import Study, run_study

pytest.importorskip("ray", reason="Ray is not installed: pip install 'tacit[ray]'")

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def cluster():
    """One local cluster for all tests of this file."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), *filter(None, sys.path)]))
        ray.init(
            address="local",  # whatever else runs on this machine
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
        )
    yield Cluster()
    ray.shutdown()


def test_a_node_that_does_not_start_is_one_line(monkeypatch):
    # Finding E10: Ray raises a plain exception then, which was a traceback.
    import ray

    def fail(**_options):
        raise Exception("The current node timed out during startup.\nThis could happen because ...")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", fail)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    with pytest.raises(ValueError, match=r"^no Ray cluster at this machine: .* during startup\.$"):
        Cluster().run(working.square, [(1.0,)], lambda *_: None)


@pytest.mark.parametrize(
    "policies", [["klucb-cf"], pytest.param(["ucb1", "klucb-cf"], marks=pytest.mark.slow)]
)
def test_a_study_has_the_same_bytes(cluster, tmp_path, policies):
    study = Study(
        name="small",
        environment={"name": "riser"},
        policies=tuple({"name": each} for each in policies),
        horizon=300,
        repetitions=20,
    )
    here = run_study(study, tmp_path / "here", engine="serial").path.read_bytes()
    there = run_study(study, tmp_path / "there", engine=cluster).path.read_bytes()
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
        engine_named("serial", address="auto")


DRIVER = """
import sys
from tacit.core.processes import exit_interrupted, install_sigint_handler
from tacit.engines import JSON, Cluster, Store, run_jobs
from engines import working
from engines.test_engines import wait_for

if __name__ == "__main__":
    install_sigint_handler()
    folder = sys.argv[1]
    jobs = {str(i): (folder + "/pids", 0.0 if i < 2 else 60.0) for i in range(6)}
    try:
        run_jobs(working.note_process, jobs, Store(folder + "/jobs", JSON), engine=Cluster(workers=2))
    except KeyboardInterrupt:
        print("stopped", flush=True)
        exit_interrupted()
"""


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@pytest.fixture
def driver(tmp_path):
    """A run on a cluster of its own, in a process of its own."""
    (tmp_path / "driver.py").write_text(DRIVER)
    (tmp_path / "pids").mkdir()
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "driver.py"), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    yield process
    process.kill()
    process.communicate()


def session(leader):
    """Return the living processes of a session: all that a run started, whoever is their parent now."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, of = place.read_text().rpartition(")")[2].split()[:4]
            if int(of) == leader and state != "Z":
                found.append(int(place.parent.name))
    return found


def kept(folder):
    return sorted(p.name for p in (folder / "jobs").glob("[0-9]*"))


@needs_proc
@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_ctrl_c_stops_within_two_seconds_and_keeps_what_was_finished(driver, tmp_path, times):
    wait_for(lambda: len(kept(tmp_path)) == 2, 120)
    assert len(session(driver.pid)) > 3
    begun = time.monotonic()
    for _ in range(times):  # a terminal sends it to every process of the group
        os.killpg(driver.pid, signal.SIGINT)
        time.sleep(0.05)
    out, complaint = driver.communicate(timeout=60)
    # Two seconds, and as much again for a machine that does other things.
    assert time.monotonic() - begun < 4
    assert (driver.returncode, out, complaint) == (130, "stopped\n", "")
    assert kept(tmp_path) == ["0.json", "1.json"]
    wait_for(lambda: not session(driver.pid), 4)


@needs_proc
@pytest.mark.parametrize("processes", [pytest.param(2, marks=pytest.mark.slow), 6])
def test_ctrl_c_is_heard_while_the_cluster_starts(driver, processes):
    wait_for(lambda: len(session(driver.pid)) >= processes, 120)
    begun = time.monotonic()
    os.killpg(driver.pid, signal.SIGINT)
    out, complaint = driver.communicate(timeout=60)
    assert time.monotonic() - begun < 4
    assert (driver.returncode, out, complaint) == (130, "stopped\n", "")
    wait_for(lambda: not session(driver.pid), 4)


@needs_proc
def test_kill_9_of_the_driver_leaves_no_process(driver, tmp_path):
    wait_for(lambda: len(kept(tmp_path)) == 2, 120)
    assert len(session(driver.pid)) > 3
    driver.kill()
    wait_for(lambda: not session(driver.pid), 30)
    assert kept(tmp_path) == ["0.json", "1.json"]


ORPHANS = """
import os, signal, subprocess
from tacit.engines.cluster import _adopt, _children, _stopped_family
_adopt(True)
subprocess.run(["sh", "-c", "sleep 60 & exit"], stdout=subprocess.DEVNULL)  # leaves one behind
busy = subprocess.Popen(["sh", "-c", "sleep 60 & wait"])
while len(family := _stopped_family(_children())) < 3:
    os.kill(busy.pid, signal.SIGCONT)
print(len(family))
for each in family:
    os.kill(each, signal.SIGKILL)
"""


@needs_proc
def test_what_others_left_behind_is_found_with_all_it_started():
    command = [sys.executable, "-c", ORPHANS]
    found = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert found.stdout == "3\n"
