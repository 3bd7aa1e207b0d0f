"""Paper 003: whether the window of Theorem 1 is a good one."""

from __future__ import annotations

from typing import Any

from tacit_studies.estimates import is_close
from tacit_studies.gajane2023.settings import sliding
from tacit_studies.reproduction import Findings, Row
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import plot_bars
from tacit_studies.verdicts import PARTLY, UNDECIDED

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
"""Means of 60 runs."""
_COLUMNS = ("window as written", "window with log", "no window", "SW-UCB")


def _column_policy(column: str, epsilon: float | None) -> dict[str, Any]:
    private = {} if epsilon is None else {"epsilon": epsilon}
    return {
        "window as written": sliding(window="paper", **private),
        "window with log": sliding(**private),
        "no window": {"name": "klucb"} if epsilon is None else {"name": "klucb-cf", **private},
        "SW-UCB": {"name": "sw-ucb", **private},
    }[column]


def _judge(found: Outcomes) -> Findings:
    cells = {c: [found.summary(f"{instance}/{c}") for instance in _INSTANCES] for c in _COLUMNS}
    shorter = all(
        log.high < written.low
        for written, log in zip(cells["window as written"], cells["window with log"], strict=True)
    )
    rows = []
    for i, (instance, known) in enumerate(_EXPECTED.items()):
        for column, expected in zip(_COLUMNS, known, strict=True):
            summary = cells[column][i]
            close = is_close(summary, expected, 60)
            rows.append(Row(f"{instance}: {column}", "", summary.text(), f"{expected:,}", close))
    return found.conclude(
        verdict=PARTLY if shorter else UNDECIDED,
        because=(
            "The window as written lacks a log factor: with it, regret is lower in "
            f"{'all three' if shorter else 'not all'} environments. All means "
            f"{'agree' if all(row.agrees for row in rows) else 'do not all agree'} with independent values "
            "within 5 standard errors."
        ),
        rows=rows,
        figures=[plot_bars("Final regret at T = 100,000", "final regret", _INSTANCES, cells)],
    )


WINDOW = study(
    Sweep(
        "{instance}/{column}",
        {"instance": _INSTANCES, "column": _COLUMNS},
        policy=lambda instance, column: _column_policy(column, instance[1]),
        environment=lambda instance: instance[0],
        horizon=100_000,
        repetitions=Sized(60, 12),
    ),
    judge=_judge,
    name="gajane2023-window",
)
