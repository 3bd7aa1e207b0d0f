"""The result of a study as one Parquet file: a row for each cell, repetition and checkpoint.

The study itself, the version that ran it and the guarantee of every cell travel in the file's
metadata, so that a result can always say where it came from and what it protects.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.engines import Store
from tacit.simulation.result import Band, band_of
from tacit.simulation.study import Cell, Study
from tacit.state import write_atomically

__all__ = ["CellResult", "StudyResult", "read", "require_parquet", "write"]


@dataclass(frozen=True)
class CellResult:
    """The measures of one cell."""

    label: str
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


@dataclass(frozen=True)
class StudyResult:
    """A finished study."""

    name: str
    path: Path
    fingerprint: str
    version: str
    study: Mapping[str, Any]
    cells: tuple[CellResult, ...]

    def summary(self, measure: str | None = None) -> list[dict[str, Any]]:
        """Return a row for each cell: final mean, 95% interval, privacy."""
        rows = []
        for cell in self.cells:
            name = measure or next(iter(cell.measures))
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


def require_parquet() -> None:
    """Complain before the work begins if results cannot be written."""
    if importlib.util.find_spec("pyarrow") is None:
        raise ValueError("results are Parquet files, which need pyarrow; pip install 'tacit[cli]'")


def write(
    path: Path,
    study: Study,
    cells: Sequence[Cell],
    jobs: Mapping[str, tuple[Study, Cell, range]],
    store: Store,
) -> None:
    """Gather the outcomes of every cell into one Parquet file, in the order of the study."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import tacit

    tables = []
    about = []
    for i, cell in enumerate(cells):
        loaded = [store.get(key) for key, (_, of, _) in jobs.items() if of is cell]
        checkpoints = loaded[0]["checkpoints"]
        names = [key for key in loaded[0] if key.startswith("measure_")]
        values = {key: np.concatenate([part[key] for part in loaded]) for key in names}
        n, c = values[names[0]].shape
        columns: dict[str, Any] = {
            "cell": pa.array(np.full(n * c, i, np.int32)),
            "label": pa.DictionaryArray.from_arrays(np.zeros(n * c, np.int32), [cell.label]),
            "policy": pa.DictionaryArray.from_arrays(np.zeros(n * c, np.int32), [cell.policy.name]),
            "horizon": pa.array(np.full(n * c, cell.horizon)),
            "repetition": pa.array(np.repeat(np.arange(n, dtype=np.int32), c)),
            "round": pa.array(np.tile(checkpoints, n)),
        }
        for key in names:
            columns[key.removeprefix("measure_")] = pa.array(values[key].ravel())
        tables.append(pa.table(columns))
        about.append(
            {
                "label": cell.label,
                "policy": repr(cell.policy),
                "environment": repr(cell.environment),
                "horizon": cell.horizon,
                "varied": dict(cell.varied),
                "guarantee": json.loads(cell.policy.guarantee(cell.horizon).to_json()),
                "numerics": "research",
                "noise_draws": int(sum(part["noise_draws"].sum() for part in loaded)),
            }
        )
    metadata = {
        "name": study.name,
        "fingerprint": study.fingerprint,
        "version": tacit.__version__,
        "study": dataclasses.asdict(study),
        "cells": about,
    }
    table = pa.concat_tables(tables, promote_options="default").unify_dictionaries()
    table = table.replace_schema_metadata({"tacit": json.dumps(metadata, default=repr)})
    write_atomically(path, lambda file: pq.write_table(table, file, compression="zstd"))


def read(path: str | Path) -> StudyResult:
    """Read a finished study."""
    import pyarrow.parquet as pq

    path = Path(path)
    try:
        table = pq.read_table(path)
        metadata = json.loads(table.schema.metadata[b"tacit"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: not a result of tacit run ({error})") from None
    number = table["cell"].to_numpy()
    keys = ("cell", "label", "policy", "horizon", "repetition", "round")
    names = [name for name in table.column_names if name not in keys]
    cells = []
    for i, about in enumerate(metadata["cells"]):
        rows = np.flatnonzero(number == i)
        rounds = table["round"].to_numpy()[rows]
        n = int(table["repetition"].to_numpy()[rows].max()) + 1
        columns = {name: table[name].to_numpy()[rows].reshape(n, -1) for name in names}
        cells.append(
            CellResult(
                label=about["label"],
                policy=about["policy"],
                environment=about["environment"],
                horizon=about["horizon"],
                varied=about["varied"],
                guarantee=about["guarantee"],
                numerics=about["numerics"],
                checkpoints=rounds.reshape(n, -1)[0],
                measures={k: v for k, v in columns.items() if not np.isnan(v).all()},
            )
        )
    return StudyResult(
        name=metadata["name"],
        path=path,
        fingerprint=metadata["fingerprint"],
        version=metadata["version"],
        study=metadata["study"],
        cells=tuple(cells),
    )
