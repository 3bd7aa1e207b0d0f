"""Processes of this machine: each works on one job at a time and ends with the process that started it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from tacit.core.compile_notice import announce_compiling, on_compiling
from tacit.core.constraints import require
from tacit.core.processes import block_sigint
from tacit.engines.base import Engine, Finished

_BLAS = "OPENBLAS_NUM_THREADS"


class Processes(Engine):
    """As many processes as asked for, started afresh, one job each at a time.

    Parameters
    ----------
    workers : int
    """

    def __init__(self, workers: int) -> None:
        require("Processes", "workers", ">= 1", workers >= 1, workers)
        self.workers = workers

    def run(
        self,
        function: Callable[..., Any],
        jobs: Sequence[tuple[Any, ...]],
        finished: Finished,
    ) -> None:
        """Call `function` for every job, in the order of `jobs`, several at a time."""
        if not jobs:
            return
        calls = pickle.dumps(function)
        waiting = iter(enumerate(jobs))
        with start_workers(min(self.workers, len(jobs)), calls) as workers:
            busy = {worker.connection: worker for worker in workers}
            for worker in workers:
                worker.give(next(waiting, None))
            while any(worker.job is not None for worker in workers):
                for connection in wait(list(busy)):
                    worker = busy[connection]  # type: ignore[index]
                    what, value = worker.take()
                    if what == "compiling":
                        announce_compiling()
                        continue
                    done, worker.job = worker.job, None
                    worker.give(next(waiting, None))
                    if worker.job is None:
                        del busy[worker.connection]
                    if what == "failed":
                        raise value
                    finished(done, value)


class Worker:
    """One process and the line to it."""

    def __init__(self, process: Any, connection: Connection) -> None:
        self.process = process
        self.connection = connection
        self.job: Any = None

    def give(self, job: tuple[int, tuple[Any, ...]] | None) -> None:
        """Send the next job, if there is one."""
        if job is not None:
            self.job = job[0]
            self.connection.send(job[1])

    def take(self) -> tuple[str, Any]:
        """Return what the process says."""
        try:
            said: tuple[str, Any] = self.connection.recv()
            return said
        except (EOFError, ConnectionError):
            self.process.join(5)
            code = self.process.exitcode
            how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            raise ChildProcessError(
                f"a worker process ended by {how}, perhaps for want of memory; "
                "what was finished is kept, and fewer --workers need less"
            ) from None


@contextmanager
def start_workers(count: int, calls: bytes) -> Iterator[list[Worker]]:
    """Start processes; at the end, however it comes, none is left."""
    context = multiprocessing.get_context("spawn")
    workers: list[Worker] = []
    resource_tracker.ensure_running()  # its start ends deafness, so it comes first
    try:
        with _one_blas_thread():
            for _ in range(count):
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(theirs, calls), daemon=True)
                with block_sigint():
                    process.start()
                theirs.close()
                workers.append(Worker(process, ours))
        yield workers
    finally:
        with block_sigint():
            for worker in workers:
                worker.connection.close()
                if worker.job is not None:
                    worker.process.terminate()
            for worker in workers:
                worker.process.join(1.0)
                if worker.process.is_alive():
                    worker.process.kill()
                    worker.process.join()


def _work(connection: Connection, calls: bytes) -> None:
    """Do jobs until the line is closed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    on_compiling(lambda: connection.send(("compiling", None)))
    function = None
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        except Exception as error:  # arguments that cannot be made here
            connection.send(("failed", _portable(error)))
            continue
        try:
            function = function or pickle.loads(calls)
            said = ("done", function(*job))
        except Exception as error:
            said = ("failed", _portable(error))
        connection.send(said)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _portable(error: Exception) -> Exception:
    """Return an exception that can be sent, with where it happened."""
    where = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(where)
    return error


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
