"""Every command's help has an example, and every example runs."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from commands import tacit
from tacit.cli import app
from tacit.core.kernels import INTERPRETED
from tiers import tiered

ROOT = Path(__file__).parents[1]
EXAMPLE = re.compile(r"^\s*Example: `([^`]+)`$", re.MULTILINE)


def commands_of(group, words=()):
    """Return the documentation of every command by its words, those of groups too."""
    found = {}
    context = typer.Context(group)
    for name in group.list_commands(context):
        here, command = (*words, name), group.get_command(context, name)
        if hasattr(command, "commands"):
            found |= commands_of(command, here)
        else:
            found[" ".join(here)] = command.callback.__doc__ or ""
    return found


COMPILING = "tacit: compiling for the first use; the next one starts at once\n"
SLOW = ("check", "reproduce", "audit", "run", "compare", "demo")
COMMANDS = commands_of(typer.main.get_command(app))
SERVED = ("serve", "experiment", "token", "service")
"""What needs a service; `tests/service/test_service_help.py` runs their examples."""
ALONE = [name for name in COMMANDS if name.split()[0] not in SERVED]


def test_the_commands_are_known():
    known = {"policies", "environments", "run", "compare", "guarantee", "audit", "reproduce"}
    assert known <= COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_its_example(name):
    (example,) = EXAMPLE.findall(COMMANDS[name])
    done = CliRunner().invoke(app, [*name.split(), "--help"])
    assert done.exit_code == 0, done.output
    shown = " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.output).split())
    assert example in shown


@pytest.mark.skipif(INTERPRETED, reason="seconds when compiled, minutes when interpreted")
@pytest.mark.parametrize("name", tiered(ALONE, lambda name: name not in SLOW))
def test_the_example_of_a_command_runs(name, tmp_path):
    (example,) = EXAMPLE.findall(COMMANDS[name])
    words = shlex.split(example)
    assert words[: 1 + len(name.split())] == ["tacit", *name.split()]
    for word in words:
        if word.endswith(".toml"):
            (tmp_path / word).parent.mkdir(parents=True, exist_ok=True)
            study = (ROOT / word).read_text(encoding="utf-8")
            small = re.sub(r"^(horizon|repetitions) = \S+$", r"\1 = 20", study, flags=re.MULTILINE)
            assert small.count("= 20\n") == 2
            (tmp_path / word).write_text(small, encoding="utf-8")
        if word.endswith(".csv"):
            rows = [f"{t % 2},{(t // 2) % 3 != 0:d},0.5" for t in range(200)]
            text = "\n".join(["arm,reward,propensity", *rows])
            (tmp_path / word).write_text(text, encoding="utf-8")
    if words[1] == "ledger" and words[2] != "allow":
        tacit("ledger", "allow", words[3], "--epsilon", "1", cwd=tmp_path)
    done = tacit(*words[1:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    said = done.stderr.replace(COMPILING, "")  # on a machine with an empty cache
    assert said == ""


def test_help_without_a_command_lists_them_all():
    done = CliRunner().invoke(app, ["--help"])
    assert done.exit_code == 0
    assert all(name.split()[0] in done.output for name in COMMANDS)


def test_help_waits_for_no_heavy_import():
    code = (
        "import json, sys\n"
        "from tacit.cli import app\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    app([*words, '--help'], standalone_mode=False)\n"
        "    heavy = {'numba', 'numpy', 'scipy', 'matplotlib', 'pyarrow'} & set(sys.modules)\n"
        "    if heavy:\n"
        "        sys.exit(f'{words}: {heavy}')\n"
    )
    commands = json.dumps([[], *(name.split() for name in COMMANDS)])
    done = subprocess.run(
        [sys.executable, "-c", code, commands], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("--help") > len(COMMANDS)
