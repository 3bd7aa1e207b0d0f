"""Results for other tools: a frame, a table for a paper, a table in a notebook, a picture.

Everything that has cells, a single result, a comparison or a study, offers the same.
"""

from __future__ import annotations

import html
import importlib
import importlib.util
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.core.text import as_text
from tacit.privacy import brief
from tacit.simulation.bands import Band, band_of

#: Columns of a frame that are neither measures nor values of a grid.
KEYS = ("cell", "label", "policy", "horizon", "repetition", "round")


@dataclass(frozen=True)
class CellResult:
    """The measures of one cell."""

    label: str
    name: str
    """The name of the policy; `policy` and `environment` are written as in Python."""
    policy: str
    environment: str
    horizon: int
    varied: Mapping[str, Any]
    guarantee: Mapping[str, Any]
    numerics: str
    checkpoints: NDArray[np.int64]
    measures: Mapping[str, NDArray[np.float64]]
    """Name to array of shape (repetitions, checkpoints)."""

    def band(self, measure: str) -> Band:
        """Return mean and 95% band at every checkpoint."""
        return band_of(self.measures[measure])


class Tabular(ABC):
    """What has cells and can be shown."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What a picture of it is called."""

    @property
    @abstractmethod
    def shown(self) -> tuple[CellResult, ...]:
        """The cells, in order."""

    def frame(self, kind: Literal["pandas", "polars", "arrow"] | None = None) -> Any:
        """Return a row for each cell, repetition and checkpoint.

        Parameters
        ----------
        kind : str, optional
            ``"pandas"``, ``"polars"`` or ``"arrow"``; by default the first that is installed.
        """
        if kind is None:
            found = [each for each in ("pandas", "polars") if importlib.util.find_spec(each)]
            chosen = found[0] if found else "arrow"
        else:
            chosen = str(kind)
        if chosen not in ("pandas", "polars", "arrow"):
            raise ValueError(f"frame: expected kind one of pandas, polars, arrow, got {kind!r}")
        table = arrow_of(self.shown)
        if chosen == "arrow":
            return table
        if importlib.util.find_spec(chosen) is None:
            raise ValueError(f"frame: {chosen} is not installed; pip install {chosen}")
        if chosen == "pandas":
            return table.to_pandas()
        return importlib.import_module("polars").from_arrow(table)

    def summary(self, measure: str | None = None) -> list[dict[str, Any]]:
        """Return a row for each cell: final mean, 95% interval, privacy."""
        rows = []
        for cell in self.shown:
            name = measure or next(iter(cell.measures))
            if name not in cell.measures:
                known = ", ".join(cell.measures)
                raise ValueError(f"no measure is called {name!r}; there are {known}")
            band = cell.band(name)
            rows.append(
                {
                    "label": cell.label,
                    "horizon": cell.horizon,
                    "repetitions": len(cell.measures[name]),
                    "measure": name,
                    "mean": float(band.mean[-1]),
                    "low": float(band.low[-1]),
                    "high": float(band.high[-1]),
                    "epsilon": cell.guarantee["epsilon"],
                    "delta": cell.guarantee["delta"],
                    "unit": cell.guarantee["unit"],
                    "trust": cell.guarantee["trust"],
                    "numerics": cell.numerics,
                }
            )
        return rows

    def table(
        self,
        format: Literal["markdown", "latex"] = "markdown",
        measure: str | None = None,
    ) -> str:
        """Return the final means with their 95% intervals and privacy, to put into a text.

        Parameters
        ----------
        format : "markdown" or "latex"
            LaTeX needs the package booktabs.
        measure : str, optional
            By default the first of the environment.
        """
        head, *rows = self.lines(measure)
        if format == "markdown":
            rule = ["---", "---:", "---", "---"]
            lines = [head, rule, *([cell.replace("|", r"\|") for cell in row] for row in rows)]
            return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
        if format == "latex":
            body = [" & ".join(map(_latex, line)) + r" \\" for line in (head, *rows)]
            return "\n".join(
                [
                    r"\begin{tabular}{lrll}",
                    r"\toprule",
                    body[0],
                    r"\midrule",
                    *body[1:],
                    r"\bottomrule",
                    r"\end{tabular}",
                    "",
                ]
            )
        raise ValueError(f"table: expected format one of markdown, latex, got {format!r}")

    def plot(self, measure: str | None = None) -> Any:
        """Return a matplotlib figure of the curves with their 95% bands.

        Parameters
        ----------
        measure : str, optional
            By default the first of the environment.
        """
        if importlib.util.find_spec("matplotlib") is None:
            raise ValueError("plot: pictures need matplotlib; pip install 'tacit[cli]'")
        from tacit.simulation.plots.curves import plot_curves

        return plot_curves(self, measure)

    def lines(self, measure: str | None = None) -> list[list[str]]:
        """Return the cells of the table as text, its head first: policy, mean, 95% interval, privacy."""
        rows = self.summary(measure)
        head = ["policy", rows[0]["measure"], "95% interval", "privacy"]
        return [head] + [
            [
                row["label"],
                as_text(row["mean"]),
                f"{as_text(row['low'])} to {as_text(row['high'])}",
                brief(float(row["epsilon"]), float(row["delta"]), row["unit"], row["trust"]),
            ]
            for row in rows
        ]

    def _repr_html_(self) -> str:
        head, *rows = self.lines()
        first = self.shown[0]
        n = len(next(iter(first.measures.values())))
        note = f"{self.title}: mean of {n} repetitions of {first.horizon:,} rounds"
        cells = "".join(f"<tr>{_html_row(row, 'td')}</tr>" for row in rows)
        return (
            f"<table><caption>{html.escape(note)}</caption>"
            f"<thead><tr>{_html_row(head, 'th')}</tr></thead><tbody>{cells}</tbody></table>"
        )


def _html_row(row: Sequence[str], tag: str) -> str:
    return "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)


_SPECIAL = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def _latex(text: str) -> str:
    return "".join(
        r"\textbackslash{}" if character == "\\" else _SPECIAL.get(character, character)
        for character in text
    )


def require_arrow() -> None:
    """Complain before the work begins if results cannot be written."""
    if importlib.util.find_spec("pyarrow") is None:
        raise ValueError("results are Arrow tables, which need pyarrow; pip install 'tacit[cli]'")


def arrow_of(cells: Sequence[CellResult]) -> Any:
    """Return the Arrow table of cells: keys, the grid's values, the measures."""
    require_arrow()
    import pyarrow as pa

    grid = list(dict.fromkeys(key for cell in cells for key in cell.varied if key != "horizon"))
    tables = []
    types = {
        key: _column_type(pa, [cell.varied[key] for cell in cells if key in cell.varied])
        for key in grid
    }
    for i, cell in enumerate(cells):
        n, c = next(iter(cell.measures.values())).shape
        rows = n * c
        word = np.zeros(rows, np.int32)
        columns: dict[str, Any] = {
            "cell": pa.array(np.full(rows, i, np.int32)),
            "label": pa.DictionaryArray.from_arrays(word, [cell.label]),
            "policy": pa.DictionaryArray.from_arrays(word, [cell.name]),
            "horizon": pa.array(np.full(rows, cell.horizon)),
        }
        for key in grid:
            value = _grid_value(cell.varied.get(key), types[key], pa)
            columns[key] = pa.array([value], types[key]).take(pa.array(word))
        columns["repetition"] = pa.array(np.repeat(np.arange(n, dtype=np.int32), c))
        columns["round"] = pa.array(np.tile(cell.checkpoints, n))
        for name, values in cell.measures.items():
            columns[name] = pa.array(np.ascontiguousarray(values).ravel())
        tables.append(pa.table(columns))
    return pa.concat_tables(tables, promote_options="default").unify_dictionaries()


def _column_type(pa: Any, values: Sequence[Any]) -> Any:
    if all(isinstance(value, bool) for value in values):
        return pa.bool_()
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return pa.int64()
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return pa.float64()
    return pa.string()


def _grid_value(value: Any, column: Any, pa: Any) -> Any:
    if value is None or column != pa.string() or isinstance(value, str):
        return value
    return json.dumps(value, default=repr)
