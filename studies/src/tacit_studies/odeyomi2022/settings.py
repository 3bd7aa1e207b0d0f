"""Paper 000: the settings its studies share, and the jobs that play them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import tacit
from tacit_studies.tools import simulate

HORIZON = 500
DOMINANCES = (0.6, 0.8, 1.0)
KNOWN_RUNS = 1_000
"""How many runs the independent values are means of."""

_NAMES = {1: "diffusion-outsiders", 2: "diffusion-spies"}


def published(algorithm: int, epsilon: float = 0.1, **parameters: Any) -> dict[str, Any]:
    """Return Algorithm 1 or 2 to the letter."""
    return {"name": _NAMES[algorithm], "variant": "published", "epsilon": epsilon, **parameters}


def corrected(algorithm: int, epsilon: float) -> dict[str, Any]:
    """Return Algorithm 1 or 2 with a channel that keeps its promise."""
    return {"name": _NAMES[algorithm], "variant": "corrected", "epsilon": epsilon}


ALGORITHM_3: dict[str, Any] = {"name": "diffusion-bandit"}
PUBLISHED = {1: published(1), 2: published(2, noise_bound=math.log(400) / 0.1)}
"""Algorithms 1 and 2 with the paper's numbers: epsilon = 0.1, b = ln 500 / 0.1 and ln 400 / 0.1."""
PAIR = {"Algorithm 3, no privacy": ALGORITHM_3, "1 corrected, epsilon = 1": corrected(1, 1.0)}
"""Two algorithms that keep what they promise."""


def track(
    policy: Mapping[str, Any],
    dominance: float,
    horizon: int,
    repetitions: int,
    dominant: int | None = None,
    n_agents: int | None = None,
    points: int = 1,
    seed: int = 7,
) -> dict[str, list[float]]:
    """Play on the paper's three agents, or on a larger network, and return what became of it.

    The keys: regret, final belief in the dominant state, round of convergence (0 where there was none)
    of every run; checkpoints, mean regret and its 95% band.
    """
    environment = _environment(dominance, dominant, n_agents)
    return play_runs(policy, environment, horizon, repetitions, points=points, seed=seed)


def play_runs(
    policy: Mapping[str, Any],
    environment: Any,
    horizon: int,
    repetitions: int,
    *,
    points: int = 1,
    seed: int = 7,
) -> dict[str, list[float]]:
    """Play and return what `track` does."""
    result = simulate(policy, environment, horizon, repetitions, seed, points)
    band = result.band("regret")
    times = np.where(result.final("converged") > 0, result.final("convergence_time"), 0)
    return {
        "regret": result.final("regret").tolist(),
        "belief": result.final("belief").tolist(),
        "time": times.tolist(),
        "rounds": result.checkpoints.tolist(),
        "mean": band.mean.tolist(),
        "low": band.low.tolist(),
        "high": band.high.tolist(),
    }


def trace_beliefs(
    policy: Mapping[str, Any], dominance: float, dominant: int, iteration: int, horizon: int
) -> dict[str, Any]:
    """Return every agent's belief in the dominant state in one run, round by round."""
    environment = _environment(dominance, dominant, None)
    result = tacit.simulate(
        build_policy(policy, environment, horizon),
        environment,
        horizon=horizon,
        repetitions=[iteration - 1],
        seed=7,
        checkpoints=100,
        threads=1,
        record=True,
    )
    return {
        "rounds": result.checkpoints.tolist(),
        "agents": result.traces[0].beliefs[:, :, dominant].T.tolist(),
    }


def build_policy(policy: Mapping[str, Any], environment: Any, horizon: int) -> Any:
    """Return the policy that the plain values describe, for this environment."""
    return tacit.build(policy, environment, horizon)[0]


def _environment(dominance: float, dominant: int | None, n_agents: int | None) -> Any:
    from tacit.diffusion import ChangingTruth
    from tacit.graphs import barabasi_albert

    if n_agents is None:
        return ChangingTruth(dominance=dominance, dominant=dominant)
    graph = barabasi_albert(n_agents, 3, seed=1)
    return ChangingTruth(dominance=dominance, dominant=dominant, network=graph)
