"""Paper 002, future work: Lipschitz arms, by a private tree of cells and by an even grid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tacit_studies.reproduction import (
    OWN,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    as_expected,
    summarise,
    verdict_of,
)
from tacit_studies.tools import final_values, growth_exponent, regret_figure

_EPSILON = 1.0
_FINE = 1024
_FUNCTIONS = {"peak": 1.2, "two-peaks": 4.0, "hill": 2.4}
"""The functions, and how steep they are."""
_POLICIES = {"tree": "dp-zooming", "grid": "dp-klucb", "grid, IMED": "dp-imed"}


def _horizons(quick: bool) -> list[int]:
    return [4_000, 16_000, 64_000] if quick else [10_000, 100_000, 1_000_000, 10_000_000]


def _grid(steepness: float, horizon: int) -> int:
    """Return how many even places balance what lies between them with what each must be tried."""
    return max(2, round(math.pow(steepness**2 * horizon / math.log(horizon), 1 / 3)))


def _jobs(quick: bool) -> list[Job]:
    return [
        Job(
            f"{function}/{label}/{T}",
            final_values,
            {
                "policy": {"name": policy, "epsilon": _EPSILON},
                "environment": {
                    "name": "lipschitz",
                    "n_arms": _FINE if label == "tree" else _grid(steepness, T),
                    "function": function,
                },
                "horizon": T,
                "repetitions": 6 if quick else 20 if T < 10**7 else 4,
            },
        )
        for T in _horizons(quick)
        for function, steepness in _FUNCTIONS.items()
        for label, policy in _POLICIES.items()
    ]


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    Ts = _horizons(quick)
    found = {key: summarise(values) for key, values in outcomes.items()}
    lines = {
        (function, label): Series.of(
            label, [float(T) for T in Ts], [found[f"{function}/{label}/{T}"] for T in Ts]
        )
        for function in _FUNCTIONS
        for label in _POLICIES
    }
    exponent = {key: growth_exponent(line.x, line.y) for key, line in lines.items()}
    slower = {
        f: exponent[f, "tree"] < min(exponent[f, "grid"], exponent[f, "grid, IMED"])
        for f in _FUNCTIONS
    }
    times = {
        f: min(lines[f, "grid"].y[-1], lines[f, "grid, IMED"].y[-1]) / lines[f, "tree"].y[-1]
        for f in _FUNCTIONS
    }
    said = "; ".join(
        f"{f}: T^{exponent[f, 'tree']:.2f} against T^{exponent[f, 'grid, IMED']:.2f}, and at the longest "
        f"horizon the better grid has {times[f]:.2f} times its regret"
        for f in _FUNCTIONS
    )
    return Findings(
        verdict=OWN,
        because=as_expected(verdict_of([slower["peak"], slower["two-peaks"], times["peak"] > 1]))
        + f"regret of the tree against an even grid with DP-IMED, epsilon = {_EPSILON:g}: {said}. Where the "
        "function is flat at its best, as the hill is, an even grid loses little between its places.",
        rows=[
            Row(
                f"{f}, T = {T:,}: {label}",
                "",
                found[f"{f}/{label}/{T}"].text()
                + ("" if label == "tree" else f", {_grid(_FUNCTIONS[f], T)} places"),
            )
            for f in _FUNCTIONS
            for T in Ts
            for label in _POLICIES
        ],
        figures=[
            regret_figure(
                f"Regret against the horizon: {f}",
                "horizon T",
                [lines[f, label] for label in _POLICIES],
            )
            for f in _FUNCTIONS
        ],
        privacy="Pure epsilon for one reward: each lies in the block of one cell.",
    )


LIPSCHITZ = Reproduction(
    name="lu2022-lipschitz",
    paper="lu2022",
    title="Future work: Lipschitz arms",
    question="If close arms pay alike and there are too many to try, can one learn privately where to look?",
    claim="On sharp peaks the tree's regret grows more slowly than that of the balanced even grid.",
    jobs=_jobs,
    judge=_judge,
    own=True,
)
