"""Paper 003: corruption functions that change across time."""

from __future__ import annotations

from typing import Any

from tacit_studies.gajane2023.settings import MEDIUM, RUNS
from tacit_studies.reproduction import Findings, Row
from tacit_studies.sweep import Outcomes, Sweep, study
from tacit_studies.tools import exponent_of, plot_regret
from tacit_studies.verdicts import verdict_on

_READINGS = {"published": "the function in force now", "corrected": "the average of those then"}
_KEEP = 0.75
_TURNED, _STRICTER = "bits told turned over", "epsilon 4, then 0.5"
_SCHEDULES: dict[str, dict[str, Any]] = {
    _TURNED: {"corruptions": [{"p00": _KEEP, "p11": _KEEP}, {"p00": 1 - _KEEP, "p11": 1 - _KEEP}]},
    _STRICTER: {"epsilons": [4.0, 0.5]},
}
"""What is in force for a quarter of the time, and then."""


def _judge(found: Outcomes) -> Findings:
    Ts = MEDIUM.at(found.quick)
    lines = {
        (change, variant): found.line(f"{change}: {words}", Ts, f"{change}/{variant}/{{}}")
        for change in _SCHEDULES
        for variant, words in _READINGS.items()
    }
    exponent = {key: exponent_of(line) for key, line in lines.items()}
    times = {c: lines[c, "published"].y[-1] / lines[c, "corrected"].y[-1] for c in _SCHEDULES}
    sound, literal = (
        all(exponent[change, variant] < 0.75 for change in _SCHEDULES)
        for variant in ("corrected", "published")
    )
    return found.conclude(
        verdict=verdict_on(sound, literal),
        because=(
            "A corruption is in force for a quarter of the time, then another one. Where bits are then told "
            "turned over, the function in force now, as printed, gives regret that grows like "
            f"T^{exponent[_TURNED, 'published']:.2f}, {times[_TURNED]:.0f} times that of the average of the "
            "functions in force when the feedback was given, which grows like "
            f"T^{exponent[_TURNED, 'corrected']:.2f}; where epsilon falls from 4 to 0.5 the "
            f"one now in force has {times[_STRICTER]:.1f} times the regret of the average."
        ),
        rows=[
            Row(
                f"{line.label}, T = {Ts[-1]:,}",
                "as if it did not change",
                f"{found.text(f'{change}/{variant}/{Ts[-1]}')}, "
                f"growth T^{exponent[change, variant]:.2f}",
                agrees=exponent[change, variant] < 0.75,
            )
            for (change, variant), line in lines.items()
        ],
        figures=[plot_regret("Regret where the corruption changes", "horizon T", lines.values())],
    )


TIMED = study(
    Sweep(
        "{change}/{variant}/{horizon}",
        {"horizon": MEDIUM, "change": _SCHEDULES, "variant": list(_READINGS)},
        policy=lambda horizon, change, variant: {
            "name": "timed-klucb-cf",
            "schedule": {"starts": [0, horizon // 4], **change},
            "variant": variant,
        },
        environment={"name": "bernoulli", "means": [0.9, 0.7, 0.5]},
        repetitions=RUNS,
    ),
    judge=_judge,
    name="gajane2023-timed-corruption",
)
