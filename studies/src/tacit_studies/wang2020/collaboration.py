"""Paper 004, Sections 4 and 6: whether it is collaboration that lowers the price of privacy."""

from __future__ import annotations

from tacit_studies.estimates import summarise
from tacit_studies.reproduction import Findings
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import plot_points
from tacit_studies.wang2020.claims import compare, compare_known, decide, holds, list_claims
from tacit_studies.wang2020.settings import NAMES, SYNTHETIC, final, final_line, play_runs, private

_LAMBDAS = Sized((0.1, 0.3, 1.0, 10.0), (0.1, 1.0, 10.0))
_KNOWN = {
    "DP-LinUCB": {0.1: 1795, 1.0: 1799, 10.0: 1736},
    "DP-CoLin": {0.1: 2620, 1.0: 1465, 10.0: 559},
    "DP-GOBLin": {},
}


def _judge(found: Outcomes) -> Findings:
    values = _LAMBDAS.at(found.quick)
    regret = {key: final(outcome) for key, outcome in found.items()}
    cell = {key: summarise(each) for key, each in regret.items()}
    orders = {
        f"both below DP-LinUCB, lambda = {v:g}": [
            compare(regret[f"{name}/{v:g}"], regret[f"DP-LinUCB/{v:g}"]) for name in NAMES[1:3]
        ]
        for v in values
    }
    low, high = values[0], values[-1]

    def pair(value: float) -> str:
        colin, alone = cell[f"DP-CoLin/{value:g}"].mean, cell[f"DP-LinUCB/{value:g}"].mean
        return f"{colin:,.0f} against {alone:,.0f}"

    return found.conclude(
        verdict=decide(holds(each) for each in orders.values()),
        because=(
            "It depends on the ridge parameter lambda, which the paper does not give. At epsilon = 2 "
            f"DP-CoLin has regret {pair(low)} for DP-LinUCB at lambda = {low:g}, and {pair(high)} "
            f"at lambda = {high:g}."
        ),
        rows=list_claims(orders)
        + [
            compare_known(f"{name}, lambda = {v:g}", cell[f"{name}/{v:g}"], known.get(v))
            for name, known in _KNOWN.items()
            for v in values
        ],
        figures=[
            plot_points(
                "Regret against the ridge parameter, epsilon = 2",
                "lambda",
                "regret after 10,000 rounds",
                [final_line(n, values, [regret[f"{n}/{v:g}"] for v in values]) for n in _KNOWN],
                caption="Published noise with a trusted server. A larger lambda shrinks the noise "
                "that CoLin and GOBLin share between users.",
            )
        ],
    )


COLLABORATION = study(
    Sweep(
        "{name}/{value:g}",
        {"name": list(_KNOWN), "value": _LAMBDAS},
        play_runs,
        policy=lambda name, value: private(name, 2.0, regularisation=value),
        environment=SYNTHETIC,
        horizon=10_000,
        repetitions=Sized(30, 3),
    ),
    judge=_judge,
    name="wang2020-collaboration",
)
