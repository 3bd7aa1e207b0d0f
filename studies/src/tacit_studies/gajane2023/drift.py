"""Paper 003, future work 2: a window from a variation budget instead of a number of changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit_studies.gajane2023.settings import horizons, line_of, sliding, slope
from tacit_studies.reproduction import (
    OWN,
    Findings,
    Job,
    Reproduction,
    Row,
    as_expected,
    summarise,
    verdict_of,
)
from tacit_studies.tools import final_values, growth_exponent, regret_figure

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


def _budgets(quick: bool) -> list[float]:
    return [1.0, 10.0] if quick else [0.5, 1.0, 3.0, 10.0]


def _window(budget: float, horizon: int, times: float) -> int:
    from tacit.arms import SWKLUCBCF

    derived = SWKLUCBCF(
        n_arms=2, horizon=horizon, variation=budget, window="variation", epsilon=_EPSILON
    )
    return min(horizon, max(1, round(times * derived.window_rounds)))


def _jobs(quick: bool) -> list[Job]:
    T, n = (20_000, 8) if quick else (100_000, 40)
    jobs = []
    for V in _budgets(quick):
        environment = {"name": "drifting", "n_arms": 2, "variation": V}
        played = {
            label: sliding(window=_window(V, T, times), epsilon=_EPSILON)
            for label, times in _TIMES.items()
        }
        for label, policy in {**played, **_OTHERS}.items():
            arguments = {"policy": policy, "environment": environment, "horizon": T}
            jobs.append(Job(f"V{V}/{label}", final_values, {**arguments, "repetitions": n}))
    for T in horizons(quick):
        arguments = {
            "policy": sliding(window="variation", epsilon=_EPSILON),
            "environment": {"name": "drifting", "n_arms": 2},
            "horizon": T,
            "repetitions": n,
        }
        jobs.append(Job(f"T{T}", final_values, arguments))
    return jobs


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    budgets, Ts = _budgets(quick), horizons(quick)
    labels = [*_TIMES, *_OTHERS]
    lines = [line_of(outcomes, each, budgets, [f"V{V}/{each}" for V in budgets]) for each in labels]
    mean = {
        (each, V): y
        for each, line in zip(labels, lines, strict=True)
        for V, y in zip(budgets, line.y, strict=True)
    }
    excess = [mean[_BUDGET, V] / min(mean[each, V] for each in _TIMES) for V in budgets]
    growth = line_of(outcomes, _BUDGET, Ts, [f"T{T}" for T in Ts])
    exponent = growth_exponent(growth.x, growth.y)
    beside = {
        each: [mean[each, V] / mean[_BUDGET, V] for V in budgets] for each in (_LONG, _NOTHING)
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
        rows += [
            Row(f"V = {V:g}: {each}", "", summarise(outcomes[f"V{V}/{each}"]).text())
            for each in labels
        ]
    return Findings(
        verdict=OWN,
        because=as_expected(verdict_of([exponent < 0.75, max(excess) < 3, few > 1]))
        + (
            f"with w = (T / (s V))^(2/3) (K ln(T) / 2)^(1/3) regret grows like T^{exponent:.2f}, and is "
            f"at most {max(excess):.2f} times that of the best of three windows that differ by a factor "
            f"of sixteen. The window that is told of no changes has {few:.1f} times its regret at "
            f"V = {budgets[0]:g} and {many:.1f} times at V = {budgets[-1]:g}; P-IMED-CF, which is told "
            f"nothing, has {min(beside[_NOTHING]):.2f} to {max(beside[_NOTHING]):.2f} times."
        ),
        agreement="An exponent below 0.75; a regret below three times the best.",
        rows=rows,
        figures=[
            regret_figure("Regret against the variation budget", "variation V", lines),
            regret_figure(
                "Regret against the horizon, V = 3",
                "horizon T",
                [growth, slope("2/3", growth, 2 / 3)],
            ),
        ],
    )


DRIFT = Reproduction(
    name="gajane2023-variation",
    paper="gajane2023",
    title="Future work: a window from a variation budget",
    question="If tastes drift and one knows only how much, how long should a learner remember?",
    claim="A window from the budget keeps regret below T^(2/3), and no other window is three times as good.",
    jobs=_jobs,
    judge=_judge,
    own=True,
)
