"""Paper 001, Section 3.3, footnote 3: whether it matters what agents adopt at first."""

from __future__ import annotations

from typing import Any

from tacit_studies.reproduction import Findings, Row
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tao2022.settings import crowd, options
from tacit_studies.tools import plot_points

_ALIKE, _WORST, _NOBODY = "all options alike", "all adopt the worst", "nobody adopts anything"
_STARTS: dict[str, dict[str, Any]] = {
    _ALIKE: {},
    _WORST: {"popularity": [0.0] * 9 + [1.0]},
    _NOBODY: {"popularity": [0.0] * 10},
    "all adopt the best": {"popularity": [1.0] + [0.0] * 9},
}
_RULES: dict[str, dict[str, Any]] = {
    "as published, not private": crowd(variant="published", epsilon=float("inf")),
    "as published, epsilon = 1": crowd(variant="published", epsilon=1.0),
    "recommended, epsilon = 1": crowd(epsilon=1.0),
}
_ROUNDS = Sized((500, 2_000, 8_000), (125, 500, 2_000))
_NEAR = 1.25


def _judge(found: Outcomes) -> Findings:
    rounds = _ROUNDS.at(found.quick)
    last = rounds[-1]
    end = {r: {s: found.mean(f"{r}/{s}/{last}") for s in _STARTS} for r in _RULES}
    said = "; ".join(f"{r} {each[_ALIKE]:.3f} and {each[_WORST]:.3f}" for r, each in end.items())
    return found.conclude(
        checks=[max(each[_WORST], each[_NOBODY]) < _NEAR * each[_ALIKE] for each in end.values()],
        because=(
            f"Average regret after {last:,} rounds where all options begin alike, and where all adopt "
            f"the worst: {said}. A bad beginning costs the rounds until the first few have found something "
            "better."
        ),
        agreement=(
            f"It does not matter if after {last:,} rounds regret is less than {_NEAR} times that of "
            "options that begin alike."
        ),
        rows=[
            Row(f"{rule}, {start}, {T:,} rounds", "", found.text(f"{rule}/{start}/{T}"))
            for rule in _RULES
            for start in _STARTS
            for T in rounds
        ],
        figures=[
            plot_points(
                f"How it begins: {rule}",
                "rounds",
                "average regret so far",
                [found.line(start, rounds, f"{rule}/{start}/{{}}") for start in _STARTS],
                caption="100,000 agents, ten options from 0.9 to 0.1.",
            )
            for rule in _RULES
        ],
    )


INITIAL_CONDITIONS = study(
    Sweep(
        "{policy}/{start}/{horizon}",
        {"policy": _RULES, "start": _STARTS, "horizon": _ROUNDS},
        environment=lambda start: options(100_000, **start),
        repetitions=Sized(5, 2),
    ),
    judge=_judge,
    name="tao2022-beginnings",
)
