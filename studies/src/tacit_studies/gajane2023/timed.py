"""Paper 003: corruption functions that change across time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit_studies.gajane2023.settings import horizons, line_of
from tacit_studies.reproduction import (
    NOT_REPRODUCED,
    PARTLY,
    REPRODUCED,
    Findings,
    Job,
    Reproduction,
    Row,
    summarise,
)
from tacit_studies.tools import final_values, growth_exponent, regret_figure

_MEANS = (0.9, 0.7, 0.5)
_READINGS = {"published": "the function in force now", "corrected": "the average of those then"}
_KEEP = 0.75
_TURNED = "bits told turned over"
_SCHEDULES: dict[str, dict[str, Any]] = {
    _TURNED: {"corruptions": [{"p00": _KEEP, "p11": _KEEP}, {"p00": 1 - _KEEP, "p11": 1 - _KEEP}]},
    "epsilon 4, then 0.5": {"epsilons": [4.0, 0.5]},
}
"""What is in force for a quarter of the time, and then."""


def _jobs(quick: bool) -> list[Job]:
    return [
        Job(
            f"{change}/{variant}/{T}",
            final_values,
            {
                "policy": {
                    "name": "timed-klucb-cf",
                    "schedule": {"starts": [0, T // 4], **schedule},
                    "variant": variant,
                },
                "environment": {"name": "bernoulli", "means": list(_MEANS)},
                "horizon": T,
                "repetitions": 8 if quick else 40,
            },
        )
        for T in horizons(quick)[:4]
        for change, schedule in _SCHEDULES.items()
        for variant in _READINGS
    ]


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    Ts = horizons(quick)[:4]
    lines = {
        (change, variant): line_of(
            outcomes,
            f"{change}: {words}",
            Ts,
            [f"{change}/{variant}/{T}" for T in Ts],
        )
        for change in _SCHEDULES
        for variant, words in _READINGS.items()
    }
    exponent = {key: growth_exponent(line.x, line.y) for key, line in lines.items()}
    times = {c: lines[c, "published"].y[-1] / lines[c, "corrected"].y[-1] for c in _SCHEDULES}
    sound = all(exponent[change, "corrected"] < 0.75 for change in _SCHEDULES)
    literal = all(exponent[change, "published"] < 0.75 for change in _SCHEDULES)
    return Findings(
        verdict=REPRODUCED if sound and literal else PARTLY if sound else NOT_REPRODUCED,
        because=(
            "A corruption is in force for a quarter of the time, then another one. Where bits are then told "
            "turned over, the function in force now, as printed, gives regret that grows like "
            f"T^{exponent[_TURNED, 'published']:.2f}, {times[_TURNED]:.0f} times that of the average of the "
            "functions in force when the feedback was given, which grows like "
            f"T^{exponent[_TURNED, 'corrected']:.2f}; where epsilon falls from 4 to 0.5 the "
            f"one now in force has {times['epsilon 4, then 0.5']:.1f} times the regret of the average."
        ),
        agreement="Below linear: an exponent below 0.75 (a logarithm has one that falls towards 0).",
        rows=[
            Row(
                f"{change}: {_READINGS[variant]}, T = {Ts[-1]:,}",
                "as if it did not change",
                f"{summarise(outcomes[f'{change}/{variant}/{Ts[-1]}']).text()}, "
                f"growth T^{exponent[change, variant]:.2f}",
                agrees=exponent[change, variant] < 0.75,
            )
            for change, variant in lines
        ],
        figures=[
            regret_figure("Regret where the corruption changes", "horizon T", list(lines.values()))
        ],
        privacy="Each reward has the epsilon of its own round; the guarantee states the largest.",
    )


TIMED = Reproduction(
    name="gajane2023-timed-corruption",
    paper="gajane2023",
    title="Corruption functions that change across time",
    question="If later people are promised more privacy than earlier ones, can all answers be used?",
    claim="The algorithm also works if the corruption function changes, as long as the current one is known.",
    jobs=_jobs,
    judge=_judge,
)
