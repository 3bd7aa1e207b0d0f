"""The trade-off: what each private policy pays for privacy, published against corrected.

Four common problems, one for each kind of setting. Regret is shown as a share of what choosing at random
costs there, so that 1 means that nothing was learned. A published variant is drawn at the epsilon its
paper claims, which for three of the papers is not what it delivers; the labels say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tacit_studies.reproduction import (
    OWN,
    PARTLY,
    REPRODUCED,
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    as_expected,
    summarise,
)
from tacit_studies.tools import final_values


class Problem(NamedTuple):
    """An environment, what a random choice costs in it, and the private policies to compare."""

    title: str
    environment: Mapping[str, Any]
    horizon: int
    random: Mapping[str, Any]
    """``policy``: run this one; ``measure``: the environment measures it; ``value``: known, a round."""
    lines: Mapping[str, Mapping[str, Any]]


_FALSE = "published (claim fails)"
_MEANS = [0.9, 0.7, 0.5, 0.3, 0.1]
_QUALITIES = np.linspace(0.9, 0.1, 10).round(6).tolist()
_USERS = {"reward_range": [-1.0, 1.0]}

PROBLEMS = {
    "arms": Problem(
        "One learner, five arms",
        {
            "name": "graph-feedback",
            "environment": {"name": "bernoulli", "means": _MEANS},
            "edge_prob": 0.5,
        },
        50_000,
        {"policy": {"name": "uniform"}},
        {
            "klUCB-CF, local": {"name": "klucb-cf"},
            "SW-KLUCB-CF, local": {"name": "sw-klucb-cf"},
            "DP-SE, central": {"name": "dpse"},
            "GAP, central, feedback graph": {"name": "gap"},
            "GAPU, central, feedback graph": {"name": "gapu"},
        },
    ),
    "users": Problem(
        "Ten users who share a model (CoLin)",
        {"name": "fitted-users"},
        5_000,
        {"measure": "random_regret"},
        {
            "corrected, local": {"name": "colin", **_USERS},
            f"{_FALSE}, central": {
                "name": "colin",
                "privacy": {"kind": "published", "trust": "central"},
                **_USERS,
            },
            f"{_FALSE}, local": {
                "name": "colin",
                "privacy": {"kind": "published", "trust": "local"},
                **_USERS,
            },
        },
    ),
    "truth": Problem(
        "Three agents who track a changing truth",
        {"name": "changing-truth", "dominance": 0.8, "n_states": 5},
        2_000,
        {"value": 0.8 - 0.2},
        {
            "corrected, against outsiders": {"name": "diffusion-outsiders"},
            "corrected, against spies too": {"name": "diffusion-spies"},
            f"{_FALSE}, outsiders": {"name": "diffusion-outsiders", "variant": "published"},
            f"{_FALSE}, spies": {"name": "diffusion-spies", "variant": "published"},
        },
    ),
    "crowd": Problem(
        "100,000 agents who copy what is popular and good",
        {"name": "social-options", "qualities": _QUALITIES, "n_agents": 100_000},
        2_000,
        {"value": 0.9 - float(np.mean(_QUALITIES)), "total": False},
        {
            "corrected, recommended rates": {"name": "learning-dynamics", "engine": "crowd"},
            _FALSE: {"name": "learning-dynamics", "engine": "crowd", "variant": "published"},
        },
    ),
}


def _epsilons(quick: bool) -> list[float]:
    return [0.5, 2.0, 8.0] if quick else [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0]


def _repetitions(quick: bool) -> int:
    return 6 if quick else 30


def shares(problem: str, line: str, epsilon: float, repetitions: int) -> list[float]:
    """Return the regret of every repetition as a share of a random choice's."""
    chosen = PROBLEMS[problem]
    policy: dict[str, Any] = {**chosen.lines[line]}
    if "privacy" in policy:
        policy["privacy"] = {**policy["privacy"], "epsilon": epsilon}
    else:
        policy["epsilon"] = epsilon
    common: dict[str, Any] = {
        "environment": chosen.environment,
        "horizon": chosen.horizon,
        "repetitions": repetitions,
    }
    regret = np.array(final_values(policy, **common))
    if "value" in chosen.random:
        rounds = chosen.horizon if chosen.random.get("total", True) else 1
        return [float(v) for v in regret / (chosen.random["value"] * rounds)]
    if "measure" in chosen.random:
        base = final_values(policy, measure=chosen.random["measure"], **common)
    else:
        base = final_values(chosen.random["policy"], **common)
    return [float(v) for v in regret / np.array(base)]


def _jobs(quick: bool) -> list[Job]:
    return [
        Job(
            f"{problem}/{line}/{epsilon:g}",
            shares,
            {
                "problem": problem,
                "line": line,
                "epsilon": epsilon,
                "repetitions": _repetitions(quick),
            },
        )
        for problem, chosen in PROBLEMS.items()
        for line in chosen.lines
        for epsilon in _epsilons(quick)
    ]


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    epsilons = _epsilons(quick)
    figures, rows, better, compared = [], [], 0, 0
    for problem, chosen in PROBLEMS.items():
        series = []
        for line in chosen.lines:
            found = [summarise(outcomes[f"{problem}/{line}/{e:g}"]) for e in epsilons]
            series.append(Series.of(line, epsilons, found, dashed=line.startswith(_FALSE)))
            rows += [
                Row(f"{chosen.title}: {line}, epsilon = {e:g}", "", s.text())
                for e, s in zip(epsilons, found, strict=True)
            ]
        sound = [s for s in series if not s.dashed]
        for other in (s for s in series if s.dashed):
            compared += len(epsilons)
            better += sum(
                min(s.high[i] for s in sound) < other.low[i] for i in range(len(epsilons))
            )
        figures.append(
            Figure(
                chosen.title,
                "epsilon (smaller is more private)",
                "regret, as a share of random choice",
                series,
                x_log=True,
                kind="points",
                caption="1 means that nothing was learned. Dashed: as published, at the epsilon "
                "the paper claims, which it does not deliver."
                if any(s.dashed for s in series)
                else "1 means that nothing was learned. All of these deliver what they claim.",
            )
        )
    return Findings(
        verdict=OWN,
        because=as_expected(REPRODUCED if better == compared else PARTLY)
        + (
            "a sound variant has clearly less regret than the published one whose claim fails "
            f"in {better} of {compared} comparisons at equal nominal epsilon."
        ),
        rows=rows,
        figures=figures,
    )


TRADE_OFF = Reproduction(
    name="trade-off",
    paper="",
    title="What privacy costs, published against corrected",
    question="How much worse are decisions at each level of privacy, and must it be so?",
    claim="Sound privacy need not cost more than the published noise.",
    own=True,
    jobs=_jobs,
    judge=_judge,
)
