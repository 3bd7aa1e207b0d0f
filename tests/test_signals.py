"""Ctrl-C wherever it comes: in an import, while an object is cleared away, in code made from a string."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import signal, sys, time
from tacit.core.processes import exit_interrupted, install_sigint_handler
install_sigint_handler()
"""

END = """
except KeyboardInterrupt:
    sys.stdout.flush()
    exit_interrupted()
"""


def ended(tmp_path, body):
    """Return how a process ends whose work is `body`, with lines indented by four."""
    (tmp_path / "work.py").write_text(f"{BEGIN}try:\n{body}\n    time.sleep(20)\n{END}")
    process = subprocess.run(
        [sys.executable, "-m", "work"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return process.returncode, process.stdout, process.stderr


def test_an_import_is_finished_first(tmp_path):
    text = "import signal\nsignal.raise_signal(signal.SIGINT)\nprint('whole')\n"
    (tmp_path / "halfway.py").write_text(text)
    code, out, complaint = ended(tmp_path, "    import halfway\n    print('imported')")
    assert (code, out.splitlines()[0], complaint) == (130, "whole", "")


def test_an_import_that_takes_too_long_is_not(tmp_path):
    text = (
        "import signal, time\nsignal.raise_signal(signal.SIGINT)\ntime.sleep(20)\nprint('whole')\n"
    )
    (tmp_path / "endless.py").write_text(text)
    assert ended(tmp_path, "    import endless") == (130, "", "")


@pytest.mark.parametrize("times", [1, 2])
def test_what_python_drops_is_sent_again(tmp_path, times):
    body = f"""
    class Cleared:
        def __del__(self):
            for _ in range({times}):
                signal.raise_signal(signal.SIGINT)
    del (cleared := [Cleared()])[0]
"""
    assert ended(tmp_path, body) == (130, "", "")


def test_code_from_a_string_does_not_change_how_it_ends(tmp_path):
    body = "    exec('signal.raise_signal(signal.SIGINT)')"
    assert ended(tmp_path, body) == (130, "", "")
