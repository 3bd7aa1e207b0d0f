"""Which arm is best, how sure, and what privacy costs: the question of A/B tests and trials."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.papers.reproduction import (
    OWN,
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    as_expected,
    summarise,
    verdict_of,
)

__all__ = ["IDENTIFICATION"]

_CONFIDENCE = 0.95
_LIMIT = 3_000_000
_PROBLEMS = {
    "two": ("an A/B test, means .5 and .55", [0.5, 0.55]),
    "five": ("five arms, means .3 to .6", [0.3, 0.4, 0.45, 0.5, 0.6]),
}
_TRUSTS = {
    "dp-top-two": "central: the server is trusted",
    "top-two-cf": "local: each bit is randomized",
}


def _epsilons(quick: bool) -> list[float]:
    return [0.3, 1.0, 3.0] if quick else [0.1, 0.3, 1.0, 3.0, 10.0]


def rounds_until_sure(
    policy: Mapping[str, Any], means: list[float], repetitions: int
) -> dict[str, list[float]]:
    """Return when each repetition was sure of an arm (the limit if never), and whether it was wrong."""
    from tacit.arms import Bernoulli
    from tacit.registry import build, policy_named
    from tacit.simulation import identify

    spec = dict(policy)
    built = build(policy_named(spec.pop("name")), {"n_arms": len(means)}, spec)
    found = identify(
        built,
        Bernoulli(means=tuple(means)),
        confidence=_CONFIDENCE,
        limit=_LIMIT,
        repetitions=repetitions,
        seed=1,
    )
    wrong = found.sure & (found.arms != int(np.argmax(means)))
    return {"rounds": found.rounds.tolist(), "wrong": wrong.astype(float).tolist()}


def _jobs(quick: bool) -> list[Job]:
    n = 10 if quick else 100
    specs = {
        f"{name}/{e:g}": {"name": name, "epsilon": e} for name in _TRUSTS for e in _epsilons(quick)
    }
    specs["top-two-cf/none"] = {"name": "top-two-cf"}
    return [
        Job(
            f"{problem}/{key}",
            rounds_until_sure,
            {"policy": spec, "means": means, "repetitions": n},
        )
        for problem, (_, means) in _PROBLEMS.items()
        for key, spec in specs.items()
    ]


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    epsilons = _epsilons(quick)
    wrong = [w for found in outcomes.values() for w in found["wrong"]]
    allowed = len(wrong) * (1 - _CONFIDENCE)
    few = sum(wrong) <= allowed + 5 * math.sqrt(allowed * _CONFIDENCE)
    rows, figures, shares, falls = [], [], [], []
    for problem, (words, _) in _PROBLEMS.items():
        plain = summarise(outcomes[f"{problem}/top-two-cf/none"]["rounds"])
        rows.append(Row(f"{words}, not private: rounds", "", plain.text()))
        series = []
        for name, label in _TRUSTS.items():
            found = [summarise(outcomes[f"{problem}/{name}/{e:g}"]["rounds"]) for e in epsilons]
            series.append(Series.of(label, epsilons, found))
            falls.append(found[-1].mean < found[0].mean)
            shares.append((label, [s.mean / plain.mean for s in found]))
            rows += [
                Row(f"{words}, {label}, epsilon = {e:g}: rounds", "", s.text())
                for e, s in zip(epsilons, found, strict=True)
            ]
        flat = [plain.mean] * len(epsilons)
        series.append(Series("not private", epsilons, flat, dashed=True))
        figures.append(
            Figure(
                f"Rounds until {100 * _CONFIDENCE:.0f}% sure: {words}",
                "epsilon",
                "rounds",
                series,
                x_log=True,
                y_log=True,
                kind="points",
                caption=f"Means and 95% intervals; given up after {_LIMIT:,} rounds.",
            )
        )
    one = epsilons.index(1.0)
    central, local = (
        max(found[one] for label, found in shares if label == trust) for trust in _TRUSTS.values()
    )
    return Findings(
        verdict=OWN,
        because=as_expected(verdict_of([few, *falls]))
        + (
            f"wrong arms were named in {sum(wrong):.0f} of {len(wrong):,} runs, where {allowed:.0f} would be "
            f"allowed. At epsilon = 1 being as sure takes at most {central:.1f} times the rounds with a "
            f"trusted server and {local:.1f} times with randomized bits."
        ),
        rows=rows,
        figures=figures,
        privacy="Pure epsilon for one reward, the time of stopping and the arm named included.",
    )


IDENTIFICATION = Reproduction(
    name="identification",
    paper="",
    title="Which arm is best, how sure, at what cost in privacy",
    question="How many more answers does a private A/B test or trial need to be as sure of its winner?",
    claim="A private test names its winner as surely as a plain one, and only takes longer.",
    own=True,
    jobs=_jobs,
    judge=_judge,
)
