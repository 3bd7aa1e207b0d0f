"""Figures of reproductions for papers: the data of a `studies.Figure` drawn by matplotlib."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.simulation.plots import COLOURS, DASHES, figure, save_figure
from tacit_studies.report.formulas import plain, short
from tacit_studies.report.maps import draw_map
from tacit_studies.reproduction import Figure, Series

_MARKERS = "osD^vPX"
_MARKS_ON_A_LINE = 8
_FEW_POINTS = 10


def colour_numbers(series: Sequence[Series]) -> list[int]:
    """Give each series a colour by number; a dashed one shares that of its companion.

    Companions have the same label up to the last comma, as ``GAP, corrected`` and ``GAP, published``.

    Examples
    --------
    >>> a, b = Series("GAP, corrected", [], []), Series("GAP, published", [], [], dashed=True)
    >>> colour_numbers([a, Series("DP-SE", [], []), b])
    [0, 1, 0]
    """
    solid = Counter(_stem(each.label) for each in series if not each.dashed)
    keys = [
        _stem(each.label) if solid[_stem(each.label)] == 1 else f"{each.label} {each.dashed}"
        for each in series
    ]
    order = list(dict.fromkeys(keys))
    return [order.index(key) for key in keys]


def draw_figure(data: Figure, path: Path) -> list[Path]:
    """Draw a figure and write it as ``path.svg`` and ``path.pdf``.

    Parameters
    ----------
    data : Figure
    path : Path
        Where to write, without ending.
    """
    if data.kind == "map":
        return draw_map(data, path)
    wide = data.kind == "bar" and len(data.ticks) > 4
    with figure(10.0 if wide else 7.0, 4.4) as (drawn, axes):
        looks = colour_numbers(data.series)
        if data.kind == "bar":
            _draw_bars(axes, data, looks)
        else:
            _draw_lines(axes, data, looks)
            _set_scale(axes, "x", data.x_log)
            _name_few_points(axes, data)
        _set_scale(axes, "y", data.y_log)
        axes.set_title(plain(data.title), loc="left", fontsize=11)
        axes.set_xlabel(plain(data.x_label))
        axes.set_ylabel(plain(data.y_label))
        if data.series:
            axes.legend(fontsize=8)
        drawn.get_layout_engine().execute(drawn)
        drawn.set_layout_engine("none")
        return save_figure(drawn, path, ("svg", "pdf"))


def _set_scale(axes: Any, which: str, log: bool) -> None:
    """Set a scale with plain numbers at its ticks: set as formulas they take half the time of a figure."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = getattr(axes, f"{which}axis")
    if log:
        getattr(axes, f"set_{which}scale")("log")
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def _name_few_points(axes: Any, data: Figure) -> None:
    points = sorted({x for each in data.series for x in each.x})
    if data.kind == "points" and data.x_log and len(points) <= _FEW_POINTS:
        axes.set_xticks(points, [short(x) for x in points])


def _stem(label: str) -> str:
    return label.rpartition(", ")[0] or label


def _draw_lines(axes: Any, data: Figure, looks: list[int]) -> None:
    for each, look in zip(data.series, looks, strict=True):
        x, y, low, high = (np.asarray(v, float) for v in (each.x, each.y, each.low, each.high))
        colour = COLOURS[look % len(COLOURS)]
        if len(low) == len(x) and len(high) == len(x):
            axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
        sparse = data.kind == "line" and len(x) > _MARKS_ON_A_LINE
        axes.plot(
            x,
            y,
            color=colour,
            linestyle=DASHES[2 * (look >= len(COLOURS)) + each.dashed],
            marker="" if each.dashed else _MARKERS[look % len(_MARKERS)],
            markersize=5,
            markevery=len(x) // _MARKS_ON_A_LINE if sparse else None,
            label=plain(each.label),
        )


def _draw_bars(axes: Any, data: Figure, looks: list[int]) -> None:
    width = 0.8 / max(1, len(data.series))
    for i, (each, look) in enumerate(zip(data.series, looks, strict=True)):
        x, y, low, high = (np.asarray(v, float) for v in (each.x, each.y, each.low, each.high))
        error = np.maximum(0, [y - low, high - y]) if len(low) == len(y) == len(high) else None
        axes.bar(
            x + (i - (len(data.series) - 1) / 2) * width,
            y,
            width,
            yerr=error,
            color=COLOURS[look % len(COLOURS)],
            hatch="//" if each.dashed else None,
            edgecolor="white",
            error_kw={"elinewidth": 1, "ecolor": "0.2"},
            label=plain(each.label),
        )
    axes.grid(axis="x", visible=False)
    axes.set_xticks(
        range(len(data.ticks)), [textwrap.fill(plain(tick), 16) for tick in data.ticks], fontsize=8
    )
