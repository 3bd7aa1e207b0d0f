"""One simulation: a policy in an environment, repeated on independent streams.

Repetition r is played on table r of the environment and tape r of the seed, whatever policy, thread or
chunk plays it: comparisons are paired, and the result does not depend on how it was computed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require
from tacit.core.policy import AnyEnvironment, AnyPolicy, require_same_setting
from tacit.core.tapes import seeded_tape
from tacit.engines import Engine, engine_named
from tacit.populations import Run, Snapshots, make_population, play_in_partitions, split_agents
from tacit.simulation.result import Result

#: Rounds of a first call of a kernel; later ones take about so many seconds, so that Ctrl-C is heard.
_ROUNDS, _SECONDS = 4096, 0.2


def checkpoints_of(horizon: int, count: int = 100) -> NDArray[np.int64]:
    """Return up to `count` evenly spaced numbers of rounds, the last one `horizon`."""
    return np.unique(np.maximum(1, np.arange(1, count + 1) * horizon // count))


def require_match(policy: AnyPolicy, environment: AnyEnvironment, horizon: int) -> None:
    """Raise ``ValueError`` unless `policy` was made for an environment of this kind and size.

    Kernels trust the sizes they are given, so nothing plays before this was asked.
    """
    require_same_setting(policy, environment)
    for size, value in sorted(environment.sizes.items()):
        mine = getattr(policy, size, value)
        require(policy, size, f"to be {value} as in {environment.name}", mine == value, mine)


def simulate(
    policy: AnyPolicy,
    environment: AnyEnvironment,
    *,
    horizon: int,
    repetitions: int | Iterable[int] = 1,
    seed: int = 0,
    checkpoints: NDArray[np.int64] | int = 100,
    threads: int | None = None,
    chunk: int | None = None,
    record: bool = False,
    progress: Callable[[int], None] | None = None,
    partitions: int | None = None,
    engine: str | Engine | None = None,
    snapshot_dir: str | Path | None = None,
    snapshot_every: int | None = None,
) -> Result:
    """Run `policy` in `environment` and return what happened.

    Parameters
    ----------
    policy : Policy
    environment : Environment
        Of the same setting as the policy.
    horizon : int
        Number of rounds T.
    repetitions : int or iterable of int, default 1
        How many independent repetitions, or the numbers of those to run.
    seed : int, default 0
        The same seed gives the same tables to every policy.
    checkpoints : int or array, default 100
        Where measures are kept: how many evenly spaced rounds, or the rounds themselves.
    threads : int, optional
        How many repetitions run side by side; by default as many as there are cores.
    chunk : int, optional
        Rounds per call of the kernel, by default a fraction of a second's worth; changes nothing but
        how often `progress` is told.
    record : bool, default False
        Keep the whole trace of every repetition, every decision included.
    progress : callable, optional
        Called with the number of rounds just played.
    partitions : int, optional
        Play a population of agents (diffusion, dynamics) in so many partitions, one repetition after the
        other; the result is the same to the bit.
    engine : str or Engine, optional
        Where the partitions are: ``"serial"``, ``"processes"`` or ``"ray"``; by default processes.
    snapshot_dir : path, optional
        A folder, which every machine of a cluster can reach, that receives snapshots of the partitions: a
        run that was broken off goes on from there.
    snapshot_every : int, optional
        Rounds between two snapshots; by default half a minute's worth.

    Returns
    -------
    Result

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import KLUCBCF, Bernoulli
    >>> environment = Bernoulli(means=(0.3, 0.7))
    >>> result = tacit.simulate(KLUCBCF(n_arms=2, epsilon=1.0), environment, horizon=2000, repetitions=4)
    >>> result.measures["regret"].shape
    (4, 100)
    """
    require("simulate", "horizon", ">= 1", horizon >= 1, horizon)
    require("simulate", "chunk", ">= 1", chunk is None or chunk >= 1, chunk)
    require("simulate", "threads", ">= 1", threads is None or threads >= 1, threads)
    require_match(policy, environment, horizon)
    if isinstance(repetitions, int):
        require("simulate", "repetitions", ">= 1", repetitions >= 1, repetitions)
        repetitions = range(repetitions)
    numbers = np.fromiter(repetitions, np.int64)
    rounds = checkpoints_of(horizon, checkpoints) if isinstance(checkpoints, int) else checkpoints
    rounds = np.unique(np.asarray(rounds, np.int64))
    inside = rounds.size > 0 and rounds[0] >= 1 and rounds[-1] <= horizon
    require("simulate", "checkpoints", f"in 1..{horizon}", inside, rounds)

    if partitions is not None:
        agents = environment.sizes.get("n_agents", max(1, partitions))
        inside = 1 <= partitions <= agents
        require("simulate", "partitions", f"in 1..{agents}, the agents", inside, partitions)
        place = engine if isinstance(engine, Engine) else engine_named(engine, jobs=partitions)
        bounds = split_agents(agents, partitions)

        def play_apart(repetition: int) -> tuple[Any, int]:
            run = Run(seed, repetition, horizon, rounds, record)
            begin = partial(make_population, policy, environment, bounds, run)
            about = (policy, environment, (partitions, *run))
            snapshots = Snapshots(snapshot_dir, snapshot_every, *about)
            return play_in_partitions(begin, place, snapshots, progress)

    else:
        together = engine is None and snapshot_dir is None and snapshot_every is None
        given = engine or snapshot_dir or snapshot_every
        require("simulate", "engine", "and snapshots with partitions only", together, given)

    stopped = threading.Event()

    def repeat(repetition: int) -> tuple[Any, int]:
        table = environment.table(seed, repetition, horizon)
        tape = seeded_tape(seed, repetition)
        state = policy.start(table)
        trace = environment.trace(horizon, rounds, record=record)
        first, rounds_a_call = 0, chunk or _ROUNDS
        while first < horizon and not stopped.is_set():
            last, begun = min(first + rounds_a_call, horizon), time.perf_counter()
            policy.play(state, table, tape, trace, first, last)
            if progress is not None:
                progress(last - first)
            if chunk is None:
                share = _SECONDS / max(time.perf_counter() - begun, 1e-9)
                rounds_a_call = max(1, int(rounds_a_call * min(16.0, max(0.25, share))))
            first = last
        return trace, int(tape.reads[1])

    workers = min(threads or os.cpu_count() or 1, len(numbers))
    if partitions is not None:
        outcomes = [play_apart(int(r)) for r in numbers]
    elif workers == 1:
        outcomes = [repeat(int(r)) for r in numbers]
    else:
        with ThreadPoolExecutor(workers) as pool:
            try:
                outcomes = list(pool.map(repeat, numbers.tolist()))
            except BaseException:
                stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    values = np.stack([trace.measures for trace, _ in outcomes])
    return Result(
        policy=policy,
        environment=environment,
        horizon=horizon,
        seed=seed,
        repetitions=numbers,
        checkpoints=rounds,
        measures={name: values[:, :, i] for i, name in enumerate(environment.measures)},
        noise_draws=np.array([draws for _, draws in outcomes]),
        traces=[trace for trace, _ in outcomes] if record else [],
    )
