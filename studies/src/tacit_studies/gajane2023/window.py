"""Paper 003: whether the window of Theorem 1 is a good one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tacit_studies.gajane2023.settings import sliding
from tacit_studies.reproduction import (
    PARTLY,
    UNDECIDED,
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    Summary,
    summarise,
)
from tacit_studies.tools import final_values

_INSTANCES = {
    "rotating, K = 2, epsilon = 2": ({"name": "rotating", "n_arms": 2}, 2.0),
    "rotating, K = 10, not private": ({"name": "rotating", "n_arms": 10}, None),
    "riser, K = 2, not private": ({"name": "riser", "n_arms": 2}, None),
}
_EXPECTED = {
    "rotating, K = 2, epsilon = 2": (2865, 1341, 1847, 1482),
    "rotating, K = 10, not private": (12606, 6580, 4226, 8904),
    "riser, K = 2, not private": (2245, 1568, 15628, 1582),
}
_COLUMNS = ("window as written", "window with log", "no window", "SW-UCB")


def _column_policy(column: str, epsilon: float | None) -> dict[str, Any]:
    private = {} if epsilon is None else {"epsilon": epsilon}
    return {
        "window as written": sliding(window="paper", **private),
        "window with log": sliding(**private),
        "no window": {"name": "klucb"} if epsilon is None else {"name": "klucb-cf", **private},
        "SW-UCB": {"name": "sw-ucb", **private},
    }[column]


def _window_jobs(quick: bool) -> list[Job]:
    return [
        Job(
            f"{instance}/{column}",
            final_values,
            {
                "policy": _column_policy(column, epsilon),
                "environment": environment,
                "horizon": 100_000,
                "repetitions": 12 if quick else 60,
            },
        )
        for instance, (environment, epsilon) in _INSTANCES.items()
        for column in _COLUMNS
    ]


def _judge_windows(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    rows, agree, shorter = [], True, True
    bars: dict[str, list[Summary]] = {column: [] for column in _COLUMNS}
    for instance in _INSTANCES:
        found = {c: summarise(outcomes[f"{instance}/{c}"]) for c in _COLUMNS}
        shorter &= found["window with log"].high < found["window as written"].low
        for column, expected in zip(_COLUMNS, _EXPECTED[instance], strict=True):
            summary = found[column]
            # The expected value is itself a mean of 60 runs.
            error = summary.error * math.sqrt(1 + summary.n / 60)
            close = abs(summary.mean - expected) <= 5 * error
            agree &= close
            bars[column].append(summary)
            rows.append(
                Row(f"{instance}: {column}", "", summary.text(), f"{expected:,}", agrees=close)
            )
    names = list(_INSTANCES)
    return Findings(
        verdict=PARTLY if shorter else UNDECIDED,
        because=(
            "The window as written lacks a log factor: with it, regret is lower in "
            f"{'all three' if shorter else 'not all'} environments. All means "
            f"{'agree' if agree else 'do not all agree'} with independent values within 5 standard errors."
        ),
        agreement=("An independent value agrees within 5 standard errors of the difference."),
        rows=rows,
        figures=[
            Figure(
                "Final regret at T = 100,000",
                "",
                "final regret",
                [Series.of(c, range(len(names)), bars[c]) for c in _COLUMNS],
                kind="bar",
                ticks=names,
            )
        ],
    )


WINDOW = Reproduction(
    name="gajane2023-window",
    paper="gajane2023",
    title="The window of Theorem 1",
    question="Is the window the theorem prescribes a good one?",
    claim="w = sqrt(4 e T / (L + 4)) gives the bound of Theorem 1.",
    jobs=_window_jobs,
    judge=_judge_windows,
)
