"""An experiment is played once in memory before it is served, so that nobody waits for a compiler.

Kernels are compiled when they are first called, which takes seconds and would keep a server from all its
other requests. What is on disk already is loaded by a thread; what is not is compiled first, by a process
of its own that plays the same experiment and ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import sys
from typing import Any

from tacit.core.kernels import cached_only
from tacit.device import Reporter
from tacit.serving.core import Core
from tacit.serving.description import Description, read_request
from tacit.serving.experiment import Experiment
from tacit.serving.storage import MemoryStore

_LONGEST = 600.0
_NICER = 5
_DAY = 86_400_000


class WarmUps:
    """Those of one process; at most one at a time compiles."""

    def __init__(self) -> None:
        self._compiling = asyncio.Lock()

    async def run(self, wanted: Description) -> None:
        """Return once all that an experiment calls is loaded, or what is wrong with it is known."""
        if await asyncio.to_thread(_load, wanted):
            return
        async with self._compiling:
            if not await asyncio.to_thread(_load, wanted):
                await _compile_elsewhere(wanted)
                await asyncio.to_thread(_try_to_warm_up, wanted)


def warm_up(wanted: Description) -> None:
    """Play an experiment in memory: decide, learn, close, replay, grow; or raise ``ValueError``."""
    wanted.check_served()
    config = dataclasses.replace(wanted.config, mode="learn", allowances=())
    wanted = dataclasses.replace(wanted, config=config, choices=bytes(32))
    store, people = MemoryStore(), wanted.people
    store.create(wanted.name, {})
    played = Experiment(wanted, store, key=bytes(32))
    now = 0
    played.clock = lambda: now
    query = None
    if not wanted.options:
        dimension = getattr(wanted.policy, "dimension", 1)
        contexts = [[float(i == j) for i in range(dimension)] for j in range(2)]
        query = {"contexts": contexts, "names": ["one", "other"]}
        if people:
            query["person"] = people[0]
    for id in ("answered", "silent"):
        decision = played.run(Core.decide, id, query)
        asked = played.core.instructions(decision)
        if id == "answered" and asked is not None:
            value = Reporter(asked, id=id, max_epsilon=None).report(0.0)["value"]
            played.run(Core.report, id, value)
        now += decision.close_at or _DAY
        played.run(Core.tick)
    core = played.core
    core.decider.estimates(core.tallies)
    core.guarantee()
    changes: list[dict[str, Any]] = [
        {"options": ["warm-up"]},
        {"retire": [0]},
        {"people": [("joined", people[:1])]},
        {"people": [("alone", [])]},
        {"joined": core.decider.joined},
    ]
    for change in changes:
        # What a policy refuses, it will refuse when it is asked for.
        with contextlib.suppress(ValueError):
            played.run(Core.change, **change)
    with contextlib.suppress(ValueError):
        played.run(Core.begin_epoch, 1, now)
        played.run(Core.decide, "later", query)
    played.verify()
    decider = played.core.decider
    if decider.releases:
        # What a release needs when it is replayed, though none was due so soon.
        decider.unpack_release(decider.pack_release(decision.record), decision.record)


def _try_to_warm_up(wanted: Description) -> None:
    # Who creates the experiment is told what is wrong with it.
    with contextlib.suppress(Exception):
        try:
            warm_up(_shrink(wanted))
        except ValueError:
            warm_up(wanted)


def _shrink(wanted: Description) -> Description:
    """Return the same with two people, which calls the same kernels sooner."""
    request = wanted.request()
    people, policy = request["people"] or [], request["policy"]
    if len(people) <= 2 or "class" in policy or "joined" in request:
        return wanted
    two = people[:2]
    edges = None if request["edges"] is None else [two]
    if "n_users" in policy:
        policy = {**policy, "n_users": 2}
    return read_request({**request, "people": two, "edges": edges, "policy": policy})


def _load(wanted: Description) -> bool:
    with cached_only() as lacking:
        _try_to_warm_up(wanted)
    return not lacking


async def _compile_elsewhere(wanted: Description) -> None:
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
                await helper.communicate(json.dumps(wanted.request()).encode())
    finally:
        if helper.returncode is None:
            helper.kill()


if __name__ == "__main__":
    os.nice(_NICER)
    _try_to_warm_up(read_request(json.loads(sys.stdin.buffer.read())))
