"""A figure as the page needs it: what ``chart.js`` draws, its numbers as a table, its words aloud."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from tacit.simulation.plots import MAP_COLOURS
from tacit_studies.report.figures import colour_numbers
from tacit_studies.report.formulas import plain, short
from tacit_studies.report.maps import MapScale, contours, edges, map_scale
from tacit_studies.reproduction import Figure, Panel, Series

_MOST_POINTS = 250
_MOST_LINES = 60


class NumberTable(NamedTuple):
    """The numbers of a figure: a heading for each row, a heading for each column, and the cells."""

    caption: str
    corner: str
    columns: list[str]
    rows: list[tuple[str, list[str]]]


def chart_data(data: Figure) -> dict[str, Any]:
    """Return what ``chart.js`` draws, as JSON can say it."""
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


def has_keys(data: Figure) -> bool:
    """Say whether arrow keys read the values of this figure."""
    return data.kind in ("line", "points")


def described(data: Figure) -> str:
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
    keys = " Arrow keys read the values." if has_keys(data) else ""
    axes = f"{data.y_label} against {data.x_label or 'setting'}"
    return f"{data.title}. {axes}: {'; '.join(parts)}.{keys}"


def number_table(data: Figure) -> NumberTable:
    """Return the numbers of a figure."""
    return _map_table(data) if data.kind == "map" else _series_table(data)


def _line(series: Series) -> dict[str, Any]:
    parts = {name: _numbers(getattr(series, name)) for name in ("x", "y", "low", "high")}
    return {"label": plain(series.label), "dashed": series.dashed, **parts}


def _panel(panel: Panel, scale: MapScale, *, x_log: bool) -> dict[str, Any]:
    found = contours(panel, scale.levels, x_log=x_log)
    return {
        "label": plain(panel.label),
        "x": _numbers(panel.x),
        "y": _numbers(panel.y),
        "x_edges": edges(panel.x, log=x_log),
        "y_edges": edges(panel.y, log=False),
        "values": [_numbers(row) for row in panel.values],
        "contours": [
            {
                "level": each.level,
                "at": _numbers(each.at),
                "lines": [[_numbers(point) for point in line] for line in each.lines],
            }
            for each in found
        ],
        "curve": _line(panel.curve),
    }


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

    x, y, low, high = map(some, (series.x, series.y, series.low, series.high))
    return Series(series.label, x, y, low, high, series.dashed)


def _series_table(data: Figure) -> NumberTable:
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
    bands = ", 95% interval in brackets" if any(each.low for each in series) else ""
    thinned = any(len(each.x) > _MOST_LINES for each in data.series)
    return NumberTable(
        caption=f"{data.y_label}{bands}{'; some rows left out' if thinned else ''}",
        corner=data.x_label,
        columns=[each.label for each in series],
        rows=[(_tick(data, x), cells) for x, cells in lines.items()],
    )


def _map_table(data: Figure) -> NumberTable:
    return NumberTable(
        caption=data.value_label,
        corner="",
        columns=[f"{data.y_label} {short(y)}" for y in data.panels[0].y],
        rows=[
            (f"{panel.label}, {data.x_label} {short(x)}", [short(v) for v in values])
            for panel in data.panels
            for x, values in zip(panel.x, panel.values, strict=True)
        ],
    )


def _tick(data: Figure, x: float) -> str:
    if data.kind == "bar" and 0 <= x < len(data.ticks) and x == int(x):
        return data.ticks[int(x)]
    return short(x)
