"""One repetition of a population in partitions, on any engine, with snapshots to go on from."""

from __future__ import annotations

import dataclasses
import hashlib
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.arrays import read_npz
from tacit.core.policy import AnyEnvironment, AnyPolicy
from tacit.engines import Cluster, Engine, Processes, SerialEngine, code_stamp
from tacit.populations.actors import ActorGroup, LocalActors, LostError
from tacit.populations.partitions import Maker, Population, Run, save_arrays

_SECONDS = 30.0
#: So many losses without a round in between are more than bad luck.
_PATIENCE = 5


def make_population(
    policy: Any, environment: Any, bounds: NDArray[np.int64], run: Run
) -> Population:
    """Return a run of `policy` whose agents are in partitions, for settings that have agents.

    Partition i has the agents bounds[i] to bounds[i + 1] - 1.
    """
    if hasattr(environment, "partition"):
        if environment.setting == "diffusion":
            from tacit.populations.diffusion import DiffusionPopulation

            return DiffusionPopulation(policy, environment, bounds, run)
        if environment.setting == "dynamics":
            from tacit.populations.dynamics import DynamicsPopulation

            return DynamicsPopulation(policy, environment, bounds, run)
    raise ValueError(
        f"{environment.name}: expected no partitions, which are for populations of agents "
        "(the settings diffusion and dynamics)"
    )


def start_actors(engine: Engine, makers: Sequence[Maker]) -> ActorGroup:
    """Return actors that hold the partitions of a population, where `engine` runs jobs."""
    if isinstance(engine, SerialEngine):
        return LocalActors(makers)
    if isinstance(engine, Processes):
        from tacit.populations.processes import ProcessActors

        return ProcessActors(makers, min(engine.workers, len(makers)))
    if isinstance(engine, Cluster):
        from tacit.populations.cluster import RayActors

        ray, stay = engine.join()
        try:
            return RayActors(ray, makers, stay)
        except BaseException:
            stay.end()
            raise
    name = type(engine).__name__
    raise ValueError(f"expected partitions on serial, processes or ray, got {name}")


class Snapshots:
    """Where the snapshots of a run in partitions are, and how often they are written.

    Parameters
    ----------
    folder : path, optional
        On storage that every machine reaches; without one a run that loses a partition begins again.
    every : int, optional
        Rounds between two snapshots; by default half a minute's worth.
    policy, environment, run
        What the run is of: files of another run are not gone on with.
    """

    def __init__(
        self,
        folder: str | Path | None,
        every: int | None,
        policy: AnyPolicy,
        environment: AnyEnvironment,
        run: tuple[Any, ...],
    ) -> None:
        self._every = every
        self._written_at, self._latest = time.monotonic(), 0
        self._folder = None
        if folder is not None:
            about: Any = environment
            fields = [getattr(environment, each.name) for each in dataclasses.fields(about)]
            digest = hashlib.sha256(pickle.dumps((repr(policy), environment.name, fields, run)))
            digest.update(code_stamp().encode())
            self._folder = Path(folder).absolute() / digest.hexdigest()[:16]

    @property
    def latest(self) -> int | None:
        """The latest round before which there is a whole snapshot."""
        if self._folder is None:
            return None
        return max((int(each.stem) for each in self._folder.glob("[0-9]*.npz")), default=None)

    def is_due(self, t: int) -> bool:
        """Return whether it is time for a snapshot before round t."""
        if self._folder is None or t == self._latest:
            return False
        if self._every is not None:
            return t % self._every == 0
        return time.monotonic() - self._written_at > _SECONDS

    def population_file(self, t: int) -> Path:
        """Return the file of the population before round t; it is there if all others are."""
        assert self._folder is not None
        return self._folder / f"{t}.npz"

    def partition_files(self, t: int, count: int) -> list[str]:
        """Return the files of the partitions before round t."""
        assert self._folder is not None
        return [str(self._folder / f"partition-{i}-{t}.npz") for i in range(count)]

    def finish(self, t: int) -> None:
        """Remove what is older than the snapshot before round t, which is whole."""
        assert self._folder is not None
        self._written_at, self._latest = time.monotonic(), t
        for file in self._folder.glob("*.npz"):
            if int(file.stem.split("-")[-1]) < t:
                file.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove everything: the run is over."""
        if self._folder is not None and self._folder.is_dir():
            for file in self._folder.iterdir():
                file.unlink(missing_ok=True)
            self._folder.rmdir()


def play_in_partitions(
    begin: Callable[[], Population],
    engine: Engine,
    snapshots: Snapshots,
    progress: Callable[[int], None] | None = None,
) -> tuple[Any, int]:
    """Play one repetition and return its trace and the draws of noise.

    `begin` returns the population at its beginning, `engine` is where the partitions live, and `progress`
    is called with the number of rounds just played.
    """
    tell = progress or (lambda _rounds: None)
    population = begin()
    makers = [population.maker(i) for i in range(population.bounds.size - 1)]
    furthest, losses, lost = 0, 0, False
    with closing(start_actors(engine, makers)) as actors:
        del makers
        while True:
            try:
                if lost:
                    actors.restart()
                for t in _play(population, actors, snapshots):
                    if t > furthest:
                        tell(t - furthest)
                        furthest, losses = t, 0
                outcome = population.collect(*zip(*actors.ask("recorded"), strict=True))
                break
            except LostError as error:
                losses += 1
                if losses > _PATIENCE:
                    raise ChildProcessError(
                        f"a partition was lost {losses} times in a row ({error}), perhaps for want of "
                        "memory; more partitions or more machines need less on each"
                    ) from None
                population, lost = begin(), True
    snapshots.remove()
    return outcome


def _play(population: Population, actors: ActorGroup, snapshots: Snapshots) -> Iterator[int]:
    """Play from the latest snapshot to the end, and yield the number of rounds that are finished."""
    count = population.bounds.size - 1

    def step(t: int, shared: Any, load: list[str] | None = None) -> Any:
        save = None
        if load is None and 0 < t < population.horizon and snapshots.is_due(t):
            save = snapshots.partition_files(t, count)
        finished, begun = actors.step(t, shared, save=save, load=load)
        if t > population.first and load is None:
            population.after_finish(t - 1, finished, actors.reduce)
        if save is not None:
            save_arrays(snapshots.population_file(t), population.arrays())
            snapshots.finish(t)
        return population.after_begin(t, begun, actors.reduce) if t < population.horizon else None

    shared, latest = None, snapshots.latest
    for t in range(population.first, 0):
        shared = step(t, shared)
    if latest is not None:
        population.restore(read_npz(snapshots.population_file(latest)))
        shared = step(latest, shared, load=snapshots.partition_files(latest, count))
        yield latest
    for t in range(0 if latest is None else latest + 1, population.horizon + 1):
        shared = step(t, shared)
        yield t
