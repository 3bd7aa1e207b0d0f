"""Questions put to the learning dynamics: the paper's regret table, and who can afford privacy.

All of them run the `crowd` engine, so a cell costs the same for a thousand agents as for a hundred
million.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.dynamics import LearningDynamics, SocialOptions, recommend
from tacit_studies.tools import simulate


class RegretMap(NamedTuple):
    """Regret over A numbers of agents, E epsilons and B betas."""

    n_agents: NDArray[np.int64]
    """Shape (A,)."""
    epsilons: NDArray[np.float64]
    """Shape (E,)."""
    betas: NDArray[np.float64]
    """Shape (A, E, B): the last one is the recommended one."""
    regret: NDArray[np.float64]
    """Shape (A, E, B): the mean over the repetitions."""
    error: NDArray[np.float64]
    """Shape (A, E, B): its standard error; NaN for one repetition."""


def regret_of(
    policy: LearningDynamics,
    qualities: Sequence[float],
    *,
    horizon: int,
    repetitions: int,
    seed: int = 0,
    network: Any = None,
) -> NDArray[np.float64]:
    """Return the regret (eq. 1) after `horizon` rounds of each repetition."""
    environment = SocialOptions(
        qualities=tuple(qualities), n_agents=policy.n_agents, network=network
    )
    result = simulate(policy, environment, horizon, repetitions, seed)
    found: NDArray[np.float64] = result.final("regret")
    return found


def published_regret(
    n_agents: int,
    epsilon: float,
    *,
    n_options: int = 20,
    horizon: int = 10_000,
    repetitions: int = 20,
    seed: int = 0,
    engine: str = "crowd",
) -> NDArray[np.float64]:
    """Return the regret of every repetition at a point of the paper's Figs. 2 to 4.

    The paper's constants: beta 0.505, mu 6.7e-5, h = 485, g = ln^2 N; qualities from 1 to 0.
    """
    policy = LearningDynamics(
        n_options=n_options, n_agents=n_agents, epsilon=epsilon, variant="published", engine=engine
    )
    qualities = np.linspace(1.0, 0.0, n_options).tolist()
    return regret_of(policy, qualities, horizon=horizon, repetitions=repetitions, seed=seed)


def regret_map(
    *,
    n_agents: Sequence[int] = (10**3, 10**4, 10**5, 10**6, 10**7, 10**8),
    epsilons: Sequence[float] = (0.5, 1.0, 2.0, 4.0, math.inf),
    betas: Sequence[float] = (0.505, 0.6, 0.7, 0.8, 0.9, 0.95),
    qualities: Sequence[float] = tuple(np.linspace(0.9, 0.1, 10).tolist()),
    tokens_each: float = 10.0,
    horizon: int = 2_000,
    repetitions: int = 5,
    seed: int = 0,
) -> RegretMap:
    """Return the map of regret that says how many agents buy how much privacy.

    Parameters
    ----------
    n_agents, epsilons, betas : sequences
        The axes; the recommended beta is added to `betas`.
    qualities : sequence of float
        The options.
    tokens_each : float
        Tokens an agent sends a round, as a multiple of the number of agents.
    horizon, repetitions, seed : int
        Rounds of a run, runs of a cell, and their seed; all cells share signals and noise.

    Examples
    --------
    >>> from tacit_studies.tao2022.regret_maps import regret_map
    >>> found = regret_map(n_agents=(1000,), epsilons=(1.0,), betas=(0.505,), horizon=200)
    >>> bool(found.regret[0, 0, 1] < found.regret[0, 0, 0])
    True
    """
    M = len(qualities)
    shape = (len(n_agents), len(epsilons), len(betas) + 1)
    chosen, regret, error = np.empty(shape), np.empty(shape), np.full(shape, np.nan)
    for i, N in enumerate(n_agents):
        for k, epsilon in enumerate(epsilons):
            tokens = max(1, math.ceil(tokens_each * N))
            best = recommend(n_agents=N, n_options=M, epsilon=epsilon, tokens=tokens)
            chosen[i, k] = (*betas, best.beta)
            for b, beta in enumerate(chosen[i, k]):
                policy = LearningDynamics(
                    n_options=M,
                    n_agents=N,
                    epsilon=epsilon,
                    beta=float(beta),
                    mu=best.mu,
                    tokens=tokens,
                    engine="crowd",
                )
                values = regret_of(
                    policy, qualities, horizon=horizon, repetitions=repetitions, seed=seed
                )
                regret[i, k, b] = values.mean()
                if repetitions > 1:
                    error[i, k, b] = values.std(ddof=1) / math.sqrt(repetitions)
    return RegretMap(np.array(n_agents), np.array(epsilons), chosen, regret, error)
