"""The command line: parses, calls, prints.

Every command prints a table on a terminal, aligned text in a pipe and JSON with ``--json``; complains
in one line on standard error and exits with 2; and never leaves a half-written file. A group of commands
is a file of this package with an ``app`` of its own, joined to the others below. Another distribution adds
a command by an entry point of the group ``tacit.commands`` that names its ``typer.Typer``.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, NoReturn

try:
    import typer
except ImportError:
    raise SystemExit("tacit: the command line needs more parts; pip install 'tacit[cli]'") from None

import typer.main
from typer.core import TyperGroup

import tacit
from tacit.cli import evaluations, ledger, listing, privacy, runs, service
from tacit.cli.arguments import Address, EngineName, Json, Out, Workers
from tacit.cli.output import show
from tacit.core.processes import exit_interrupted, install_sigint_handler
from tacit.core.progress import progress_bar

__all__ = [
    "Address",
    "EngineName",
    "Json",
    "Out",
    "Workers",
    "app",
    "main",
    "progress_bar",
    "show",
]

_DISTRIBUTIONS = {"reproduce": "tacit-studies"}
"""Which distribution brings a command that is not here."""


class _Commands(TyperGroup):
    """The commands of this package, and those that other distributions add, loaded when asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, those of this package first."""
        own = super().list_commands(ctx)
        return own + sorted(_added().keys() - set(own))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or say what to install for it."""
        found = super().get_command(ctx, cmd_name)
        if found is not None:
            return found
        point = _added().get(cmd_name)
        if point is not None:
            return typer.main.get_command(point.load())
        if cmd_name in _DISTRIBUTIONS:
            raise ValueError(
                f"{cmd_name} is not installed here; pip install {_DISTRIBUTIONS[cmd_name]}"
            )
        return None


def _added() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group="tacit.commands")}


app = typer.Typer(
    cls=_Commands,
    name="tacit",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


@app.callback(invoke_without_command=True)
def describe_version(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and nothing else.")
    ] = False,
) -> None:
    """Differentially private bandits on networks: learn together without telling."""
    if version:
        print(f"tacit {tacit.__version__}")
        raise typer.Exit


for group in (listing, runs, evaluations, privacy, ledger, service):
    app.add_typer(group.app)


def main() -> None:
    """Run the command line: 2 and one line for a mistake, 130 if it was stopped."""
    install_sigint_handler()
    if sys.stdout is None:
        _exit("standard output is closed")
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has seen enough
        _quiet_output()
        code = 1
    except Exception as error:
        complaint = _complaint(error)
        if complaint is None:
            raise
        _quiet_output()
        _exit(complaint)
    except KeyboardInterrupt:
        code = 130
    if code == 130:
        if sys.stderr is not None:
            print("tacit: stopped; what was finished is kept", file=sys.stderr, flush=True)
        _quiet_output()
        exit_interrupted()
    raise SystemExit(code)


def _exit(complaint: str) -> NoReturn:
    if sys.stderr is not None:
        print(f"tacit: {complaint}", file=sys.stderr)
    raise SystemExit(2)


def _quiet_output() -> None:
    """Let what is still to be printed go nowhere, so that the end of the process says nothing of it."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complaint(error: Exception) -> str | None:
    """Return one line for what a user can mend; nothing for a fault of this program."""
    if hasattr(error, "format_message"):  # typer's own, wherever the version at hand keeps them
        command = getattr(getattr(error, "ctx", None), "command_path", "tacit")
        text = f"{error.format_message()} (see {command} --help)"
    elif isinstance(error, IsADirectoryError):
        text = f"{error.filename}: expected a file, got a folder"
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {(error.strerror or 'cannot be used').lower()}"
    elif isinstance(error, OSError) and error.errno == errno.ENOSPC:
        text = "standard output: no space left on device"
    elif isinstance(error, MemoryError):
        text = f"not enough memory for this size ({error})"
    elif isinstance(error, ValueError | OSError):
        text = str(error)
    else:
        return None
    return " ".join(text.split())
