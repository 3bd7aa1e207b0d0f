"""What is written down twice says the same: checks before a commit, versions of Python, lines."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAKE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_pre_commit_checks_what_make_lint_checks():
    hooks = re.findall(r"entry: \.venv/bin/(.*)", (ROOT / ".pre-commit-config.yaml").read_text())
    params = MAKE.partition("\nlint: ")[2].partition("\n\n")[0]
    assert hooks == re.findall(r"\t\$\(BIN\)/(.*)", params)
    assert len(hooks) == 4


def test_the_versions_of_python_are_those_that_make_matrix_tries():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = re.search(r"^PYTHONS := (.*)$", MAKE, re.MULTILINE)
    assert found is not None
    prefix = "Programming Language :: Python :: "
    claimed = [each.removeprefix(prefix) for each in project["classifiers"] if prefix in each]
    assert found[1].split() == [each for each in claimed if re.fullmatch(r"3\.\d+", each)]
    assert project["requires-python"] == f">={found[1].split()[0]}"


def test_make_uses_uv_where_there_is_one(tmp_path):
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\n")
    uv.chmod(0o755)
    command = ["make", "-n", "lint", f"VENV={tmp_path}/venv"]
    for path, installs in (
        (f"{tmp_path}:/usr/bin:/bin", "uv pip install"),
        ("/usr/bin:/bin", "-m pip"),
    ):
        done = subprocess.run(
            command, cwd=ROOT, env={"PATH": path}, capture_output=True, text=True, check=True
        )
        assert installs in done.stdout


def test_lines_are_counted(tmp_path):
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from loc import Lines, count_packages
    finally:
        sys.path.pop(0)
    (tmp_path / "one").mkdir()
    (tmp_path / "one/two.py").write_text(
        '"""Said\n\nat length."""\n\nx = 1  # why\n# alone\ny = """\n"""\n'
    )
    assert count_packages(tmp_path) == {"one": Lines(files=1, lines=8, code=3, docstrings=3)}
