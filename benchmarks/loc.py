"""Count the lines of Tacit by package, and write the table of docs/architecture.md.

``python benchmarks/loc.py`` prints the table; with ``--write`` it goes into the page.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/architecture.md"
BEGIN, END = "<!-- Made by benchmarks/loc.py -->", "<!-- End of what benchmarks/loc.py made -->"


class Lines(NamedTuple):
    files: int = 0
    lines: int = 0
    code: int = 0
    docstrings: int = 0

    def __add__(self, other: tuple[int, ...]) -> Lines:  # type: ignore[override]
        return Lines(*(a + b for a, b in zip(self, other, strict=True)))


def count(file: Path) -> Lines:
    """Count a file's lines: all of them, those with code, those of docstrings."""
    text = file.read_text(encoding="utf-8")
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    told: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            told |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    code: set[int] = set()
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    with file.open("rb") as opened:
        for token in tokenize.tokenize(opened.readline):
            if token.type not in skipped | {tokenize.ENCODING, tokenize.ENDMARKER}:
                code |= set(range(token.start[0], token.end[0] + 1))
    return Lines(1, len(text.splitlines()), len(code - told), len(told))


def count_packages(source: Path = ROOT / "src/tacit") -> dict[str, Lines]:
    """Count by package, modules of the top level together."""
    found: dict[str, Lines] = {}
    for file in sorted(source.rglob("*.py")):
        place = file.relative_to(source).parts
        name = place[0] if len(place) > 1 else "top level"
        found[name] = found.get(name, Lines()) + count(file)
    return found


def write_table() -> str:
    """Return the table, in Markdown, the largest package first."""
    found = count_packages()
    rows = [
        "| package | files | lines | code | docstrings |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    by_size = sorted(found.items(), key=lambda pair: -pair[1].lines)
    total = ("**all**", sum(found.values(), Lines()))
    for name, lines in [*((f"`{name}`", lines) for name, lines in by_size), total]:
        rows.append(f"| {name} | " + " | ".join(f"{number:,}" for number in lines) + " |")
    return "\n".join(rows)


if __name__ == "__main__":
    table = write_table()
    print(table)
    if "--write" in sys.argv:
        page = PAGE.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}", "utf-8")
