"""Ray: a cluster of machines, or all cores of this one, as one more place where jobs run.

The driver stays here: it hands out a bounded number of jobs, receives their outcomes and keeps them, so that
a stopped driver goes on where it was. A job is a function of its arguments: a lost one is simply done again.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

from tacit.checks import require
from tacit.engines.base import Engine, Finished
from tacit.signals import deaf

__all__ = ["Cluster"]


class Cluster(Engine):
    """Jobs as tasks of a Ray cluster.

    Parameters
    ----------
    address : str, optional
        Of a running cluster, ``"auto"`` for the one this machine belongs to; without one, a cluster
        of this machine is started, and ended with the work.
    workers : int, optional
        Cores of the cluster that is started here.

    Notes
    -----
    Ray's usage statistics are switched off. The machines of a cluster need the same version of Tacit.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        require("Cluster", "workers", ">= 1", workers is None or workers >= 1, workers)
        if importlib.util.find_spec("ray") is None:
            raise ValueError("the engine ray needs Ray; pip install 'tacit[ray]'")
        self.address = address
        self.workers = workers

    def run(
        self,
        function: Callable[..., Any],
        jobs: Sequence[tuple[Any, ...]],
        finished: Finished,
    ) -> None:
        """Call `function` for every job, in the order of `jobs`, two for each core under way."""
        if not jobs:
            return
        ray = _ray()
        mine = not ray.is_initialized()
        if mine:
            self._connect(ray)
        try:
            self._run(ray, function, jobs, finished)
        finally:
            if mine:
                with deaf():
                    ray.shutdown()

    def _connect(self, ray: Any) -> None:
        quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
        try:
            with deaf():
                if self.address is not None:
                    ray.init(address=self.address, **quiet)
                else:
                    ray.init(num_cpus=self.workers, include_dashboard=False, **quiet)
        except (ConnectionError, RuntimeError, TimeoutError) as error:
            first = str(error).strip().splitlines()[0]
            raise ValueError(
                f"no Ray cluster at {self.address or 'this machine'}: {first}"
            ) from None

    def _run(
        self,
        ray: Any,
        function: Callable[..., Any],
        jobs: Sequence[tuple[Any, ...]],
        finished: Finished,
    ) -> None:
        task = ray.remote(_do).options(
            num_cpus=1,
            max_retries=-1,
            runtime_env={"env_vars": {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": _paths()}},
        )
        shared = ray.put(function)
        waiting = iter(enumerate(jobs))
        room = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
        under_way: dict[Any, int] = {}
        try:
            while True:
                while len(under_way) < room and (following := next(waiting, None)) is not None:
                    i, job = following
                    under_way[task.remote(shared, job)] = i
                if not under_way:
                    return
                (done,), _ = ray.wait(list(under_way), num_returns=1)
                i = under_way.pop(done)
                finished(i, _outcome(ray, done))
        except BaseException:
            with deaf():
                for each in under_way:
                    ray.cancel(each, force=True)
            raise


def _ray() -> Any:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    return ray


def _do(function: Callable[..., Any], job: tuple[Any, ...]) -> Any:
    return function(*job)


def _outcome(ray: Any, done: Any) -> Any:
    """Return what a task returned, or raise what it raised."""
    try:
        return ray.get(done)
    except ray.exceptions.RayTaskError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, Exception):
            raise cause from None
        raise


def _paths() -> str:
    """Return where modules are found here: a cluster on this machine finds the same."""
    import sys

    return os.pathsep.join(path for path in sys.path if path)
