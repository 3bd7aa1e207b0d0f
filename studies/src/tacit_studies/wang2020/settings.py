"""Paper 004: the settings its studies share, the job that plays them, and how two regrets compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tacit_studies.reproduction import (
    NOT_REPRODUCED,
    PARTLY,
    REPRODUCED,
    UNDECIDED,
    Row,
    Series,
    Summary,
    Verdict,
    is_close,
    summarise,
)
from tacit_studies.tools import simulate

NAMES = ("DP-LinUCB", "DP-CoLin", "DP-GOBLin", "LDP-CoLin", "LDP-GOBLin")
"""The rows of the paper's Table 1."""
PLAIN = ("LinUCB", "CoLin", "GOBLin")
COUNTERPARTS = {name: name.rpartition("-")[2] for name in NAMES}
SYNTHETIC: dict[str, Any] = {"name": "fitted-users"}
"""The synthetic environment whose regrets fit the paper's table; the one it describes cannot."""
DELTA = 1e-6
KNOWN_RUNS = 8
"""How many runs an independent value is the mean of; said of some, taken for all."""


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


def compare(smaller: Sequence[float], larger: Sequence[float]) -> int:
    """Say whether one is below the other in paired runs: 1 yes, -1 the contrary, 0 cannot be told.

    They are told apart if the 99% interval of the mean difference leaves out zero: a study makes
    about ten comparisons, and three runs must not settle one of them by chance.
    """
    from scipy.stats import t

    difference = summarise(np.subtract(larger, smaller).tolist())
    reach = float(t.ppf(0.995, difference.n - 1)) * difference.error
    return int(difference.mean > reach) - int(difference.mean < -reach)


def holds(comparisons: Sequence[int]) -> bool | None:
    """Say whether a claim holds: most comparisons clearly right, none clearly wrong."""
    if -1 in comparisons:
        return False
    return True if 2 * sum(comparisons) > len(comparisons) else None


def count_held(comparisons: Sequence[int]) -> str:
    """Return how often a claim holds, in words."""
    right, wrong, n = comparisons.count(1), comparisons.count(-1), len(comparisons)
    return f"{right} of {n}" + (f", the contrary in {wrong}" if wrong else "")


def decide(claims: Iterable[bool | None]) -> Verdict:
    """Return the verdict on claims of which each holds, fails or cannot be told."""
    found = list(claims)
    if all(found):
        return REPRODUCED
    if any(found):
        return PARTLY
    return NOT_REPRODUCED if False in found else UNDECIDED


def list_claims(claims: Mapping[str, Sequence[int]], paper: str = "yes") -> list[Row]:
    """Return how often each claim holds; `paper` is what the paper says of all of them."""
    return [Row(words, paper, count_held(c), agrees=holds(c)) for words, c in claims.items()]


def is_known(measured: Summary, known: float) -> bool | None:
    """Say whether a mean is within 5 standard errors of an independent one.

    None where there are too few runs to know the standard error.
    """
    return None if measured.n < 10 else is_close(measured, known, KNOWN_RUNS, digit=0.5)


def compare_known(label: str, measured: Summary, known: float | None, paper: str = "") -> Row:
    """Return a mean beside an independent one, if there is one."""
    if known is None:
        return Row(label, paper, measured.text())
    return Row(label, paper, measured.text(), f"{known:,}", agrees=is_known(measured, known))


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
