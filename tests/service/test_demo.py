"""The demonstration runs, ends by itself and leaves nothing behind."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_a_small_crowd_is_learned_from():
    before = set(Path(tempfile.gettempdir()).glob("tacit-demo-*"))
    command = [sys.executable, "-m", "tacit", "demo", "--visitors", "30", "--rate", "30"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^watch +http://127\.0\.0\.1:\d+/demo$", done.stdout, re.MULTILINE)
    assert "The service saw none of the clicks" in done.stdout
    learned = re.findall(r"^ +[-\d.]+  0\.\d\d +([\d,]+)  \w", done.stdout, re.MULTILINE)
    assert sum(int(n.replace(",", "")) for n in learned) == 30
    assert set(Path(tempfile.gettempdir()).glob("tacit-demo-*")) == before


def test_the_page_has_the_client_as_it_is():
    client = ROOT / "clients" / "typescript"
    esbuild = next(client.glob("node_modules/@esbuild/*/bin/esbuild"), None)
    if esbuild is None:
        pytest.skip("the TypeScript client's packages are not installed")
    built = subprocess.run(
        [str(esbuild), "src/index.ts", "--bundle", "--minify", "--format=esm"],
        cwd=client,
        capture_output=True,
        check=True,
    )
    assert built.stdout == (ROOT / "src/tacit/demo/pages/client.js").read_bytes()
