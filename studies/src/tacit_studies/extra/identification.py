"""Which arm is best, how sure, and what privacy costs: the question of A/B tests and trials."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

import tacit
from tacit_studies.estimates import Summary, summarise
from tacit_studies.reproduction import Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import flat, plot_points

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
_EPSILONS = Sized([0.1, 0.3, 1.0, 3.0, 10.0], [0.3, 1.0, 3.0])


def count_rounds(
    policy: Mapping[str, Any], means: list[float], repetitions: int
) -> dict[str, list[float]]:
    """Return when each repetition named an arm (the limit if never), whether it did, and a wrong one."""
    from tacit.arms import Bernoulli

    built, environment = tacit.build(policy, Bernoulli(means=tuple(means)), _LIMIT)
    found = tacit.identify(
        built, environment, confidence=_CONFIDENCE, limit=_LIMIT, repetitions=repetitions, seed=1
    )
    wrong = found.sure & (found.arms != int(np.argmax(means)))
    return {
        "rounds": found.rounds.tolist(),
        "named": found.sure.astype(float).tolist(),
        "wrong": wrong.astype(float).tolist(),
    }


def _list_policies(epsilons: list[float]) -> dict[str, dict[str, Any]]:
    private = {f"{n}/{e:g}": {"name": n, "epsilon": e} for n in _TRUSTS for e in epsilons}
    return {**private, "top-two-cf/none": {"name": "top-two-cf"}}


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


def _judge(outcomes: Outcomes) -> Findings:
    epsilons = _EPSILONS.at(outcomes.quick)
    runs = sum(len(found["named"]) for found in outcomes.values())
    named, wrong = (
        int(sum(sum(found[part]) for found in outcomes.values())) for part in ("named", "wrong")
    )
    allowed = named * (1 - _CONFIDENCE)
    few = wrong <= allowed + 5 * math.sqrt(allowed * _CONFIDENCE)
    rows, figures, falls = [], [], []
    shares: dict[str, list[float]] = {label: [] for label in _TRUSTS.values()}
    for problem, (words, _) in _PROBLEMS.items():
        plain = Needed.of(outcomes[f"{problem}/top-two-cf/none"])
        rows.append(Row(f"{words}, not private: rounds", "", plain.text()))
        series = []
        for name, label in _TRUSTS.items():
            found = {e: Needed.of(outcomes[f"{problem}/{name}/{e:g}"]) for e in epsilons}
            decided = {e: each.rounds for e, each in found.items() if not each.undecided}
            series.append(Series.of(label, list(decided), list(decided.values())))
            falls.append(found[epsilons[-1]].rounds.mean < found[epsilons[0]].rounds.mean)
            shares[label].append(found[1.0].rounds.mean / plain.rounds.mean)
            rows += [
                Row(f"{words}, {label}, epsilon = {e:g}: rounds", "", each.text())
                for e, each in found.items()
            ]
        series.append(flat("not private", epsilons, plain.rounds.mean))
        figures.append(
            plot_points(
                f"Rounds until {100 * _CONFIDENCE:.0f}% sure: {words}",
                "epsilon",
                "rounds",
                series,
                caption=(
                    "Means and 95% intervals. A point is left out where a run was not decided in "
                    f"{_LIMIT:,} rounds."
                ),
            )
        )
    central, local = map(max, shares.values())
    return outcomes.conclude(
        checks=[few, *falls],
        because=(
            f"of {named:,} runs that named an arm {wrong:,} named a wrong one, where {allowed:.0f} would be "
            f"allowed; {runs - named:,} others were not decided in {_LIMIT:,} rounds. At epsilon = 1 being "
            f"as sure takes at most {central:.1f} times the rounds with a trusted server and {local:.1f} "
            "times with randomized bits."
        ),
        rows=rows,
        figures=figures,
    )


IDENTIFICATION = study(
    Sweep(
        "{problem}/{policy}",
        {
            "problem": _PROBLEMS,
            "policy": Sized(_list_policies(_EPSILONS.full), _list_policies(_EPSILONS.quick)),
        },
        count_rounds,
        means=lambda problem: problem[1],
        repetitions=Sized(100, 10),
    ),
    judge=_judge,
    name="identification",
    own=True,
)
