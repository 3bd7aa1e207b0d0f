"""Paper 004, Fig. 1: regret and error of the estimate over time, and regret by number of users."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tacit_studies.estimates import summarise
from tacit_studies.reproduction import Figure, Findings, Row
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import plot_points
from tacit_studies.wang2020.claims import compare, count_held, decide, holds, list_claims
from tacit_studies.wang2020.settings import (
    COUNTERPARTS,
    NAMES,
    PLAIN,
    SYNTHETIC,
    corrected,
    curve,
    final,
    final_line,
    list_policies,
    play_runs,
)

_SHARED = ("CoLin", "GOBLin")
_POLICIES = {**list_policies(2.0), "corrected GOBLin": corrected("GOBLin", 2.0)}
_CAPTION = "Means and 95% bands in the environment fitted to Table 1."
_SHARING = "DP-CoLin and DP-GOBLin below DP-LinUCB"


def measure_zero(repetitions: int) -> list[float]:
    """Return how far an estimate that has learned nothing is from the truth."""
    from tacit.contextual import Fitted

    tables = [Fitted().table(4, repetition, 1) for repetition in range(repetitions)]
    return [float(np.linalg.norm(table.preferences)) for table in tables]


def _claims(values: Mapping[str, list[float]]) -> dict[str, list[int]]:
    return {
        "private above not private": [compare(values[COUNTERPARTS[n]], values[n]) for n in NAMES],
        "local above central": [compare(values[f"DP-{a}"], values[f"LDP-{a}"]) for a in _SHARED],
        _SHARING: [compare(values[n], values["DP-LinUCB"]) for n in NAMES[1:3]],
    }


def _is_near(factor: float, n_users: int) -> bool:
    return 0.75 < factor / math.sqrt(n_users) < 1.33


def _judge_regret(outcomes: Outcomes) -> Findings:
    values = {name: final(outcome) for name, outcome in outcomes.items()}
    found = {name: summarise(v) for name, v in values.items()}
    mean = {name: each.mean for name, each in found.items()}
    claims = _claims(values)
    factors = {a: (mean[f"LDP-{a}"] - mean[a]) / (mean[f"DP-{a}"] - mean[a]) for a in _SHARED}
    near = all(_is_near(factor, 10) for factor in factors.values())
    rounds = outcomes["CoLin"]["rounds"][-1]
    root = math.sqrt(10)
    return outcomes.conclude(
        verdict=decide([*[holds(c) for c in claims.values()], near]),
        because=(
            f"After {rounds:,} rounds at epsilon = 2: CoLin {mean['CoLin']:,.0f}, DP-CoLin "
            f"{mean['DP-CoLin']:,.0f}, LDP-CoLin {mean['LDP-CoLin']:,.0f}; but "
            f"DP-LinUCB {mean['DP-LinUCB']:,.0f}, so sharing "
            f"{'lowers' if holds(claims[_SHARING]) else 'does not lower'}"
            " the price here. Local noise adds "
            f"{factors['CoLin']:.1f} times the regret that central noise adds, where the paper "
            f"expects {root:.1f}. Sound noise on single rewards, without a trusted server: CoLin "
            f"{mean['corrected CoLin']:,.0f}."
        ),
        rows=[
            *list_claims(claims),
            *[
                Row(
                    f"{a}: regret added by local noise, times that of central",
                    f"about {root:.1f}",
                    f"{factor:.2f}",
                    agrees=near,
                )
                for a, factor in factors.items()
            ],
            *[Row(f"{name}, {rounds:,} rounds", "", s.text()) for name, s in found.items()],
        ],
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
                    *[curve(f"{a}, corrected, local", outcomes[f"corrected {a}"]) for a in _SHARED],
                ],
                caption=_CAPTION,
            ),
        ],
    )


def _judge_error(outcomes: Outcomes) -> Findings:
    measure = "parameter_error"
    logs = {n: np.log(final(outcomes[n], measure)).tolist() for n in _POLICIES}
    typical = {name: math.exp(float(np.mean(values))) for name, values in logs.items()}
    claims = {words: c for words, c in _claims(logs).items() if words != _SHARING}
    rounds = outcomes["CoLin"]["rounds"][-1]
    shown = {
        "CoLin": ("CoLin, not private", True),
        **{n: (n, False) for n in ("DP-LinUCB", "DP-CoLin", "LDP-CoLin", "LDP-GOBLin")},
        "corrected CoLin": ("CoLin, corrected, local", True),
    }
    return outcomes.conclude(
        verdict=decide(holds(c) for c in claims.values()),
        because=(
            f"After {rounds:,} rounds the distance to the truth is {typical['CoLin']:.2f} for "
            f"CoLin, {typical['DP-CoLin']:.1f} for DP-CoLin and {typical['LDP-CoLin']:.1f} for "
            f"LDP-CoLin; an estimate of zero has {float(np.mean(outcomes['zero'])):.1f}. With sound noise on "
            f"single rewards it is {typical['corrected CoLin']:.2f}."
        ),
        rows=[
            *list_claims(claims),
            *[Row(f"{name}, {rounds:,} rounds", "", f"{v:.3g}") for name, v in typical.items()],
        ],
        figures=[
            Figure(
                "Distance of the estimate from the truth, epsilon = 2",
                "round",
                "distance, all users together",
                [
                    curve(label, outcomes[name], measure, geometric=True, dashed=dashed)
                    for name, (label, dashed) in shown.items()
                ],
                y_log=True,
                caption="Geometric means and 95% bands: in some environments there are features that no "
                "item has, where noise is never averaged out.",
            )
        ],
    )


_SIZES = Sized([5, 10, 20, 30, 50], [5, 20])


def _judge_sizes(outcomes: Outcomes) -> Findings:
    Ns = _SIZES.at(outcomes.quick)
    first, last = Ns[0], Ns[-1]
    rounds = outcomes[f"CoLin/{first}"]["rounds"][-1]
    values = {key: final(outcome) for key, outcome in outcomes.items()}
    mean = {key: float(np.mean(v)) for key, v in values.items()}
    added = {
        f"{name}/{N}": np.subtract(
            values[f"{name}/{N}"], values[f"{COUNTERPARTS[name]}/{N}"]
        ).tolist()
        for name in NAMES[1:]
        for N in Ns
    }

    def grown(runs: Mapping[str, list[float]], name: str) -> int:
        """Compare the smallest and the largest N, whose environments are not paired."""
        few, many = (summarise(runs[f"{name}/{N}"]) for N in (first, last))
        return int(many.low > few.high) - int(many.high < few.low)

    factor = {
        (a, N): (mean[f"LDP-{a}/{N}"] - mean[f"{a}/{N}"]) / (mean[f"DP-{a}/{N}"] - mean[f"{a}/{N}"])
        for a in _SHARED
        for N in Ns
    }
    near = {(a, N): _is_near(f, N) for (a, N), f in factor.items()}
    claims = {
        f"regret grows from N = {first} to {last}": [grown(values, name) for name in NAMES[1:]],
        f"added regret grows from N = {first} to {last}": [grown(added, n) for n in NAMES[1:]],
        "local above central": [
            compare(values[f"DP-{a}/{N}"], values[f"LDP-{a}/{N}"]) for a in _SHARED for N in Ns
        ],
    }
    lines = {**{name: name for name in NAMES}, "corrected CoLin": "CoLin, corrected, local"}
    return outcomes.conclude(
        verdict=decide([*map(holds, claims.values()), all(near.values())]),
        because=(
            f"From N = {first} to {last} the regret of algorithms that share clearly grows in "
            f"{count_held(next(iter(claims.values())))}. "
            f"At N = {last} local noise adds {factor['CoLin', last]:.1f} (CoLin) and "
            f"{factor['GOBLin', last]:.1f} (GOBLin) times the regret that central noise adds; "
            f"sqrt(N) is {math.sqrt(last):.1f}. DP-CoLin goes from "
            f"{mean[f'DP-CoLin/{first}']:,.0f} to {mean[f'DP-CoLin/{last}']:,.0f}, DP-LinUCB from "
            f"{mean[f'DP-LinUCB/{first}']:,.0f} to {mean[f'DP-LinUCB/{last}']:,.0f}."
        ),
        rows=[
            *list_claims(claims, "always"),
            *[
                Row(
                    f"{a}, N = {N}: added by local, times that of central",
                    f"about {math.sqrt(N):.1f}",
                    f"{f:.2f}",
                    agrees=near[a, N],
                )
                for (a, N), f in factor.items()
            ],
            *[
                Row(key.replace("/", ", N = "), "", summarise(v).text())
                for key, v in values.items()
            ],
        ],
        figures=[
            plot_points(
                "Regret by number of users, epsilon = 2",
                "users N",
                f"regret after {rounds:,} rounds",
                [
                    final_line(label, Ns, [values[f"{n}/{N}"] for N in Ns], dashed=n != label)
                    for n, label in lines.items()
                ],
                log="",
                caption=_CAPTION + " The rounds are shared evenly among the users.",
            )
        ],
    )


def _over_time(measure: str, quick_horizon: int) -> Sweep:
    return Sweep(
        "{policy}",
        {"policy": _POLICIES},
        play_runs,
        environment=SYNTHETIC,
        horizon=Sized(30_000, quick_horizon),
        repetitions=Sized(20, 3),
        measures=[measure],
        points=30,
    )


FIGURE_1 = (
    study(_over_time("regret", 10_000), judge=_judge_regret, name="wang2020-figure-1a"),
    study(
        _over_time("parameter_error", 5_000),
        Sweep("zero", {}, measure_zero, repetitions=Sized(20, 3)),
        judge=_judge_error,
        name="wang2020-figure-1b",
    ),
    study(
        Sweep(
            "{policy}/{N}",
            {"policy": list_policies(2.0), "N": _SIZES},
            play_runs,
            environment=lambda N: {**SYNTHETIC, "n_users": N},
            horizon=Sized(10_000, 3_000),
            repetitions=Sized(12, 6),
        ),
        judge=_judge_sizes,
        name="wang2020-figure-1c",
    ),
)
