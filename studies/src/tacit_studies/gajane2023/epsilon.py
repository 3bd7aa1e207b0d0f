"""Paper 003, Corollary 2: what privacy costs."""

from __future__ import annotations

import itertools
import math
from typing import Any

from tacit_studies.gajane2023.settings import sliding
from tacit_studies.reproduction import Findings, Row
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import flat, plot_regret
from tacit_studies.verdicts import verdict_on

_EPSILONS = Sized([0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], [0.5, 1.0, 2.0, 4.0])
_COMMON: dict[str, Any] = {
    "environment": {"name": "rotating", "n_arms": 2, "segments": 4},
    "horizon": Sized(200_000, 50_000),
    "repetitions": Sized(40, 12),
}


def _judge(found: Outcomes) -> Findings:
    es = _EPSILONS.at(found.quick)
    line, plain = found.line("SW-KLUCB-CF", es, "eps{}"), found.summary("plain")
    falls = all(a > b for a, b in itertools.pairwise(line.y))
    above = line.y[-1] >= plain.low
    # The bound: a term that does not depend on epsilon, plus one in ((e^eps + 1)/(e^eps - 1))^2.
    factor = [1 / math.tanh(e / 2) ** 2 for e in es]
    within = all(y <= plain.mean * f * 1.5 for y, f in zip(line.y, factor, strict=True))
    return found.conclude(
        verdict=verdict_on(falls, above, within),
        because=(
            f"Regret falls from {line.y[0]:,.0f} at epsilon = {es[0]:g} to {line.y[-1]:,.0f} at "
            f"{es[-1]:g} ({plain.mean:,.0f} without privacy), always below 1.5 times the factor "
            "((e^eps + 1)/(e^eps - 1))^2 of the bound."
        ),
        rows=[
            Row(
                f"epsilon = {e:g}",
                f"at most {f:.2f} times",
                f"{found.text(f'eps{e}')}, {y / plain.mean:.2f} times",
            )
            for e, f, y in zip(es, factor, line.y, strict=True)
        ]
        + [Row("not private", "", plain.text())],
        figures=[
            plot_regret(
                "What privacy costs",
                "epsilon of one reward",
                [line, flat("not private", es, plain.mean)],
            )
        ],
    )


EPSILON = study(
    Sweep("eps{e}", {"e": _EPSILONS}, policy=lambda e: sliding(epsilon=e), **_COMMON),
    Sweep("plain", policy=sliding(), **_COMMON),
    judge=_judge,
    name="gajane2023-corollary-2",
)
