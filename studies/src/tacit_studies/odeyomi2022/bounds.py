"""Paper 000, Section VI: the bounds (18) to (20) on several networks, beside what is measured."""

from __future__ import annotations

from typing import Any

from tacit_studies.estimates import Summary, summarise
from tacit_studies.odeyomi2022.settings import play_runs
from tacit_studies.reproduction import Figure, Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study

_NETWORKS = ("one agent", "three agents", "ring of 12", "star of 12", "12, all linked")
_PLAYED = Sized(_NETWORKS, _NETWORKS[:2])
_CELLS = {
    f"{T}/{epsilon:g}": (T, epsilon)
    for T, epsilon in ((500, 0.1), (5_000, 1.0), (50_000, 1.0), (50_000, 10.0))
}
"""Horizons and epsilons."""
_LONGEST = 50_000
_DOMINANCE = 0.8
NOTHING, HOLDS, BROKEN, CLOSE = (
    "exceeds T and says nothing",
    "holds",
    "is broken",
    "is too close to call",
)


def play_with_bounds(
    network: str, horizon: int, epsilon: float, repetitions: int
) -> dict[str, Any]:
    """Play the three algorithms as published, with theory's rates; return regrets and bounds."""
    from tacit.diffusion import ChangingTruth, regret_bounds
    from tacit.graphs import complete, ring, star

    places: dict[str, dict[str, Any]] = {
        "one agent": {"network": ((1.0,),)},
        "three agents": {},
        "ring of 12": {"network": ring(12)},
        "star of 12": {"network": star(12)},
        "12, all linked": {"network": complete(12)},
    }
    environment = ChangingTruth(dominance=_DOMINANCE, **places[network])
    private = {"variant": "published", "epsilon": epsilon}
    policies: dict[str, dict[str, Any]] = {
        "3": {"name": "diffusion-bandit"},
        "1": {"name": "diffusion-outsiders", **private},
        "2": {"name": "diffusion-spies", **private},
    }
    found: dict[str, Any] = {}
    for key, policy in policies.items():
        chosen = {**policy, "rates": "theory"}
        found[key] = play_runs(chosen, environment, horizon, repetitions)["regret"]
    bounds = regret_bounds(environment, horizon=horizon, epsilon=epsilon)
    measured = regret_bounds(
        environment, horizon=horizon, epsilon=epsilon, base=summarise(found["3"]).mean
    )
    return {**found, **bounds._asdict(), "wrapped_measured": measured.wrapped}


def _settings(found: Outcomes) -> list[tuple[str, int, float, dict[str, Any]]]:
    """Return network, horizon and epsilon of every game, and what it returned."""
    return [
        (network, T, epsilon, found[f"{network}/{key}"])
        for network in _PLAYED.at(found.quick)
        for key, (T, epsilon) in _CELLS.items()
    ]


def _standing(found: Summary, bound: float, T: int) -> str:
    """Say what a bound is worth beside a measured regret."""
    if bound >= T:
        return NOTHING
    if found.low > bound:
        return BROKEN
    return HOLDS if found.high <= bound else CLOSE


_EQUATIONS = {"eq. 19": ("1", "outsiders"), "eq. 20": ("2", "spies")}


def _judge(outcomes: Outcomes) -> Findings:
    rows, standing = [], []
    for network, T, epsilon, outcome in _settings(outcomes):
        found = {key: summarise(outcome[key]) for key in ("1", "2", "3")}
        label = f"{network}, T = {T:,}, epsilon = {epsilon:g}"
        for equation, (key, name) in _EQUATIONS.items():
            said = _standing(found[key], outcome[name], T)
            standing.append((equation, said, found[key].mean / outcome[name], label))
            rows.append(
                Row(
                    f"{label}: Algorithm {key}, {equation}",
                    f"<= {outcome[name]:,.0f}",
                    f"{found[key].text()}; the bound {said}",
                    agrees={HOLDS: True, BROKEN: False}.get(said),
                )
            )
        rows.append(
            Row(
                f"{label}: Algorithm 1, eq. 18 with the bound (26) of Algorithm 3, and with its regret",
                f"<= {outcome['wrapped']:,.0f} and {outcome['wrapped_measured']:,.0f}",
                found["1"].text(),
            )
        )
        rows.append(
            Row(
                f"{label}: Algorithm 3, eq. 26, and its order sqrt(alpha T ln M)",
                f"<= {outcome['base']:,.0f}, {outcome['base_order']:,.0f}",
                found["3"].text(),
            )
        )
    return outcomes.conclude(
        checks=[
            not any(said == BROKEN for name, said, _, _ in standing if name == equation)
            for equation in _EQUATIONS
        ],
        because=_because(standing),
        rows=rows,
        figures=[_figure(outcomes)],
    )


def _because(standing: list[tuple[str, str, float, str]]) -> str:
    parts = []
    for equation in _EQUATIONS:
        of_it = [each for each in standing if each[0] == equation]
        count = {said: sum(each[1] == said for each in of_it) for said in (NOTHING, HOLDS, BROKEN)}
        words = (
            f"{equation} exceeds T in {count[NOTHING]} of {len(of_it)} settings and says nothing, holds "
            f"in {count[HOLDS]} and is broken in {count[BROKEN]}"
        )
        broken = [each for each in of_it if each[1] == BROKEN]
        if broken:
            worst = max(broken, key=lambda each: each[2])
            words += f" (most at {worst[3]}: {worst[2]:.2f} times the bound)"
        parts.append(words)
    return (
        "; ".join(parts)
        + ". Squeezing noisy losses divides what is learned from by 2b + 1, and the bounds count an "
        "unknown constant of Algorithm 3 as 1."
    )


def _figure(outcomes: Outcomes) -> Figure:
    settings = [each for each in _settings(outcomes) if each[1] == _LONGEST]
    places = [float(i) for i in range(len(settings))]
    share = {
        equation: [summarise(each[key]).mean / each[name] for _, _, _, each in settings]
        for equation, (key, name) in _EQUATIONS.items()
    }
    return Figure(
        "Regret in units of its bound",
        "",
        "measured regret / bound; above 1 it is broken",
        [Series(equation, places, values) for equation, values in share.items()],
        kind="bar",
        ticks=[f"{network}, {epsilon:g}" for network, _, epsilon, _ in settings],
        caption=f"Network and epsilon, T = {_LONGEST:,}; as published, with theory's rates.",
    )


BOUNDS = study(
    Sweep(
        "{network}/{cell}",
        {"network": _PLAYED, "cell": _CELLS},
        play_with_bounds,
        horizon=lambda cell: cell[0],
        epsilon=lambda cell: cell[1],
        repetitions=Sized(20, 5),
    ),
    judge=_judge,
    name="odeyomi2022-bounds",
)
