"""Paper 002, future work: Lipschitz arms, by a private tree of cells and by an even grid."""

from __future__ import annotations

import math
from typing import Any

from tacit_studies.reproduction import Findings, Row
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import exponent_of, plot_regret

_EPSILON = 1.0
_FINE = 1024
_FUNCTIONS = {"peak": 1.2, "two-peaks": 4.0, "hill": 2.4}
"""The functions, and how steep they are."""
_POLICIES = {"tree": "dp-zooming", "grid": "dp-klucb", "grid, IMED": "dp-imed"}
_HORIZONS = Sized([10_000, 100_000, 1_000_000, 10_000_000], [4_000, 16_000, 64_000])


def _grid(function: str, horizon: int) -> int:
    """Return how many even places balance what lies between them with what each must be tried."""
    return max(2, round(math.pow(_FUNCTIONS[function] ** 2 * horizon / math.log(horizon), 1 / 3)))


def _environment(function: str, label: str, horizon: int) -> dict[str, Any]:
    places = _FINE if label == "tree" else _grid(function, horizon)
    return {"name": "lipschitz", "n_arms": places, "function": function}


def _judge(found: Outcomes) -> Findings:
    Ts = _HORIZONS.at(found.quick)
    lines = {
        f: {label: found.line(label, Ts, f"{f}/{label}/{{}}") for label in _POLICIES}
        for f in _FUNCTIONS
    }
    power = {f: {label: exponent_of(line) for label, line in lines[f].items()} for f in lines}
    slower = {f: power[f]["tree"] < min(power[f]["grid"], power[f]["grid, IMED"]) for f in lines}
    times = {
        f: min(each["grid"].y[-1], each["grid, IMED"].y[-1]) / each["tree"].y[-1]
        for f, each in lines.items()
    }
    said = "; ".join(
        f"{f}: T^{power[f]['tree']:.2f} against T^{power[f]['grid, IMED']:.2f}, and at the longest "
        f"horizon the better grid has {times[f]:.2f} times its regret"
        for f in lines
    )
    return found.conclude(
        checks=[slower["peak"], slower["two-peaks"], times["peak"] > 1],
        because=f"regret of the tree against an even grid with DP-IMED, epsilon = {_EPSILON:g}: {said}. "
        "Where the function is flat at its best, as the hill is, an even grid loses little between its "
        "places.",
        rows=[
            Row(
                f"{f}, T = {T:,}: {label}",
                "",
                found.text(f"{f}/{label}/{T}")
                + ("" if label == "tree" else f", {_grid(f, T)} places"),
            )
            for f in lines
            for T in Ts
            for label in _POLICIES
        ],
        figures=[
            plot_regret(f"Regret against the horizon: {f}", "horizon T", each.values())
            for f, each in lines.items()
        ],
    )


LIPSCHITZ = study(
    Sweep(
        "{function}/{label}/{horizon}",
        {"horizon": _HORIZONS, "function": list(_FUNCTIONS), "label": list(_POLICIES)},
        policy=lambda label: {"name": _POLICIES[label], "epsilon": _EPSILON},
        environment=_environment,
        repetitions=lambda horizon: Sized(20 if horizon < 10**7 else 4, 6),
    ),
    judge=_judge,
    name="lu2022-lipschitz",
    own=True,
)
