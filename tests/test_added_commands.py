"""Commands that other distributions add, and what is said where they are not installed."""

from __future__ import annotations

import sys
import types
from importlib.metadata import EntryPoint

import pytest
import typer

import tacit.cli


def run(monkeypatch, points, *words):
    """Run the command line with these entry points alone; return its exit code."""
    monkeypatch.setattr(tacit.cli, "entry_points", lambda group: points)
    monkeypatch.setattr(sys, "argv", ["tacit", *words])
    monkeypatch.setattr(tacit.cli, "install_sigint_handler", lambda: None)
    with pytest.raises(SystemExit) as end:
        tacit.cli.main()
    return end.value.code


def test_without_the_studies_the_command_says_what_to_install(monkeypatch, capsys):
    assert run(monkeypatch, [], "reproduce", "all") == 2
    said = capsys.readouterr()
    assert said.err == "tacit: reproduce is not installed here; pip install tacit-studies\n"
    assert said.out == ""


def test_help_and_other_mistakes_need_no_studies(monkeypatch, capsys):
    assert not run(monkeypatch, [], "--help")
    assert "reproduce" not in capsys.readouterr().out
    assert run(monkeypatch, [], "polices") == 2
    assert "No such command" in capsys.readouterr().err


def test_a_distribution_adds_a_command(monkeypatch, capsys):
    module = types.ModuleType("greetings")
    module.app = typer.Typer()

    @module.app.command()
    def greet(name: str) -> None:
        """Say hello."""
        print(f"Hello, {name}!")

    monkeypatch.setitem(sys.modules, "greetings", module)
    point = EntryPoint("greet", "greetings:app", "tacit.commands")
    assert not run(monkeypatch, [point], "greet", "Ada")
    assert capsys.readouterr().out == "Hello, Ada!\n"
    assert not run(monkeypatch, [point], "--help")
    assert "Say hello." in capsys.readouterr().out


def test_no_distribution_replaces_a_command(monkeypatch, capsys):
    point = EntryPoint("policies", "no_such_module:app", "tacit.commands")
    assert not run(monkeypatch, [point], "policies", "--help")
    assert "List the policies" in capsys.readouterr().out
