"""Paper 004, Sections 4 and 6: whether it is collaboration that lowers the price of privacy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit_studies.reproduction import (
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    summarise,
)
from tacit_studies.wang2020.settings import (
    NAMES,
    SYNTHETIC,
    close,
    compared,
    decide,
    final,
    final_line,
    held,
    holds,
    played,
    private,
)

HORIZON = 10_000

_LAMBDAS = (0.1, 0.3, 1.0, 10.0)
_KNOWN_LAMBDA = {
    ("DP-LinUCB", 0.1): 1795,
    ("DP-CoLin", 0.1): 2620,
    ("DP-LinUCB", 1.0): 1799,
    ("DP-CoLin", 1.0): 1465,
    ("DP-LinUCB", 10.0): 1736,
    ("DP-CoLin", 10.0): 559,
}


def _lambda_jobs(quick: bool) -> list[Job]:
    return [
        Job(
            f"{name}/{value:g}",
            played,
            {
                "policy": private(name, 2.0, regularisation=value),
                "environment": SYNTHETIC,
                "horizon": HORIZON,
                "repetitions": 3 if quick else 30,
            },
        )
        for name in NAMES[:3]
        for value in _LAMBDAS
        if not (quick and value == 0.3)
    ]


def _judge_lambda(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    values = [value for value in _LAMBDAS if not (quick and value == 0.3)]
    regret = {key: final(outcome) for key, outcome in outcomes.items()}
    cell = {key: summarise(found) for key, found in regret.items()}
    orders = {
        value: [
            compared(regret[f"{name}/{value:g}"], regret[f"DP-LinUCB/{value:g}"])
            for name in NAMES[1:3]
        ]
        for value in values
    }
    low, high = values[0], values[-1]

    def pair(value: float) -> str:
        colin, alone = cell[f"DP-CoLin/{value:g}"].mean, cell[f"DP-LinUCB/{value:g}"].mean
        return f"{colin:,.0f} against {alone:,.0f}"

    rows = [
        Row(f"both below DP-LinUCB, lambda = {value:g}", "yes", held(found), agrees=holds(found))
        for value, found in orders.items()
    ]
    for name in NAMES[:3]:
        for value in values:
            known, found = _KNOWN_LAMBDA.get((name, value)), cell[f"{name}/{value:g}"]
            rows.append(
                Row(
                    f"{name}, lambda = {value:g}",
                    "",
                    found.text(),
                    f"{known:,}" if known else "",
                    agrees=close(found, known) if known else None,
                )
            )
    return Findings(
        verdict=decide(holds(found) for found in orders.values()),
        because=(
            "It depends on the ridge parameter lambda, which the paper does not give. At epsilon = 2 "
            f"DP-CoLin has regret {pair(low)} for DP-LinUCB at lambda = {low:g}, and {pair(high)} "
            f"at lambda = {high:g}."
        ),
        agreement=(
            "A claim holds if most of its comparisons are clear (99% interval of the paired "
            "differences) and none is clearly the contrary; an independent value agrees "
            "within 5 standard errors of the difference."
        ),
        rows=rows,
        figures=[
            Figure(
                "Regret against the ridge parameter, epsilon = 2",
                "lambda",
                "regret after 10,000 rounds",
                [
                    final_line(name, list(values), [regret[f"{name}/{v:g}"] for v in values])
                    for name in NAMES[:3]
                ],
                x_log=True,
                y_log=True,
                kind="points",
                caption="Published noise with a trusted server. A larger lambda shrinks the noise "
                "that CoLin and GOBLin share between users.",
            )
        ],
    )


COLLABORATION = Reproduction(
    name="wang2020-collaboration",
    paper="wang2020",
    title="Sections 4 and 6: whether sharing lowers the price of privacy",
    question="Does a private system do better if its users learn from each other?",
    claim=(
        "Sharing needs less noise for the same privacy, so that DP-CoLin and DP-GOBLin beat "
        "DP-LinUCB."
    ),
    jobs=_lambda_jobs,
    judge=_judge_lambda,
)
