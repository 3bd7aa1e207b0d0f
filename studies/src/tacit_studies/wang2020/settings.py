"""Paper 004: the settings its studies share, and the job that plays them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit_studies.estimates import summarise
from tacit_studies.reproduction import Series
from tacit_studies.tools import simulate

NAMES = ("DP-LinUCB", "DP-CoLin", "DP-GOBLin", "LDP-CoLin", "LDP-GOBLin")
"""The rows of the paper's Table 1."""
PLAIN = ("LinUCB", "CoLin", "GOBLin")
COUNTERPARTS = {name: name.rpartition("-")[2] for name in NAMES}
SYNTHETIC: dict[str, Any] = {"name": "fitted-users"}
"""The synthetic environment whose regrets fit the paper's table; the one it describes cannot."""
DELTA = 1e-6


def private(
    name: str,
    epsilon: float,
    *,
    clip: bool = False,
    calibrated: Mapping[str, int] | None = None,
    **parameters: Any,
) -> dict[str, Any]:
    """Return one of `NAMES` to the letter; the paper does not clip rewards.

    `calibrated` is the horizon or the visits, where they are not the environment's.
    """
    kind, _, algorithm = name.rpartition("-")
    hidden = {
        "kind": "published",
        "trust": "central" if kind == "DP" else "local",
        "epsilon": epsilon,
        "clip": clip,
        **(calibrated or {}),
    }
    return {"name": algorithm.lower(), "privacy": hidden, **parameters}


def corrected(
    algorithm: str,
    epsilon: float | None,
    hidden: Mapping[str, Any] | None = None,
    **parameters: Any,
) -> dict[str, Any]:
    """Return an algorithm with sound noise, by default on each reward; with None, without noise.

    Its ridge parameter is that of all comparisons with the paper, whatever the noise.
    """
    privacy = {"kind": "per-reward", **(hidden or {}), "epsilon": epsilon}
    policy = {"name": algorithm.lower(), "regularisation": 0.3, **parameters}
    return policy if epsilon is None else {**policy, "privacy": privacy}


def play_runs(
    policy: Mapping[str, Any],
    environment: Mapping[str, Any],
    horizon: int,
    repetitions: int,
    measures: Sequence[str] = ("regret",),
    points: int = 1,
    seed: int = 4,
) -> dict[str, Any]:
    """Return checkpoints, and for each measure one list of values a repetition.

    Every policy meets the same users and items in the same repetition.
    """
    result = simulate(policy, environment, horizon, repetitions, seed, points)
    found = {measure: result.measures[measure].tolist() for measure in measures}
    return {"rounds": result.checkpoints.tolist(), **found}


def final(outcome: Mapping[str, Any], measure: str = "regret") -> list[float]:
    """Return the last value of every repetition."""
    return [float(values[-1]) for values in outcome[measure]]


def curve(
    label: str,
    outcome: Mapping[str, Any],
    measure: str = "regret",
    *,
    geometric: bool = False,
    dashed: bool = False,
) -> Series:
    """Return the mean of a measure with its 95% band, round by round."""
    values = np.array(outcome[measure])
    columns = (np.log(values) if geometric else values).T
    found = np.array([(s.mean, s.low, s.high) for s in map(summarise, columns)])
    mean, low, high = (np.exp(found) if geometric else found).T.tolist()
    return Series(label, [float(t) for t in outcome["rounds"]], mean, low, high, dashed)


def final_line(
    label: str, xs: Sequence[float], regrets: Sequence[Sequence[float]], *, dashed: bool = False
) -> Series:
    """Return the mean final regret with its 95% band at each value of a parameter."""
    return Series.of(label, xs, [summarise(values) for values in regrets], dashed=dashed)


def list_policies(epsilon: float, clip: bool = False) -> dict[str, dict[str, Any]]:
    """Return all policies of the paper's figures, and CoLin with sound noise."""
    return {
        **{name: corrected(name, None) for name in PLAIN},
        **{name: private(name, epsilon, clip=clip) for name in NAMES},
        "corrected CoLin": corrected("CoLin", epsilon),
    }
