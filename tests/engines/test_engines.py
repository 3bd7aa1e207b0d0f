"""Engines: the same outcomes everywhere, kept as they come; signals stop them; nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from commands import start_python
from engines import working
from tacit.engines import (
    ARRAYS,
    JSON,
    Processes,
    SerialEngine,
    Store,
    code_stamp,
    engine_named,
    lock_run,
    run_jobs,
)

every_engine = pytest.mark.parametrize(
    "engine",
    [
        pytest.param(SerialEngine(), id="serial"),
        pytest.param(Processes(1), id="one", marks=pytest.mark.slow),
        pytest.param(Processes(2), id="two"),
    ],
)
TESTS = Path(__file__).parents[1]


@every_engine
def test_every_engine_has_the_same_outcomes(engine, tmp_path):
    store = Store(tmp_path / "jobs", JSON)
    told = []
    jobs = {f"job-{i}": (float(i),) for i in range(7)}
    run_jobs(working.square, jobs, store, engine=engine, progress=lambda *t: told.append(t))
    assert [store.get(key) for key in jobs] == [float(i * i) for i in range(7)]
    assert told == [(i, 7) for i in range(8)]


@every_engine
def test_what_is_kept_is_not_done_again(engine, tmp_path):
    store = Store(tmp_path / "jobs", JSON)
    store.put("b", JSON.encode("kept"))
    run_jobs(working.square, {"a": (2.0,), "b": (3.0,)}, store, engine=engine)
    assert (store.get("a"), store.get("b")) == (4.0, "kept")


@every_engine
def test_no_jobs_are_no_work(engine, tmp_path):
    run_jobs(working.square, {}, Store(tmp_path / "jobs", JSON), engine=engine)
    assert list(tmp_path.iterdir()) == []


@every_engine
def test_a_job_that_fails_stops_the_run_and_others_are_kept(engine, tmp_path):
    store = Store(tmp_path / "jobs", JSON)
    with pytest.raises(ValueError, match="three is not allowed"):
        run_jobs(working.fail, {str(i): (float(i),) for i in range(6)}, store, engine=engine)
    assert any(str(i) in store for i in range(3))
    assert "3" not in store


def test_a_worker_that_dies_is_noticed(tmp_path):
    store = Store(tmp_path / "jobs", JSON)
    with pytest.raises(ChildProcessError, match=r"ended by signal 9.* what was finished is kept"):
        run_jobs(working.die, {str(i): (float(i),) for i in range(9)}, store, engine=Processes(2))
    assert any(str(i) in store for i in range(3))


def test_an_exception_that_cannot_be_sent_says_what_it_was(tmp_path):
    store = Store(tmp_path / "jobs", JSON)
    with pytest.raises(RuntimeError, match="TwoPartsError: cannot") as raised:
        run_jobs(working.fail_oddly, {"a": (1.0,)}, store, engine=Processes(1))
    assert "fail_oddly" in "".join(raised.value.__notes__)


def test_at_most_one_job_a_worker_is_under_way(tmp_path):
    store = Store(tmp_path / "jobs", JSON)
    jobs = {str(i): (str(tmp_path), 0.01) for i in range(10)}
    run_jobs(working.note_process, jobs, store, engine=Processes(2))
    assert len({store.get(key) for key in jobs}) == 2


def test_arrays_are_kept_with_their_types(tmp_path):
    import numpy as np

    store = Store(tmp_path, ARRAYS)
    store.put("a", ARRAYS.encode({"x": np.arange(3, dtype=np.int32), "y": np.array([np.nan])}))
    back = store.get("a")
    assert back["x"].dtype == np.int32
    assert np.isnan(back["y"]).all()


def test_an_engine_has_a_name():
    assert isinstance(engine_named("serial"), SerialEngine)
    assert isinstance(engine_named("here"), SerialEngine)  # its name in 0.2
    assert isinstance(engine_named(None, workers=1), SerialEngine)
    assert isinstance(engine_named(None, workers=3, jobs=1), SerialEngine)
    assert engine_named("processes", workers=3, jobs=9).workers == 3
    with pytest.raises(
        ValueError, match="no engine is called 'cloud'; there are serial, processes, ray"
    ):
        engine_named("cloud")
    with pytest.raises(ValueError, match="expected workers >= 1, got 0"):
        engine_named(None, workers=0)


def test_the_stamp_of_the_code_follows_modules_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_code.py").write_text("x = 1\n")
    stamps = [code_stamp(), code_stamp(("own_code",))]
    code_stamp.cache_clear()
    (tmp_path / "own_code.py").write_text("x = 2\n")
    stamps.append(code_stamp(("own_code",)))
    assert len(set(stamps)) == 3


def test_the_stamp_of_a_package_follows_all_of_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    inner = tmp_path / "own_package" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / "__init__.py").write_text("")
    stamps = []
    for text in ("x = 1\n", "x = 2\n"):
        (inner / "code.py").write_text(text)
        code_stamp.cache_clear()
        stamps.append(code_stamp(("own_package",)))
    assert stamps[0] != stamps[1]


def test_one_run_at_a_time_in_a_folder(tmp_path):
    with lock_run(tmp_path, "a"), lock_run(tmp_path, "b"):
        complaint = rf"another run of a is at work here \(process {os.getpid()}\); wait"
        with pytest.raises(ValueError, match=complaint), lock_run(tmp_path, "a"):
            pytest.fail("two at once")
    assert list(tmp_path.iterdir()) == []
    with lock_run(tmp_path, "a"):
        pass


DRIVER = """
import sys
from tacit.core.processes import exit_interrupted, install_sigint_handler
from tacit.engines import JSON, Processes, SerialEngine, Store, run_jobs
from commands import start_python
from engines import working

if __name__ == "__main__":
    install_sigint_handler()
    folder, engine = sys.argv[1], sys.argv[2]
    jobs = {str(i): (folder + "/pids", 0.0 if i < 2 else 60.0) for i in range(6)}
    try:
        run_jobs(working.note_process, jobs, Store(folder + "/jobs", JSON),
                 engine=SerialEngine() if engine == "serial" else Processes(2))
    except KeyboardInterrupt:
        print("stopped", flush=True)
        exit_interrupted()
"""


@pytest.fixture
def driver(tmp_path):
    (tmp_path / "driver.py").write_text(DRIVER)
    (tmp_path / "pids").mkdir()
    started = []

    def start(engine, new_session=True):
        process = start_python(
            *(tmp_path / "driver.py", tmp_path, engine),
            env={**os.environ, "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=new_session,
        )
        started.append(process)
        wait_for(lambda: len(kept(tmp_path)) == 2, 60)
        time.sleep(0.3)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def kept(folder):
    return sorted(p.name for p in (folder / "jobs").glob("[0-9]*"))


def wait_for(holds, seconds):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def workers(folder):
    return [int(path.name) for path in (folder / "pids").iterdir()]


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@needs_proc
@pytest.mark.parametrize("engine", ["serial", "processes"])
@pytest.mark.parametrize("times", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_ctrl_c_stops_within_two_seconds_and_keeps_what_was_finished(
    engine, times, driver, tmp_path
):
    process = driver(engine)
    begun = time.monotonic()
    for _ in range(times):  # a terminal sends it to every process of the group
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.05)
    out, complaint = process.communicate(timeout=20)
    # Two seconds, and as much again for a machine that does other things.
    assert time.monotonic() - begun < 4
    assert (process.returncode, out, complaint) == (130, "stopped\n", "")
    assert kept(tmp_path) == ["0.json", "1.json"]
    wait_for(lambda: not any(map(alive, workers(tmp_path))), 2)


@needs_proc
def test_kill_9_of_the_parent_leaves_no_worker(driver, tmp_path):
    process = driver("processes")
    assert all(map(alive, workers(tmp_path)))
    process.kill()
    process.communicate()
    wait_for(lambda: not any(map(alive, workers(tmp_path))), 5)


@needs_proc
def test_a_late_ctrl_c_ends_a_process_that_hangs(tmp_path):
    code = (
        "import time; from tacit.core.processes import install_sigint_handler; install_sigint_handler()\n"
        "try:\n    print('ready', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n    print('hanging', flush=True); time.sleep(60)\n"
    )
    process = start_python("-c", code, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "hanging\n"
    process.send_signal(signal.SIGINT)
    time.sleep(2.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
