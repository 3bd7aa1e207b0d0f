"""The command line: parses, calls, prints.

Every command prints a table on a terminal, aligned text in a pipe and JSON with ``--json``; complains
in one line on standard error and exits with 2; and never leaves a half-written file. A group of commands
is a file of this package with an ``app`` of its own, joined to the others below.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import NoReturn

try:
    import typer
except ImportError:
    raise SystemExit("tacit: the command line needs more parts; pip install 'tacit[cli]'") from None

from tacit.cli import evaluations, ledger, listing, privacy, reproductions, runs, service
from tacit.signals import stop_once, stopped

__all__ = ["app", "main"]

app = typer.Typer(
    name="tacit",
    help="Differentially private bandits on networks: learn together without telling.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

for group in (listing, runs, evaluations, privacy, ledger, reproductions, service):
    app.add_typer(group.app)


def main() -> None:
    """Run the command line: 2 and one line for a mistake, 130 if it was stopped."""
    stop_once()
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
        stopped()
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
