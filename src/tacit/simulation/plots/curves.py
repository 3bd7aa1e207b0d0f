"""Curves of a study: a measure against rounds, with 95% bands, one panel for each environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tacit.simulation.plots.style import figure, looks, save_figure
from tacit.simulation.result_tables import CellResult, Tabular

_PER_PANEL = 8


def draw_curves(result: Tabular, folder: str | Path, measure: str | None = None) -> list[Path]:
    """Draw a measure (by default the first) of every cell and return the files written."""
    name = _measure(result, measure)
    return save_figure(plot_curves(result, name), Path(folder) / f"{result.title}-{name}")


def plot_curves(result: Tabular, measure: str | None = None) -> Any:
    """Return a figure of a measure (by default the first) of every cell."""
    name = _measure(result, measure)
    panels = _panels(result.shown)
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    size = (7.0, 4.4) if columns == 1 else (11.0, 4.0 * rows)
    with figure(*size, nrows=rows, ncols=columns, squeeze=False) as (drawn, grid):
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for axes, (title, cells) in zip(grid.flat, panels, strict=False):
            least = 0.0
            for cell, look in zip(cells, looks(), strict=False):
                band = cell.band(name)
                rounds = np.concatenate([[0], cell.checkpoints])
                mean, low, high = (
                    np.concatenate([[0.0], v]) for v in (band.mean, band.low, band.high)
                )
                axes.fill_between(rounds, low, high, color=look["color"], alpha=0.18, linewidth=0)
                axes.plot(rounds, mean, label=cell.label, **look)
                least = min(least, mean.min())
            axes.set_title(title, fontsize=10, loc="left")
            axes.set_xlabel("rounds")
            axes.set_ylabel(f"cumulative {name}")
            axes.margins(x=0)
            if least == 0.0:  # against the best fixed arm in hindsight regret may be negative
                axes.set_ylim(bottom=0)
            axes.xaxis.set_major_formatter(lambda v, _: f"{v:,.0f}")
            axes.yaxis.set_major_formatter(lambda v, _: f"{v:,.0f}")
            axes.legend(fontsize=8)
        n = len(result.shown[0].measures[name])
        note = f"{result.title}: mean of {n} repetitions, 95% bands; research numerics"
        drawn.supxlabel(note, fontsize=8, color="0.35")
    return drawn


def _measure(result: Tabular, measure: str | None) -> str:
    known = result.shown[0].measures
    name = measure or next(iter(known))
    if name not in known:
        raise ValueError(f"no measure is called {name!r}; there are {', '.join(known)}")
    return name


def _panels(cells: tuple[CellResult, ...]) -> list[tuple[str, list[CellResult]]]:
    """Group cells by environment and horizon; a group too full to read is cut into several panels."""
    groups: dict[tuple[str, int], list[CellResult]] = {}
    for cell in cells:
        groups.setdefault((cell.environment, cell.horizon), []).append(cell)
    panels = []
    for (environment, _), members in groups.items():
        title = environment if len(environment) <= 70 else environment[:67] + "..."
        for first in range(0, len(members), _PER_PANEL):
            panels.append((title, members[first : first + _PER_PANEL]))
    return panels
