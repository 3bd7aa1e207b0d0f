"""The trade-off: what each private policy pays for privacy, published against corrected.

Four common problems, one for each kind of setting. Regret is shown as a share of what choosing at random
costs there, so that 1 means that nothing was learned. A published variant is drawn at the epsilon its
paper claims, which for three of the papers is not what it delivers; the labels say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tacit_studies.leaderboard.contest import set_epsilon
from tacit_studies.reproduction import Findings, Row
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import final_values, plot_points
from tacit_studies.verdicts import verdict_on


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
            **{
                f"{_FALSE}, {trust}": {
                    "name": "colin",
                    "privacy": {"kind": "published", "trust": trust},
                    **_USERS,
                }
                for trust in ("central", "local")
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


_EPSILONS = Sized([0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0], [0.5, 2.0, 8.0])


def measure_shares(problem: str, line: str, epsilon: float, repetitions: int) -> list[float]:
    """Return the regret of every repetition as a share of a random choice's."""
    chosen = PROBLEMS[problem]
    policy = set_epsilon(chosen.lines[line], epsilon)
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


def _judge(outcomes: Outcomes) -> Findings:
    epsilons = _EPSILONS.at(outcomes.quick)
    figures, rows, better, compared = [], [], 0, 0
    for problem, chosen in PROBLEMS.items():
        series = [
            outcomes.line(
                line, epsilons, f"{problem}/{line}/{{:g}}", dashed=line.startswith(_FALSE)
            )
            for line in chosen.lines
        ]
        rows += [
            Row(
                f"{chosen.title}: {line}, epsilon = {e:g}",
                "",
                outcomes.text(f"{problem}/{line}/{e:g}"),
            )
            for line in chosen.lines
            for e in epsilons
        ]
        sound, false = ([s for s in series if s.dashed == dashed] for dashed in (False, True))
        best = [min(s.high[i] for s in sound) for i in range(len(epsilons))]
        compared += len(false) * len(epsilons)
        better += sum(high < low for s in false for high, low in zip(best, s.low, strict=True))
        figures.append(
            plot_points(
                chosen.title,
                "epsilon (smaller is more private)",
                "regret, as a share of random choice",
                series,
                log="x",
                caption="1 means that nothing was learned. Dashed: as published, at the epsilon "
                "the paper claims, which it does not deliver."
                if false
                else "1 means that nothing was learned. All of these deliver what they claim.",
            )
        )
    return outcomes.conclude(
        verdict=verdict_on(True, better == compared),
        because=(
            "a sound variant has clearly less regret than the published one whose claim fails "
            f"in {better} of {compared} comparisons at equal nominal epsilon."
        ),
        rows=rows,
        figures=figures,
    )


TRADE_OFF = study(
    *(
        Sweep(
            f"{problem}/{{line}}/{{epsilon:g}}",
            {"line": list(chosen.lines), "epsilon": _EPSILONS},
            measure_shares,
            problem=problem,
            repetitions=Sized(30, 6),
        )
        for problem, chosen in PROBLEMS.items()
    ),
    judge=_judge,
    name="trade-off",
    own=True,
)
