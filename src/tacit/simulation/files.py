"""The result of a study as one Parquet file: a row for each cell, repetition and checkpoint.

The study itself, the version that ran it and the guarantee of every cell travel in the file's
metadata, so that a result can always say where it came from and what it protects.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.core.files import write_atomically
from tacit.engines import Store
from tacit.simulation.result_tables import CellResult, Tabular, arrow_of, require_arrow
from tacit.simulation.study import Cell, Study


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
    path: Path,
    study: Study,
    cells: Sequence[Cell],
    jobs: Mapping[str, tuple[Study, Cell, range]],
    store: Store,
) -> None:
    """Gather the outcomes of every cell into one Parquet file, in the order of the study."""
    import pyarrow.parquet as pq

    import tacit

    gathered, about = [], []
    for cell in cells:
        loaded = [store.get(key) for key, (_, of, _) in jobs.items() if of is cell]
        names = [key for key in loaded[0] if key.startswith("measure_")]
        said = {
            "label": cell.label,
            "name": cell.policy.name,
            "policy": repr(cell.policy),
            "environment": repr(cell.environment),
            "horizon": cell.horizon,
            "varied": dict(cell.varied),
            "guarantee": json.loads(cell.policy.guarantee(cell.horizon).to_json()),
            "numerics": "research",
        }
        measures = {
            key.removeprefix("measure_"): np.concatenate([part[key] for part in loaded])
            for key in names
        }
        gathered.append(CellResult(**said, checkpoints=loaded[0]["checkpoints"], measures=measures))
        draws = int(sum(part["noise_draws"].sum() for part in loaded))
        about.append({**said, "measures": list(measures), "noise_draws": draws})
    metadata = {
        "name": study.name,
        "fingerprint": study.fingerprint,
        "version": tacit.__version__,
        "study": dataclasses.asdict(study),
        "cells": about,
    }
    table = arrow_of(gathered).replace_schema_metadata(
        {"tacit": json.dumps(metadata, default=repr)}
    )
    write_atomically(path, lambda file: pq.write_table(table, file, compression="zstd"))


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
        rounds = table["round"].to_numpy()[rows]
        n = int(table["repetition"].to_numpy()[rows].max()) + 1
        columns = {name: table[name].to_numpy()[rows].reshape(n, -1) for name in about["measures"]}
        cells.append(
            CellResult(
                label=about["label"],
                name=about["name"],
                policy=about["policy"],
                environment=about["environment"],
                horizon=about["horizon"],
                varied=about["varied"],
                guarantee=about["guarantee"],
                numerics=about["numerics"],
                checkpoints=rounds.reshape(n, -1)[0],
                measures=columns,
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
