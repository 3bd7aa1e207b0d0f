"""Partitions of a population in processes of this machine."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from multiprocessing.connection import wait
from typing import Any

from tacit.core.compile_notice import announce_compiling
from tacit.engines.processes import Worker, start_workers
from tacit.populations.actors import Actor, ActorGroup, LostError, Order
from tacit.populations.partitions import Maker


class ProcessActors(ActorGroup):
    """Actors in processes, one in each."""

    def __init__(self, makers: Sequence[Maker], n_actors: int) -> None:
        super().__init__(makers, n_actors)
        self._makers = makers
        self._stacks = [ExitStack() for _ in self.held]
        self._workers: list[Worker] = []
        try:
            self._workers.extend(self._start(w) for w in range(n_actors))
            self._order_all([self._make_order(w) for w in range(n_actors)])
        except BaseException:
            self.close()
            raise

    def _start(self, w: int) -> Worker:
        return self._stacks[w].enter_context(start_workers(1, pickle.dumps(Actor())))[0]

    def _make_order(self, w: int) -> Order:
        return ("reset", {i: self._makers[i] for i in self.held[w]})

    def restart(self) -> None:
        """Start the processes again that ended, and let all partitions begin again."""
        self._messages = [{} for _ in self.held]
        orders: list[Order] = []
        for w, worker in enumerate(self._workers):
            with suppress(LostError):
                while worker.job is not None:  # of the step in which another was lost
                    self._listen(w)
            orders.append(("reset",))
            if not worker.process.is_alive():
                self._stacks[w].close()
                self._workers[w] = self._start(w)
                orders[w] = self._make_order(w)
        self._order_all(orders)

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.process.terminate()
        for stack in self._stacks:
            stack.close()

    def _order_all(self, orders: Sequence[Order]) -> list[Any]:
        for w, order in enumerate(orders):
            self._give(w, order)
        answers: dict[int, Any] = {}
        while len(answers) < len(orders):
            waiting = {
                each.connection: w for w, each in enumerate(self._workers) if w not in answers
            }
            for connection in wait(list(waiting)):
                w = waiting[connection]  # type: ignore[index]
                what, value = self._listen(w)
                if what == "done":
                    answers[w] = value
        return [answers[w] for w in range(len(orders))]

    def _order(self, w: int, order: Order) -> Any:
        self._give(w, order)
        while True:
            what, value = self._listen(w)
            if what == "done":
                return value

    def _give(self, w: int, order: Order) -> None:
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
