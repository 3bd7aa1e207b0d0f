"""Ray: a cluster of machines, or all cores of this one, as one more place where jobs run.

The driver stays here: it hands out a bounded number of jobs, receives their outcomes and keeps them, so that
a stopped driver goes on where it was. A job is a function of its arguments: a lost one is simply done again.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tacit.core.constraints import require
from tacit.core.errors import first_line
from tacit.core.processes import block_sigint
from tacit.engines.base import Engine, Finished

#: What Ray ends in order: these two know of the others.
_DRAINED = ("raylet", "gcs_server")
_CHILD_SUBREAPER = 36
#: The first version that can ask for a token.
_TOKENS_SINCE = (2, 52)


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
    Ray's usage statistics are switched off, and the cluster that is started here asks for a token where
    the version can (2.52 and later), unless ``RAY_AUTH_MODE`` says otherwise; for a running cluster that
    asks for one, set ``RAY_AUTH_MODE=token`` and ``RAY_AUTH_TOKEN`` or ``RAY_AUTH_TOKEN_PATH``. The
    machines of a cluster need the same version of Tacit.
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
        ray, stay = self.join()
        try:
            self._run(ray, function, jobs, finished)
        finally:
            stay.end()

    def join(self) -> tuple[Any, Stay]:
        """Return Ray in the cluster, and what ends this stay there."""
        ray = load_ray(starts=self.address is None)
        return ray, self._join(ray)

    def _join(self, ray: Any) -> Stay:
        try:
            return Stay(ray, self.address, self.workers)
        except Exception as error:  # Ray raises plain ones where a node does not start
            raise ValueError(
                f"no Ray cluster at {self.address or 'this machine'}: {first_line(error)}"
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
            runtime_env={"env_vars": {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": module_paths()}},
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
            with block_sigint():
                for each in under_way:
                    # Forced, one that ends in this moment would have Ray abort this very process.
                    ray.cancel(each)
            raise


class Stay:
    """Being in a cluster: begun here, unless this process was in one already, and then ended here.

    Ray keeps Ctrl-C from the processes that it starts, and on Linux they end with this one, however it
    ends; what they started in turn is ended by the sweeper.
    """

    def __init__(self, ray: Any, address: str | None, workers: int | None) -> None:
        self._ray, self._mine = ray, not ray.is_initialized()
        self._helpers: set[int] = set()
        self._sweeper: subprocess.Popen[bytes] | None = None
        if not self._mine:
            return
        quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
        where = {"num_cpus": workers, "include_dashboard": False} if address is None else {}
        _look_for(address)
        before = _children()
        _adopt(True)
        try:
            # A cluster of somebody else's on this machine is joined only where it is named.
            joined = ray.init(address=address or "local", **where, **quiet)
            started = _children() - before
            self._helpers = {each for each in started if _command(each) not in _DRAINED}
            if started:
                self._sweeper = _sweeper_of(joined.address_info["session_dir"])
        except BaseException:
            self._helpers = _stopped_family(_children() - before)
            self.end()
            raise
        finally:
            _adopt(False)

    def end(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if not self._mine:
            return
        with block_sigint():
            # Ray would ask one after the other to end, and wait a second for some that never listen.
            for each in self._helpers:
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            self._ray.shutdown()
            if self._sweeper is not None:
                self._sweeper.communicate()


def _look_for(address: str | None) -> None:
    """Raise `OSError` if nobody listens at HOST:PORT; Ray would try for minutes."""
    host, _, port = (address or "").rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def _sweeper_of(folder: str) -> subprocess.Popen[bytes]:
    program = str(Path(__file__).with_name("reaper.py"))
    with block_sigint():
        return subprocess.Popen(
            [sys.executable, "-I", "-S", program, folder],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )


def load_ray(*, starts: bool = False) -> Any:
    """Return Ray, told before it is imported that it reports nothing and, if it starts, asks for a token."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if starts and "ray" not in sys.modules and _version() >= _TOKENS_SINCE:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    import ray

    return ray


def _adopt(orphans: bool) -> None:
    """Become, or no longer be, the parent of whoever loses one below this process, where Linux can.

    Ray that is stopped while it starts ends what it started, and leaves what this started in turn.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, int(orphans), 0, 0, 0)


def _stopped_family(processes: set[int]) -> set[int]:
    """Return processes and all that they started, which can start no more: every one is halted."""
    found: set[int] = set()
    while fresh := processes - found:
        for each in fresh:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGSTOP)
        found |= fresh
        processes = {child for each in found for child in _children(each)}
    return found


def _children(process: int | str = "self") -> set[int]:
    """Return the processes that one started, this one by default, where the system tells."""
    lists = Path(f"/proc/{process}/task").glob("*/children")
    return {int(each) for listed in lists for each in _read(listed).split()}


def _command(process: int) -> str:
    return _read(Path(f"/proc/{process}/comm")).strip()


def _read(place: Path) -> str:
    with suppress(OSError):
        return place.read_text()
    return ""


def _version() -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", importlib.metadata.version("ray"))[:2])


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


def module_paths() -> str:
    """Return where modules are found here: a cluster on this machine finds the same."""
    return os.pathsep.join(path for path in sys.path if path)
