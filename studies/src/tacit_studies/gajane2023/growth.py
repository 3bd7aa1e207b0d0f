"""Paper 003, Theorem 1: how regret grows with the horizon and with the number of changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit_studies.gajane2023.settings import horizons, line_of, sliding, slope
from tacit_studies.reproduction import (
    NOT_REPRODUCED,
    REPRODUCED,
    Findings,
    Job,
    Reproduction,
    Row,
)
from tacit_studies.tools import final_values, growth_exponent, regret_figure

_WINDOWS = {"log": "window with the log factor", "paper": "window as written"}


def _growth_jobs(quick: bool) -> list[Job]:
    n = 12 if quick else 40
    jobs = []
    for T in horizons(quick):
        environment = {"name": "riser"}
        for window in _WINDOWS:
            arguments = {"policy": sliding(window=window, epsilon=2.0), "environment": environment}
            jobs.append(
                Job(f"{window}-{T}", final_values, {**arguments, "horizon": T, "repetitions": n})
            )
        plain = {"policy": {"name": "klucb-cf", "epsilon": 2.0}, "environment": environment}
        jobs.append(Job(f"none-{T}", final_values, {**plain, "horizon": T, "repetitions": n}))
    return jobs


def _judge_growth(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    Ts = horizons(quick)
    labels = {**_WINDOWS, "none": "no window"}
    series, exponents = [], {}
    for key, label in labels.items():
        line = line_of(outcomes, label, Ts, [f"{key}-{T}" for T in Ts])
        series.append(line)
        exponents[key] = growth_exponent(line.x, line.y)
    series.append(slope("1/2", series[0], 0.5))
    sublinear = exponents["log"] < 0.8 and exponents["none"] > 0.9
    rows = [
        Row(
            "growth exponent, log window",
            "1/2 up to logs",
            f"{exponents['log']:.2f}",
            agrees=exponents["log"] < 0.8,
        ),
        Row(
            "growth exponent, window as written",
            "1/2 up to logs",
            f"{exponents['paper']:.2f}",
            agrees=exponents["paper"] < 0.8,
        ),
        Row(
            "growth exponent, no window",
            "1 (linear)",
            f"{exponents['none']:.2f}",
            "1.02",
            agrees=exponents["none"] > 0.9,
        ),
    ]
    return Findings(
        verdict=REPRODUCED if sublinear else NOT_REPRODUCED,
        because=(
            "Where one arm stays fair and the other is bad and good in turn, 10 segments in all, "
            "at epsilon = 2 regret grows like "
            f"T^{exponents['log']:.2f} with the window and like T^{exponents['none']:.2f} without."
        ),
        agreement=("1/2 up to logs: an exponent below 0.8; linear: above 0.9."),
        rows=rows,
        figures=[regret_figure("Regret against the horizon", "horizon T", series)],
    )


HORIZON = Reproduction(
    name="gajane2023-theorem-1",
    paper="gajane2023",
    title="Theorem 1: growth with the horizon",
    question="Does forgetting old feedback keep the learner near the best arm when arms change?",
    claim="Regret grows like sqrt(T) up to logarithms; without a window it is linear.",
    jobs=_growth_jobs,
    judge=_judge_growth,
)


def _segment_counts(quick: bool) -> list[int]:
    return [2, 8, 32] if quick else [2, 4, 8, 16, 32, 64]


def _changes_jobs(quick: bool) -> list[Job]:
    T, n = (50_000, 12) if quick else (100_000, 40)
    return [
        Job(
            f"L{L}",
            final_values,
            {
                "policy": sliding(epsilon=2.0),
                "environment": {"name": "rotating", "n_arms": 2, "segments": L},
                "horizon": T,
                "repetitions": n,
            },
        )
        for L in _segment_counts(quick)
    ]


def _judge_changes(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    Ls = _segment_counts(quick)
    line = line_of(outcomes, "SW-KLUCB-CF, epsilon = 2", Ls, [f"L{L}" for L in Ls])
    exponent = growth_exponent(line.x, line.y)
    holds = exponent <= 0.65
    return Findings(
        verdict=REPRODUCED if holds else NOT_REPRODUCED,
        because=f"Regret grows like L^{exponent:.2f} in the number of segments; the bound allows 1/2.",
        agreement=("An exponent of at most 0.65."),
        rows=[Row("growth exponent in L", "1/2", f"{exponent:.2f}", agrees=holds)],
        figures=[
            regret_figure(
                "Regret against the number of segments",
                "segments L",
                [line, slope("1/2", line, 0.5)],
            )
        ],
    )


CHANGES = Reproduction(
    name="gajane2023-changes",
    paper="gajane2023",
    title="Theorem 1: growth with the number of changes",
    question="How much does each further change of the environment cost?",
    claim="Regret grows like sqrt(L) in the number of stationary segments.",
    jobs=_changes_jobs,
    judge=_judge_changes,
)
