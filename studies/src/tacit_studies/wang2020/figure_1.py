"""Paper 004, Fig. 1: regret and error of the estimate over time, and regret by number of users."""

from __future__ import annotations

import math
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
    summarise,
)
from tacit_studies.wang2020.settings import (
    COUNTERPARTS,
    NAMES,
    PLAIN,
    SYNTHETIC,
    compared,
    corrected,
    curve,
    decide,
    final,
    held,
    holds,
    played,
    private,
)

EPSILON = 2.0
_CAPTION = "Means and 95% bands in the environment fitted to Table 1."


def _policies() -> dict[str, dict[str, Any]]:
    return {
        **{name: corrected(name, None) for name in PLAIN},
        **{name: private(name, EPSILON) for name in NAMES},
        "corrected CoLin": corrected("CoLin", EPSILON),
        "corrected GOBLin": corrected("GOBLin", EPSILON),
    }


def _over_time(measure: str) -> Any:
    def jobs(quick: bool) -> list[Job]:
        size = (
            {"horizon": 10_000, "repetitions": 3}
            if quick
            else {"horizon": 30_000, "repetitions": 20}
        )
        if quick and measure != "regret":
            size = {"horizon": 5_000, "repetitions": 3}
        return [
            Job(
                name,
                played,
                {
                    "policy": policy,
                    "environment": SYNTHETIC,
                    **size,
                    "measures": [measure],
                    "points": 30,
                },
            )
            for name, policy in _policies().items()
        ]

    return jobs


def distance_of_zero(repetitions: int) -> list[float]:
    """Return how far an estimate that has learned nothing is from the truth."""
    from tacit.contextual import Fitted

    tables = [Fitted().table(4, repetition, 1) for repetition in range(repetitions)]
    return [float(np.linalg.norm(table.preferences)) for table in tables]


def _error_jobs(quick: bool) -> list[Job]:
    return [
        *_over_time("parameter_error")(quick),
        Job("zero", distance_of_zero, {"repetitions": 3 if quick else 20}),
    ]


def _regret_claims(values: Mapping[str, list[float]]) -> dict[str, list[int]]:
    return {
        "private above not private": [compared(values[COUNTERPARTS[n]], values[n]) for n in NAMES],
        "local above central": [
            compared(values[f"DP-{a}"], values[f"LDP-{a}"]) for a in ("CoLin", "GOBLin")
        ],
        "DP-CoLin and DP-GOBLin below DP-LinUCB": [
            compared(values[n], values["DP-LinUCB"]) for n in NAMES[1:3]
        ],
    }


def _added(values: Mapping[str, list[float]], algorithm: str) -> float:
    """Return how many times the central noise's added regret the local noise's is."""
    plain = np.mean(values[algorithm])
    central, local = (np.mean(values[f"{kind}-{algorithm}"]) - plain for kind in ("DP", "LDP"))
    return float(local / central)


def _judge_regret(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    values = {name: final(outcome) for name, outcome in outcomes.items()}
    found = {name: summarise(v) for name, v in values.items()}
    claims = _regret_claims(values)
    factors = {a: _added(values, a) for a in ("CoLin", "GOBLin")}
    root = math.sqrt(10)
    near = all(0.75 * root < factor < 1.33 * root for factor in factors.values())
    rounds = outcomes["CoLin"]["rounds"][-1]
    rows = [Row(words, "yes", held(c), agrees=holds(c)) for words, c in claims.items()]
    rows += [
        Row(
            f"{a}: regret added by local noise, times that of central",
            f"about {root:.1f}",
            f"{factor:.2f}",
            agrees=near,
        )
        for a, factor in factors.items()
    ]
    rows += [Row(f"{name}, {rounds:,} rounds", "", s.text()) for name, s in found.items()]
    return Findings(
        verdict=decide([*[holds(c) for c in claims.values()], near]),
        because=(
            f"After {rounds:,} rounds at epsilon = 2: CoLin {found['CoLin'].mean:,.0f}, DP-CoLin "
            f"{found['DP-CoLin'].mean:,.0f}, LDP-CoLin {found['LDP-CoLin'].mean:,.0f}; but "
            f"DP-LinUCB {found['DP-LinUCB'].mean:,.0f}, so sharing "
            f"{'lowers' if holds(claims['DP-CoLin and DP-GOBLin below DP-LinUCB']) else 'does not lower'}"
            " the price here. Local noise adds "
            f"{factors['CoLin']:.1f} times the regret that central noise adds, where the paper "
            f"expects {root:.1f}. Sound noise on single rewards, without a trusted server: CoLin "
            f"{found['corrected CoLin'].mean:,.0f}."
        ),
        agreement=(
            "A claim holds if most of its comparisons are clear (99% interval of the paired "
            "differences) and none is clearly the contrary; a factor agrees within 25% below "
            "and 33% above."
        ),
        rows=rows,
        figures=[
            Figure(
                "Regret at epsilon = 2, as published",
                "round",
                "regret",
                [curve(name, outcomes[name]) for name in NAMES],
                caption=_CAPTION,
            ),
            Figure(
                "Regret without privacy, and with sound noise at epsilon = 2",
                "round",
                "regret",
                [
                    *[curve(f"{name}, not private", outcomes[name]) for name in PLAIN],
                    *[
                        curve(f"{a}, corrected, local", outcomes[f"corrected {a}"])
                        for a in ("CoLin", "GOBLin")
                    ],
                ],
                caption=_CAPTION,
            ),
        ],
    )


def _judge_error(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    measure = "parameter_error"
    logs = {n: np.log(final(outcomes[n], measure)).tolist() for n in _policies()}
    zero = float(np.mean(outcomes["zero"]))
    typical = {name: math.exp(float(np.mean(values))) for name, values in logs.items()}
    claims = {
        words: c for words, c in _regret_claims(logs).items() if not words.startswith("DP-CoLin")
    }
    rounds = outcomes["CoLin"]["rounds"][-1]
    return Findings(
        verdict=decide(holds(c) for c in claims.values()),
        because=(
            f"After {rounds:,} rounds the distance to the truth is {typical['CoLin']:.2f} for "
            f"CoLin, {typical['DP-CoLin']:.1f} for DP-CoLin and {typical['LDP-CoLin']:.1f} for "
            f"LDP-CoLin; an estimate of zero has {zero:.1f}. With sound noise on single rewards it "
            f"is {typical['corrected CoLin']:.2f}."
        ),
        agreement=(
            "A claim holds if most of its comparisons are clear (99% interval of the paired "
            "differences) and none is clearly the contrary."
        ),
        rows=[
            *[Row(words, "yes", held(c), agrees=holds(c)) for words, c in claims.items()],
            *[Row(f"{name}, {rounds:,} rounds", "", f"{v:.3g}") for name, v in typical.items()],
        ],
        figures=[
            Figure(
                "Distance of the estimate from the truth, epsilon = 2",
                "round",
                "distance, all users together",
                [
                    curve(label, outcomes[name], measure, geometric=True, dashed=dashed)
                    for name, label, dashed in (
                        ("CoLin", "CoLin, not private", True),
                        ("DP-LinUCB", "DP-LinUCB", False),
                        ("DP-CoLin", "DP-CoLin", False),
                        ("LDP-CoLin", "LDP-CoLin", False),
                        ("LDP-GOBLin", "LDP-GOBLin", False),
                        ("corrected CoLin", "CoLin, corrected, local", True),
                    )
                ],
                y_log=True,
                caption="Geometric means and 95% bands: in some environments there are features that no "
                "item has, where noise is never averaged out.",
            )
        ],
    )


def _sizes(quick: bool) -> list[int]:
    return [5, 20] if quick else [5, 10, 20, 30, 50]


def _size_jobs(quick: bool) -> list[Job]:
    return [
        Job(
            f"{name}/{N}",
            played,
            {
                "policy": policy,
                "environment": {**SYNTHETIC, "n_users": N},
                "horizon": 3_000 if quick else 10_000,
                "repetitions": 6 if quick else 12,
            },
        )
        for name, policy in _policies().items()
        for N in _sizes(quick)
        if name != "corrected GOBLin"
    ]


def _judge_sizes(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    Ns = _sizes(quick)
    rounds = outcomes[f"CoLin/{Ns[0]}"]["rounds"][-1]
    values = {key: final(outcome) for key, outcome in outcomes.items()}
    mean = {key: float(np.mean(v)) for key, v in values.items()}
    shared = NAMES[1:]

    def added(name: str, N: int) -> float:
        return mean[f"{name}/{N}"] - mean[f"{COUNTERPARTS[name]}/{N}"]

    def grown(name: str, plain: str | None = None) -> int:
        """Compare the smallest and the largest N, whose environments are not paired."""
        ends = [np.array(values[f"{name}/{N}"]) for N in (Ns[0], Ns[-1])]
        if plain:
            ends = [v - values[f"{plain}/{N}"] for v, N in zip(ends, (Ns[0], Ns[-1]), strict=True)]
        few, many = (summarise(v.tolist()) for v in ends)
        return int(many.low > few.high) - int(many.high < few.low)

    grows = [grown(name) for name in shared]
    adds = [grown(name, COUNTERPARTS[name]) for name in shared]
    factor = {
        (a, N): added(f"LDP-{a}", N) / added(f"DP-{a}", N) for a in ("CoLin", "GOBLin") for N in Ns
    }
    above = [
        compared(values[f"DP-{a}/{N}"], values[f"LDP-{a}/{N}"])
        for a in ("CoLin", "GOBLin")
        for N in Ns
    ]
    near = all(0.75 < f / math.sqrt(N) < 1.33 for (_, N), f in factor.items())
    first, last = Ns[0], Ns[-1]
    rows = [
        Row(f"regret grows from N = {first} to {last}", "always", held(grows), agrees=holds(grows)),
        Row(
            f"added regret grows from N = {first} to {last}",
            "always",
            held(adds),
            agrees=holds(adds),
        ),
        Row("local above central", "always", held(above), agrees=holds(above)),
        *[
            Row(
                f"{a}, N = {N}: added by local, times that of central",
                f"about {math.sqrt(N):.1f}",
                f"{f:.2f}",
                agrees=0.75 < f / math.sqrt(N) < 1.33,
            )
            for (a, N), f in factor.items()
        ],
        *[
            Row(f"{key.replace('/', ', N = ')}", "", summarise(v).text())
            for key, v in values.items()
        ],
    ]

    def line(name: str, label: str, dashed: bool = False) -> Series:
        found = [summarise(values[f"{name}/{N}"]) for N in Ns]
        return Series(
            label,
            [float(N) for N in Ns],
            [s.mean for s in found],
            [s.low for s in found],
            [s.high for s in found],
            dashed,
        )

    return Findings(
        verdict=decide([holds(grows), holds(adds), holds(above), near]),
        because=(
            f"From N = {first} to {last} the regret of algorithms that share clearly grows in "
            f"{held(grows)}. "
            f"At N = {last} local noise adds {factor['CoLin', last]:.1f} (CoLin) and "
            f"{factor['GOBLin', last]:.1f} (GOBLin) times the regret that central noise adds; "
            f"sqrt(N) is {math.sqrt(last):.1f}. DP-CoLin goes from "
            f"{mean[f'DP-CoLin/{first}']:,.0f} to {mean[f'DP-CoLin/{last}']:,.0f}, DP-LinUCB from "
            f"{mean[f'DP-LinUCB/{first}']:,.0f} to {mean[f'DP-LinUCB/{last}']:,.0f}."
        ),
        agreement=(
            "A claim holds if most of its comparisons are clear (99% interval of the paired "
            "differences) and none is clearly the contrary; growth, if the 95% intervals at "
            "both ends are apart; a factor agrees within 25% below and 33% above."
        ),
        rows=rows,
        figures=[
            Figure(
                "Regret by number of users, epsilon = 2",
                "users N",
                f"regret after {rounds:,} rounds",
                [
                    *[line(name, name) for name in NAMES],
                    line("corrected CoLin", "CoLin, corrected, local", True),
                ],
                kind="points",
                caption=_CAPTION + " The rounds are shared evenly among the users.",
            )
        ],
    )


FIGURE_1 = (
    Reproduction(
        name="wang2020-figure-1a",
        paper="wang2020",
        title="Fig. 1 (a): regret over time",
        question="How fast does a recommender learn when reactions are hidden behind noise?",
        claim=(
            "At epsilon = 2, hiding costs regret; without a trusted server it costs about sqrt(N) "
            "times more; DP-CoLin and DP-GOBLin do better than DP-LinUCB."
        ),
        jobs=_over_time("regret"),
        judge=_judge_regret,
    ),
    Reproduction(
        name="wang2020-figure-1b",
        paper="wang2020",
        title="Fig. 1 (b): error of the estimated preferences",
        question="How well does the system come to know what its users like?",
        claim=(
            "Private algorithms converge more slowly than those that hide nothing, and local ones "
            "have a much larger error than those with a trusted server."
        ),
        jobs=_error_jobs,
        judge=_judge_error,
    ),
    Reproduction(
        name="wang2020-figure-1c",
        paper="wang2020",
        title="Fig. 1 (c): number of users",
        question="Does privacy cost more where more users share the same number of rounds?",
        claim=(
            "Regret, and what privacy adds to it, grow with the number N of users; local noise "
            "adds about sqrt(N) times as much as central noise."
        ),
        jobs=_size_jobs,
        judge=_judge_sizes,
    ),
)
