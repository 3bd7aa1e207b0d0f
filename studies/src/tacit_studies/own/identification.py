"""Which arm is best, how sure, and what privacy costs: the question of A/B tests and trials."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

import tacit
from tacit_studies.reproduction import (
    OWN,
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    Summary,
    as_expected,
    summarise,
    verdict_of,
)

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
    """Return when each repetition named an arm (the limit if never), whether it did, and a wrong one."""
    from tacit.arms import Bernoulli

    built, environment = tacit.build(policy, Bernoulli(means=tuple(means)), _LIMIT)
    found = tacit.identify(
        built,
        environment,
        confidence=_CONFIDENCE,
        limit=_LIMIT,
        repetitions=repetitions,
        seed=1,
    )
    wrong = found.sure & (found.arms != int(np.argmax(means)))
    return {
        "rounds": found.rounds.tolist(),
        "named": found.sure.astype(float).tolist(),
        "wrong": wrong.astype(float).tolist(),
    }


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


class Needed(NamedTuple):
    """How many rounds runs needed to name an arm; those that named none are counted, not averaged away."""

    rounds: Summary
    """Runs without an arm count as the limit, so that the mean is at most too small."""
    undecided: int

    @classmethod
    def of(cls, found: Mapping[str, list[float]]) -> Needed:
        """Return what was found in the repetitions of a job."""
        undecided = sum(named == 0.0 for named in found["named"])
        return cls(summarise(found["rounds"]), undecided)

    def text(self) -> str:
        """Return the mean, or that runs were not decided.

        Examples
        --------
        >>> Needed(summarise([3e6, 3e6]), 2).text()
        'not decided in 3,000,000 (2 of 2 runs)'
        >>> Needed(summarise([2e6, 3e6]), 1).text()
        'at least 2,500,000 ± 500,000, not decided in 3,000,000 (1 of 2 runs)'
        """
        if not self.undecided:
            return self.rounds.text()
        some = "" if self.undecided == self.rounds.n else f"at least {self.rounds.text()}, "
        runs = f"{self.undecided} of {self.rounds.n} runs"
        return f"{some}not decided in {_LIMIT:,} ({runs})"


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    epsilons = _epsilons(quick)
    runs = sum(len(found["named"]) for found in outcomes.values())
    named, wrong = (
        int(sum(sum(found[part]) for found in outcomes.values())) for part in ("named", "wrong")
    )
    allowed = named * (1 - _CONFIDENCE)
    few = wrong <= allowed + 5 * math.sqrt(allowed * _CONFIDENCE)
    rows, figures, shares, falls = [], [], [], []
    for problem, (words, _) in _PROBLEMS.items():
        plain = Needed.of(outcomes[f"{problem}/top-two-cf/none"])
        rows.append(Row(f"{words}, not private: rounds", "", plain.text()))
        series = []
        for name, label in _TRUSTS.items():
            found = {e: Needed.of(outcomes[f"{problem}/{name}/{e:g}"]) for e in epsilons}
            decided = {e: each.rounds for e, each in found.items() if not each.undecided}
            series.append(Series.of(label, list(decided), list(decided.values())))
            falls.append(found[epsilons[-1]].rounds.mean < found[epsilons[0]].rounds.mean)
            shares.append((label, found[1.0].rounds.mean / plain.rounds.mean))
            rows += [
                Row(f"{words}, {label}, epsilon = {e:g}: rounds", "", each.text())
                for e, each in found.items()
            ]
        flat = [plain.rounds.mean] * len(epsilons)
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
                caption=(
                    "Means and 95% intervals. A point is left out where a run was not decided in "
                    f"{_LIMIT:,} rounds."
                ),
            )
        )
    central, local = (
        max(share for label, share in shares if label == trust) for trust in _TRUSTS.values()
    )
    return Findings(
        verdict=OWN,
        because=as_expected(verdict_of([few, *falls]))
        + (
            f"of {named:,} runs that named an arm {wrong:,} named a wrong one, where {allowed:.0f} would be "
            f"allowed; {runs - named:,} others were not decided in {_LIMIT:,} rounds. At epsilon = 1 being "
            f"as sure takes at most {central:.1f} times the rounds with a trusted server and {local:.1f} "
            "times with randomized bits."
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
