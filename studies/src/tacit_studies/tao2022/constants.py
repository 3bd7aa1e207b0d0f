"""Paper 001, Section 6: whether the constants matter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit_studies.reproduction import Findings, Row
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tao2022.settings import QUALITIES, crowd, options
from tacit_studies.tools import plot_points

_WIDE, _NARROW = "0.9 to 0.1", "0.6 and nine of 0.5"
_QUALITIES: dict[str, tuple[float, ...]] = {
    _WIDE: QUALITIES,
    "1 to 0": tuple(np.linspace(1.0, 0.0, 10).tolist()),
    _NARROW: (0.6, *[0.5] * 9),
}
_BETAS = (0.505, 0.6, 0.8, 0.95)
_KNOWN: dict[tuple[str, int], tuple[tuple[float, float], ...]] = {
    (_WIDE, 10_000): ((0.3798, 0.0092), (0.1455, 0.0059), (0.0809, 0.0053), (0.0963, 0.0062)),
    (_WIDE, 100_000): ((0.2710, 0.0209), (0.0483, 0.0024), (0.0338, 0.0039), (0.0563, 0.0055)),
    (_WIDE, 1_000_000): ((0.1218, 0.0101), (0.0181, 0.0013), (0.0153, 0.0030), (0.0346, 0.0052)),
    ("1 to 0", 1_000): ((0.4939, 0.0058), (0.3746, 0.0063), (0.1693, 0.0056), (0.0928, 0.0034)),
    ("1 to 0", 10_000): ((0.4704, 0.0117), (0.1386, 0.0037), (0.0459, 0.0011), (0.0269, 0.0009)),
    (_NARROW, 1_000_000): ((0.0693, 0.0108), (0.0287, 0.0062), (0.0617, 0.0056), (0.0769, 0.0028)),
}
"""Mean regret of 400 runs of the mean-field simulation in the tests, and how much a run varies."""
_KNOWN_RUNS = 400
_SETTINGS = {f"{qualities}/{N}": (qualities, N) for qualities, N in _KNOWN}
_PLAYED = Sized(_SETTINGS, {key: _SETTINGS[key] for key in (f"{_WIDE}/10000", f"{_WIDE}/1000000")})
_RULES: dict[str, dict[str, float]] = {
    **{f"{beta:g}": {"beta": beta, "mu": 6.7e-5} for beta in _BETAS},
    "recommended": {},
}


def _policy(setting: tuple[str, int], rule: dict[str, float]) -> dict[str, Any]:
    # So many tokens that every agent hears everybody's messages alike.
    return crowd(epsilon=1.0, tokens=1000 * setting[1], **rule)


def _judge(outcomes: Outcomes) -> Findings:
    rows, lines, matter = [], [], []
    for key, (qualities, N) in _PLAYED.at(outcomes.quick).items():
        found = [outcomes.summary(f"{key}/{beta:g}") for beta in _BETAS]
        label = f"qualities {qualities}, N = 10^{round(math.log10(N))}"
        for beta, summary, (known, spread) in zip(_BETAS, found, _KNOWN[qualities, N], strict=True):
            error = spread * math.sqrt(1 / summary.n + 1 / _KNOWN_RUNS)
            close = abs(summary.mean - known) <= 5 * error + 5e-5
            rows.append(
                Row(f"{label}: beta = {beta:g}", "", summary.text(), f"{known:.4f}", agrees=close)
            )
        rows.append(Row(f"{label}: recommended beta", "", outcomes.text(f"{key}/recommended")))
        lines.append(outcomes.line(label, _BETAS, f"{key}/{{:g}}"))
        best = min(found, key=lambda s: s.mean)
        matter.append(best.high < found[0].low and found[0].mean > 2 * best.mean)
    return outcomes.conclude(
        checks=[not each for each in matter],
        because=(
            f"With 10,000 agents at epsilon = 1 regret is {outcomes.mean(f'{_WIDE}/10000/0.505'):.3f} at the "
            f"paper's beta = 0.505 and {outcomes.mean(f'{_WIDE}/10000/recommended'):.3f} at the recommended "
            f"one; another beta more than halves it in {sum(matter)} of {len(matter)} settings."
        ),
        rows=rows,
        figures=[
            plot_points(
                "A stronger preference repairs the learning",
                "beta, the chance to adopt what was good",
                "average regret after 2,000 rounds",
                lines,
                log="y",
                caption="Corrected: everybody sends. Epsilon = 1 a round, ten options.",
            )
        ],
    )


CONSTANTS = study(
    Sweep(
        "{setting}/{rule}",
        {"setting": _PLAYED, "rule": _RULES},
        policy=_policy,
        environment=lambda setting: options(setting[1], _QUALITIES[setting[0]]),
        horizon=2_000,
        repetitions=Sized(60, 5),
    ),
    judge=_judge,
    name="tao2022-constants",
)
