"""Imports go one way: the layers of the design, as pyproject.toml states them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

UPSIDE_DOWN = """
[importlinter]
root_package = tacit

[importlinter:contract:upside-down]
name = Rooms know nothing of privacy
type = forbidden
source_modules = tacit.arms
forbidden_modules = tacit.privacy
"""


def lint(config: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from importlinter.cli import lint_imports_command as run; run()",
            "--config",
            str(config),
            "--no-cache",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_layers_hold():
    done = lint(ROOT / "pyproject.toml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kept, 0 broken" in done.stdout


def test_a_forbidden_import_is_noticed(tmp_path):
    (tmp_path / "rules.ini").write_text(UPSIDE_DOWN)
    done = lint(tmp_path / "rules.ini")
    assert done.returncode == 1
    assert "0 kept, 1 broken" in done.stdout
