"""Progress of long work: a bar on a terminal and in a notebook, a line a minute elsewhere."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tacit.core.compile_notice import on_compiling

Progress = Callable[[int, int], None]
"""Called with what is done, and with all there is to do."""
MINUTE = 60.0


def is_watched() -> bool:
    """Return whether a person sees a bar: on a terminal or in a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


@contextmanager
def progress_bar(name: str) -> Iterator[Progress]:
    """Give a function that moves a bar where somebody sees it, and writes a line a minute elsewhere.

    Compilation that takes more than a second is announced on either.
    """
    on_compiling(_announce)
    if not is_watched() or importlib.util.find_spec("rich") is None:
        written = time.monotonic()

        def move(done: int, total: int) -> None:
            nonlocal written
            if time.monotonic() - written >= MINUTE:
                written = time.monotonic()
                print(f"tacit: {name}: {done:,} of {total:,}", file=sys.stderr, flush=True)

        yield move
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _announce() -> None:
    print("tacit: compiling for the first use; the next one starts at once", file=sys.stderr)
