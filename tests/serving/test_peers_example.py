"""Many processes over sockets, one of them killed: the others agree, and it may come back."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from commands import start_python
from tacit.core.kernels import INTERPRETED

EXAMPLE = Path(__file__).parents[2] / "examples" / "peers.py"


@pytest.mark.skipif(INTERPRETED, reason="many processes need compiled kernels")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the example forks")
@pytest.mark.parametrize("peers", [8, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "more",
    [pytest.param([], id="killed", marks=pytest.mark.slow), pytest.param(["--restart"], id="back")],
)
def test_many_processes_of_which_one_is_killed(more, peers):
    words = EXAMPLE, "--rounds", "150", "--peers", peers, *more
    example = start_python(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said, complaint = example.communicate(timeout=240)
    assert example.returncode == 0, complaint
    assert "Traceback" not in complaint
    victim = peers // 2
    assert f"peer {victim} was killed" in said
    assert (f"peer {victim:2d}: gone" in said) == (not more)
    found = re.search(r"(\d+) of (\d+) peers believe in state 0; 0 messages refused", said)
    assert found is not None, said
    assert int(found[2]) == (peers if more else peers - 1)
    assert int(found[1]) >= 0.85 * (peers - 1)
