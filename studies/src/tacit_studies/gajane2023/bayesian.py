"""Paper 003, future work 4 and 5: a Bayesian policy, and policies that are told less."""

from __future__ import annotations

from typing import Any

from tacit_studies.gajane2023.settings import list_cells, plot_cells, sliding
from tacit_studies.reproduction import Findings
from tacit_studies.sweep import Outcomes, Sized, Sweep, study

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
_EPSILONS = Sized([0.5, 1.0, 2.0], [1.0])


def _judge(found: Outcomes) -> Findings:
    levels = _EPSILONS.at(found.quick)
    cells = [(case, e) for case in _CASES for e in levels]
    beside = {
        label: [found.mean(f"{w}/Bayesian/{e}") / found.mean(f"{w}/{label}/{e}") for w, e in cells]
        for label in _POLICIES
        if label != "Bayesian"
    }
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
    return found.conclude(
        checks=[below, alike],
        because=f"regret of Bayesian change detection on private bits is {said}"
        + (f". It is above that of the window in: {lost}." if lost else "."),
        rows=list_cells(found, cells, _POLICIES),
        figures=[
            plot_cells(
                f"Final regret at epsilon = {e:g}", found, {w: (w, e) for w in _CASES}, _POLICIES
            )
            for e in levels
        ],
    )


BAYESIAN = study(
    Sweep(
        "{environment}/{policy}/{epsilon}",
        {"environment": _CASES, "policy": _POLICIES, "epsilon": _EPSILONS},
        policy=lambda policy, epsilon: {**policy, "epsilon": epsilon},
        horizon=Sized(100_000, 25_000),
        repetitions=Sized(20, 6),
    ),
    judge=_judge,
    name="gajane2023-bayesian",
    own=True,
)
