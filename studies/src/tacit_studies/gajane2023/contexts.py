"""Paper 003, future work 3: contexts, by a change detector around LinUCB on privatised rewards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tacit
from tacit_studies.gajane2023.settings import list_cells, plot_cells
from tacit_studies.reproduction import Findings
from tacit_studies.sweep import Outcomes, Sized, Sweep, study

_SHOWN, _TASTES = 5, 4
_POLICIES: dict[str, dict[str, Any]] = {
    "LinUCB": {"name": "linucb"},
    "LinUCB, half-life 1,000": {"name": "linucb", "half_life": 1000},
    "restarting": {"name": "restarting-linucb"},
}
_CASES = {"four changes": 5, "no change": 1}
"""In how many segments."""
_EPSILONS = Sized([1.0, 2.0, 4.0], [2.0])


def switching_table(seed: int, horizon: int, segments: int) -> Any:
    """Return a table of one person whose taste is drawn anew in each segment.

    An offer has a random direction u and is liked with .5 + .45 u'theta; a constant feature stands for
    the .5.
    """
    from tacit.contextual import recorded_table

    rng = np.random.default_rng([seed, segments])
    tastes = _draw_directions(rng, segments)[np.arange(horizon) * segments // horizon]
    offers = _draw_directions(rng, horizon * _SHOWN).reshape(horizon, _SHOWN, _TASTES)
    contexts = np.concatenate([np.ones((horizon, _SHOWN, 1)), offers], axis=2) / np.sqrt(2)
    rewards = 0.5 + 0.45 * np.einsum("tsd,td->ts", offers, tastes)
    return recorded_table(np.zeros(horizon, np.int64), contexts, rewards, n_users=1)


def _draw_directions(rng: np.random.Generator, n: int) -> Any:
    drawn = rng.standard_normal((n, _TASTES))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def measure_regrets(
    policy: Mapping[str, Any], epsilon: float, horizon: int, segments: int, repetitions: int
) -> dict[str, list[float]]:
    """Return the final regret of each repetition, and that of offers drawn at random."""
    from tacit.contextual import Synthetic
    from tacit.simulation import play

    place = Synthetic(n_users=1, dimension=_TASTES + 1)
    spec = {**policy, "epsilon": epsilon, "reward": "bounded"}
    described, _ = tacit.build(spec, place, horizon)
    found: dict[str, list[float]] = {"regret": [], "random_regret": []}
    for repetition in range(repetitions):
        table = switching_table(repetition, horizon, segments)
        trace = play(described, place, horizon=horizon, table=table, repetition=repetition).trace
        for name, values in found.items():
            values.append(float(trace.measures[-1, place.measures.index(name)]))
    return found


def _judge(found: Outcomes) -> Findings:
    levels = _EPSILONS.at(found.quick)

    def mean(case: str, label: str, e: float) -> float:
        return found.mean(f"{case}/{label}/{e}", "regret")

    def ratios(case: str, label: str, beside: str) -> list[float]:
        return [mean(case, label, e) / mean(case, beside, e) for e in levels]

    gains = ratios("four changes", "LinUCB", "restarting")
    fading = ratios("four changes", "LinUCB, half-life 1,000", "restarting")
    prices = ratios("no change", "restarting", "LinUCB")
    idle = ratios("no change", "LinUCB, half-life 1,000", "LinUCB")
    chance = found.mean(f"four changes/LinUCB/{levels[0]}", "random_regret")
    return found.conclude(
        checks=[gains[-1] > 1.5, max(prices) < 1.2],
        because=(
            "where a taste changes four times, LinUCB without the detector has "
            + ", ".join(f"{g:.1f}" for g in gains)
            + " times the regret and one that forgets steadily "
            + ", ".join(f"{g:.1f}" for g in fading)
            + " times (epsilon = "
            + ", ".join(f"{each:g}" for each in levels)
            + f"); where nothing changes the detector costs a factor of at most {max(prices):.2f}, "
            f"steady forgetting one of {min(idle):.1f} to {max(idle):.1f}. "
            f"Random offers: {chance:,.0f}."
        ),
        rows=list_cells(found, [(c, e) for c in _CASES for e in levels], _POLICIES, "regret"),
        figures=[
            plot_cells(
                f"Final regret: {case}",
                found,
                {f"epsilon = {e:g}": (case, e) for e in levels},
                _POLICIES,
                "regret",
            )
            for case in _CASES
        ],
    )


CONTEXTS = study(
    Sweep(
        "{segments}/{policy}/{epsilon}",
        {"segments": _CASES, "policy": _POLICIES, "epsilon": _EPSILONS},
        measure_regrets,
        horizon=Sized(40_000, 10_000),
        repetitions=Sized(20, 4),
    ),
    judge=_judge,
    name="gajane2023-contexts",
    own=True,
)
