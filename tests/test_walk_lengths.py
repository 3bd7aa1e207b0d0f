"""A reader follows a step of Tacit through few functions in few files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WALKS = Path(__file__).parents[1] / "benchmarks/walks.py"


def test_one_round_is_a_short_walk():
    done = subprocess.run(
        [sys.executable, WALKS, "klucb-cf"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "one round of klucb-cf" in done.stdout
