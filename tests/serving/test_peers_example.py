"""Twenty processes over sockets, one of them killed: the others agree, and it may come back."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.compiled import INTERPRETED

EXAMPLE = Path(__file__).parents[2] / "examples" / "peers.py"


@pytest.mark.skipif(INTERPRETED, reason="twenty processes need compiled kernels")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the example forks")
@pytest.mark.parametrize(("more", "ended"), [([], 19), (["--restart"], 20)])
def test_twenty_processes_of_which_one_is_killed(more, ended):
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "--rounds", "150", *more],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "peer 10 was killed" in done.stdout
    assert ("peer 10: gone" in done.stdout) == (ended == 19)
    found = re.search(r"(\d+) of (\d+) peers believe in state 0; 0 messages refused", done.stdout)
    assert found is not None, done.stdout
    assert int(found[2]) == ended
    assert int(found[1]) >= 17
