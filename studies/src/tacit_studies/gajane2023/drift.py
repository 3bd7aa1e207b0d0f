"""Paper 003, future work 2: a window from a variation budget instead of a number of changes."""

from __future__ import annotations

from typing import Any

from tacit_studies.gajane2023.settings import HORIZONS, RUNS, sliding, slope
from tacit_studies.reproduction import Findings, Row
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import exponent_of, plot_regret

_EPSILON = 2.0
_BUDGET, _LONG, _NOTHING = (
    "window from the budget",
    "window as without changes",
    "P-IMED-CF, told nothing",
)
_TIMES = {_BUDGET: 1.0, "a quarter of that window": 0.25, "four times that window": 4.0}
_OTHERS: dict[str, dict[str, Any]] = {
    _LONG: sliding(epsilon=_EPSILON),
    _NOTHING: {"name": "p-imed-cf", "epsilon": _EPSILON},
}
_LABELS = [*_TIMES, *_OTHERS]
_BUDGETS = Sized([0.5, 1.0, 3.0, 10.0], [1.0, 10.0])
_HORIZON = Sized(100_000, 20_000)


def _policy(label: str, budget: float, horizon: int) -> dict[str, Any]:
    from tacit.arms import SWKLUCBCF

    if label in _OTHERS:
        return _OTHERS[label]
    derived = SWKLUCBCF(
        n_arms=2, horizon=horizon, variation=budget, window="variation", epsilon=_EPSILON
    )
    window = min(horizon, max(1, round(_TIMES[label] * derived.window_rounds)))
    return sliding(window=window, epsilon=_EPSILON)


def _judge(found: Outcomes) -> Findings:
    budgets = _BUDGETS.at(found.quick)
    lines = {label: found.line(label, budgets, f"V{{}}/{label}") for label in _LABELS}
    excess = [
        lines[_BUDGET].y[i] / min(lines[label].y[i] for label in _TIMES)
        for i in range(len(budgets))
    ]
    growth = found.line(_BUDGET, HORIZONS.at(found.quick), "T{}")
    exponent = exponent_of(growth)
    beside = {
        label: [y / own for y, own in zip(lines[label].y, lines[_BUDGET].y, strict=True)]
        for label in _OTHERS
    }
    few, many = beside[_LONG][0], beside[_LONG][-1]
    rows = [
        Row("growth exponent in T", "", f"{exponent:.2f}", "at most 2/3", agrees=exponent < 0.75)
    ]
    for V, times in zip(budgets, excess, strict=True):
        rows.append(
            Row(
                f"V = {V:g}: regret over the best of a quarter, once and four times the window",
                "",
                f"{times:.2f} times",
                "at most 3",
                agrees=times < 3,
            )
        )
        rows += [Row(f"V = {V:g}: {label}", "", found.text(f"V{V}/{label}")) for label in _LABELS]
    return found.conclude(
        checks=[exponent < 0.75, max(excess) < 3, few > 1],
        because=(
            f"with w = (T / (s V))^(2/3) (K ln(T) / 2)^(1/3) regret grows like T^{exponent:.2f}, and is "
            f"at most {max(excess):.2f} times that of the best of three windows that differ by a factor "
            f"of sixteen. The window that is told of no changes has {few:.1f} times its regret at "
            f"V = {budgets[0]:g} and {many:.1f} times at V = {budgets[-1]:g}; P-IMED-CF, which is told "
            f"nothing, has {min(beside[_NOTHING]):.2f} to {max(beside[_NOTHING]):.2f} times."
        ),
        rows=rows,
        figures=[
            plot_regret("Regret against the variation budget", "variation V", lines.values()),
            plot_regret(
                "Regret against the horizon, V = 3",
                "horizon T",
                [growth, slope("2/3", growth, 2 / 3)],
            ),
        ],
    )


DRIFT = study(
    Sweep(
        "V{budget}/{label}",
        {"budget": _BUDGETS, "label": _LABELS},
        policy=lambda label, budget: Sized(
            *(_policy(label, budget, T) for T in (_HORIZON.full, _HORIZON.quick))
        ),
        environment=lambda budget: {"name": "drifting", "n_arms": 2, "variation": budget},
        horizon=_HORIZON,
        repetitions=RUNS,
    ),
    Sweep(
        "T{horizon}",
        {"horizon": HORIZONS},
        policy=sliding(window="variation", epsilon=_EPSILON),
        environment={"name": "drifting", "n_arms": 2},
        repetitions=RUNS,
    ),
    judge=_judge,
    name="gajane2023-variation",
    own=True,
)
