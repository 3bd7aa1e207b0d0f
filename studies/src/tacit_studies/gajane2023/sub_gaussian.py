"""Paper 003: sub-Gaussian rewards, as Section 2 has them, with privacy and without."""

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

_SIGMA = 3.0
_WORLD = {"name": "gaussian", "means": [1.0, 0.5, 0.0], "spread": [_SIGMA, 0.1, 0.1]}
"""The best arm scatters most."""
_RANGES = {"0 to 0.8": (0.0, 0.8), "-3.5 to 5.5": (-3.5, 5.5), "-8 to 10": (-8.0, 10.0)}
_EPSILON = 4.0


def _jobs(quick: bool) -> list[Job]:
    played: dict[str, dict[str, Any]] = {"not private": {}}
    for words, ends in _RANGES.items():
        played[words] = {"reward_range": ends, "epsilon": _EPSILON}
    return [
        Job(
            f"{words}/{T}",
            final_values,
            {
                "policy": {"name": "sub-gaussian-ucb", "sigma": _SIGMA, **how},
                "environment": _WORLD,
                "horizon": T,
                "repetitions": 8 if quick else 40,
            },
        )
        for words, how in played.items()
        for T in horizons(quick)[:4]
    ]


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    from tacit.arms import SubGaussianUCB

    Ts = horizons(quick)[:4]
    labels = ["not private", *_RANGES]
    lines = {
        label: line_of(
            outcomes,
            label if label == "not private" else f"clipped to {label}",
            Ts,
            [f"{label}/{T}" for T in Ts],
        )
        for label in labels
    }
    exponent = {label: growth_exponent(line.x, line.y) for label, line in lines.items()}
    narrow, *wide = _RANGES
    plain = exponent["not private"] < 0.75
    clipped = min(exponent[label] for label in wide) < 0.75
    cut = exponent[narrow] < 0.75
    bias = {
        label: SubGaussianUCB(n_arms=3, sigma=_SIGMA, reward_range=ends).clipping_bias(1.0)
        for label, ends in _RANGES.items()
    }
    return Findings(
        verdict=REPRODUCED if plain and clipped and cut else PARTLY if plain else NOT_REPRODUCED,
        because=(
            "Without privacy the index for sub-Gaussian rewards has regret that grows like "
            f"T^{exponent['not private']:.2f}. Privately unbounded rewards cannot be had, only clipped "
            f"ones: at epsilon = {_EPSILON:g} regret grows like "
            + ", ".join(f"T^{exponent[label]:.2f} (clipped to {label})" for label in _RANGES)
            + ". Too narrow a range turns the order of arms round that scatter differently."
        ),
        agreement="Below linear: an exponent below 0.75.",
        rows=[
            Row(
                f"{lines[label].label}, T = {Ts[-1]:,}",
                "sublinear",
                f"{summarise(outcomes[f'{label}/{Ts[-1]}']).text()}, growth T^{exponent[label]:.2f}"
                + (f", bias at most {bias[label]:.3g}" if label in bias else ""),
                agrees=exponent[label] < 0.75,
            )
            for label in labels
        ],
        figures=[
            regret_figure("Regret with rewards of any size", "horizon T", list(lines.values()))
        ],
        privacy="Epsilon for each reward, whatever its size, because it is clipped on the device first.",
    )


SUB_GAUSSIAN = Reproduction(
    name="gajane2023-sub-gaussian",
    paper="gajane2023",
    title="Section 2: sub-Gaussian rewards",
    question="What if rewards have no bounds, such as sums of money?",
    claim="Rewards and feedback have sub-Gaussian distributions (Theorem 1 is for bits).",
    jobs=_jobs,
    judge=_judge,
)
