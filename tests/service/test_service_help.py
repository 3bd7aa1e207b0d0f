"""The examples in the help of commands that need a service run, in the order of a working day."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess

import typer.main

import commands
from service.processes import Process
from tacit.cli import app

EXAMPLE = re.compile(r"^\s*Example: `([^`]+)`$", re.MULTILINE)
FILE = """
options = ["red", "green", "blue"]
policy = {name = "klucb-cf", epsilon = 1.0}
reward = {kind = "binary", report_after = 3600}
"""
DAY = (
    "experiment create",
    "experiment list",
    "experiment show",
    "experiment add-option",
    "experiment retire",
    "experiment mode",
    "experiment export",
    "token create",
    "token list",
    "token revoke",
    "service backup",
)


def example(name):
    command = typer.main.get_command(app)
    for word in name.split():
        command = command.commands[word]
    (found,) = EXAMPLE.findall(command.callback.__doc__)
    words = shlex.split(found)
    assert words[: 1 + len(name.split())] == ["tacit", *name.split()]
    return words[1:]


# Finding E10
def test_the_examples_of_a_service_run(tmp_path, monkeypatch):
    (tmp_path / "front-page.toml").write_text(FILE)
    process = Process(tmp_path, tmp_path / "shop.db")
    monkeypatch.setenv("TACIT_URL", process.url)
    monkeypatch.setenv("TACIT_TOKEN", process.token)
    for name in DAY:
        done = commands.tacit(*example(name), cwd=tmp_path)
        assert done.returncode == 0, (name, done.stderr)
        assert done.stdout.strip(), name
    assert process.kill(signal.SIGTERM) == 0
    for name in ("service restore", "service reset-clock"):
        done = commands.tacit(*example(name), cwd=tmp_path)
        assert done.returncode == 0, (name, done.stderr)
        assert done.stdout.strip(), name
    words = example("serve")
    words[words.index("--port") + 1] = "0"
    serving = commands.start(*words, cwd=tmp_path, stdout=subprocess.PIPE)
    said = [next(serving.stdout), next(serving.stdout)]
    # Its only administrator was revoked above.
    assert said[0].startswith("token")
    assert said[1].startswith("serving")
    serving.send_signal(signal.SIGTERM)
    assert serving.wait() == 0
    serving.stdout.close()
