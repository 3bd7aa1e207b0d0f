"""What many studies share: jobs that run a policy in an environment, both given by name, and figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import tacit
from tacit_studies.reproduction import Figure, Series


def final_values(
    policy: Mapping[str, Any],
    environment: Mapping[str, Any],
    horizon: int,
    repetitions: int,
    seed: int = 0,
    measure: str = "regret",
) -> list[float]:
    """Return the final value of a measure in every repetition."""
    result = _simulated(policy, environment, horizon, repetitions, seed)
    return [float(v) for v in result.final(measure)]


def mean_curves(
    policy: Mapping[str, Any],
    environment: Mapping[str, Any],
    horizon: int,
    repetitions: int,
    seed: int = 0,
    measure: str = "regret",
    points: int = 50,
) -> dict[str, list[float]]:
    """Return checkpoints, mean, 95% band and final values of a measure."""
    result = _simulated(policy, environment, horizon, repetitions, seed, points)
    band = result.band(measure)
    return {
        "rounds": [float(v) for v in result.checkpoints],
        "mean": [float(v) for v in band.mean],
        "low": [float(v) for v in band.low],
        "high": [float(v) for v in band.high],
        "final": [float(v) for v in result.final(measure)],
    }


def audited(
    policy: Mapping[str, Any],
    environment: Mapping[str, Any],
    horizon: int,
    runs: int,
    epsilon: float | None = None,
    delta: float | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Audit a policy and return the finding as plain data."""
    from tacit.simulation import audit_policy

    described, place = tacit.build(policy, environment, horizon)
    found = audit_policy(
        described, place, horizon=horizon, runs=runs, epsilon=epsilon, delta=delta, seed=seed
    )
    return {"sentence": found.sentence(), **json.loads(found.result.to_json())}


def growth_exponent(x: Iterable[float], y: Iterable[float]) -> float:
    """Return the slope of log y against log x, by least squares."""
    return float(np.polyfit(np.log(list(x)), np.log(list(y)), 1)[0])


def regret_figure(title: str, x_label: str, series: Sequence[Series]) -> Figure:
    """Return a figure of final regret where powers are straight lines."""
    return Figure(
        title, x_label, "final regret", list(series), x_log=True, y_log=True, kind="points"
    )


def _simulated(
    policy: Mapping[str, Any],
    environment: Mapping[str, Any],
    horizon: int,
    repetitions: int,
    seed: int,
    points: int = 1,
) -> Any:
    described, place = tacit.build(policy, environment, horizon)
    return tacit.simulate(
        described,
        place,
        horizon=horizon,
        repetitions=repetitions,
        seed=seed,
        checkpoints=points,
        threads=1,
    )
