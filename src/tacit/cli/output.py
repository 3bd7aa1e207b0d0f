"""What the command line prints: tables, progress, JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tacit.core.compile_notice import on_compiling
from tacit.core.json_codec import dumps

MINUTE = 60.0
_LEGIBLE = 12
"""Characters that a column needs on a terminal; with fewer, columns stand below each other."""


def show(rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    """Print rows: a table on a terminal, aligned text in a pipe, or JSON."""
    if as_json:
        print(dumps(rows))
        return
    columns = list(rows[0])
    cells = [[as_text(row[column]) for column in columns] for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        console = Console()
        if console.width < max(len(line[0]) for line in cells) + _LEGIBLE * (len(columns) - 1):
            _show_below_each_other(columns, cells)
            return
        table = Table(box=None, header_style="bold", pad_edge=False)
        for column in columns:
            table.add_column(column, no_wrap=column == columns[0], overflow="fold")
        for line in cells:
            table.add_row(*line)
        console.print(table)
        return
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for line in [columns, *cells]:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(padded).rstrip())


def _show_below_each_other(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    blocks = (
        "\n".join(f"{column}: {cell}" for column, cell in zip(columns, line, strict=True) if cell)
        for line in cells
    )
    print("\n\n".join(blocks))


def as_text(value: Any) -> str:
    """Write a number for a reader: four digits that count, thousands separated."""
    if not isinstance(value, float):
        return str(value)
    short = f"{value:.4g}"
    return f"{float(short):,.0f}" if 1e4 <= abs(value) < 1e12 else short


@contextmanager
def progress_bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function that moves a bar on a terminal, and writes a line a minute elsewhere.

    Compilation that takes more than a second is announced on either.
    """
    on_compiling(_announce)
    if not sys.stderr.isatty():
        yield _line_a_minute(name)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _line_a_minute(name: str) -> Callable[[int, int], None]:
    written = time.monotonic()

    def move(done: int, total: int) -> None:
        nonlocal written
        if time.monotonic() - written >= MINUTE:
            written = time.monotonic()
            print(f"tacit: {name}: {done:,} of {total:,}", file=sys.stderr, flush=True)

    return move


def _announce() -> None:
    print("tacit: compiling for the first use; the next one starts at once", file=sys.stderr)
