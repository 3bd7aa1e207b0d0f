"""Paper 003: sub-Gaussian rewards, as Section 2 has them, with privacy and without."""

from __future__ import annotations

from typing import Any

from tacit_studies.gajane2023.settings import MEDIUM, RUNS
from tacit_studies.reproduction import Findings, Row
from tacit_studies.sweep import Outcomes, Sweep, study
from tacit_studies.tools import exponent_of, plot_regret
from tacit_studies.verdicts import verdict_on

_SIGMA = 3.0
_ENVIRONMENT = {"name": "gaussian", "means": [1.0, 0.5, 0.0], "spread": [_SIGMA, 0.1, 0.1]}
"""The best arm scatters most."""
_RANGES = {"0 to 0.8": (0.0, 0.8), "-3.5 to 5.5": (-3.5, 5.5), "-8 to 10": (-8.0, 10.0)}
_EPSILON = 4.0
_PLAIN = "not private"
_VARIANTS: dict[str, dict[str, Any]] = {
    _PLAIN: {},
    **{words: {"reward_range": ends, "epsilon": _EPSILON} for words, ends in _RANGES.items()},
}


def _judge(found: Outcomes) -> Findings:
    from tacit.arms import SubGaussianUCB

    Ts = MEDIUM.at(found.quick)
    lines = {
        key: found.line(key if key == _PLAIN else f"clipped to {key}", Ts, f"{key}/{{}}")
        for key in _VARIANTS
    }
    exponent = {key: exponent_of(line) for key, line in lines.items()}
    narrow, *wide = _RANGES
    bias = {
        key: SubGaussianUCB(n_arms=3, sigma=_SIGMA, reward_range=ends).clipping_bias(1.0)
        for key, ends in _RANGES.items()
    }
    return found.conclude(
        verdict=verdict_on(
            exponent[_PLAIN] < 0.75,
            min(exponent[key] for key in wide) < 0.75,
            exponent[narrow] < 0.75,
        ),
        because=(
            "Without privacy the index for sub-Gaussian rewards has regret that grows like "
            f"T^{exponent[_PLAIN]:.2f}. Privately unbounded rewards cannot be had, only clipped "
            f"ones: at epsilon = {_EPSILON:g} regret grows like "
            + ", ".join(f"T^{exponent[key]:.2f} (clipped to {key})" for key in _RANGES)
            + ". Too narrow a range turns the order of arms round that scatter differently."
        ),
        rows=[
            Row(
                f"{line.label}, T = {Ts[-1]:,}",
                "sublinear",
                f"{found.text(f'{key}/{Ts[-1]}')}, growth T^{exponent[key]:.2f}"
                + (f", bias at most {bias[key]:.3g}" if key in bias else ""),
                agrees=exponent[key] < 0.75,
            )
            for key, line in lines.items()
        ],
        figures=[plot_regret("Regret with rewards of any size", "horizon T", lines.values())],
    )


SUB_GAUSSIAN = study(
    Sweep(
        "{variant}/{horizon}",
        {"variant": _VARIANTS, "horizon": MEDIUM},
        policy=lambda variant: {"name": "sub-gaussian-ucb", "sigma": _SIGMA, **variant},
        environment=_ENVIRONMENT,
        repetitions=RUNS,
    ),
    judge=_judge,
    name="gajane2023-sub-gaussian",
)
