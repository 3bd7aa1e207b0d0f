"""Running a study: every block of repetitions of every cell is a job, in processes by default.

A finished job is a small file beside the result. A run that is killed loses the jobs under way and
nothing else; started again, it does the rest, and the file it ends with is the same to the last byte.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from tacit.checks import require
from tacit.simulation.files import StudyResult, read, write
from tacit.simulation.run import require_match, simulate
from tacit.simulation.study import Cell, Study, blocks
from tacit.state import require_writable, write_atomically
from tacit.tapes import seeded_tape

__all__ = ["do_jobs", "run_study"]

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
        (study, cell, repetitions, parts / f"{i}-{repetitions.start}.npz")
        for i, cell in enumerate(cells)
        for repetitions in blocks(study.repetitions)
    ]
    for cell in cells:
        require_match(cell.policy, cell.environment, cell.horizon)
    todo = [job for job in jobs if not job[3].is_file()]
    require_writable(folder)
    try:
        if workers != 1:
            _warm_up(todo)
        do_jobs(_job, todo, done=len(jobs) - len(todo), workers=workers, progress=progress)
    except ValueError:
        with suppress(OSError):  # finished parts stay
            parts.rmdir()
        raise
    write(target, study, cells, [[p for _, c, _, p in jobs if c is cell] for cell in cells])
    shutil.rmtree(parts)
    return read(target)


def _warm_up(jobs: Sequence[tuple[Study, Cell, range, Path]]) -> None:
    """Compile in this process first: the others then find the kernels in the cache."""
    for cell in {(type(c.policy), type(c.environment)): c for _, c, _, _ in jobs}.values():
        table = cell.environment.table(0, 0, cell.horizon)
        trace = cell.environment.trace(cell.horizon, np.array([cell.horizon]))
        state = cell.policy.start(table)
        cell.policy.play(state, table, seeded_tape(0), trace, 0, min(16, cell.horizon))


def do_jobs(
    function: Callable[..., None],
    jobs: Sequence[tuple[Any, ...]],
    *,
    done: int = 0,
    workers: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Call `function` on every job, in processes; `done` jobs were finished before."""
    require("do_jobs", "workers", ">= 1", workers is None or workers >= 1, workers)
    tell = progress or (lambda _done, _total: None)
    total = done + len(jobs)
    tell(done, total)
    if min(workers or os.cpu_count() or 1, len(jobs)) <= 1:
        for job in jobs:
            function(*job)
            done += 1
            tell(done, total)
        return
    context = multiprocessing.get_context("spawn")
    with _one_blas_thread(), ProcessPoolExecutor(workers, mp_context=context) as pool:
        running = [pool.submit(function, *job) for job in jobs]
        try:
            for finished in as_completed(running):
                finished.result()
                done += 1
                tell(done, total)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _one_blas_thread() -> Iterator[None]:
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
