"""The demonstration runs, ends by itself and leaves nothing behind."""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from commands import start, tacit
from tacit.cli.demo.browsers import chromium
from tacit.cli.demo.crowd import Crowd
from tacit.cli.demo.show import _lateness

ROOT = Path(__file__).parents[2]


def left_behind():
    """What a demonstration might leave: folders, and browsers that know them."""
    folders = Path(tempfile.gettempdir()).glob("tacit-demo-*")
    running = ""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            running += command.read_text(encoding="utf-8", errors="replace").replace("\0", " ")
    return {*map(str, folders), *re.findall(r"--user-data-dir=(\S+tacit-demo-\S+)", running)}


def test_a_small_crowd_is_learned_from(tmp_path):
    before = left_behind()
    done = tacit("demo", "--visitors", "30", "--rate", "30", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^watch +http://127\.0\.0\.1:\d+/demo$", done.stdout, re.MULTILINE)
    assert "The service saw none of the clicks" in done.stdout
    learned = re.findall(r"^ +[-\d.]+  0\.\d\d +([\d,]+)  \w", done.stdout, re.MULTILINE)
    assert sum(int(n.replace(",", "")) for n in learned) >= 30
    assert left_behind() <= before


def test_a_crowd_that_is_late_is_said_to_be():
    # Finding U1
    crowd = Crowd("", "", "", visitors=0, rate=1.0, max_epsilon=1.0, clicks=40)
    assert _lateness(crowd) == ""
    crowd.late = 3
    assert _lateness(crowd).startswith("3 of 40 clicks came after their report had gone out")


@pytest.mark.slow
@pytest.mark.skipif(chromium() is None, reason="there is no Chromium here")
def test_real_browsers_are_among_the_crowd_and_go_with_it():
    before = left_behind()
    demo = start("demo", "--visitors", "100000", "--rate", "5", stdout=subprocess.PIPE)
    try:
        for line in demo.stdout:
            if line.startswith("watch"):
                break
        address = line.split()[1]
        until = time.monotonic() + 60
        seen = []
        while not seen and time.monotonic() < until:
            time.sleep(0.2)
            found = httpx2.get(f"{address}/data").json()
            seen = [visit for visit in found["latest"] if visit["where"] == "browser"]
        assert {visit["sent"] for visit in seen} <= {0, 1}
        assert found["in_browsers"] >= 1
        assert httpx2.post(f"{address}/noted", json={"word": "guessed"}).status_code == 403
        demo.send_signal(signal.SIGINT)
        assert "The service saw none of the clicks" in demo.stdout.read()
        assert demo.wait(timeout=10) == 0
    finally:
        demo.kill()
        demo.stdout.close()
    assert left_behind() <= before


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
    assert built.stdout == (ROOT / "src/tacit/cli/demo/pages/client.js").read_bytes()
