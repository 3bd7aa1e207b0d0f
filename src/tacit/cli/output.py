"""What the command line prints: tables and JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from tacit.core.json_codec import dumps
from tacit.core.text import as_text

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
