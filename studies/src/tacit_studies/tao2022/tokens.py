"""Paper 001, Theorem 5.2: h = 16 sigma / (1 - beta) beside the constant that is used, 485.

The constant is the formula at the paper's sigma = 15 and beta = 0.505. Tacit keeps it whatever beta is; the
formula would send more tokens the larger beta is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit_studies.reproduction import (
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    Summary,
    summarise,
    verdict_of,
)
from tacit_studies.tao2022.settings import BETA
from tacit_studies.tools import final_values

_AGENTS = (10_000, 100_000, 1_000_000)
_M = 10
_QUALITIES = tuple(np.linspace(0.9, 0.1, _M).tolist())
_RULES: dict[str, dict[str, Any]] = {
    "as published, beta = 0.505": {"variant": "published"},
    "recommended beta": {},
    "smoothed, beta = 0.9": {"smoothed": True},
}
#: What h is, by its sigma where it is the formula.
_H: dict[str, float | None] = {"sigma = 11": 11, "485": None, "sigma = 15": 15, "10 N tokens": None}
_NEAR = 1.25


def h_of(sigma: float, beta: float) -> float:
    """Return 16 sigma / (1 - beta).

    Examples
    --------
    >>> round(h_of(15, 0.505))
    485
    """
    return 16 * sigma / (1 - beta)


def _beta(rule: str, n_agents: int) -> float:
    """Return the beta in use where tokens do not lack."""
    if rule.startswith("as published"):
        return BETA
    from tacit.dynamics import recommend

    smoothed = rule.startswith("smoothed")
    return recommend(n_agents=n_agents, n_options=_M, epsilon=1.0, smoothed=smoothed).beta


def _tokens(rule: str, h: str, n_agents: int) -> int:
    if h == "10 N tokens":
        return 10 * n_agents
    sigma = _H[h]
    factor = 485.0 if sigma is None else h_of(sigma, _beta(rule, n_agents))
    return math.ceil(factor * math.log(n_agents) ** 2)


def _jobs(quick: bool) -> list[Job]:
    return [
        Job(
            f"{rule}/{h}/{N}",
            final_values,
            {
                "policy": {
                    "name": "learning-dynamics",
                    "engine": "crowd",
                    "epsilon": 1.0,
                    "tokens": _tokens(rule, h, N),
                    **settings,
                },
                "environment": {
                    "name": "social-options",
                    "qualities": list(_QUALITIES),
                    "n_agents": N,
                },
                "horizon": 2_000,
                "repetitions": 4 if quick else 20,
            },
        )
        for rule, settings in _RULES.items()
        for h in _H
        for N in _AGENTS
    ]


def _judge(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    def of(rule: str, h: str, N: int) -> Summary:
        return summarise(outcomes[f"{rule}/{h}/{N}"])

    ratio = {
        (rule, N): of(rule, "485", N).mean / of(rule, "sigma = 15", N).mean
        for rule in _RULES
        for N in _AGENTS
    }
    little = {rule: all(1 / _NEAR < ratio[rule, N] < _NEAR for N in _AGENTS) for rule in _RULES}
    most = max(ratio, key=lambda key: ratio[key])
    smoothed = "smoothed, beta = 0.9"
    return Findings(
        verdict=verdict_of(little.values()),
        because=(
            f"At the paper's beta the formula is the constant ({h_of(15, BETA):.1f} with sigma = 15). At "
            f"other betas 485 is less than the formula, and regret up to {ratio[most]:.2f} times as large "
            f"({most[0]}, {most[1]:,} agents). Smoothed, at 10^4, 10^5 and 10^6 agents: "
            + ", ".join(f"{of(smoothed, '485', N).mean:.4f}" for N in _AGENTS)
            + " with 485, "
            + ", ".join(f"{of(smoothed, 'sigma = 15', N).mean:.4f}" for N in _AGENTS)
            + " with the formula, "
            + ", ".join(f"{of(smoothed, '10 N tokens', N).mean:.4f}" for N in _AGENTS)
            + " with 10 N tokens. Fewer tokens than agents make an agent's own sample noisier than what "
            "privacy does to all of them."
        ),
        agreement=f"Little impact: within a factor of {_NEAR} of the formula's regret at every size.",
        rows=[
            Row(
                f"{rule}, N = {N:,}, h: {h}, {_tokens(rule, h, N):,} tokens",
                "",
                of(rule, h, N).text(),
            )
            for rule in _RULES
            for N in _AGENTS
            for h in _H
        ],
        figures=[
            Figure(
                f"Tokens and regret: {rule}",
                "agents",
                "average regret after 2,000 rounds",
                [Series.of(f"h: {h}", _AGENTS, [of(rule, h, N) for N in _AGENTS]) for h in _H],
                x_log=True,
                y_log=True,
                kind="points",
                caption="Epsilon = 1 a round, ten options from 0.9 to 0.1; h ln^2 N tokens each.",
            )
            for rule in _RULES
        ],
    )


TOKENS = Reproduction(
    name="tao2022-tokens",
    paper="tao2022",
    title="Theorem 5.2 and Section 6: how many tokens",
    question="How many copies of its message must everybody send?",
    claim="h = 16 sigma / (1 - beta) in the theorem, 485 in the simulations; the constant has little impact.",
    jobs=_jobs,
    judge=_judge,
)
