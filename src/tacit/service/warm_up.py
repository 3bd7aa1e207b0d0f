"""An experiment is played once in memory before it is served, so that nobody waits for a compiler.

Kernels are compiled when they are first called, which takes seconds and would keep a server from all its
other requests. What is on disk already is loaded by a thread; what is not is compiled first, by a process
of its own that plays the same experiment and ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from tacit.core.kernels import cached_only
from tacit.core.tapes import secure_tape
from tacit.device import Reporter
from tacit.service.description import checked, description_of
from tacit.service.messages import ExperimentRequest
from tacit.serving.core import Core
from tacit.serving.experiment import Experiment
from tacit.serving.storage import MemoryStore

_LONGEST = 600.0
_NICER = 5
_DAY = 86_400_000


class Rehearsals:
    """Those of one process; at most one at a time compiles."""

    def __init__(self) -> None:
        self._compiling = asyncio.Lock()

    async def of(self, request: ExperimentRequest) -> None:
        """Return once all that an experiment calls is loaded, or what is wrong with it is known."""
        if await asyncio.to_thread(_loaded, request):
            return
        async with self._compiling:
            if not await asyncio.to_thread(_loaded, request):
                await _compiled_elsewhere(request)
                await asyncio.to_thread(_tried, request)


def rehearse(request: ExperimentRequest) -> None:
    """Play an experiment in memory: decide, learn, close, replay, grow; or raise ``ValueError``."""
    checked(request)
    request = msgspec.structs.replace(request, mode="learn", budget=None)
    wanted, store, name = description_of(request), MemoryStore(), request.name
    store.create(name, {})
    people, options = request.people or [], request.options or []
    played = Experiment(
        wanted.make_decider,
        lambda: secure_tape(choices=bytes(32), log=4096),
        wanted.config,
        options=options,
        people=people,
        store=store,
        name=name,
    )
    query = None
    if not options:
        dimension = getattr(wanted.policy, "dimension", 1)
        contexts = [[float(i == j) for i in range(dimension)] for j in range(2)]
        query = {"contexts": contexts, "names": ["one", "other"]}
        if people:
            query["person"] = people[0]
    now = 0
    for id in ("answered", "silent"):
        decision = played.run(Core.decide, now, id, query)
        asked = played.core.instructions(decision)
        if id == "answered" and asked is not None:
            value = Reporter(asked, id=id, max_epsilon=None).report(0.0)["value"]
            played.run(Core.report, now, id, value)
        now += decision.close_at or _DAY
        played.run(Core.tick, now)
    core = played.core
    core.decider.estimates(core.tallies)
    core.decider.guarantee(max(core.rounds, core.decider.horizon or 1))
    changes: list[Callable[[], Any]] = [
        lambda: played.run(Core.change, now, options=["rehearsed"]),
        lambda: played.run(Core.change, now, retire=[0]),
        lambda: played.run(Core.change, now, people=[("joined", people[:1])]),
        lambda: played.run(Core.change, now, people=[("alone", [])]),
        lambda: played.run(Core.change, now, joined=core.decider.joined),
        lambda: played.run(Core.begin_epoch, now, 1, now),
        lambda: played.run(Core.decide, now, "later", query),
    ]
    for change in changes:
        # What a policy refuses, it will refuse when it is asked for.
        with contextlib.suppress(ValueError):
            change()
    played.verify()
    decider = played.core.decider
    if decider.releases:
        # What a release needs when it is replayed, though none was due so soon.
        decider.unpack_release(decider.pack_release(decision.record), decision.record)


def _tried(request: ExperimentRequest) -> None:
    # Who creates the experiment is told what is wrong with it.
    with contextlib.suppress(Exception):
        try:
            rehearse(_small(request))
        except ValueError:
            rehearse(request)


def _small(request: ExperimentRequest) -> ExperimentRequest:
    """Return the same with two people, which calls the same kernels sooner."""
    people = request.people or []
    n, two = len(people), people[:2]
    if n <= 2 or request.policy.get("n_users", n) != n:
        return request
    edges = None if request.edges is None else [(two[0], two[1])]
    sizes = {"n_users": 2} if "n_users" in request.policy else {}
    policy = {**request.policy, **sizes}
    return msgspec.structs.replace(request, people=two, edges=edges, policy=policy)


def _loaded(request: ExperimentRequest) -> bool:
    with cached_only() as lacking:
        _tried(request)
    return not lacking


async def _compiled_elsewhere(request: ExperimentRequest) -> None:
    """Let another process compile; what it does not manage is compiled here."""
    nowhere = asyncio.subprocess.DEVNULL
    # A session of its own: Ctrl-C is for the server, which ends this when it ends.
    helper = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tacit.service.warm_up"),
        stdin=asyncio.subprocess.PIPE,
        stdout=nowhere,
        stderr=nowhere,
        start_new_session=True,
    )
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST):
                await helper.communicate(msgspec.json.encode(request))
    finally:
        if helper.returncode is None:
            helper.kill()


if __name__ == "__main__":
    os.nice(_NICER)
    _tried(msgspec.json.decode(sys.stdin.buffer.read(), type=ExperimentRequest))
