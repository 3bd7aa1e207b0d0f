"""Paper 003, future work 3: contexts, by a change detector around LinUCB on privatised rewards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tacit
from tacit_studies.gajane2023.settings import bars_of, rows_of
from tacit_studies.reproduction import (
    OWN,
    Findings,
    Job,
    Reproduction,
    as_expected,
    summarise,
    verdict_of,
)

_SHOWN, _TASTES = 5, 4
_POLICIES: dict[str, dict[str, Any]] = {
    "LinUCB": {"name": "linucb"},
    "LinUCB, half-life 1,000": {"name": "linucb", "half_life": 1000},
    "restarting": {"name": "restarting-linucb"},
}
_CASES = {"four changes": 5, "no change": 1}


def switching_table(seed: int, horizon: int, segments: int) -> Any:
    """Return a table of one person whose taste is drawn anew in each segment.

    An offer has a random direction u and is liked with .5 + .45 u'theta; a constant feature stands for
    the .5.
    """
    from tacit.contextual import recorded_table

    rng = np.random.default_rng([seed, segments])
    tastes = _directions(rng, segments)[np.arange(horizon) * segments // horizon]
    offers = _directions(rng, horizon * _SHOWN).reshape(horizon, _SHOWN, _TASTES)
    contexts = np.concatenate([np.ones((horizon, _SHOWN, 1)), offers], axis=2) / np.sqrt(2)
    rewards = 0.5 + 0.45 * np.einsum("tsd,td->ts", offers, tastes)
    return recorded_table(np.zeros(horizon, np.int64), contexts, rewards, n_users=1)


def _directions(rng: np.random.Generator, n: int) -> Any:
    drawn = rng.standard_normal((n, _TASTES))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def regrets(
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


def _epsilons(quick: bool) -> list[float]:
    return [2.0] if quick else [1.0, 2.0, 4.0]


def _jobs(quick: bool) -> list[Job]:
    return [
        Job(
            f"{case}/{label}/{e}",
            regrets,
            {
                "policy": policy,
                "epsilon": e,
                "horizon": 10_000 if quick else 40_000,
                "segments": segments,
                "repetitions": 4 if quick else 20,
            },
        )
        for case, segments in _CASES.items()
        for label, policy in _POLICIES.items()
        for e in _epsilons(quick)
    ]


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    levels = _epsilons(quick)
    found = {key: summarise(values["regret"]) for key, values in outcomes.items()}

    def ratio(case: str, label: str, e: float) -> float:
        return found[f"{case}/{label}/{e}"].mean / found[f"{case}/restarting/{e}"].mean

    gains = [ratio("four changes", "LinUCB", e) for e in levels]
    fading = [ratio("four changes", "LinUCB, half-life 1,000", e) for e in levels]
    prices = [1 / ratio("no change", "LinUCB", e) for e in levels]
    idle = [
        ratio("no change", "LinUCB, half-life 1,000", e) * p
        for e, p in zip(levels, prices, strict=True)
    ]
    chance = summarise(outcomes[f"four changes/LinUCB/{levels[0]}"]["random_regret"]).mean
    return Findings(
        verdict=OWN,
        because=as_expected(verdict_of([gains[-1] > 1.5, max(prices) < 1.2]))
        + (
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
        rows=rows_of(found, [(case, e) for case in _CASES for e in levels], _POLICIES),
        figures=[
            bars_of(
                f"Final regret: {case}",
                found,
                {f"epsilon = {e:g}": (case, e) for e in levels},
                _POLICIES,
            )
            for case in _CASES
        ],
        privacy="Epsilon for each reward, as LinUCB's: the detector looks at what was told.",
    )


CONTEXTS = Reproduction(
    name="gajane2023-contexts",
    paper="gajane2023",
    title="Future work: contexts in a changing environment",
    question="Can a learner of private answers notice that a taste has changed, whatever is offered?",
    claim="A change detector around LinUCB gains where tastes change and costs little where they do not.",
    jobs=_jobs,
    judge=_judge,
    own=True,
)
