"""Experiments that are being made: nobody need wait for a compiler, and what became of each can be asked."""

from __future__ import annotations

import asyncio
import re

from starlette.requests import Request
from starlette.responses import Response

from tacit.service.experiments import ExperimentManager
from tacit.service.http import RequestError, json_answer
from tacit.service.logs import describe_fault, write_log
from tacit.service.messages import Creation, Described, ExperimentRequest
from tacit.service.responses import describe_experiment
from tacit.serving.core import RefusedError
from tacit.serving.experiment import Experiment

_LONGEST = 45.0
"""Seconds until an answer, ready or not: proxies wait a minute."""
_SOON = 1.0
_REMEMBERED = 64
_WAIT = re.compile(r"\bwait=(\d{1,4})\b")


class Creations:
    """Those of one process that are under way, and the last that failed."""

    def __init__(self) -> None:
        self._making: dict[str, asyncio.Task[Experiment]] = {}
        self._failed: dict[str, str] = {}

    def begin(
        self, manager: ExperimentManager, wanted: ExperimentRequest
    ) -> asyncio.Task[Experiment]:
        """Begin to make an experiment."""
        name = wanted.name
        if name in self._making:
            raise RefusedError(
                "conflict", f"{name}: expected a new name, got one that is being made"
            )
        self._failed.pop(name, None)
        task = self._making[name] = asyncio.create_task(manager.create_while_serving(wanted))
        task.add_done_callback(lambda done: self._end(name, done))
        return task

    def _end(self, name: str, task: asyncio.Task[Experiment]) -> None:
        del self._making[name]
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        if isinstance(error, ValueError):
            why = str(error)
        else:
            why = "a fault of the service; it was logged"
            write_log("fault", path="creation", detail=describe_fault(error))
        self._failed[name] = why
        if len(self._failed) > _REMEMBERED:
            del self._failed[next(iter(self._failed))]

    def find(self, name: str) -> Creation | None:
        """Return what became of an experiment that was begun here."""
        if name in self._making:
            return Creation(name, "compiling")
        why = self._failed.get(name)
        return None if why is None else Creation(name, "failed", why)

    def stop(self) -> None:
        """Make nothing more."""
        for task in list(self._making.values()):
            task.cancel()


async def create(request: Request, wanted: ExperimentRequest) -> Described | Response:
    """Make an experiment: 201 with what it protects, or 202 if it takes longer than one should wait."""
    state = request.app.state
    task: asyncio.Task[Experiment] = state.creations.begin(state.manager, wanted)
    done, _ = await asyncio.wait([task], timeout=_read_patience(request))
    if done:
        return describe_experiment(task.result())
    answer = json_answer(Creation(wanted.name, "compiling"), 202)
    place = f"{state.prefix}/v1/experiments/{wanted.name}/creation"
    answer.headers.update({"location": place, "retry-after": "1"})
    return answer


def _read_patience(request: Request) -> float:
    """Return for how many seconds a client wants to wait: ``Prefer: respond-async, wait=5`` (RFC 7240)."""
    wanted = request.headers.get("prefer", "")
    given = _WAIT.search(wanted)
    if given is not None:
        return min(_LONGEST, float(given[1]))
    return _SOON if "respond-async" in wanted else _LONGEST


async def show(request: Request) -> Creation:
    """Say whether an experiment is ready, still compiled, or cannot be made and why."""
    name, state = request.path_params["name"], request.app.state
    if name in state.manager.experiments:
        return Creation(name, "ready")
    found: Creation | None = state.creations.find(name)
    if found is None:
        raise RequestError(
            404, f"{name}: expected one that is being made by this process", "unknown"
        )
    return found
