"""Paper 001, Section 3.3, footnote 3: whether it matters what agents adopt at first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit_studies.reproduction import (
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    Summary,
    summarise,
    verdict_of,
)
from tacit_studies.tools import final_values

_M, _AGENTS = 10, 100_000
_QUALITIES = tuple(np.linspace(0.9, 0.1, _M).tolist())
_STARTS: dict[str, list[float] | None] = {
    "all options alike": None,
    "all adopt the worst": [0.0] * (_M - 1) + [1.0],
    "nobody adopts anything": [0.0] * _M,
    "all adopt the best": [1.0] + [0.0] * (_M - 1),
}
_RULES: dict[str, dict[str, Any]] = {
    "as published, not private": {"variant": "published", "epsilon": float("inf")},
    "as published, epsilon = 1": {"variant": "published", "epsilon": 1.0},
    "recommended, epsilon = 1": {"epsilon": 1.0},
}
_ROUNDS, _FEWER = (500, 2_000, 8_000), (125, 500, 2_000)
_NEAR = 1.25


def _jobs(quick: bool) -> list[Job]:
    return [
        Job(
            f"{rule}/{start}/{T}",
            final_values,
            {
                "policy": {"name": "learning-dynamics", "engine": "crowd", **settings},
                "environment": {
                    "name": "social-options",
                    "qualities": list(_QUALITIES),
                    "n_agents": _AGENTS,
                    **({} if shares is None else {"popularity": shares}),
                },
                "horizon": T,
                "repetitions": 2 if quick else 5,
            },
        )
        for rule, settings in _RULES.items()
        for start, shares in _STARTS.items()
        for T in (_FEWER if quick else _ROUNDS)
    ]


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    rounds = _FEWER if quick else _ROUNDS
    last = rounds[-1]

    def of(rule: str, start: str, T: int = last) -> Summary:
        return summarise(outcomes[f"{rule}/{start}/{T}"])

    alike, worst = "all options alike", "all adopt the worst"
    same = {
        rule: all(
            of(rule, start).mean < _NEAR * of(rule, alike).mean
            for start in (worst, "nobody adopts anything")
        )
        for rule in _RULES
    }
    return Findings(
        verdict=verdict_of(same.values()),
        because=(
            f"Average regret after {last:,} rounds where all options begin alike, and where all adopt "
            "the worst: "
            + "; ".join(
                f"{rule} {of(rule, alike).mean:.3f} and {of(rule, worst).mean:.3f}"
                for rule in _RULES
            )
            + ". A bad beginning costs the rounds until the first few have found something better."
        ),
        agreement=(
            f"It does not matter if after {last:,} rounds regret is less than {_NEAR} times that of "
            "options that begin alike."
        ),
        rows=[
            Row(f"{rule}, {start}, {T:,} rounds", "", of(rule, start, T).text())
            for rule in _RULES
            for start in _STARTS
            for T in rounds
        ],
        figures=[
            Figure(
                f"How it begins: {rule}",
                "rounds",
                "average regret so far",
                [
                    Series.of(start, rounds, [of(rule, start, T) for T in rounds])
                    for start in _STARTS
                ],
                x_log=True,
                y_log=True,
                kind="points",
                caption="100,000 agents, ten options from 0.9 to 0.1.",
            )
            for rule in _RULES
        ],
    )


BEGINNINGS = Reproduction(
    name="tao2022-beginnings",
    paper="tao2022",
    title="Section 3.3: what agents adopt at first",
    question="Does a crowd that begins with the worst option still find the best one?",
    claim="That all options begin alike is not crucial; the results hold with arbitrary initial conditions.",
    jobs=_jobs,
    judge=_judge,
)
