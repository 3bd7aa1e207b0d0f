"""Beyond paper 000: the batched conversion of Asi, Raman and Talwar beside the paper's algorithms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit_studies.estimates import Summary
from tacit_studies.odeyomi2022.settings import build_policy, corrected, published
from tacit_studies.reproduction import Findings, Row
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import growth_exponent, plot_points, simulate

_EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_HORIZON, _HORIZONS = 5_000, (2_000, 8_000, 32_000)
_GROWTH_EPSILON = 0.1
_CASES = {"one state dominates": 0.8, "hardly any difference": 0.3}
"""How often one of five states is the true one."""
_BATCHED = "batched"
_LABELS = {
    _BATCHED: "batched Tsallis-INF, alone",
    "corrected": "1 corrected, with neighbours",
    "published": "1 as published",
}


def measure_regrets(
    policy: Mapping[str, Any], case: str, horizon: int, repetitions: int
) -> dict[str, Any]:
    """Return the regret of the states named and of beliefs, of every run, and the bound if there is one."""
    from tacit.diffusion import ChangingTruth

    environment = ChangingTruth(dominance=_CASES[case])
    chosen = build_policy(policy, environment, horizon)
    bound = getattr(chosen, "regret_bound", None)
    result = simulate(chosen, environment, horizon, repetitions, 11)
    return {
        "named": result.final("choice_regret").tolist(),
        "believed": result.final("regret").tolist(),
        "bound": None if bound is None else bound(horizon),
    }


def _policy(kind: str, epsilon: float) -> dict[str, Any]:
    if kind == _BATCHED:
        return {"name": "batched-tsallis", "epsilon": epsilon}
    return corrected(1, epsilon) if kind == "corrected" else published(1, epsilon)


def _judge(found: Outcomes) -> Findings:
    cells = [(case, e) for case in _CASES for e in _EPSILONS]
    keys = {kind: [f"{case}/{kind}/{e:g}" for case, e in cells] for kind in _LABELS}

    def of(kind: str, measure: str = "named") -> list[Summary]:
        return [found.summary(key, measure) for key in keys[kind]]

    def count_below(kind: str, measure: str = "named") -> int:
        pairs = zip(of(_BATCHED, measure), of(kind, measure), strict=True)
        return sum(batched.high < other.low for batched, other in pairs)

    bounds = [found[key]["bound"] for key in keys[_BATCHED]]
    below = [each.high < bound for each, bound in zip(of(_BATCHED), bounds, strict=True)]
    never_above = all(
        batched.low <= other.high
        for batched, other in zip(of(_BATCHED), of("published"), strict=True)
    )
    growth = growth_exponent(_HORIZONS, [found.mean(f"growth/{T}", "named") for T in _HORIZONS])
    said = {
        case: "; ".join(
            f"{label} {found.mean(f'{case}/{kind}/0.1', 'named'):,.0f} and "
            f"{found.mean(f'{case}/{kind}/1', 'named'):,.0f}"
            for kind, label in _LABELS.items()
        )
        for case in _CASES
    }
    rows = [
        Row(
            "growth of regret with T, epsilon = 0.1, one state dominates",
            "T^0.5",
            f"T^{growth:.2f}",
        ),
        *[
            Row(
                f"{case}, epsilon = {e:g}: {label}",
                f"<= {bounds[i]:,.0f}" if kind == _BATCHED else "",
                f"{found.text(keys[kind][i], 'named')} named, "
                f"{found.text(keys[kind][i], 'believed')} believed",
            )
            for i, (case, e) in enumerate(cells)
            for kind, label in _LABELS.items()
        ],
        *[
            Row(f"{case}: Tsallis-INF without privacy", "", found.text(f"{case}/open", "named"))
            for case in _CASES
        ],
    ]
    return found.conclude(
        checks=[all(below), never_above, growth < 0.65],
        because=(
            f"rounds that the states named lose of {_HORIZON:,} at epsilon = 0.1 and 1 where one state "
            f"dominates: {said['one state dominates']}; where there is hardly any difference, and the signal "
            f"of a round says more than all that was learned: {said['hardly any difference']}. "
            f"The batched one stays below its bound in {sum(below)} of {len(cells)} "
            f"settings, below the published one in {count_below('published')} and below the corrected one in "
            f"{count_below('corrected')}; judged by beliefs, as eq. 10 does, below the corrected one in "
            f"{count_below('corrected', 'believed')}, because the corrected one tries states on purpose and "
            f"does not believe in them. Its regret grows like T^{growth:.2f}."
        ),
        rows=rows,
        figures=[
            plot_points(
                f"What the states named lose: {case}",
                "epsilon",
                f"regret at T = {_HORIZON:,} (rounds lost)",
                [
                    found.line(label, _EPSILONS, f"{case}/{kind}/{{:g}}", "named")
                    for kind, label in _LABELS.items()
                ],
                caption="The paper's three agents, five states; pure epsilon for a loss, but as published.",
            )
            for case in _CASES
        ],
    )


_RUNS = Sized(100, 10)
ADVERSARIAL = study(
    Sweep(
        "{case}/{kind}/{epsilon:g}",
        {"case": list(_CASES), "kind": list(_LABELS), "epsilon": _EPSILONS},
        measure_regrets,
        policy=_policy,
        horizon=_HORIZON,
        repetitions=_RUNS,
    ),
    Sweep(
        "{case}/open",
        {"case": list(_CASES)},
        measure_regrets,
        policy={"name": "batched-tsallis", "epsilon": None},
        horizon=_HORIZON,
        repetitions=_RUNS,
    ),
    Sweep(
        "growth/{horizon}",
        {"horizon": _HORIZONS},
        measure_regrets,
        policy=_policy(_BATCHED, _GROWTH_EPSILON),
        case="one state dominates",
        repetitions=_RUNS,
    ),
    judge=_judge,
    name="odeyomi2022-adversarial",
    own=True,
)
