"""Paper 003: an unknown horizon, handled by the doubling trick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit_studies.gajane2023.settings import line_of, sliding
from tacit_studies.reproduction import (
    Findings,
    Job,
    Reproduction,
    Row,
    verdict_of,
)
from tacit_studies.tools import final_values, growth_exponent, regret_figure

_FIRST = 1000
_POLICIES = {
    "told the horizon": sliding(epsilon=2.0),
    "doubling": {"name": "doubling-sw-klucb-cf", "first_horizon": _FIRST, "epsilon": 2.0},
}


def _horizons(quick: bool) -> list[int]:
    """Return horizons that lie everywhere between two restarts."""
    return [5_000, 20_000, 80_000] if quick else [10_000, 27_000, 70_000, 190_000, 500_000]


def _jobs(quick: bool) -> list[Job]:
    return [
        Job(
            f"{label}/{T}",
            final_values,
            {
                "policy": policy,
                "environment": {"name": "riser"},
                "horizon": T,
                "repetitions": 8 if quick else 40,
            },
        )
        for label, policy in _POLICIES.items()
        for T in _horizons(quick)
    ]


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    Ts = _horizons(quick)
    lines = {
        label: line_of(outcomes, label, Ts, [f"{label}/{T}" for T in Ts]) for label in _POLICIES
    }
    exponent = {label: growth_exponent(line.x, line.y) for label, line in lines.items()}
    ratio = [b / a for a, b in zip(lines["told the horizon"].y, lines["doubling"].y, strict=True)]
    sublinear = exponent["doubling"] < 0.8
    return Findings(
        verdict=verdict_of([sublinear, max(ratio) < 2]),
        because=(
            f"Told the horizon regret grows like T^{exponent['told the horizon']:.2f}, begun anew with "
            f"twice the horizon like T^{exponent['doubling']:.2f}; doubling has {ratio[0]:.2f} times "
            f"the regret at T = {Ts[0]:,} and {ratio[-1]:.2f} times at T = {Ts[-1]:,}."
        ),
        agreement="An exponent below 0.8, as for the horizon that is told; at most twice its regret.",
        rows=[
            Row(
                "growth exponent, doubling",
                "1/2 up to logs",
                f"{exponent['doubling']:.2f}",
                f"{exponent['told the horizon']:.2f}",
                agrees=sublinear,
            ),
            *(
                Row(f"T = {T:,}: doubling over told", "", f"{r:.2f}", "at most 2", agrees=r < 2)
                for T, r in zip(Ts, ratio, strict=True)
            ),
        ],
        figures=[
            regret_figure(
                "Regret against the horizon, told and not told", "horizon T", list(lines.values())
            )
        ],
    )


UNKNOWN_HORIZON = Reproduction(
    name="gajane2023-unknown-horizon",
    paper="gajane2023",
    title="Below Algorithm 1: an unknown horizon",
    question="What does it cost not to know how long one will play?",
    claim="An unknown T can be handled using the doubling trick.",
    jobs=_jobs,
    judge=_judge,
)
