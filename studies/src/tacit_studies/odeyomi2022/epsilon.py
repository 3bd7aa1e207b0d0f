"""Paper 000, Section VII: regret as privacy is given up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit_studies.odeyomi2022.settings import (
    ALGORITHM_3,
    corrected,
    published,
    tracked,
)
from tacit_studies.reproduction import (
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    summarise,
    verdict_of,
)

M = 5

_LONG = 5_000


def _epsilons(quick: bool) -> list[float]:
    return [0.1, 1.0, 10.0] if quick else [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]


_KINDS = {
    "1 published": "1 as published",
    "2 published": "2 as published",
    "1 corrected": "1 corrected",
    "2 corrected": "2 corrected",
}


def _kind(kind: str, epsilon: float) -> dict[str, Any]:
    make = published if kind.endswith("published") else corrected
    return make(int(kind[0]), epsilon)


def _epsilon_jobs(quick: bool) -> list[Job]:
    common = {"dominance": 0.8, "horizon": _LONG, "repetitions": 20 if quick else 200}
    open_rates = {"constant": ALGORITHM_3, "adaptive": {**ALGORITHM_3, "rates": "adaptive"}}
    return [
        *[
            Job(f"{kind}/{e}", tracked, {**common, "policy": _kind(kind, e)})
            for kind in _KINDS
            for e in _epsilons(quick)
        ],
        *[Job(key, tracked, {**common, "policy": p}) for key, p in open_rates.items()],
    ]


def _judge_epsilon(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    es = _epsilons(quick)
    found = {(kind, e): summarise(outcomes[f"{kind}/{e}"]["regret"]) for kind in _KINDS for e in es}
    plain, adaptive = (summarise(outcomes[key]["regret"]) for key in ("constant", "adaptive"))
    uniform = _LONG * (0.8 - 1 / M)
    eased = all(
        found[f"{a} published", es[-1]].high < found[f"{a} published", es[0]].low for a in (1, 2)
    )
    same = found["1 published", 1.0].low <= 2 * plain.high
    checks = [eased, same]
    series = [Series.of(label, es, [found[kind, e] for e in es]) for kind, label in _KINDS.items()]
    series += [
        Series("a belief that never changes", es, [uniform] * len(es), dashed=True),
        Series("Algorithm 3, no privacy", es, [plain.mean] * len(es), dashed=True),
    ]
    return Findings(
        verdict=verdict_of(checks),
        because=(
            f"As published, the regret of Algorithm 1 falls from {found['1 published', 0.1].mean:,.0f} "
            f"at epsilon = 0.1 to {found['1 published', 10.0].mean:,.0f} at 10. At epsilon = 1, where "
            f"the paper says that it grows like that of Algorithm 3, it is "
            f"{found['1 published', 1.0].mean:,.0f} against {plain.mean:.0f} at T = {_LONG:,}. "
            f"Corrected it is {found['1 corrected', 1.0].mean:.0f} at epsilon = 1 and "
            f"{found['1 corrected', 0.1].mean:.0f} at 0.1; a belief that never changes has "
            f"{uniform:,.0f}."
        ),
        agreement=(
            "As Algorithm 3: at most twice its regret, both taken at the end of their 95% "
            "intervals that favours the claim."
        ),
        rows=[
            Row(
                "Algorithm 1 at epsilon = 1, as published",
                "as Algorithm 3",
                found["1 published", 1.0].text(),
                agrees=same,
            ),
            Row("Algorithm 3, the paper's rates", "", plain.text()),
            Row("Algorithm 3, adaptive rates", "", adaptive.text()),
            *[
                Row(f"{label}, epsilon = {e:g}", "", found[kind, e].text())
                for kind, label in _KINDS.items()
                for e in es
            ],
        ],
        figures=[
            Figure(
                "What privacy costs",
                "epsilon of one loss",
                "regret at T = 5,000 (rounds lost)",
                series,
                x_log=True,
                y_log=True,
                kind="points",
                caption="The corrected Algorithm 2 spends the same epsilon once more on signals.",
            )
        ],
    )


EPSILON = Reproduction(
    name="odeyomi2022-epsilon",
    paper="odeyomi2022",
    title="Section VII: regret as privacy is given up",
    question="How weak must privacy be before the agents learn, and can it be had for less?",
    claim=(
        "A larger epsilon speeds learning up; with epsilon = 1 Algorithm 1 grows like the "
        "algorithm without privacy."
    ),
    jobs=_epsilon_jobs,
    judge=_judge_epsilon,
)
