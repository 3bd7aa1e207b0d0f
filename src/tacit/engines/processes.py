"""Processes of this machine: each works on one job at a time and ends with the process that started it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from tacit.checks import require
from tacit.engines.base import Engine, Finished
from tacit.engines.crews import Crew, Host, LostError
from tacit.pieces import Maker
from tacit.signals import deaf

__all__ = ["Processes"]

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
        with _started(min(self.workers, len(jobs)), calls) as workers:
            busy = {worker.connection: worker for worker in workers}
            for worker in workers:
                worker.give(next(waiting, None))
            while any(worker.job is not None for worker in workers):
                for connection in wait(list(busy)):
                    worker = busy[connection]  # type: ignore[index]
                    what, value = worker.take()
                    if what == "compiling":
                        _tell_compiling()
                        continue
                    done, worker.job = worker.job, None
                    worker.give(next(waiting, None))
                    if worker.job is None:
                        del busy[worker.connection]
                    if what == "failed":
                        raise value
                    finished(done, value)

    def crew(self, makers: Sequence[Maker]) -> Crew:
        """Return pieces in processes, several in each if there are more pieces than workers."""
        return _ProcessCrew(makers, min(self.workers, len(makers)))


class _ProcessCrew(Crew):
    """Pieces in processes: process w has the pieces `hosted[w]`, in order."""

    def __init__(self, makers: Sequence[Maker], count: int) -> None:
        self._makers = makers
        cuts = [w * len(makers) // count for w in range(count + 1)]
        self._hosted = [range(a, b) for a, b in pairwise(cuts)]
        self._mail: list[dict[tuple[int, int], Any]] = [{} for _ in self._hosted]
        self._stacks = [ExitStack() for _ in self._hosted]
        self._workers: list[_Worker] = []
        try:
            for w in range(count):
                self._workers.append(self._start(w))
            self._all([("make", self._of(w)) for w in range(count)])
        except BaseException:
            self.close()
            raise

    def _start(self, w: int) -> _Worker:
        return self._stacks[w].enter_context(_started(1, pickle.dumps(Host())))[0]

    def _of(self, w: int) -> dict[int, Maker]:
        return {i: self._makers[i] for i in self._hosted[w]}

    def step(
        self, t: int, news: Any, *, save: Sequence[str] | None, load: Sequence[str] | None
    ) -> tuple[list[Any], list[Any]]:
        """Let every piece do step t."""
        count = len(self._makers)
        answers = self._all([("step", t, news, save, load, mail, count) for mail in self._mail])
        said = {i: each for answer, _ in answers for i, each in answer.items()}
        self._mail = [
            {way: each for _, sent in answers for way, each in sent.items() if way[1] in hosted}
            for hosted in self._hosted
        ]
        return [said[i][0] for i in range(count)], [said[i][1] for i in range(count)]

    def fold(self, method: str, value: Any) -> Any:
        """Call a method of every piece on what the one before it returned."""
        for w, hosted in enumerate(self._hosted):
            for i in hosted:
                value = self._one(w, ("call", i, method, value))
        return value

    def ask(self, method: str) -> list[Any]:
        """Call a method of every piece."""
        return [
            self._one(w, ("call", i, method))
            for w, hosted in enumerate(self._hosted)
            for i in hosted
        ]

    def mend(self) -> None:
        """Start the processes again that ended, and let all pieces begin again."""
        self._mail = [{} for _ in self._hosted]
        for w, worker in enumerate(self._workers):
            with suppress(LostError):
                while worker.job is not None:  # of the step in which another was lost
                    self._listen(w)
            if not worker.process.is_alive():
                self._stacks[w].close()
                self._workers[w] = self._start(w)
                self._one(w, ("make", self._of(w)))
        self._all([("reset",)] * len(self._workers))

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.process.terminate()
        for stack in self._stacks:
            stack.close()

    def _all(self, orders: Sequence[tuple[Any, ...]]) -> list[Any]:
        for w, order in enumerate(orders):
            self._give(w, order)
        said: dict[int, Any] = {}
        while len(said) < len(orders):
            lines = {each.connection: w for w, each in enumerate(self._workers) if w not in said}
            for line in wait(list(lines)):
                w = lines[line]  # type: ignore[index]
                what, value = self._listen(w)
                if what == "done":
                    said[w] = value
        return [said[w] for w in range(len(orders))]

    def _one(self, w: int, order: tuple[Any, ...]) -> Any:
        self._give(w, order)
        while True:
            what, value = self._listen(w)
            if what == "done":
                return value

    def _give(self, w: int, order: tuple[Any, ...]) -> None:
        try:
            self._workers[w].give((0, order))
        except ConnectionError as error:
            raise LostError(str(error)) from None

    def _listen(self, w: int) -> tuple[str, Any]:
        worker = self._workers[w]
        try:
            what, value = worker.take()
        except ChildProcessError as error:
            worker.job = None
            raise LostError(str(error).partition(",")[0]) from None
        if what == "compiling":
            _tell_compiling()
            return what, value
        worker.job = None
        if what == "failed":
            raise value
        return what, value


class _Worker:
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
def _started(count: int, calls: bytes) -> Iterator[list[_Worker]]:
    """Start processes; at the end, however it comes, none is left."""
    context = multiprocessing.get_context("spawn")
    workers: list[_Worker] = []
    resource_tracker.ensure_running()  # its start ends deafness, so it comes first
    try:
        with _one_blas_thread():
            for _ in range(count):
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(theirs, calls), daemon=True)
                with deaf():
                    process.start()
                theirs.close()
                workers.append(_Worker(process, ours))
        yield workers
    finally:
        with deaf():
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
    from tacit.compiled import when_compiling

    when_compiling(lambda: connection.send(("compiling", None)))
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


def _tell_compiling() -> None:
    from tacit import compiled

    compiled.tell_compiling()


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
