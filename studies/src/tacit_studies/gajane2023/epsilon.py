"""Paper 003, Corollary 2: what privacy costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tacit_studies.gajane2023.settings import line_of, sliding
from tacit_studies.reproduction import (
    NOT_REPRODUCED,
    PARTLY,
    REPRODUCED,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    summarise,
)
from tacit_studies.tools import final_values, regret_figure


def _epsilons(quick: bool) -> list[float]:
    return [0.5, 1.0, 2.0, 4.0] if quick else [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def _epsilon_jobs(quick: bool) -> list[Job]:
    T, n = (50_000, 12) if quick else (200_000, 40)
    environment = {"name": "rotating", "n_arms": 2, "segments": 4}
    jobs = [
        Job(
            f"eps{e}",
            final_values,
            {
                "policy": sliding(epsilon=e),
                "environment": environment,
                "horizon": T,
                "repetitions": n,
            },
        )
        for e in _epsilons(quick)
    ]
    plain = {"policy": sliding(), "environment": environment, "horizon": T, "repetitions": n}
    return [*jobs, Job("plain", final_values, plain)]


def _judge_epsilon(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    es = _epsilons(quick)
    line = line_of(outcomes, "SW-KLUCB-CF", es, [f"eps{e}" for e in es])
    plain = summarise(outcomes["plain"])
    falls = all(a > b for a, b in zip(line.y, line.y[1:], strict=False))
    above = line.y[-1] >= plain.low
    # The bound: a term that does not depend on epsilon, plus one in ((e^eps + 1)/(e^eps - 1))^2.
    factor = [1 / math.tanh(e / 2) ** 2 for e in es]
    within = all(y <= plain.mean * f * 1.5 for y, f in zip(line.y, factor, strict=True))
    return Findings(
        verdict=REPRODUCED if falls and above and within else PARTLY if falls else NOT_REPRODUCED,
        because=(
            f"Regret falls from {line.y[0]:,.0f} at epsilon = {es[0]:g} to {line.y[-1]:,.0f} at "
            f"{es[-1]:g} ({plain.mean:,.0f} without privacy), always below 1.5 times the factor "
            "((e^eps + 1)/(e^eps - 1))^2 of the bound."
        ),
        rows=[
            Row(
                f"epsilon = {e:g}",
                f"at most {f:.2f} times",
                f"{summarise(outcomes[f'eps{e}']).text()}, {y / plain.mean:.2f} times",
            )
            for e, f, y in zip(es, factor, line.y, strict=True)
        ]
        + [Row("not private", "", plain.text())],
        figures=[
            regret_figure(
                "What privacy costs",
                "epsilon of one reward",
                [line, Series("not private", es, [plain.mean] * len(es), dashed=True)],
            )
        ],
    )


EPSILON = Reproduction(
    name="gajane2023-corollary-2",
    paper="gajane2023",
    title="Corollary 2: the cost of privacy",
    question="How much worse are decisions if every person's answer is randomised?",
    claim="Privacy multiplies the learning term by ((e^eps + 1)/(e^eps - 1))^2.",
    jobs=_epsilon_jobs,
    judge=_judge_epsilon,
)
