"""Maps: a value over two axes as colour, with contours, one panel for each setting."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.simulation.plots import MAP_COLOURS, figure, save_figure
from tacit_studies.report.formulas import plain, short
from tacit_studies.reproduction import Figure, Panel

_COLUMNS = 3


class MapScale(NamedTuple):
    """The logarithmic scale of colours that the panels of a map share."""

    low: float
    high: float
    levels: list[float]
    """Round values between them, where contours are drawn."""


def map_scale(data: Figure) -> MapScale:
    """Return the scale of a map.

    Examples
    --------
    >>> from tacit_studies import Series
    >>> panel = Panel("", [1.0, 2.0], [1.0, 2.0], [[0.3, 2.0], [4.0, 9.0]], Series("", [], []))
    >>> map_scale(Figure("", "", "", [], kind="map", panels=[panel]))
    MapScale(low=0.3, high=9.0, levels=[0.5, 1.0, 2.0, 5.0])
    """
    values = [v for panel in data.panels for row in panel.values for v in row if math.isfinite(v)]
    low, high = min(values), max(values)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    return MapScale(low, high, [float(f"{v:.1g}") for v in steps if low < v < high])


def edges(centres: list[float], *, log: bool) -> list[float]:
    """Return where the cells around the points of an axis begin and end.

    Examples
    --------
    >>> edges([1.0, 2.0, 4.0], log=False)
    [0.5, 1.5, 3.0, 5.0]
    """
    at = np.log(centres) if log else np.array(centres)
    middles = (at[1:] + at[:-1]) / 2
    both = np.concatenate([[2 * at[0] - middles[0]], middles, [2 * at[-1] - middles[-1]]])
    return [float(v) for v in (np.exp(both) if log else both)]


class Contour(NamedTuple):
    """Where a map has a value."""

    level: float
    lines: list[NDArray[np.float64]]
    """Each of shape (n, 2)."""
    at: NDArray[np.float64]
    """A point of the longest line, for the label; those of neighbouring levels stand apart."""


def contours(panel: Panel, levels: list[float], *, x_log: bool) -> list[Contour]:
    """Return the contours of a panel, interpolated between logarithms of its values."""
    from contourpy import contour_generator

    x = np.log(panel.x) if x_log else np.array(panel.x)
    generator = contour_generator(x, panel.y, np.log(panel.values).T)
    found = []
    for k, level in enumerate(levels):
        lines = [np.array(line, np.float64) for line in generator.lines(math.log(level))]
        for line in lines:
            line[:, 0] = np.exp(line[:, 0]) if x_log else line[:, 0]
        if lines:
            longest = max(lines, key=len)
            at = longest[int((0.5 if k % 2 else 0.35) * len(longest))]
            found.append(Contour(level, lines, at))
    return found


def draw_map(data: Figure, path: Path) -> list[Path]:
    """Draw a map and write it as ``path.svg`` and ``path.pdf``."""
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.patheffects import withStroke

    scale = map_scale(data)
    colours = LinearSegmentedColormap.from_list("map", MAP_COLOURS)
    norm = LogNorm(scale.low, scale.high)
    columns = min(_COLUMNS, len(data.panels))
    rows = -(-len(data.panels) // columns)
    halo = [withStroke(linewidth=3, foreground="0.1")]
    with figure(
        2.7 * columns + 1.4,
        2.4 * rows + 0.8,
        nrows=rows,
        ncols=columns,
        squeeze=False,
        sharex=True,
        sharey=True,
    ) as (drawn, grid):
        for axes in grid.flat[len(data.panels) :]:
            axes.set_visible(False)
        for i, (axes, panel) in enumerate(zip(grid.flat, data.panels, strict=False)):
            x, y = edges(panel.x, log=data.x_log), edges(panel.y, log=False)
            cells = axes.pcolormesh(x, y, np.array(panel.values).T, cmap=colours, norm=norm)
            for contour in contours(panel, scale.levels, x_log=data.x_log):
                _draw_contour(axes, contour)
            curve = axes.plot(
                panel.curve.x, panel.curve.y, color="white", linestyle="--", path_effects=halo
            )
            axes.set_title(plain(panel.label), loc="left", fontsize=10)
            axes.grid(visible=False)
            if data.x_log:
                axes.set_xscale("log")
                axes.set_xticks(panel.x, [plain(_power(v)) for v in panel.x], fontsize=8)
                axes.minorticks_off()
            if i + columns >= len(data.panels):
                axes.set_xlabel(plain(data.x_label))
                axes.tick_params(labelbottom=True)
            if i % columns == 0:
                axes.set_ylabel(plain(data.y_label))
        bar = drawn.colorbar(cells, ax=grid, label=plain(data.value_label), shrink=0.9)
        bar.set_ticks(scale.levels, labels=[short(v) for v in scale.levels])
        bar.minorticks_off()
        drawn.suptitle(plain(data.title), x=0.01, ha="left", fontsize=11)
        drawn.legend(
            curve,
            [data.panels[0].curve.label],
            loc="outside lower left",
            fontsize=8,
            facecolor="0.75",
            frameon=True,
        )
        drawn.get_layout_engine().execute(drawn)
        drawn.set_layout_engine("none")
        return save_figure(drawn, path, ("svg", "pdf"))


def _draw_contour(axes: Any, contour: Contour) -> None:
    from matplotlib.patheffects import withStroke

    for line in contour.lines:
        axes.plot(*line.T, color="white", linewidth=0.8)
    axes.annotate(
        short(contour.level),
        contour.at,
        color="white",
        fontsize=7,
        ha="center",
        va="center",
        path_effects=[withStroke(linewidth=2, foreground="0.2")],
    )


def _power(value: float) -> str:
    power = math.log10(value)
    return f"10^{power:.0f}" if power == int(power) else short(value)
