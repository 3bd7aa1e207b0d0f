"""Paper 000: the settings its studies share, and the jobs that play them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import tacit
from tacit_studies.reproduction import Summary

HORIZON = 500
DOMINANCES = (0.6, 0.8, 1.0)
KNOWN_RUNS = 1_000
"""How many runs the independent values are means of."""

_NAMES = {1: "diffusion-outsiders", 2: "diffusion-spies"}


def published(algorithm: int, epsilon: float = 0.1, **parameters: Any) -> dict[str, Any]:
    """Return Algorithm 1 or 2 to the letter."""
    return {
        "name": _NAMES[algorithm],
        "variant": "published",
        "epsilon": epsilon,
        **parameters,
    }


def corrected(algorithm: int, epsilon: float) -> dict[str, Any]:
    """Return Algorithm 1 or 2 with a channel that keeps its promise."""
    return {"name": _NAMES[algorithm], "variant": "corrected", "epsilon": epsilon}


ALGORITHM_3: dict[str, Any] = {"name": "diffusion-bandit"}
PUBLISHED = {1: published(1), 2: published(2, noise_bound=math.log(400) / 0.1)}
"""Algorithms 1 and 2 with the paper's numbers: epsilon = 0.1, b = ln 500 / 0.1 and ln 400 / 0.1."""


def tracked(
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
    chosen = built(policy, environment, horizon)
    return played(chosen, environment, horizon, repetitions, points=points, seed=seed)


def played(
    policy: Any, environment: Any, horizon: int, repetitions: int, *, points: int = 1, seed: int = 7
) -> dict[str, list[float]]:
    """Play and return what `tracked` does."""
    result = tacit.simulate(
        policy,
        environment,
        horizon=horizon,
        repetitions=repetitions,
        seed=seed,
        checkpoints=points,
        threads=1,
    )
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


def beliefs(
    policy: Mapping[str, Any], dominance: float, dominant: int, iteration: int, horizon: int
) -> dict[str, Any]:
    """Return every agent's belief in the dominant state in one run, round by round."""
    environment = _environment(dominance, dominant, None)
    result = tacit.simulate(
        built(policy, environment, horizon),
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


def built(policy: Mapping[str, Any], environment: Any, horizon: int) -> Any:
    """Return the policy that the plain values describe, for this environment."""
    return tacit.build(policy, environment, horizon)[0]


def _environment(dominance: float, dominant: int | None, n_agents: int | None) -> Any:
    from tacit.diffusion import ChangingTruth
    from tacit.graphs import barabasi_albert

    if n_agents is None:
        return ChangingTruth(dominance=dominance, dominant=dominant)
    graph = barabasi_albert(n_agents, 3, seed=1)
    return ChangingTruth(dominance=dominance, dominant=dominant, network=graph)


def close(
    measured: Summary, known: float, digit: float = 0.5, known_runs: float = KNOWN_RUNS
) -> bool:
    """Say whether a mean is within 5 standard errors, and rounding, of one of `known_runs` runs."""
    error = measured.error * math.sqrt(1 + measured.n / known_runs)
    return abs(measured.mean - known) <= 5 * error + digit


def close_share(hits: int, n: int, known: float, digit: float = 0.005) -> bool:
    """Say the same of a share."""
    error = math.sqrt(known * (1 - known) * (1 / n + 1 / KNOWN_RUNS))
    return abs(hits / n - known) <= 5 * error + digit
