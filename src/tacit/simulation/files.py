"""The result of a study as one Parquet file: a row for each cell, repetition and checkpoint.

The study itself, the version that ran it and the guarantee of every cell travel in the file's
metadata, so that a result can always say where it came from and what it protects.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from tacit.core.files import write_atomically
from tacit.simulation.result import Result
from tacit.simulation.result_tables import CellResult, Tabular, arrow_of, require_arrow
from tacit.simulation.study import Cell, Study

#: What the metadata says of a cell; the rest are columns.
_SAID = [each.name for each in dataclasses.fields(CellResult)][:-2]


@dataclass(frozen=True)
class StudyResult(Tabular):
    """A finished study, with a table form, a picture and a look in a notebook."""

    name: str
    path: Path
    fingerprint: str
    version: str
    study: Mapping[str, Any]
    cells: tuple[CellResult, ...]

    @property
    def title(self) -> str:
        """The name of the study."""
        return self.name

    @property
    def shown(self) -> tuple[CellResult, ...]:
        """The cells of the study."""
        return self.cells


def write(
    path: Path, study: Study, outcomes: Iterable[tuple[Cell, list[dict[str, Any]]]]
) -> StudyResult:
    """Write the outcomes of every cell, part by part, to one Parquet file, and return them."""
    import pyarrow.parquet as pq

    cells, about = [], []
    for cell, parts in outcomes:
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        measures = [name for name in joined if name.startswith("measure_")]
        result = Result(
            policy=cell.policy,
            environment=cell.environment,
            horizon=cell.horizon,
            seed=study.seed,
            repetitions=np.arange(study.repetitions),
            checkpoints=parts[0]["checkpoints"],
            measures={name.removeprefix("measure_"): joined[name] for name in measures},
            noise_draws=joined["noise_draws"],
        )
        cells.append(result.as_cell(cell.label, cell.varied))
        said = {name: getattr(cells[-1], name) for name in _SAID}
        draws = int(result.noise_draws.sum())
        about.append({**said, "measures": list(result.measures), "noise_draws": draws})
    metadata = {
        "name": study.name,
        "fingerprint": study.fingerprint,
        "version": tacit.__version__,
        "study": dataclasses.asdict(study),
        "cells": about,
    }
    text = json.dumps(metadata, default=repr)
    table = arrow_of(cells).replace_schema_metadata({"tacit": text})
    write_atomically(path, lambda file: pq.write_table(table, file, compression="zstd"))
    return _result(path, json.loads(text), cells)


def read(path: str | Path) -> StudyResult:
    """Read a finished study."""
    require_arrow()
    import pyarrow.parquet as pq

    path = Path(path)
    if not path.is_file():
        what = "expected a file, got a folder" if path.is_dir() else "no such file"
        raise ValueError(f"{path}: {what}")
    try:
        table = pq.read_table(path)
        metadata = json.loads(table.schema.metadata[b"tacit"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: not a result of tacit run ({error})") from None
    number = table["cell"].to_numpy()
    cells = []
    for i, about in enumerate(metadata["cells"]):
        rows = np.flatnonzero(number == i)
        n = int(table["repetition"].to_numpy()[rows].max()) + 1
        names = ("round", *about["measures"])
        columns = {name: table[name].to_numpy()[rows].reshape(n, -1) for name in names}
        checkpoints = columns.pop("round")[0]
        said = {name: about[name] for name in _SAID}
        cells.append(CellResult(**said, checkpoints=checkpoints, measures=columns))
    return _result(path, metadata, cells)


def _result(path: Path, metadata: Mapping[str, Any], cells: list[CellResult]) -> StudyResult:
    said = {name: metadata[name] for name in ("name", "fingerprint", "version", "study")}
    return StudyResult(path=path, cells=tuple(cells), **said)
