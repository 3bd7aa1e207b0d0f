"""Paper 003: the policy its studies play, and the rows and bars they show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tacit_studies.reproduction import Figure, Row, Series
from tacit_studies.sweep import Outcomes, Sized
from tacit_studies.tools import plot_bars

Cell = tuple[str, float]
"""An environment and an epsilon."""
HORIZONS = Sized([10_000, 30_000, 100_000, 300_000, 1_000_000], [4_000, 16_000, 64_000])
"""Horizons over which to see how regret grows."""
MEDIUM = Sized(HORIZONS.full[:4], HORIZONS.quick)
RUNS = Sized(40, 8)


def sliding(**parameters: Any) -> dict[str, Any]:
    """Return SW-KLUCB-CF with these parameters."""
    return {"name": "sw-klucb-cf", **parameters}


def slope(words: str, line: Series, power: float) -> Series:
    """Return what grows with this power from where a line begins."""
    y = [line.y[0] * (x / line.x[0]) ** power for x in line.x]
    return Series(f"slope {words}", line.x, y, dashed=True)


def list_cells(
    found: Outcomes, cells: Sequence[Cell], labels: Iterable[str], part: str = ""
) -> list[Row]:
    """Return what each policy has in each cell, found by ``case/label/epsilon``."""
    labels = list(labels)
    return [
        Row(f"{case}, epsilon = {e:g}: {label}", "", found.text(f"{case}/{label}/{e}", part))
        for case, e in cells
        for label in labels
    ]


def plot_cells(
    title: str, found: Outcomes, cells: Mapping[str, Cell], labels: Iterable[str], part: str = ""
) -> Figure:
    """Return the same as bars, cells by their names."""
    bars = {
        label: [found.summary(f"{case}/{label}/{e}", part) for case, e in cells.values()]
        for label in labels
    }
    return plot_bars(title, "final regret", cells, bars)
