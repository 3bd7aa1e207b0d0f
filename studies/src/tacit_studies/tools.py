"""What many studies share: jobs that run a policy in an environment, both given by name, and figures."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from tacit_studies.estimates import Quantile, Summary
from tacit_studies.reproduction import Figure, Series


def simulate(
    policy: Any, environment: Any, horizon: int, repetitions: Any, seed: int = 0, points: int = 1
) -> Any:
    """Play a policy in an environment, by their names or as they are, in this thread alone."""
    if isinstance(policy, Mapping):
        policy, environment = tacit.build(policy, environment, horizon)
    return tacit.simulate(
        policy,
        environment,
        horizon=horizon,
        repetitions=repetitions,
        seed=seed,
        checkpoints=points,
        threads=1,
    )


def final_values(
    policy: Mapping[str, Any],
    environment: Mapping[str, Any],
    horizon: int,
    repetitions: int,
    seed: int = 0,
    measure: str = "regret",
) -> list[float]:
    """Return the final value of a measure in every repetition."""
    result = simulate(policy, environment, horizon, repetitions, seed)
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
    result = simulate(policy, environment, horizon, repetitions, seed, points)
    band = result.band(measure)
    found = {"rounds": result.checkpoints, "mean": band.mean, "low": band.low, "high": band.high}
    found["final"] = result.final(measure)
    return {name: [float(v) for v in values] for name, values in found.items()}


def audit(
    policy: Any,
    environment: Any,
    horizon: int,
    runs: int,
    epsilon: float | None = None,
    delta: float | None = None,
    seed: int = 0,
    **options: Any,
) -> dict[str, Any]:
    """Audit a policy and return the finding as plain data; `options` are those of `audit_policy`."""
    from tacit.simulation import audit_policy

    if isinstance(policy, Mapping):
        policy, environment = tacit.build(policy, environment, horizon)
    found = audit_policy(
        policy,
        environment,
        horizon=horizon,
        runs=runs,
        epsilon=epsilon,
        delta=delta,
        seed=seed,
        **options,
    )
    return {"sentence": found.sentence(), **json.loads(found.result.to_json())}


def growth_exponent(x: Iterable[float], y: Iterable[float]) -> float:
    """Return the slope of log y against log x, by least squares."""
    return float(np.polyfit(np.log(list(x)), np.log(list(y)), 1)[0])


def exponent_of(line: Series) -> float:
    """Return the power with which a line grows."""
    return growth_exponent(line.x, line.y)


def flat(label: str, xs: Sequence[float], y: float) -> Series:
    """Return a dashed line at one height."""
    return Series(label, [float(x) for x in xs], [y] * len(xs), dashed=True)


def curve_of(label: str, outcome: Mapping[str, Any]) -> Series:
    """Return the mean and band of an outcome of `mean_curves`."""
    rounds = [float(t) for t in outcome["rounds"]]
    return Series(label, rounds, outcome["mean"], outcome["low"], outcome["high"])


def plot_points(
    title: str,
    x_label: str,
    y_label: str,
    series: Iterable[Series],
    *,
    log: str = "xy",
    caption: str = "",
) -> Figure:
    """Return markers joined by lines; `log` names the logarithmic axes."""
    return Figure(
        title,
        x_label,
        y_label,
        list(series),
        x_log="x" in log,
        y_log="y" in log,
        kind="points",
        caption=caption,
    )


def plot_regret(title: str, x_label: str, series: Iterable[Series]) -> Figure:
    """Return a figure of final regret where powers are straight lines."""
    return plot_points(title, x_label, "final regret", series)


def plot_bars(
    title: str,
    y_label: str,
    ticks: Iterable[str],
    bars: Mapping[str, Sequence[Summary] | Sequence[Quantile]],
    *,
    x_label: str = "",
    caption: str = "",
) -> Figure:
    """Return bars in groups, a group for each tick; `bars` has a value for each, by label."""
    series = [Series.of(label, range(len(found)), found) for label, found in bars.items()]
    return Figure(title, x_label, y_label, series, kind="bar", ticks=list(ticks), caption=caption)


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
