"""Running a study: every block of repetitions of every cell is a job, in processes by default.

A finished job is a small file beside the result. A run that is killed loses the jobs under way and
nothing else; started again, it does the rest, and the file it ends with is the same to the last byte,
on whatever engine.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tacit.core.files import require_writable
from tacit.core.progress import Progress
from tacit.engines import ARRAYS, Engine, SerialEngine, Store, engine_named, lock_run, run_jobs
from tacit.simulation.files import StudyResult, read, write
from tacit.simulation.result_tables import require_arrow
from tacit.simulation.run import require_match, simulate
from tacit.simulation.study import Cell, Study

_BLOCK = 8
"""How many repetitions are computed and kept together."""


def run_study(
    study: Study,
    folder: str | Path,
    *,
    workers: int | None = None,
    engine: str | Engine | None = None,
    address: str | None = None,
    partitions: int | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Run `study`, or what is left of it, and return its result, written to `folder`.

    Parameters
    ----------
    study : Study
    folder : path
        Receives ``NAME.parquet``; unfinished jobs are kept in ``.NAME-FINGERPRINT`` beside it.
    workers : int, optional
        Number of processes, by default as many as cores; 1 runs everything in this one. The result
        is the same for any number.
    engine : str or Engine, optional
        Where jobs run: ``"serial"``, ``"processes"``, ``"ray"``; by default what suits `workers`.
    address : str, optional
        Of a running Ray cluster.
    partitions : int, optional
        Play every repetition, one after the other, as a population in so many partitions on the engine;
        `folder` must then be on storage that every machine reaches.
    progress : callable, optional
        Called with jobs done and jobs in all.

    Returns
    -------
    StudyResult
    """
    require_arrow()
    folder = Path(folder)
    require_writable(folder)
    target = folder / f"{study.name}.parquet"
    cells = study.cells()
    for cell in cells:
        require_match(cell.policy, cell.environment, cell.horizon)
    made = not folder.exists()
    try:
        with lock_run(folder, study.name):
            store = Store(folder / f".{study.name}-{study.fingerprint}", ARRAYS)
            if target.is_file():
                finished = read(target)
                if finished.fingerprint == study.fingerprint:
                    store.remove()  # a run may have been killed just before it did
                    return finished
            jobs = {
                f"{i}-{first}": (study, cell, range(first, min(first + _BLOCK, study.repetitions)))
                for i, cell in enumerate(cells)
                for first in range(0, study.repetitions, _BLOCK)
            }
            try:
                if engine is None and address is None and not all(map(_elsewhere, cells)):
                    engine = "serial"
                where = (
                    engine
                    if isinstance(engine, Engine)
                    else engine_named(
                        engine, workers=workers, jobs=partitions or len(jobs), address=address
                    )
                )
                job: Callable[..., Any] = _job
                if partitions is not None:
                    kept = (store.folder / "partitions").absolute()
                    job = partial(_job, partitions=partitions, engine=where, snapshot_dir=kept)
                    where = SerialEngine()
                run_jobs(job, _in_turn(jobs), store, engine=where, progress=progress)
            except ValueError:
                store.remove_if_empty()  # finished parts stay
                raise
            parts: dict[str, list[Any]] = {}
            for key in jobs:
                parts.setdefault(key.partition("-")[0], []).append(store.get(key))
            result = write(target, study, zip(cells, parts.values(), strict=True))
            store.remove()
            return result
    except BaseException:
        if made and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
        raise


def _elsewhere(cell: Cell) -> bool:
    """Return whether another process can import the policy and the environment of a cell."""
    kinds = (type(cell.policy), type(cell.environment))
    return all(
        kind.__module__ != "__main__" or hasattr(sys.modules["__main__"], "__file__")
        for kind in kinds
    ) and not any("<locals>" in kind.__qualname__ for kind in kinds)


def _in_turn(jobs: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """Return the jobs so that one of each policy comes before a second of any.

    Processes that start together then compile different kernels.
    """
    groups: dict[Any, list[str]] = {}
    for key, (_, cell, _) in jobs.items():
        groups.setdefault((type(cell.policy), type(cell.environment)), []).append(key)
    turns = itertools.zip_longest(*groups.values())
    return {key: jobs[key] for turn in turns for key in turn if key is not None}


def _job(study: Study, cell: Cell, repetitions: range, **partitions: Any) -> dict[str, Any]:
    result = simulate(
        cell.policy,
        cell.environment,
        horizon=cell.horizon,
        repetitions=repetitions,
        seed=study.seed,
        checkpoints=min(study.checkpoints, cell.horizon),
        threads=1,
        **partitions,
    )
    measures = {f"measure_{name}": values for name, values in result.measures.items()}
    return {"checkpoints": result.checkpoints, "noise_draws": result.noise_draws, **measures}
