"""Users of whom nobody says who resembles whom: a kernel, factors or clusters found from private reports.

Paper 004 leaves clustering and factorisation to the future. Both are post-processing of privatised
reports, so that they can be put beside CoLin, which is told the relational matrix, at the same guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tacit_studies.reproduction import (
    OWN,
    Figure,
    Findings,
    Job,
    Quantile,
    Reproduction,
    Row,
    Series,
    as_expected,
    estimate_quantile,
    verdict_of,
)
from tacit_studies.tools import final_values
from tacit_studies.wang2020.settings import compare as compared

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


def _epsilons(quick: bool) -> list[float]:
    return [2.0] if quick else [0.5, 1.0, 2.0, 5.0]


def _cases(quick: bool) -> list[str]:
    return ["mixed"] if quick else list(_CASES)


def _key(case: str, report: str, label: str, epsilon: float) -> str:
    return f"{case}/{report}/{label}/{epsilon:g}"


def _jobs(quick: bool) -> list[Job]:
    return [
        Job(
            _key(case, report, label, epsilon),
            final_values,
            {
                "policy": {**policy, "privacy": {"kind": report, "epsilon": epsilon}},
                "environment": _CASES[case][1],
                "horizon": 2_000 if quick else 10_000,
                "repetitions": 40,
                "seed": 17,  # as the contest of users: a cell that both have is the same runs
            },
        )
        for case in _cases(quick)
        for report in _REPORTS
        for epsilon in _epsilons(quick)
        for label, policy in _POLICIES.items()
    ]


def _median(values: Sequence[float]) -> Quantile:
    return estimate_quantile(values, 0.5)


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    rows, figures, shares = [], [], []
    wins, losses = dict.fromkeys(_GAINERS, 0), dict.fromkeys(_GAINERS, 0)
    cells = 0
    for case in _cases(quick):
        words = _CASES[case][0]
        for report, report_in_words in _REPORTS.items():
            found = {
                label: [outcomes[_key(case, report, label, e)] for e in _epsilons(quick)]
                for label in _POLICIES
            }
            for i, epsilon in enumerate(_epsilons(quick)):
                cells += 1
                cell = {label: _median(values[i]) for label, values in found.items()}
                for label in _GAINERS:
                    clear = compared(found[label][i], found[_ALONE][i])
                    wins[label] += clear == 1
                    losses[label] += clear == -1
                gap = cell[_ALONE].value - cell[_TOLD].value
                if gap > 0:
                    shares.append((cell[_ALONE].value - cell["learned kernel"].value) / gap)
                rows.append(
                    Row(
                        f"{words}, {report_in_words}, epsilon = {epsilon:g}",
                        "",
                        "; ".join(f"{label} {each.text()}" for label, each in cell.items()),
                    )
                )
            figures.append(
                Figure(
                    f"{words[0].upper()}{words[1:]}; reports tell {report_in_words}",
                    "epsilon",
                    "regret",
                    [
                        Series.of(
                            label,
                            _epsilons(quick),
                            [_median(values) for values in found[label]],
                            dashed=label == _TOLD,
                        )
                        for label in _POLICIES
                    ],
                    x_log=True,
                    y_log=True,
                    kind="points",
                    caption="Medians and 95% intervals. Dashed: told the relational matrix; where that joins "
                    "nobody CoLin is LinUCB, with the residual's bin LinUCB, shared.",
                )
            )
    kernel, factors, clusters = (wins[label] for label in _GAINERS)
    shares.sort()
    expected = [kernel >= 0.8 * cells, clusters < kernel]
    return Findings(
        verdict=OWN,
        because=as_expected(verdict_of(expected))
        + (
            f"at equal guarantee a learned kernel is clearly below LinUCB in {kernel} of {cells} cells "
            f"and clearly above it in {losses['learned kernel']}, three factors in {factors} and "
            f"{losses['three factors']}, clusters in {clusters} and {losses['clusters']}. Of what CoLin "
            "gains by being told W, where it gains anything, the kernel gains "
            f"{100 * shares[0]:.0f}% to {100 * shares[-1]:.0f}% without."
        ),
        agreement="A cell is clear if the 99% interval of paired differences leaves out zero.",
        rows=rows,
        figures=figures,
        privacy=(
            "Local and pure epsilon for one reward, the same in a row: kernel, factors and clusters are "
            "made of reports that were released anyway."
        ),
    )


TOLD_NOTHING = Reproduction(
    name="told-nothing",
    paper="",
    title="Users of whom nobody says who resembles whom",
    question="Can a private learner find out who resembles whom, and is it worth as much as being told?",
    claim=(
        "A kernel learned from private reports gains much of what a given relational matrix gains; clusters "
        "gain less."
    ),
    own=True,
    jobs=_jobs,
    judge=_judge,
)
