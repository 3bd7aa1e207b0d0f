"""Paper 003, future work 4 and 5: a Bayesian policy, and policies that are told less."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit_studies.gajane2023.settings import bars_of, rows_of, sliding
from tacit_studies.reproduction import (
    OWN,
    Findings,
    Job,
    Reproduction,
    as_expected,
    summarise,
    verdict_of,
)
from tacit_studies.tools import final_values

_HORIZON = 100_000
_CASES: dict[str, dict[str, Any]] = {
    "rotating, 2 arms": {"name": "rotating", "n_arms": 2},
    "rotating, 10 arms": {"name": "rotating", "n_arms": 10},
    "riser, 2 arms": {"name": "riser", "n_arms": 2},
    "no change, 10 arms": {"name": "rotating", "n_arms": 10, "segments": 1},
}
_POLICIES: dict[str, dict[str, Any]] = {
    "window, told L": sliding(),
    "likelihood ratio": {"name": "glr-klucb-cf"},
    "Bayesian": {"name": "bocpd-klucb-cf"},
    "P-IMED-CF": {"name": "p-imed-cf"},
}

_IN_WORDS = {"window, told L": "a window that is told L", "likelihood ratio": "a likelihood ratio"}


def _epsilons(quick: bool) -> list[float]:
    return [1.0] if quick else [0.5, 1.0, 2.0]


def _jobs(quick: bool) -> list[Job]:
    return [
        Job(
            f"{case}/{label}/{e}",
            final_values,
            {
                "policy": {**policy, "epsilon": e},
                "environment": environment,
                "horizon": _HORIZON // 4 if quick else _HORIZON,
                "repetitions": 6 if quick else 20,
            },
        )
        for case, environment in _CASES.items()
        for label, policy in _POLICIES.items()
        for e in _epsilons(quick)
    ]


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    levels = _epsilons(quick)
    found = {key: summarise(values) for key, values in outcomes.items()}
    cells = [(case, e) for case in _CASES for e in levels]

    def ratio(label: str) -> list[float]:
        return [found[f"{w}/Bayesian/{e}"].mean / found[f"{w}/{label}/{e}"].mean for w, e in cells]

    beside = {label: ratio(label) for label in _POLICIES if label != "Bayesian"}
    below = all(r < 1 for r in beside["window, told L"])
    alike = all(0.5 < r < 2 for r in beside["likelihood ratio"])
    said = "; ".join(
        f"{min(rs):.2f} to {max(rs):.2f} times that of {_IN_WORDS.get(label, label)}"
        for label, rs in beside.items()
    )
    lost = ", ".join(
        f"{w} at epsilon = {e:g}"
        for (w, e), r in zip(cells, beside["window, told L"], strict=True)
        if r >= 1
    )
    return Findings(
        verdict=OWN,
        because=as_expected(verdict_of([below, alike]))
        + f"regret of Bayesian change detection on private bits is {said}"
        + (f". It is above that of the window in: {lost}." if lost else "."),
        rows=rows_of(found, cells, _POLICIES),
        figures=[
            bars_of(
                f"Final regret at epsilon = {e:g}", found, {w: (w, e) for w in _CASES}, _POLICIES
            )
            for e in levels
        ],
    )


BAYESIAN = Reproduction(
    name="gajane2023-bayesian",
    paper="gajane2023",
    title="Future work: a Bayesian policy",
    question="Can a learner find changes by Bayes' rule in answers that were randomised?",
    claim="It beats a window that is told of the changes, and is about as good as a likelihood ratio.",
    jobs=_jobs,
    judge=_judge,
    own=True,
)
