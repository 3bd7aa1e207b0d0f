"""What is forked for a test behaves as a process that was started does."""

from __future__ import annotations

import os
import signal
import sys
from subprocess import PIPE, TimeoutExpired

import pytest

from commands import start_python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")


def test_its_number_folder_environment_streams_and_exit_code_are_its_own(tmp_path):
    code = (
        "import os, sys; print(os.getpid(), os.getcwd(), os.environ['MINE'], os.getsid(0), sys.argv);"
        "print('trouble', file=sys.stderr); sys.exit(3)"
    )
    how = {"cwd": tmp_path, "env": {"MINE": "yes"}, "start_new_session": True}
    started = start_python("-c", code, "word", stdout=PIPE, stderr=PIPE, **how)
    out, err = started.communicate(timeout=30)
    assert out == f"{started.pid} {tmp_path} yes {started.pid} ['-c', 'word']\n"
    assert (err, started.returncode, started.poll()) == ("trouble\n", 3, 3)
    assert "MINE" not in os.environ


def test_signals_find_it_and_are_its_exit_code():
    waits = start_python(
        "-c", "import time; print('here', flush=True); time.sleep(60)", stdout=PIPE
    )
    assert waits.stdout.readline() == "here\n"
    assert waits.poll() is None
    with pytest.raises(TimeoutExpired):
        waits.wait(0.05)
    waits.kill()
    assert waits.wait(30) == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(waits.pid, 0)
    waits.stdout.close()


def test_an_error_is_written_and_two_do_not_share_what_they_change():
    for _ in range(2):
        code = "import sys; assert not hasattr(sys, 'mark'); sys.mark = 1; raise ValueError('no')"
        failed = start_python("-c", code, stdout=PIPE, stderr=PIPE)
        _, err = failed.communicate(timeout=30)
        assert failed.returncode == 1
        assert err.splitlines()[-1] == "ValueError: no"
    assert not hasattr(sys, "mark")
