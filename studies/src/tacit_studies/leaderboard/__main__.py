"""Measure what is possible today and write a page's tables: ``python -m tacit_studies.leaderboard PAGE``.

Everything between the two marks of the page is replaced.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from tacit_studies import Finished, last_findings, reproduce
from tacit_studies.estimates import format_short as _number
from tacit_studies.leaderboard import PAPER
from tacit_studies.reproduction import Figure
from tacit_studies.tools import write_text

_BEGIN, _END = "<!-- tables: begin -->", "<!-- tables: end -->"


def replace_tables(page: str, finished: Sequence[Finished]) -> str:
    r"""Return a page whose tables are those of the findings.

    Examples
    --------
    >>> replace_tables("Before. <!-- tables: begin -->old<!-- tables: end --> After.", [])
    'Before. <!-- tables: begin -->\n\n<!-- tables: end --> After.'
    """
    before, begun, rest = page.partition(_BEGIN)
    _, ended, after = rest.partition(_END)
    if not (begun and ended):
        raise ValueError(f"expected a page with {_BEGIN} and {_END}, got one without")
    return f"{before}{_BEGIN}\n{chr(10).join(_section(each) for each in finished)}\n{_END}{after}"


def _section(done: Finished) -> str:
    version = f"Tacit {done.version}, {'quick' if done.quick else 'full'} size"
    parts = [f"\n### {done.reproduction.title}\n", f"{done.findings.because} ({version}.)\n"]
    parts += [_table(figure) for figure in done.findings.figures]
    return "\n".join(parts)


def _table(figure: Figure) -> str:
    lines = [
        f"**{figure.title}.** {figure.y_label.capitalize()}, by {figure.x_label}:\n",
        "| policy | " + " | ".join(_number(x) for x in figure.series[0].x) + " |",
        "| --- |" + " ---: |" * len(figure.series[0].x),
    ]
    compared = [each for each in figure.series if not each.dashed]
    least = [min(each.y[i] for each in compared) for i in range(len(figure.series[0].x))]
    for each in figure.series:
        cells = [
            (f"**{_number(y)}**" if y == best and not each.dashed else _number(y))
            + f" ({_number(low)} to {_number(high)})"
            for y, low, high, best in zip(each.y, each.low, each.high, least, strict=True)
        ]
        label = f"*{each.label}*" if each.dashed else each.label
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or read what was measured, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--workers", type=int, default=None)
    options = parser.parse_args(arguments)
    reproduce(PAPER.studies, options.out, quick=options.quick, workers=options.workers)
    found = [last_findings(study, options.out) for study in PAPER.studies]  # full before quick
    finished = [each for each in found if each is not None]
    text = replace_tables(options.page.read_text(encoding="utf-8"), finished)
    write_text(options.page, text)


if __name__ == "__main__":
    main()
