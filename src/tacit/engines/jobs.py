"""Doing jobs: what is not kept yet, on any engine, kept as soon as it is done."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.core.constraints import require
from tacit.core.progress import Progress
from tacit.engines.base import Engine, Finished
from tacit.engines.cluster import Cluster
from tacit.engines.processes import Processes
from tacit.engines.store import Codec, Store


class SerialEngine(Engine):
    """The process that asks, one job after the other."""

    def run(
        self,
        function: Callable[..., Any],
        jobs: Sequence[tuple[Any, ...]],
        finished: Finished,
    ) -> None:
        """Call `function` for every job, in order."""
        for i, job in enumerate(jobs):
            finished(i, function(*job))


def run_jobs(
    function: Callable[..., Any],
    jobs: Mapping[str, tuple[Any, ...]],
    store: Store,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> None:
    """Do every job whose outcome `store` does not have, and keep its outcome there.

    Parameters
    ----------
    function : callable
        Of a module that other processes can import.
    jobs : mapping of key to arguments
        The key names the file of the outcome.
    store : Store
    engine : Engine, optional
        By default this process.
    progress : callable, optional
        Called with jobs done and jobs in all.

    Examples
    --------
    >>> import tempfile
    >>> from tacit.engines import JSON, Store, run_jobs
    >>> store = Store(tempfile.mkdtemp(), JSON)
    >>> run_jobs(max, {"a": (1, 2), "b": (4, 3)}, store)
    >>> store.get("b")
    4
    """
    left = {key: job for key, job in jobs.items() if key not in store}
    keys = list(left)
    tell = progress or (lambda _done, _total: None)
    done = len(jobs) - len(left)
    tell(done, len(jobs))

    def finished(i: int, encoded: Any) -> None:
        nonlocal done
        store.put(keys[i], encoded)
        done += 1
        tell(done, len(jobs))

    (engine or SerialEngine()).run(_Encoded(function, store.codec), list(left.values()), finished)


def engine_named(
    name: str | None, *, workers: int | None = None, jobs: int = 2, address: str | None = None
) -> Engine:
    """Return the engine called `name`: ``serial``, ``processes``, ``ray``, or by default what suits.

    Parameters
    ----------
    name : str, optional
    workers : int, optional
        Processes; by default as many as cores.
    jobs : int
        How many there are: for one, processes are not worth their start.
    address : str, optional
        Of a running Ray cluster; means ``ray``.
    """
    require("engine_named", "workers", ">= 1", workers is None or workers >= 1, workers)
    if name == "ray" or (name is None and address is not None):
        return Cluster(address, workers)
    require("engine_named", "address", "with the engine ray only", address is None, address)
    count = min(workers or os.cpu_count() or 1, jobs)
    if name in ("serial", "here") or (name is None and count <= 1):
        return SerialEngine()
    if name in (None, "processes"):
        return Processes(max(1, count))
    raise ValueError(f"no engine is called {name!r}; there are serial, processes, ray")


@dataclass(frozen=True)
class _Encoded:
    """A function whose outcome comes as bytes, made where it runs."""

    function: Callable[..., Any]
    codec: Codec

    def __call__(self, *arguments: Any) -> bytes:
        return self.codec.encode(self.function(*arguments))
