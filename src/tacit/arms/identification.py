"""Which arm is best, and how sure: what policies that identify share.

A policy looks at its arms whenever it likes and names the one that it would bet on, with the chance that a
wrong one is named with so much evidence *ever*, at any look: the error. Stopping as soon as the error is at
most 0.05 then names a wrong arm in one run of 20 at most, whatever the rewards in [0, 1] are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cache, lru_cache
from typing import Any, NamedTuple

from tacit.arms.divergence import negative_entropy, upper_root
from tacit.core.kernels import kernel


class Named(NamedTuple):
    """The arm to bet on."""

    arm: int
    error: float
    """How likely a wrong arm is ever named with this much evidence; 1 where nothing is known."""


class Identifying(ABC):
    """What a policy offers that can say which arm is best."""

    @abstractmethod
    def best_arm(self, state: Any) -> Named:
        """Return the arm to bet on, and how sure that is; by what is released or reported alone."""


class Seen(NamedTuple):
    """What was released of an arm: the sum of `n` rewards with the noise of `releases` blocks."""

    total: float
    n: int
    releases: int


@lru_cache(64)
def released_error(arms: tuple[Seen, ...], epsilon: float, grid: float) -> Named:
    """Return the arm of largest mean, and the smallest error at which its interval is above all others.

    The k-th release of an arm comes at a number of rewards that is fixed beforehand, so that bounds for
    fixed n hold for it: Chernoff's on the sum of n rewards in [0, 1], and one on the sum of k Laplace
    variables. Releases share the error as 1 / (k (k + 1)), arms equally, and rewards and noise each get
    half; to name a wrong arm, its lower end or the upper end of the best arm has to fail, which makes
    one end an arm.

    Parameters
    ----------
    arms : tuple of Seen
        One for each arm, all with a release. Between two releases the same are asked for every round.
    epsilon : float
        One over the scale of the noise of a block.
    grid : float
        To what rewards may have been rounded.
    """
    best = max(range(len(arms)), key=lambda a: (arms[a].total / arms[a].n, -a))
    others = [seen for a, seen in enumerate(arms) if a != best]

    def above_all(log_error: float) -> bool:
        log_shares = log_error - math.log(2.0 * len(arms))
        low = _end(arms[best], -1, log_shares, epsilon, grid)
        return all(_end(seen, 1, log_shares, epsilon, grid) < low for seen in others)

    low, high = -700.0, 0.0
    if not above_all(high):
        return Named(best, 1.0)
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if above_all(middle) else (middle, high)
    return Named(best, math.exp(high))


def _end(seen: Seen, side: int, log_shares: float, epsilon: float, grid: float) -> float:
    """Return the upper (1) or lower (-1) end of an arm's interval."""
    k = seen.releases
    log_share = log_shares - math.log(k * (k + 1.0))
    mean = (seen.total + side * noise_reach(k, round(log_share, 9)) / epsilon) / seen.n
    mean = min(1.0, max(0.0, mean + side * grid))
    bound = -log_share / seen.n
    return float(upper_root(mean, bound) if side > 0 else 1.0 - upper_root(1.0 - mean, bound))


@kernel
def pooled_cost(sum_a: Any, n_a: Any, sum_b: Any, n_b: Any) -> Any:
    """Return the least n_a kl(mean_a, q) + n_b kl(mean_b, q): what it costs to have one mean."""
    together = negative_entropy((sum_a + sum_b) / (n_a + n_b))
    apart = n_a * negative_entropy(sum_a / n_a) + n_b * negative_entropy(sum_b / n_b)
    return max(0.0, apart - (n_a + n_b) * together)


@cache
def noise_reach(k: int, log_share: float) -> float:
    """Return what the sum of k Laplace variables of scale 1 exceeds with probability e^log_share at most.

    Chernoff: ln P(sum >= x) <= -s x - k ln(1 - s^2) for every s in [0, 1), smallest at
    s = (sqrt(k^2 + x^2) - k) / x.

    Examples
    --------
    >>> import math
    >>> 2.3 < noise_reach(1, math.log(0.05)) < 5.1  # exactly ln 10 = 2.3 for one variable
    True
    """

    def exponent(x: float) -> float:
        s = (math.hypot(k, x) - k) / x
        return -s * x - k * math.log1p(-s * s)

    low, high = 1e-9, 1.0
    while exponent(high) > log_share:
        low, high = high, 2.0 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if exponent(middle) > log_share else (low, middle)
    return high
