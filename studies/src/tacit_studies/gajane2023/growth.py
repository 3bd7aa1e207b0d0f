"""Paper 003, Theorem 1: how regret grows with the horizon and with the number of changes."""

from __future__ import annotations

from tacit_studies.gajane2023.settings import HORIZONS, sliding, slope
from tacit_studies.reproduction import Findings, Row
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import exponent_of, plot_regret

_WINDOWS = {
    "log": ("window with the log factor", sliding(window="log", epsilon=2.0)),
    "paper": ("window as written", sliding(window="paper", epsilon=2.0)),
    "none": ("no window", {"name": "klucb-cf", "epsilon": 2.0}),
}


def _judge_growth(found: Outcomes) -> Findings:
    Ts = HORIZONS.at(found.quick)
    lines = {key: found.line(label, Ts, f"{key}-{{}}") for key, (label, _) in _WINDOWS.items()}
    power = {key: exponent_of(line) for key, line in lines.items()}
    # What is measured, what the paper says, what is expected, and whether it is so.
    expected = {
        "log": ("growth exponent, log window", "1/2 up to logs", "", power["log"] < 0.8),
        "paper": ("growth exponent, window as written", "1/2 up to logs", "", power["paper"] < 0.8),
        "none": ("growth exponent, no window", "1 (linear)", "1.02", power["none"] > 0.9),
    }
    return found.conclude(
        checks=[expected["log"][3] and expected["none"][3]],
        because=(
            "Where one arm stays fair and the other is bad and good in turn, 10 segments in all, "
            "at epsilon = 2 regret grows like "
            f"T^{power['log']:.2f} with the window and like T^{power['none']:.2f} without."
        ),
        rows=[
            Row(label, paper, f"{power[key]:.2f}", known, agrees)
            for key, (label, paper, known, agrees) in expected.items()
        ],
        figures=[
            plot_regret(
                "Regret against the horizon",
                "horizon T",
                [*lines.values(), slope("1/2", lines["log"], 0.5)],
            )
        ],
    )


HORIZON = study(
    Sweep(
        "{window}-{horizon}",
        {"horizon": HORIZONS, "window": _WINDOWS},
        policy=lambda window: window[1],
        environment={"name": "riser"},
        repetitions=Sized(40, 12),
    ),
    judge=_judge_growth,
    name="gajane2023-theorem-1",
)

_SEGMENTS = Sized([2, 4, 8, 16, 32, 64], [2, 8, 32])


def _judge_changes(found: Outcomes) -> Findings:
    line = found.line("SW-KLUCB-CF, epsilon = 2", _SEGMENTS.at(found.quick), "L{}")
    exponent = exponent_of(line)
    holds = exponent <= 0.65
    return found.conclude(
        checks=[holds],
        because=f"Regret grows like L^{exponent:.2f} in the number of segments; the bound allows 1/2.",
        rows=[Row("growth exponent in L", "1/2", f"{exponent:.2f}", agrees=holds)],
        figures=[
            plot_regret(
                "Regret against the number of segments",
                "segments L",
                [line, slope("1/2", line, 0.5)],
            )
        ],
    )


CHANGES = study(
    Sweep(
        "L{segments}",
        {"segments": _SEGMENTS},
        policy=sliding(epsilon=2.0),
        environment=lambda segments: {"name": "rotating", "n_arms": 2, "segments": segments},
        horizon=Sized(100_000, 50_000),
        repetitions=Sized(40, 12),
    ),
    judge=_judge_changes,
    name="gajane2023-changes",
)
