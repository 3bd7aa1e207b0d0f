"""Paper 003: the policy its studies play, and the rows and lines they show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tacit_studies.reproduction import (
    Figure,
    Row,
    Series,
    Summary,
    summarise,
)

Cell = tuple[str, float]
"""An environment and an epsilon."""


def sliding(**parameters: Any) -> dict[str, Any]:
    """Return SW-KLUCB-CF with these parameters."""
    return {"name": "sw-klucb-cf", **parameters}


def horizons(quick: bool) -> list[int]:
    """Return horizons over which to see how regret grows."""
    return [4_000, 16_000, 64_000] if quick else [10_000, 30_000, 100_000, 300_000, 1_000_000]


def line_of(
    outcomes: Mapping[str, Any], label: str, xs: Sequence[float], keys: Sequence[str]
) -> Series:
    """Return the means of these outcomes, with their intervals, as a line."""
    return Series.of(label, xs, [summarise(outcomes[key]) for key in keys])


def slope(words: str, line: Series, power: float) -> Series:
    """Return what grows with this power from where a line begins."""
    return Series(
        f"slope {words}",
        line.x,
        [line.y[0] * (x / line.x[0]) ** power for x in line.x],
        dashed=True,
    )


def rows_of(
    found: Mapping[str, Summary], cells: Sequence[Cell], labels: Iterable[str]
) -> list[Row]:
    """Return what each policy has in each cell, found by ``case/label/epsilon``."""
    labels = list(labels)
    return [
        Row(f"{case}, epsilon = {e:g}: {label}", "", found[f"{case}/{label}/{e}"].text())
        for case, e in cells
        for label in labels
    ]


def bars_of(
    title: str,
    found: Mapping[str, Summary],
    cells: Mapping[str, Cell],
    labels: Iterable[str],
) -> Figure:
    """Return the same as bars, cells by their names."""
    return Figure(
        title,
        "",
        "final regret",
        [
            Series.of(
                label, range(len(cells)), [found[f"{w}/{label}/{e}"] for w, e in cells.values()]
            )
            for label in labels
        ],
        kind="bar",
        ticks=list(cells),
    )
