"""Users of whom nobody says who resembles whom: a kernel, factors or clusters found from private reports.

Paper 004 leaves clustering and factorisation to the future. Both are post-processing of privatised
reports, so that they can be put beside CoLin, which is told the relational matrix, at the same guarantee.
"""

from __future__ import annotations

import itertools
from typing import Any

from tacit_studies.estimates import estimate_quantile
from tacit_studies.reproduction import Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import plot_points
from tacit_studies.wang2020.claims import compare

_ALONE, _TOLD = "LinUCB", "CoLin, told W"
_POLICIES: dict[str, dict[str, Any]] = {
    _TOLD: {"name": "colin"},
    "learned kernel": {"name": "learned-kernel"},
    "three factors": {"name": "factorised"},
    "clusters": {"name": "club"},
    _ALONE: {"name": "linucb"},
    "LinUCB, shared": {"name": "linucb", "shared": 1.0},
}
_CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "mixed": ("users who are mixtures of each other", {"name": "fitted-users"}),
    "groups": ("users in groups, nobody mixed", {"name": "fitted-users", "threshold": 1.0}),
    "similar": ("similar users, as the paper writes them", {"name": "synthetic-users"}),
}
_REPORTS = {"residual": "the residual's bin", "per-reward": "the reward itself"}
_GAINERS = ("learned kernel", "three factors", "clusters")
_EPSILONS = Sized([0.5, 1.0, 2.0, 5.0], [2.0])
_PLAYED = Sized(list(_CASES), ["mixed"])


def _judge(outcomes: Outcomes) -> Findings:
    rows, figures, shares, cells = [], [], [], 0
    wins, losses = dict.fromkeys(_GAINERS, 0), dict.fromkeys(_GAINERS, 0)
    epsilons = _EPSILONS.at(outcomes.quick)
    for case, (report, tells) in itertools.product(_PLAYED.at(outcomes.quick), _REPORTS.items()):
        words = _CASES[case][0]
        found = {
            label: [outcomes[f"{case}/{report}/{label}/{e:g}"] for e in epsilons]
            for label in _POLICIES
        }
        medians = {
            label: [estimate_quantile(values, 0.5) for values in lists]
            for label, lists in found.items()
        }
        for i, epsilon in enumerate(epsilons):
            cells += 1
            cell = {label: each[i] for label, each in medians.items()}
            for label in _GAINERS:
                clear = compare(found[label][i], found[_ALONE][i])
                wins[label] += clear == 1
                losses[label] += clear == -1
            gap = cell[_ALONE].value - cell[_TOLD].value
            if gap > 0:
                shares.append((cell[_ALONE].value - cell["learned kernel"].value) / gap)
            said = "; ".join(f"{label} {each.text()}" for label, each in cell.items())
            rows.append(Row(f"{words}, {tells}, epsilon = {epsilon:g}", "", said))
        figures.append(
            plot_points(
                f"{words[0].upper()}{words[1:]}; reports tell {tells}",
                "epsilon",
                "regret",
                [
                    Series.of(label, epsilons, each, dashed=label == _TOLD)
                    for label, each in medians.items()
                ],
                caption="Medians and 95% intervals. Dashed: told the relational matrix; where that joins "
                "nobody CoLin is LinUCB, with the residual's bin LinUCB, shared.",
            )
        )
    kernel, factors, clusters = (wins[label] for label in _GAINERS)
    shares.sort()
    return outcomes.conclude(
        checks=[kernel >= 0.8 * cells, clusters < kernel],
        because=(
            f"at equal guarantee a learned kernel is clearly below LinUCB in {kernel} of {cells} cells "
            f"and clearly above it in {losses['learned kernel']}, three factors in {factors} and "
            f"{losses['three factors']}, clusters in {clusters} and {losses['clusters']}. Of what CoLin "
            "gains by being told W, where it gains anything, the kernel gains "
            f"{100 * shares[0]:.0f}% to {100 * shares[-1]:.0f}% without."
        ),
        rows=rows,
        figures=figures,
    )


UNKNOWN_SIMILARITY = study(
    Sweep(
        "{case}/{report}/{policy}/{epsilon:g}",
        {"case": _PLAYED, "report": list(_REPORTS), "epsilon": _EPSILONS, "policy": _POLICIES},
        policy=lambda policy, report, epsilon: {
            **policy,
            "privacy": {"kind": report, "epsilon": epsilon},
        },
        environment=lambda case: _CASES[case][1],
        horizon=Sized(10_000, 2_000),
        repetitions=40,
        seed=17,  # as the contest of users: a cell that both have is the same runs
    ),
    judge=_judge,
    name="told-nothing",
    own=True,
)
