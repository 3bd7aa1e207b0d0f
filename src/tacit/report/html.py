"""The report: one HTML file that needs nothing else, with a page for each paper.

The first page is for a reader who knows nothing of the matter. Every sentence about results comes from the
findings; what is written here only introduces and arranges. Charts are drawn in the browser by
``chart.js``; the numbers of each stand in a table beside it, and the file works without scripts too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from tacit.papers.reproduction import (
    NOT_REPRODUCED,
    PARTLY,
    REPRODUCED,
    UNDECIDED,
    Figure,
    Panel,
    Row,
    Series,
)
from tacit.papers.runner import Finished
from tacit.report.figures import colour_numbers, draw_figure
from tacit.report.html_markup import Html, fill, joined, plain, prose, script_json, short
from tacit.report.html_papers import PAPERS, Paper
from tacit.report.maps import MapScale, contours, edges, map_scale
from tacit.report.style import COLOURS, MAP_COLOURS
from tacit.state import write_atomically

__all__ = ["write_report"]

TRADE_OFF = "trade-off"
_SYMBOLS = {REPRODUCED: "✓", PARTLY: "◐", NOT_REPRODUCED: "✗", UNDECIDED: "?"}
_MOST_POINTS = 250
_MOST_LINES = 60
_MANY_ROWS = 14
_FIRST_ROWS = 10


def write_report(finished: Sequence[Finished], folder: str | Path) -> Path:
    """Write ``report.html``, and every figure as SVG and PDF under ``figures``.

    Parameters
    ----------
    finished : sequence of Finished
        What `tacit.papers.reproduce` or `last_findings` returned; papers without any are named as not run.
        The study called ``trade-off`` belongs to no paper and is shown on the first page.
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
    text = _page(list(finished))
    path = folder / "report.html"
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))
    return path


def _page(finished: list[Finished]) -> Html:
    papers = [*PAPERS, *_others(finished)]
    by_paper = {p.number: _of_paper(finished, p.number) for p in papers}
    menu = [("overview", "Overview"), *((_page_id(p), f"{p.number} {p.short}") for p in papers)]
    pages = [_overview(papers, by_paper, finished)]
    pages += [_paper_page(paper, by_paper[paper.number]) for paper in papers]
    return fill(
        _resource("page.html"),
        title="Private bandits on networks: five papers measured again",
        style=Html(_resource("page.css") + _palette()),
        script=Html(_resource("chart.js")),
        menu=joined(fill('<li><a href="#{id}">{name}</a></li>', id=i, name=n) for i, n in menu),
        pages=joined(pages),
        stamp=_stamp(finished),
    )


def _resource(name: str) -> str:
    return files("tacit.report").joinpath(name).read_text(encoding="utf-8")


def _palette() -> str:
    light = "".join(f".c{i} {{ --c: {colour}; }}\n" for i, colour in enumerate(COLOURS))
    dark = "".join(
        f".c{i} {{ --c: #EDEDED; }}\n" for i, colour in enumerate(COLOURS) if colour == "#000000"
    )
    return f"{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"


def _others(finished: list[Finished]) -> list[Paper]:
    known = {paper.number for paper in PAPERS}
    numbers = {f.reproduction.paper for f in finished if f.reproduction.name != TRADE_OFF} - known
    return [
        Paper(number=n, short="", title=f"Studies of {n or 'no paper'}", cited="", question="",
              method="")
        for n in sorted(numbers)
    ]  # fmt: skip


def _of_paper(finished: list[Finished], number: str) -> list[Finished]:
    return [
        f for f in finished
        if f.reproduction.paper == number and f.reproduction.name != TRADE_OFF
    ]  # fmt: skip


def _page_id(paper: Paper) -> str:
    return f"paper-{paper.number}"


def _stamp(finished: Sequence[Finished]) -> Html:
    versions = ", ".join(sorted({f.version for f in finished})) or "none"
    sizes = {f.quick for f in finished}
    size = (
        "quick and full size" if len(sizes) == 2 else "quick size" if True in sizes else "full size"
    )
    return fill(
        "Made by Tacit {version} from {n} studies, {size}.",
        version=versions,
        n=len(finished),
        size=size if finished else "nothing run yet",
    )


def _overview(
    papers: list[Paper], by_paper: dict[str, list[Finished]], finished: list[Finished]
) -> Html:
    studies = [f for group in by_paper.values() for f in group]
    return fill(
        _resource("overview.html"),
        stamp=_stamp(finished),
        tally=_tally(studies),
        privacy=_privacy_list(papers, by_paper),
        trade_off=joined(_trade_off(f) for f in finished if f.reproduction.name == TRADE_OFF),
        tables=joined(_verdict_table(paper, by_paper[paper.number]) for paper in papers),
    )


def _tally(studies: list[Finished]) -> Html:
    if not studies:
        return Html("<p>No table or figure of a paper has been measured yet.</p>")
    counts = {v: sum(f.findings.verdict == v for f in studies) for v in _SYMBOLS}
    items = joined(
        fill("<li>{chip}</li>", chip=_chip(verdict, f"{n} {verdict}"))
        for verdict, n in counts.items()
        if n
    )
    return fill(
        '<p>Tables, figures and claims measured again: {n}.</p><ul class="tally">{items}</ul>',
        n=len(studies),
        items=items,
    )


def _privacy_list(papers: list[Paper], by_paper: dict[str, list[Finished]]) -> Html:
    items = [
        fill('<li><a href="#{study}">{number} {short}</a>: {said}</li>',
             study=f.reproduction.name, number=paper.number, short=paper.short,
             said=prose(f.findings.privacy))
        for paper in papers
        for f in by_paper[paper.number]
        if f.findings.privacy
    ]  # fmt: skip
    if not items:
        return Html("")
    return fill("<h3>Does the promised privacy hold?</h3><ul>{items}</ul>", items=joined(items))


def _trade_off(done: Finished) -> Html:
    return fill(
        '<section id="{name}"><h2>{title}</h2><p>{question}</p>{figures}'
        "<p>{because}</p>{foot}</section>",
        name=done.reproduction.name,
        title=prose(done.reproduction.title),
        question=prose(done.reproduction.question),
        figures=_figures(done),
        because=prose(done.findings.because),
        foot=_foot(done),
    )


def _verdict_table(paper: Paper, studies: list[Finished]) -> Html:
    heading = fill('<h3 id="verdicts-{n}"><a href="#{page}">{n} {short}</a></h3><p class="cited">{title}</p>',
                   n=paper.number, page=_page_id(paper), short=paper.short, title=paper.title)  # fmt: skip
    return joined([heading, _verdicts(paper, studies)])


def _verdicts(paper: Paper, studies: list[Finished]) -> Html:
    if not studies:
        return fill("<p>Not run yet. To run it: <code>tacit reproduce {n} --quick</code></p>",
                    n=paper.number)  # fmt: skip
    rows = joined(
        fill(
            '<tr><th scope="row"><a href="#{id}">{title}</a></th>'
            '<td data-name="The paper says">{claim}</td><td>{chip}</td>'
            '<td data-name="We found">{because}</td></tr>',
            id=f.reproduction.name,
            title=prose(f.reproduction.title),
            claim=prose(f.reproduction.claim),
            chip=_chip(f.findings.verdict),
            because=prose(f.findings.because),
        )
        for f in studies
    )
    return fill(
        '<div class="scroll"><table class="verdicts"><thead><tr><th scope="col">Study</th>'
        '<th scope="col">The paper says</th><th scope="col">Verdict</th><th scope="col">Why</th></tr>'
        "</thead><tbody>{rows}</tbody></table></div>",
        rows=rows,
    )


def _chip(verdict: str, text: str = "") -> Html:
    return fill(
        '<span class="verdict {kind}"><span aria-hidden="true">{symbol}</span> {text}</span>',
        kind=verdict.replace(" ", "-"),
        symbol=_SYMBOLS.get(verdict, "?"),
        text=text or verdict,
    )


def _paper_page(paper: Paper, studies: list[Finished]) -> Html:
    return fill(
        '<section class="page" id="{id}" aria-labelledby="{id}-title"><p class="cited">Paper {n}</p>'
        '<h1 id="{id}-title">{title}</h1><p class="cited">{cited}</p>'
        '<p class="lead">{question}</p><p>{method}</p>{contents}{studies}</section>',
        id=_page_id(paper),
        n=paper.number,
        title=paper.title,
        cited=paper.cited,
        question=paper.question,
        method=paper.method,
        contents=_contents(paper, studies),
        studies=joined(_study(f) for f in studies),
    )


def _contents(paper: Paper, studies: list[Finished]) -> Html:
    if not studies:
        return _verdicts(paper, studies)
    return fill("<ul>{items}</ul>", items=joined(
        fill('<li><a href="#{id}">{title}</a> {chip}</li>', id=f.reproduction.name,
             title=prose(f.reproduction.title), chip=_chip(f.findings.verdict))
        for f in studies
    ))  # fmt: skip


def _study(done: Finished) -> Html:
    of, found = done.reproduction, done.findings
    privacy = fill(
        '<p class="privacy"><strong>Privacy.</strong> {said}</p>', said=prose(found.privacy)
    )
    return fill(
        '<section class="study" id="{id}" aria-labelledby="{id}-title"><h2 id="{id}-title">{title}</h2>'
        "<p>{chip}{skipped}</p><dl><dt>The question</dt><dd>{question}</dd><dt>The paper says</dt>"
        "<dd>{claim}</dd><dt>We found</dt><dd>{because}</dd></dl>{privacy}{figures}{rows}{foot}</section>",
        id=of.name,
        title=prose(of.title),
        chip=_chip(found.verdict),
        skipped=" Not run: its data set is missing." if done.skipped else "",
        question=prose(of.question),
        claim=prose(of.claim),
        because=prose(found.because),
        privacy=privacy if found.privacy else Html(""),
        figures=_figures(done),
        rows=_rows(found.rows),
        foot=_foot(done),
    )


def _foot(done: Finished) -> Html:
    size = "quick size" if done.quick else "full size"
    return fill(
        '<code class="command">tacit reproduce {name}{quick}</code>'
        '<p class="stamp">Measured at {size} by Tacit {version}.</p>',
        name=done.reproduction.name,
        quick=" --quick" if done.quick else "",
        size=size,
        version=done.version,
    )


def _rows(rows: list[Row]) -> Html:
    """Lay out the numbers; a column that would be empty is left out."""
    if not rows:
        return Html("")
    columns = {
        "The paper": [row.paper for row in rows],
        "Measured here": [row.measured for row in rows],
        "Checked independently": [row.expected for row in rows],
    }
    columns = {name: cells for name, cells in columns.items() if any(cells)}
    marked = any(row.agrees is not None for row in rows)
    names = ["", *columns, *["Agrees?"] * marked]
    lines = []
    for i, row in enumerate(rows):
        cells = [
            fill('<td class="number{none}" data-name="{name}">{cell}</td>', name=name,
                 none="" if column[i] else " none", cell=prose(column[i] or "–"))
            for name, column in columns.items()
        ] + [_agreement(row.agrees)] * marked  # fmt: skip
        lines.append(
            fill(
                '<tr><th scope="row">{label}</th>{cells}</tr>',
                label=prose(row.label),
                cells=joined(cells),
            )
        )
    table = '<div class="scroll" tabindex="0"><table class="numbers">{head}{body}</table></div>'
    head = fill(
        "<caption>The numbers, the paper's beside ours</caption><thead><tr>{names}</tr></thead>",
        names=joined(fill('<th scope="col">{name}</th>', name=name) for name in names),
    )
    first = len(lines) if len(lines) <= _MANY_ROWS else _FIRST_ROWS
    shown = fill(table, head=head, body=joined(lines[:first]))
    if first == len(lines):
        return shown
    return fill(
        "{shown}<details><summary>{n} more numbers</summary>" + table + "</details>",
        shown=shown,
        n=len(lines) - first,
        head=head,
        body=joined(lines[first:]),
    )


def _agreement(agrees: bool | None) -> Html:
    if agrees is None:
        return Html('<td class="mark none">–</td>')
    kind, text = ("agrees", "✓ agrees") if agrees else ("differs", "✗ differs")
    return fill('<td class="mark {kind}">{text}</td>', kind=kind, text=text)


def _figures(done: Finished) -> Html:
    drawn = joined(
        _figure(data, f"{done.reproduction.name}-{i}")
        for i, data in enumerate(done.findings.figures, 1)
    )
    several = len(done.findings.figures) > 1
    return fill('<div class="side">{drawn}</div>', drawn=drawn) if several else drawn


def _figure(data: Figure, name: str) -> Html:
    return fill(
        _resource("figure.html"),
        title=prose(data.title),
        caption=prose(data.caption),
        described=_described(data),
        role=Html(' tabindex="0"') if _has_keys(data) else "",
        data=script_json(_chart(data)),
        table=_map_table(data) if data.kind == "map" else _data_table(data),
        name=name,
    )


def _chart(data: Figure) -> dict[str, Any]:
    """Return what ``chart.js`` draws."""
    series = [_thinned(each, _MOST_POINTS) for each in data.series]
    chart: dict[str, Any] = {
        "kind": data.kind,
        "x_label": plain(data.x_label),
        "y_label": plain(data.y_label),
        "x_log": data.x_log,
        "y_log": data.y_log,
        "ticks": [plain(tick) for tick in data.ticks],
        "colours": colour_numbers(data.series),
        "series": [_line(each) for each in series],
    }
    if data.kind == "map":
        scale = map_scale(data)
        chart |= scale._asdict() | {
            "colours": MAP_COLOURS,
            "value_label": plain(data.value_label),
            "panels": [_panel(panel, scale, x_log=data.x_log) for panel in data.panels],
        }
    return chart


def _line(series: Series) -> dict[str, Any]:
    parts = {name: _numbers(getattr(series, name)) for name in ("x", "y", "low", "high")}
    return {"label": plain(series.label), "dashed": series.dashed, **parts}


def _panel(panel: Panel, scale: MapScale, *, x_log: bool) -> dict[str, Any]:
    return {
        "label": plain(panel.label),
        "x": _numbers(panel.x),
        "y": _numbers(panel.y),
        "x_edges": edges(panel.x, log=x_log),
        "y_edges": edges(panel.y, log=False),
        "values": [_numbers(row) for row in panel.values],
        "contours": [
            {"level": each.level, "at": _numbers(each.at),
             "lines": [[_numbers(point) for point in line] for line in each.lines]}
            for each in contours(panel, scale.levels, x_log=x_log)
        ],
        "curve": _line(panel.curve),
    }  # fmt: skip


def _has_keys(data: Figure) -> bool:
    return data.kind in ("line", "points")


def _described(data: Figure) -> str:
    """Say what the figure shows to someone who cannot see it."""
    if data.kind == "map":
        return (
            f"{data.title}. {data.value_label} as colour, {data.y_label} against {data.x_label}, "
            f"in {len(data.panels)} panels; the values are in the table."
        )
    parts = []
    for each in data.series:
        finite = [y for y in each.y if math.isfinite(y)]
        if finite:
            parts.append(f"{each.label} from {short(finite[0])} to {short(finite[-1])}")
    keys = " Arrow keys read the values." if _has_keys(data) else ""
    return f"{data.title}. {data.y_label} against {data.x_label or 'setting'}: {'; '.join(parts)}.{keys}"


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values]


def _thinned(series: Series, most: int) -> Series:
    """Keep at most so many points, evenly spaced, the first and the last among them."""
    n = len(series.x)
    if n <= most:
        return series
    kept = [round(i * (n - 1) / (most - 1)) for i in range(most)]

    def some(values: list[float]) -> list[float]:
        return [values[k] for k in kept] if len(values) == n else []

    return Series(
        series.label, some(series.x), some(series.y), some(series.low), some(series.high),
        series.dashed,
    )  # fmt: skip


def _data_table(data: Figure) -> Html:
    series = [_thinned(each, _MOST_LINES) for each in data.series]
    lines: dict[float, list[str]] = {}
    for x in sorted({x for each in series for x in each.x if math.isfinite(x)}):
        lines[x] = [""] * len(series)
    for column, each in enumerate(series):
        banded = len(each.low) == len(each.high) == len(each.x)
        for k, x in enumerate(each.x):
            if x not in lines:
                continue
            text = short(each.y[k])
            if banded and not each.low[k] == each.high[k] == each.y[k]:
                text += f" ({short(each.low[k])} to {short(each.high[k])})"
            lines[x][column] = text
    head = joined(fill('<th scope="col">{label}</th>', label=prose(each.label)) for each in series)
    body = joined(
        fill(
            '<tr><th scope="row" class="number">{x}</th>{cells}</tr>',
            x=_tick(data, x),
            cells=joined(fill('<td class="number">{cell}</td>', cell=cell) for cell in cells),
        )
        for x, cells in lines.items()
    )
    thinned = any(len(each.x) > _MOST_LINES for each in data.series)
    return fill(
        '<table><caption>{y}{banded}{thinned}</caption><thead><tr><th scope="col">{x}</th>{head}</tr>'
        "</thead><tbody>{body}</tbody></table>",
        y=data.y_label,
        banded=", 95% interval in brackets" if any(each.low for each in series) else "",
        thinned="; some rows left out" if thinned else "",
        x=data.x_label,
        head=head,
        body=body,
    )  # fmt: skip


def _map_table(data: Figure) -> Html:
    columns = data.panels[0].y
    head = joined(
        fill('<th scope="col">{y} {value}</th>', y=data.y_label, value=short(y)) for y in columns
    )
    body = joined(
        fill(
            '<tr><th scope="row">{label}, {x} {value}</th>{cells}</tr>',
            label=prose(panel.label),
            x=data.x_label,
            value=short(x),
            cells=joined(fill('<td class="number">{v}</td>', v=short(v)) for v in values),
        )
        for panel in data.panels
        for x, values in zip(panel.x, panel.values, strict=True)
    )
    return fill(
        "<table><caption>{said}</caption><thead><tr><th></th>{head}</tr></thead>"
        "<tbody>{body}</tbody></table>",
        said=data.value_label,
        head=head,
        body=body,
    )


def _tick(data: Figure, x: float) -> str:
    if data.kind == "bar" and 0 <= x < len(data.ticks) and x == int(x):
        return data.ticks[int(x)]
    return short(x)
