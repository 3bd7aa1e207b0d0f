"""Rigorous lower confidence bounds on epsilon from counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, kw_only=True)
class LowerBound:
    """A claim, and what runs show about it."""

    epsilon: float
    """The claim."""
    delta: float
    lower_bound: float
    """The true epsilon at `delta` is at least this, except with probability at most `alpha`."""
    alpha: float

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted; False says only that this audit did not manage to."""
        return self.lower_bound > self.epsilon

    @property
    def verdict(self) -> str:
        """``"refuted"`` or ``"not refuted"``; an audit never proves a claim."""
        return "refuted" if self.refuted else "not refuted"


def claim_words(epsilon: float, delta: float) -> str:
    """Return a claim in a few words."""
    return f"The claim epsilon={epsilon:g}" + (f", delta={delta:g}" if delta else "")


def untested_words(epsilon: float, delta: float) -> str:
    """Return the sentence about a claim of something that released nothing."""
    claim = claim_words(epsilon, delta).replace("The", "the", 1)
    return f"Nothing was released, so that {claim} was not put to the test."


_REMEMBERED = 2**16
"""Runs up to which bounds are remembered."""


def clopper_pearson(
    hits: ArrayLike, runs: ArrayLike, failure_prob: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper bounds on a probability, each wrong with at most `failure_prob`.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 100, 0.025)
    >>> float(low), round(float(high), 4)
    (0.0, 0.0362)
    """
    k, n = np.broadcast_arrays(np.asarray(hits, float), np.asarray(runs, float))
    return _below(k, n, failure_prob), _above(k, n, failure_prob)


def _below(k: Any, n: Any, failure_prob: float) -> NDArray[np.float64]:
    from scipy.special import betaincinv

    inside = np.maximum(k, 1.0)
    return np.where(k > 0, betaincinv(inside, n - inside + 1.0, failure_prob), 0.0)


def _above(k: Any, n: Any, failure_prob: float) -> NDArray[np.float64]:
    from scipy.special import betaincinv

    inside = np.minimum(k, n - 1.0)
    return np.where(k < n, betaincinv(inside + 1.0, n - inside, 1.0 - failure_prob), 1.0)


_Solve = Callable[[Any, Any, float], NDArray[np.float64]]


@lru_cache(maxsize=16)
def _solved(solve: _Solve, runs: int, failure_prob: float) -> NDArray[np.float64]:
    """Return a place for the bound of each number of hits, not a number where it is not known yet."""
    return np.full(runs + 1, np.nan)


def _bound(solve: _Solve, hits: ArrayLike, runs: int, failure_prob: float) -> NDArray[np.float64]:
    """Return one of the bounds, each solved once: an audit asks for a few of them again and again."""
    k = np.asarray(hits, np.int64)
    if runs > _REMEMBERED:
        return solve(k.astype(float), float(runs), failure_prob)
    known = _solved(solve, runs, failure_prob)
    new = np.unique(k[np.isnan(known[k])])
    known[new] = solve(new.astype(float), float(runs), failure_prob)
    return np.asarray(known[k])


def epsilon_lower_bound(
    likely_hits: ArrayLike, unlikely_hits: ArrayLike, runs: int, *, delta: float, alpha: float
) -> NDArray[np.float64]:
    """Bound epsilon from below by one event, counted in `runs` runs of each input.

    If the mechanism is (epsilon, delta)-private then P(event) <= e^epsilon Q(event) + delta, so
    epsilon >= ln((P - delta) / Q). P is replaced by its lower and Q by its upper Clopper-Pearson
    bound, each at alpha / 2: the result exceeds the true epsilon with probability at most `alpha`.
    """
    p = _bound(_below, likely_hits, runs, alpha / 2)
    q = _bound(_above, unlikely_hits, runs, alpha / 2)
    above = np.maximum(p - delta, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(above) - np.log(q), 0.0))


def one_run_p_value(
    canaries: int, guesses: int, correct: int, *, epsilon: float, delta: float
) -> float:
    """Return how probable so many correct guesses are under (epsilon, delta), at most.

    The bound of Steinke, Nasr and Jagielski (2023), Section 5: a binomial tail at the accuracy
    e^epsilon / (1 + e^epsilon), and a term for delta that grows with the number of canaries.
    """
    from scipy.special import expit
    from scipy.stats import binom

    accuracy = float(expit(epsilon))
    tail = float(binom.sf(correct - 1, guesses, accuracy))
    if delta == 0.0 or correct == 0:
        return min(tail, 1.0)
    steps = np.arange(1, correct + 1)
    below = np.cumsum(binom.pmf(correct - steps, guesses, accuracy))
    return min(tail + 2 * canaries * delta * float(np.max(below / steps)), 1.0)


def one_run_epsilon(
    canaries: int, guesses: int, correct: int, *, delta: float, alpha: float
) -> float:
    """Return the largest epsilon that these guesses contradict at level `alpha`, or 0."""
    low, high = 0.0, 1.0
    if one_run_p_value(canaries, guesses, correct, epsilon=0.0, delta=delta) > alpha:
        return 0.0
    while one_run_p_value(canaries, guesses, correct, epsilon=high, delta=delta) <= alpha:
        low, high = high, 2 * high
        if high > 64:
            return low
    while high - low > 1e-9 * max(1.0, high):
        middle = (low + high) / 2
        p = one_run_p_value(canaries, guesses, correct, epsilon=middle, delta=delta)
        low, high = (middle, high) if p <= alpha else (low, middle)
    return math.floor(low * 1e9) / 1e9
