"""The report: one HTML file that needs nothing else, with a page for each paper.

The first page is for a reader who knows nothing of the matter. Every sentence about results comes from the
findings, and every sentence about a paper from its folder in `tacit_studies`; the templates in ``pages``
only arrange. Charts are drawn in the browser by ``chart.js``; the numbers of each stand in a table
beside it, and the file works without scripts too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tacit.simulation.plots import COLOURS
from tacit_studies import Finished, Paper, Row, pages
from tacit_studies.report.chart_data import chart_data, described, has_keys, number_table
from tacit_studies.report.figures import draw_figure
from tacit_studies.report.formulas import rooted
from tacit_studies.tools import write_text
from tacit_studies.verdicts import NOT_REPRODUCED, OWN, PARTLY, REPRODUCED, UNDECIDED

_SYMBOLS = {REPRODUCED: "✓", PARTLY: "◐", NOT_REPRODUCED: "✗", UNDECIDED: "?", OWN: "◆"}
_MANY_ROWS = 14
_FIRST_ROWS = 10


def write_report(finished: Sequence[Finished], folder: str | Path) -> Path:
    """Write ``report.html``, and every figure as SVG and PDF under ``figures``.

    Parameters
    ----------
    finished : sequence of Finished
        What `tacit_studies.reproduce` or `last_findings` returned; papers without any are named as not
        run. A study that belongs to no paper is shown on the first page.
    folder : path

    Returns
    -------
    Path
        Of ``report.html``.
    """
    folder = Path(folder)
    for each in finished:
        for i, data in enumerate(each.findings.figures, 1):
            draw_figure(data, folder / "figures" / f"{each.reproduction.name}-{i}")
    text = _page(finished)
    path = folder / "report.html"
    write_text(path, text)
    return path


def _page(finished: Sequence[Finished]) -> str:
    shown = _shown(finished)
    of_papers = [done for _, studies in shown for done in studies if not done.reproduction.own]
    return (
        _pages()
        .get_template("page.html")
        .render(
            papers=shown,
            alone=[done for done in finished if not done.reproduction.paper],
            tally=_counted(done.findings.verdict for done in of_papers),
            measured=len(of_papers),
            own=sum(done.reproduction.own for done in finished),
            stamp=_stamp(finished),
            style=Markup(_resource("page.css") + _palette()),
            script=Markup(_resource("chart.js")),
        )
    )


def _pages() -> Environment:
    pages = Environment(
        loader=PackageLoader("tacit_studies.report", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {"prose": prose, "script_json": script_json}
    pages.globals |= {
        "symbols": _SYMBOLS,
        "chart_data": chart_data,
        "described": described,
        "has_keys": has_keys,
        "number_table": number_table,
        "columns_of": _columns,
        "first_rows": lambda rows: len(rows) if len(rows) <= _MANY_ROWS else _FIRST_ROWS,
    }
    return pages


def prose(text: str) -> Markup:
    """Escape a sentence and set its formulas: ``T^0.5`` with a raised exponent, ``sqrt`` as a root.

    Examples
    --------
    >>> prose("like T^0.66, below sqrt(L)")
    Markup('like T<sup>0.66</sup>, below √(L)')
    """
    raised = r"\^(-?[0-9]+(?:\.[0-9]+)?|[A-Za-z]+)"
    return Markup(rooted(re.sub(raised, r"<sup>\1</sup>", str(escape(text)))))


def script_json(data: Any) -> Markup:
    """Write data for a ``<script type="application/json">``, which ends at the first ``</``."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028"))


def _resource(name: str) -> str:
    return files("tacit_studies.report").joinpath("pages", name).read_text(encoding="utf-8")


def _palette() -> str:
    light = "".join(f".c{i} {{ --c: {colour}; }}\n" for i, colour in enumerate(COLOURS))
    dark = "".join(
        f".c{i} {{ --c: #EDEDED; }}\n" for i, colour in enumerate(COLOURS) if colour == "#000000"
    )
    return f"{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"


def _shown(finished: Sequence[Finished]) -> list[tuple[Paper, list[Finished]]]:
    """Return every page with its studies, those of papers without a folder last."""
    known = list(pages())
    others = {done.reproduction.paper for done in finished} - {p.name for p in known} - {""}
    known += [
        Paper(name=n, short="", title=f"Studies of {n}", cited="", question="", method="")
        for n in sorted(others)
    ]
    return [
        (paper, [done for done in finished if done.reproduction.paper == paper.name])
        for paper in known
    ]


def _counted(verdicts: Any) -> dict[str, int]:
    found = list(verdicts)
    return {verdict: found.count(verdict) for verdict in _SYMBOLS if verdict in found}


def _stamp(finished: Sequence[Finished]) -> str:
    versions = ", ".join(sorted({done.version for done in finished})) or "none"
    sizes = sorted({"quick" if done.quick else "full" for done in finished}, reverse=True)
    size = f"{' and '.join(sizes)} size" if finished else "nothing run yet"
    return f"Made by Tacit {versions} from {len(finished)} studies, {size}."


def _columns(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the columns of a table of numbers by their names; one that would be empty is left out."""
    columns = {
        "The paper": [row.paper for row in rows],
        "Measured here": [row.measured for row in rows],
        "Checked independently": [row.expected for row in rows],
    }
    return {name: cells for name, cells in columns.items() if any(cells)}
