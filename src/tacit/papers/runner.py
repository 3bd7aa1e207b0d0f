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
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tacit
from tacit import jsonable
from tacit.engines import Codec, Store, code_stamp, engine_named, only_run, run_jobs
from tacit.papers.reproduction import UNDECIDED, Findings, Job, Reproduction
from tacit.state import write_atomically

__all__ = ["Finished", "data_folder", "last_findings", "reproduce"]

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
    store = Store(folder / ".jobs", _RECORDS)
    jobs = {
        r.name: [(job, f"{r.name}-{_stamp(job)}") for job in r.jobs(quick)]
        for r in chosen
        if not missing[r.name]
    }
    # One job of each study in turn: two processes then seldom compile the same kernel at once.
    turns = itertools.zip_longest(*jobs.values())
    todo = {pair[1]: (pair[0],) for turn in turns for pair in turn if pair is not None}
    with only_run(folder, "reproduce"):
        where = engine_named(engine, workers=workers, jobs=len(todo), address=address)
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
        path = _path(Path(folder), reproduction, quick)
        if path.is_file():
            data = json.loads(path.read_text(encoding="utf-8"))
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


def _stamp(job: Job) -> str:
    said = json.dumps(
        [code_stamp(), job.key, job.function.__module__, job.function.__qualname__, job.arguments],
        sort_keys=True,
    )
    return hashlib.sha256(said.encode()).hexdigest()[:20]


def _work(job: Job) -> dict[str, Any]:
    begun = time.perf_counter()
    outcome = job.function(**job.arguments)
    return {"key": job.key, "seconds": time.perf_counter() - begun, "outcome": outcome}


def _encoded(record: Any) -> bytes:
    return jsonable.dumps(record).encode()


_RECORDS = Codec(".json", _encoded, json.loads)


def _path(folder: Path, reproduction: Reproduction, quick: bool) -> Path:
    return folder / f"{reproduction.name}-{'quick' if quick else 'full'}.json"


def _keep(folder: Path, done: Finished) -> None:
    record: Mapping[str, Any] = {
        "name": done.reproduction.name,
        "quick": done.quick,
        "version": done.version,
        "skipped": done.skipped,
        "findings": done.findings.to_dict(),
    }
    text = jsonable.dumps(record, indent=1)
    path = _path(folder, done.reproduction, done.quick)
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))
