"""The regret bounds that paper 000 states, on any network: Odeyomi (2022), eqs. 18 to 20 and 26.

They are what the paper prints. Whether they hold is another question: `tacit reproduce 000-bounds`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tacit.core.constraints import require
from tacit.graphs import independence_number


class RegretBounds(NamedTuple):
    """Bounds on the regret of an agent in T rounds; one above T says nothing."""

    base: float
    """Algorithm 3, eq. 26 with theory's rates and the constants of its proof."""
    base_order: float
    """Algorithm 3 as eqs. 19 and 20 use it: sqrt(alpha T ln M), with 1 for the constant."""
    wrapped: float
    """Any private algorithm around a base, eq. 18; of the base given, or else of `base`."""
    outsiders: float
    """Algorithm 1, eq. 19."""
    spies: float
    """Algorithm 2, eq. 20."""


def regret_bounds(
    environment: Any,
    *,
    horizon: int,
    epsilon: float,
    base: float | None = None,
    noise_bound: float | None = None,
) -> RegretBounds:
    """Return the bounds of the paper for a network, a number of states and a horizon.

    Parameters
    ----------
    environment : ChangingTruth or RecordedTruth
        Its network gives alpha, the largest number of agents of whom no two are linked (an upper bound
        of it where that is too hard), and the largest weight that an agent gives to itself.
    horizon : int
        T.
    epsilon : float
        Of the noise on losses.
    base : float, optional
        Regret of the algorithm without privacy, for eq. 18; by default its bound, eq. 26.
    noise_bound : float, optional
        b of eq. 18; by default ln T / epsilon, as in eqs. 19 and 20.

    Examples
    --------
    >>> from tacit.diffusion import ChangingTruth, regret_bounds
    >>> paper = regret_bounds(ChangingTruth(), horizon=500, epsilon=0.1)
    >>> round(paper.outsiders), round(paper.spies)
    (10090, 6076)
    """
    require("regret_bounds", "horizon", ">= 2", horizon >= 2, horizon)
    require("regret_bounds", "epsilon", "> 0", epsilon > 0, epsilon)
    T, M = horizon, environment.state_count
    alpha = float(independence_number(environment.mixing_matrix.graph().undirected()).upper)
    own = largest_self_weight(environment)
    b = math.log(T) / epsilon if noise_bound is None else noise_bound
    noise = math.sqrt(32 * T) / epsilon
    order = math.sqrt(alpha * T * math.log(M))
    full = _appendix(T, M, alpha) if M > 1 else 0.0
    known = full if base is None else base
    return RegretBounds(
        base=full,
        base_order=order,
        wrapped=2 * b / own * known + 2 * T * M * math.exp(-epsilon * b) + noise,
        outsiders=2 * math.log(T) * order / (epsilon * own) + 2 * M + noise,
        spies=2 * math.log(T) * order / epsilon + 4 * M + 2 * noise,
    )


def largest_self_weight(environment: Any) -> float:
    """Return max a_kk, the largest weight that an agent gives to what it thinks itself."""
    indptr, senders, weights = environment.mixing_matrix.columns
    listener = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    return float(weights[senders == listener].max())


def _appendix(T: int, M: int, alpha: float) -> float:
    """Return eq. 26 at the rates that the appendix chooses."""
    eta = math.sqrt(math.log(M) / (alpha * T))
    gamma = min(8 * alpha * eta, 0.5)
    return 8 * alpha * eta * T * math.log(4 * M**2 / (alpha * gamma)) + math.log(M) / eta
