"""Pieces of a population in processes of this machine."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import pairwise
from multiprocessing.connection import wait
from typing import Any

from tacit.core.compile_notice import announce_compiling
from tacit.engines.processes import Worker, start_workers
from tacit.populations.actors import Crew, Host, LostError
from tacit.populations.partitions import Maker


class ProcessCrew(Crew):
    """Pieces in processes: process w has the pieces `hosted[w]`, in order."""

    def __init__(self, makers: Sequence[Maker], count: int) -> None:
        self._makers = makers
        cuts = [w * len(makers) // count for w in range(count + 1)]
        self._hosted = [range(a, b) for a, b in pairwise(cuts)]
        self._mail: list[dict[tuple[int, int], Any]] = [{} for _ in self._hosted]
        self._stacks = [ExitStack() for _ in self._hosted]
        self._workers: list[Worker] = []
        try:
            for w in range(count):
                self._workers.append(self._start(w))
            self._all([("make", self._of(w)) for w in range(count)])
        except BaseException:
            self.close()
            raise

    def _start(self, w: int) -> Worker:
        return self._stacks[w].enter_context(start_workers(1, pickle.dumps(Host())))[0]

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
            announce_compiling()
            return what, value
        worker.job = None
        if what == "failed":
            raise value
        return what, value
