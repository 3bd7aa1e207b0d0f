"""Which population a setting has, and where its pieces live on each engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.policy import AnyEnvironment
from tacit.engines import Cluster, Engine, Processes, SerialEngine
from tacit.populations.actors import Crew, CrewHere
from tacit.populations.partitions import Maker, Population


def population_of(
    policy: Any, environment: AnyEnvironment, bounds: NDArray[np.int64], **run: Any
) -> Population:
    """Return a run of `policy` whose agents are in pieces, for settings that have agents.

    Parameters
    ----------
    policy : Policy
    environment : Environment
    bounds : array of int, shape (pieces + 1,)
        Piece i has the agents bounds[i] to bounds[i + 1] - 1.
    **run
        ``seed``, ``repetition``, ``horizon``, ``checkpoints`` and ``record``.
    """
    if hasattr(environment, "piece"):
        if environment.setting == "diffusion":
            from tacit.populations.diffusion import DiffusionPopulation

            return DiffusionPopulation(policy, environment, bounds, **run)
        if environment.setting == "dynamics":
            from tacit.populations.dynamics import DynamicsPopulation

            return DynamicsPopulation(policy, environment, bounds, **run)
    raise ValueError(
        f"{environment.name}: expected no pieces, which are for populations of agents "
        "(the settings diffusion and dynamics)"
    )


def crew_on(engine: Engine, makers: Sequence[Maker]) -> Crew:
    """Return one actor for each piece of a population, where `engine` runs jobs."""
    if isinstance(engine, SerialEngine):
        return CrewHere(makers)
    if isinstance(engine, Processes):
        from tacit.populations.processes import ProcessCrew

        return ProcessCrew(makers, min(engine.workers, len(makers)))
    if isinstance(engine, Cluster):
        from tacit.populations.cluster import ActorCrew

        ray, stay = engine.join()
        try:
            return ActorCrew(ray, makers, stay)
        except BaseException:
            stay.end()
            raise
    raise ValueError(f"expected pieces on serial, processes or ray, got {type(engine).__name__}")
