"""Running reproductions: jobs in processes, each kept when done, verdicts in files.

A killed run loses the jobs under way; started again, it does the rest. Outcomes are kept as JSON under a
name that includes the code and the job's arguments, so that a changed study is never mixed with an
old one.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import pkgutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import tacit
from tacit.engines import JSON, Store, code_stamp, engine_named, lock_run, run_jobs
from tacit_studies.reproduction import Findings, Job, Reproduction, number_of
from tacit_studies.verdicts import UNDECIDED

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Finished:
    """A reproduction and what it found."""

    reproduction: Reproduction
    quick: bool
    findings: Findings
    version: str
    skipped: bool = False


def data_folder() -> Path | None:
    """Return the folder of data sets, from the variable TACIT_DATA, if there is one."""
    named = os.environ.get("TACIT_DATA")
    return Path(named) if named else None


def reproduce(
    reproductions: Iterable[Reproduction],
    folder: str | Path,
    *,
    quick: bool = False,
    workers: int | None = None,
    engine: str | None = None,
    address: str | None = None,
    progress: Progress | None = None,
) -> list[Finished]:
    """Run the reproductions, or what is left of them, and keep their findings in `folder`.

    Parameters
    ----------
    reproductions : iterable of Reproduction
    folder : path
        Receives ``NAME-quick.json`` or ``NAME-full.json``.
    quick : bool
        Small sizes: seconds instead of minutes.
    workers : int, optional
        Processes, by default one for each core; the numbers are the same for any number.
    engine : str, optional
        Where jobs run; see `tacit.engines`.
    address : str, optional
        Of a running Ray cluster.
    progress : callable, optional
        Called with jobs done and jobs in all.
    """
    folder = Path(folder)
    chosen = list(reproductions)
    missing = {r.name: _missing(r) for r in chosen}
    store = Store(folder / ".jobs", JSON)
    jobs = {
        r.name: [(job, f"{r.name}-{_stamp(job)}") for job in r.jobs(quick)]
        for r in chosen
        if not missing[r.name]
    }
    # One job of each study in turn: two processes then seldom compile the same kernel at once.
    turns = itertools.zip_longest(*jobs.values())
    todo = {pair[1]: (pair[0],) for turn in turns for pair in turn if pair is not None}
    where = engine_named(engine, workers=workers, jobs=len(todo), address=address)
    with lock_run(folder, "reproduce"):
        run_jobs(_work, todo, store, engine=where, progress=progress)
    finished = []
    for reproduction in chosen:
        if missing[reproduction.name]:
            findings = Findings(verdict=UNDECIDED, because=missing[reproduction.name])
        else:
            outcomes = {job.key: store.get(key)["outcome"] for job, key in jobs[reproduction.name]}
            findings = reproduction.judge(outcomes, quick)
        done = Finished(
            reproduction, quick, findings, tacit.__version__, bool(missing[reproduction.name])
        )
        _keep(folder, done)
        finished.append(done)
    return finished


def last_findings(reproduction: Reproduction, folder: str | Path) -> Finished | None:
    """Return what was found last time, the full size before the quick one."""
    for quick in (False, True):
        store = Store(folder, JSON)
        for name in (reproduction.name, number_of(reproduction.name)):
            if (key := _key(name, quick)) in store:
                data = store.get(key)
                findings = Findings.from_dict(data["findings"])
                return Finished(reproduction, quick, findings, data["version"], data["skipped"])
    return None


def _missing(reproduction: Reproduction) -> str:
    folder = data_folder()
    for name in reproduction.needs:
        if folder is None or not (folder / name).is_dir():
            return (
                f"The data set {name} is not here; put it into a folder and name that folder in "
                "the variable TACIT_DATA."
            )
    return ""


@cache
def _modules() -> tuple[str, ...]:
    """Return the modules of this package that decide an outcome: the report and the command do not."""
    here = pkgutil.iter_modules([str(Path(__file__).parent)])
    names = sorted({info.name for info in here} - {"command", "report"})
    return tuple(f"{__package__}.{name}" for name in names)


def _stamp(job: Job) -> str:
    said = json.dumps(
        [
            code_stamp(_modules()),
            job.key,
            job.function.__module__,
            job.function.__qualname__,
            job.arguments,
        ],
        sort_keys=True,
    )
    return hashlib.sha256(said.encode()).hexdigest()[:20]


def _work(job: Job) -> dict[str, Any]:
    begun = time.perf_counter()
    outcome = job.function(**job.arguments)
    return {"key": job.key, "seconds": time.perf_counter() - begun, "outcome": outcome}


def _key(name: str, quick: bool) -> str:
    return f"{name}-{'quick' if quick else 'full'}"


def _keep(folder: Path, done: Finished) -> None:
    record: Mapping[str, Any] = {
        "name": done.reproduction.name,
        "quick": done.quick,
        "version": done.version,
        "skipped": done.skipped,
        "findings": done.findings.to_dict(),
    }
    Store(folder, JSON).put(_key(done.reproduction.name, done.quick), JSON.encode(record))
