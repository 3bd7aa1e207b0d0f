"""Running a study: every block of repetitions of every cell is a job, in processes by default.

A finished job is a small file beside the result. A run that is killed loses the jobs under way and
nothing else; started again, it does the rest, and the file it ends with is the same to the last byte.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tacit.simulation.files import StudyResult, read, write
from tacit.simulation.run import simulate
from tacit.simulation.study import Cell, Study, blocks
from tacit.state import write_atomically

__all__ = ["one_blas_thread", "run_study"]

Progress = Callable[[int, int], None]
_BLAS = "OPENBLAS_NUM_THREADS"


def run_study(
    study: Study,
    folder: str | Path,
    *,
    workers: int | None = None,
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
    progress : callable, optional
        Called with jobs done and jobs in all.

    Returns
    -------
    StudyResult
    """
    folder = Path(folder)
    target = folder / f"{study.name}.parquet"
    if target.is_file():
        finished = read(target)
        if finished.fingerprint == study.fingerprint:
            return finished
    parts = folder / f".{study.name}-{study.fingerprint}"
    cells = study.cells()
    jobs = [
        (cell, repetitions, parts / f"{i}-{repetitions.start}.npz")
        for i, cell in enumerate(cells)
        for repetitions in blocks(study.repetitions)
    ]
    parts.mkdir(parents=True, exist_ok=True)
    _do([job for job in jobs if not job[2].is_file()], len(jobs), study, workers, progress)
    write(target, study, cells, [[p for c, _, p in jobs if c is cell] for cell in cells])
    shutil.rmtree(parts)
    return read(target)


def _do(
    todo: list[tuple[Cell, range, Path]],
    total: int,
    study: Study,
    workers: int | None,
    progress: Progress | None,
) -> None:
    done = total - len(todo)
    if progress is not None:
        progress(done, total)
    workers = min(workers or os.cpu_count() or 1, max(1, len(todo)))
    if workers > 1:
        # Compile in this process first: the others then find the kernels in the cache.
        for kind in {(type(c.policy), type(c.environment)): c for c, _, _ in todo}.values():
            short = min(16, kind.horizon)
            simulate(kind.policy, kind.environment, horizon=short, checkpoints=1, threads=1)
        context = multiprocessing.get_context("spawn")
        with one_blas_thread(), ProcessPoolExecutor(workers, mp_context=context) as pool:
            running = [pool.submit(_job, study, cell, reps, part) for cell, reps, part in todo]
            try:
                for finished in as_completed(running):
                    finished.result()
                    done += 1
                    if progress is not None:
                        progress(done, total)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return
    for cell, repetitions, part in todo:
        _job(study, cell, repetitions, part)
        done += 1
        if progress is not None:
            progress(done, total)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let processes started here use one thread for linear algebra: the cores are taken already."""
    before = os.environ.get(_BLAS)
    os.environ[_BLAS] = before or "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_BLAS]


def _job(study: Study, cell: Cell, repetitions: range, part: Path) -> None:
    result = simulate(
        cell.policy,
        cell.environment,
        horizon=cell.horizon,
        repetitions=repetitions,
        seed=study.seed,
        checkpoints=min(study.checkpoints, cell.horizon),
        threads=1,
    )
    arrays: dict[str, Any] = {f"measure_{name}": v for name, v in result.measures.items()}

    def save(file: Path) -> None:
        with file.open("wb") as handle:
            np.savez(
                handle,
                checkpoints=result.checkpoints,
                noise_draws=result.noise_draws,
                **arrays,
            )

    write_atomically(part, save)
