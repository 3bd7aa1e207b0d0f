"""From a failing life to a short script: commands that are not needed are dropped, the rest is printed."""

from __future__ import annotations

import itertools
import pprint
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from together.life import Command, replay
from together.model import ViolationError
from together.options import Case

_TRIES = 300


def run(case: Case, commands: Sequence[Command], server: Any = None) -> None:
    """Carry out commands in a folder of their own; raise ``ViolationError`` where one does not hold."""
    with tempfile.TemporaryDirectory(prefix="tacit-together-") as folder:
        replay(case, commands, Path(folder), server)


def violation_of(case: Case, commands: Sequence[Command], server: Any = None) -> str | None:
    """Return which invariant these commands break, None if none."""
    try:
        run(case, commands, server)
    except ViolationError as error:
        return error.invariant
    return None


def shrink(
    case: Case, commands: Sequence[Command], invariant: str, server: Any = None
) -> list[Command]:
    """Drop what is not needed to break the same invariant: large pieces first, then single commands."""
    kept, size, tries = list(commands), max(1, len(commands) // 2), itertools.count()
    while size >= 1:
        at = 0
        while at < len(kept):
            if next(tries) > _TRIES:
                return kept
            fewer = kept[:at] + kept[at + size :]
            try:
                same = violation_of(case, fewer, server) == invariant
            except Exception:
                same = False
            if same:
                kept = fewer
            else:
                at += size
        size //= 2
    return kept


def script_of(case: Case, commands: Sequence[Command]) -> str:
    """Return a script that does it again."""
    told = pprint.pformat(list(commands), width=110, sort_dicts=False, compact=True)
    return (
        "# PYTHONPATH=tests python this.py\n"
        "from together.script import run\n\n"
        f"case = {pprint.pformat(case, width=110, sort_dicts=False, compact=True)}\n"
        f"commands = {told}\n"
        "run(case, commands)\n"
    )
