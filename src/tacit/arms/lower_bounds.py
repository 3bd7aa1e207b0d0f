"""What no private policy can do better than, for Bernoulli arms and in the long run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arms.divergence import private_divergence
from tacit.arms.table import closed_rows
from tacit.core.constraints import require
from tacit.graphs import Graph


def asymptotic_regret(
    means: Sequence[float], epsilon: float, horizon: int, *, graph: Graph | None = None
) -> float:
    """Return the leading term of the least regret of epsilon-private policies on Bernoulli arms.

    An arm must be seen at least ln T / d_eps(mean, best mean) times to be told from the best one.
    Without a graph each look costs the arm's gap: the sum of gap ln T / d_eps (Azize et al. 2025). On
    a feedback graph looks are bought where they are cheapest: a linear program. It is the limit of
    regret / ln T, times ln T: at a finite horizon a policy can be below it, and rewards other than 0/1
    can be easier.

    Parameters
    ----------
    means : sequence of float
        Of the Bernoulli arms.
    epsilon : float
        Pure central privacy of one reward; ``math.inf`` for none.
    horizon : int
        Number of rounds T.
    graph : Graph, optional
        The feedback graph; edges lead from the pulled arm to the arms it shows.

    Examples
    --------
    >>> from tacit.arms import asymptotic_regret
    >>> from tacit.graphs import complete
    >>> round(asymptotic_regret((0.9, 0.5), epsilon=0.1, horizon=100_000), 1)
    116.5
    >>> asymptotic_regret((0.9, 0.5), epsilon=0.1, horizon=100_000, graph=complete(2))
    0.0
    """
    from scipy.optimize import linprog

    rates = np.asarray(means, dtype=np.float64)
    inside = rates.ndim == 1 and rates.size > 0 and bool(((rates >= 0) & (rates <= 1)).all())
    require("asymptotic_regret", "means", "in [0, 1]", inside, means)
    require("asymptotic_regret", "epsilon", "> 0", epsilon > 0, epsilon)
    require("asymptotic_regret", "horizon", ">= 1", horizon >= 1, horizon)
    best = float(rates.max())
    divergences = np.array([private_divergence(x, best, min(epsilon, 700.0)) for x in rates])
    worse = np.flatnonzero(divergences > 0)
    looks = math.log(horizon) / divergences[worse]
    gaps = best - rates
    if graph is None:
        return float(gaps[worse] @ looks)
    rows = closed_rows(rates.size, [graph])
    shows = np.zeros((rates.size, rates.size))
    pulled = np.repeat(np.arange(rates.size), np.diff(rows.indptr))
    shows[rows.indices, pulled] = 1.0
    if worse.size == 0:
        return 0.0
    program: Any = linprog(gaps, A_ub=-shows[worse], b_ub=-looks, bounds=(0, None))
    return max(0.0, float(program.fun))
