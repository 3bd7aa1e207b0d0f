"""Paper 000, Section VII: regret as privacy is given up."""

from __future__ import annotations

from typing import Any

from tacit_studies.odeyomi2022.settings import ALGORITHM_3, corrected, published, track
from tacit_studies.reproduction import Findings, Row
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import flat, plot_points

_STATES = 5
_LONG = 5_000
_EPSILONS = Sized([0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0], [0.1, 1.0, 10.0])
_KINDS = {f"{a} {variant}": (a, variant) for variant in ("published", "corrected") for a in (1, 2)}
_LABELS = {kind: kind.replace("published", "as published") for kind in _KINDS}


def _policy(kind: tuple[int, str], epsilon: float) -> dict[str, Any]:
    return (published if kind[1] == "published" else corrected)(kind[0], epsilon)


def _judge(found: Outcomes) -> Findings:
    es = _EPSILONS.at(found.quick)
    regret = {(k, e): found.summary(f"{k}/{e}", "regret") for k in _KINDS for e in es}
    plain, adaptive = (found.summary(key, "regret") for key in ("constant", "adaptive"))
    uniform = _LONG * (0.8 - 1 / _STATES)
    eased = all(
        regret[f"{a} published", es[-1]].high < regret[f"{a} published", es[0]].low for a in (1, 2)
    )
    one = regret["1 published", 1.0]
    same = one.low <= 2 * plain.high
    return found.conclude(
        checks=[eased, same],
        because=(
            f"As published, the regret of Algorithm 1 falls from {regret['1 published', 0.1].mean:,.0f} "
            f"at epsilon = 0.1 to {regret['1 published', 10.0].mean:,.0f} at 10. At epsilon = 1, where "
            f"the paper says that it grows like that of Algorithm 3, it is "
            f"{one.mean:,.0f} against {plain.mean:.0f} at T = {_LONG:,}. "
            f"Corrected it is {regret['1 corrected', 1.0].mean:.0f} at epsilon = 1 and "
            f"{regret['1 corrected', 0.1].mean:.0f} at 0.1; a belief that never changes has "
            f"{uniform:,.0f}."
        ),
        rows=[
            Row(
                "Algorithm 1 at epsilon = 1, as published",
                "as Algorithm 3",
                one.text(),
                agrees=same,
            ),
            Row("Algorithm 3, the paper's rates", "", plain.text()),
            Row("Algorithm 3, adaptive rates", "", adaptive.text()),
            *[
                Row(f"{_LABELS[kind]}, epsilon = {e:g}", "", each.text())
                for (kind, e), each in regret.items()
            ],
        ],
        figures=[
            plot_points(
                "What privacy costs",
                "epsilon of one loss",
                "regret at T = 5,000 (rounds lost)",
                [
                    *[
                        found.line(label, es, f"{kind}/{{}}", "regret")
                        for kind, label in _LABELS.items()
                    ],
                    flat("a belief that never changes", es, uniform),
                    flat("Algorithm 3, no privacy", es, plain.mean),
                ],
                caption="The corrected Algorithm 2 spends the same epsilon once more on signals.",
            )
        ],
    )


_COMMON: dict[str, Any] = {"dominance": 0.8, "horizon": _LONG, "repetitions": Sized(200, 20)}
EPSILON = study(
    Sweep(
        "{kind}/{epsilon}", {"kind": _KINDS, "epsilon": _EPSILONS}, track, policy=_policy, **_COMMON
    ),
    Sweep(
        "{policy}",
        {"policy": {"constant": ALGORITHM_3, "adaptive": {**ALGORITHM_3, "rates": "adaptive"}}},
        track,
        **_COMMON,
    ),
    judge=_judge,
    name="odeyomi2022-epsilon",
)
