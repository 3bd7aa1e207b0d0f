"""Paper 003, future work 2: a window from a variation budget instead of a number of changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.papers.p003.settings import line_of, sliding
from tacit.papers.reproduction import (
    OWN,
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    as_expected,
    summarise,
    verdict_of,
)
from tacit.papers.tools import final_values, growth_exponent

__all__ = ["DRIFT"]

_EPSILON = 2.0
_TIMES = {"a quarter of it": 0.25, "from the budget": 1.0, "four times it": 4.0}
_OTHERS: dict[str, dict[str, Any]] = {
    "as without changes": sliding(epsilon=_EPSILON),
    "P-IMED-CF, told nothing": {"name": "p-imed-cf", "epsilon": _EPSILON},
}


def _budgets(quick: bool) -> list[float]:
    return [1.0, 10.0] if quick else [0.5, 1.0, 3.0, 10.0]


def _horizons(quick: bool) -> list[int]:
    return [4_000, 16_000, 64_000] if quick else [10_000, 30_000, 100_000, 300_000, 1_000_000]


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
    for T in _horizons(quick):
        arguments = {
            "policy": sliding(window="variation", epsilon=_EPSILON),
            "environment": {"name": "drifting", "n_arms": 2},
            "horizon": T,
            "repetitions": n,
        }
        jobs.append(Job(f"T{T}", final_values, arguments))
    return jobs


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    budgets, Ts = _budgets(quick), _horizons(quick)
    labels = [*_TIMES, *_OTHERS]
    lines = [line_of(outcomes, each, budgets, [f"V{V}/{each}" for V in budgets]) for each in labels]
    mean = {
        (each, V): y
        for each, line in zip(labels, lines, strict=True)
        for V, y in zip(budgets, line.y, strict=True)
    }
    excess = [mean["from the budget", V] / min(mean[each, V] for each in _TIMES) for V in budgets]
    growth = line_of(outcomes, "from the budget", [float(T) for T in Ts], [f"T{T}" for T in Ts])
    exponent = growth_exponent(growth.x, growth.y)
    gain = mean["as without changes", budgets[0]] / mean["from the budget", budgets[0]]
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
        because=as_expected(verdict_of([exponent < 0.75, max(excess) < 3, gain > 1]))
        + (
            f"with w = (T / (s V))^(2/3) (K ln(T) / 2)^(1/3) regret grows like T^{exponent:.2f}, and is "
            f"at most {max(excess):.2f} times that of the best of three windows that differ by a factor "
            f"of sixteen. At V = {budgets[0]:g} the window that is told of no changes has {gain:.1f} "
            "times its regret. P-IMED-CF, which is told nothing, is better still."
        ),
        agreement="An exponent below 0.75; a regret below three times the best.",
        rows=rows,
        figures=[
            Figure(
                "Regret against the variation budget",
                "variation V",
                "final regret",
                lines,
                x_log=True,
                y_log=True,
                kind="points",
            ),
            Figure(
                "Regret against the horizon, V = 3",
                "horizon T",
                "final regret",
                [
                    growth,
                    Series(
                        "slope 2/3",
                        growth.x,
                        [growth.y[0] * (x / growth.x[0]) ** (2 / 3) for x in growth.x],
                        dashed=True,
                    ),
                ],
                x_log=True,
                y_log=True,
                kind="points",
            ),
        ],
    )


DRIFT = Reproduction(
    name="003-variation",
    paper="003",
    title="Future work: a window from a variation budget",
    question="If tastes drift and one knows only how much, how long should a learner remember?",
    claim="A window from the budget keeps regret below T^(2/3), and no other window is three times as good.",
    jobs=_jobs,
    judge=_judge,
    own=True,
)
