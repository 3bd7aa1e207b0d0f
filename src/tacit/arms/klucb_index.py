"""The largest of many Kullback-Leibler indices, hardly any of which is solved, and how it explores.

The index of an arm is the largest mean q with N d(lambda, g(q)) <= f, where g(q) = low + (high - low) q is
the mean of what is observed of an arm of mean q (for rewards themselves low = 0, high = 1). It reaches a
bar b exactly if the *evidence* N d(lambda, g(b)) that the arm's mean is lower is at most f. Evidence
changes only with the arm or the bar. If one arm alone reaches the bar, it is the best; if not, indices
are solved, and the largest is the bar from then on. Measured with ten arms
(``python benchmarks/lazy_argmax.py``), beside solving every index in every round and with the same
decisions: 16 times the rounds a second of kl-UCB, 6 to 7 times those of SW-KLUCB-CF.

f(t) says how much evidence against an arm is enough to leave it. The named ones are ``"paper"``,
ln t + 3 ln ln t, which the regret bounds are proved for, and ``"log"``, ln t, which does better in practice.
Any other non-decreasing function of t can be given; kernels read it from a table of its values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.divergence import negative_entropy, upper_root
from tacit.core.constraints import Constraint, require
from tacit.core.kernels import kernel
from tacit.core.tapes import CHOICE, uniform

_NAMED = {"paper": 3.0, "log": 0.0}
_KNOTS, _LAST = 64, 43.0  # knots for each unit of ln t, up to t = e^43

ExplorationFunction = Annotated[
    str | Callable[[float], float],
    Constraint("one of paper, log or a function of t", lambda f: callable(f) or f in _NAMED),
]
"""``"paper"``, ``"log"`` or a non-decreasing function of the number of rounds."""


class Exploration(NamedTuple):
    """f(t) = ln t + c ln ln t, or values of another function at even steps of ln t."""

    loglog: float
    """c."""
    knots: NDArray[np.float64]
    """Shape (n,): f(e^(i / 64)); (0,) for a named function."""


def tabulate_exploration(owner: Any, f: str | Callable[[float], float]) -> Exploration:
    """Return what kernels need to know of an exploration function.

    Examples
    --------
    >>> from tacit.arms.klucb_index import level, tabulate_exploration
    >>> round(level(tabulate_exploration("KLUCB", "log"), 100.0), 3)
    4.605
    >>> round(level(tabulate_exploration("KLUCB", lambda t: 2 * math.log(t)), 100.0), 3)
    9.21
    """
    if isinstance(f, str):
        return Exploration(_NAMED[f], np.empty(0))
    places = np.exp(np.arange(int(_LAST * _KNOTS) + 1) / _KNOTS)
    knots = np.array([float(f(float(t))) for t in places])
    finite = bool(np.isfinite(knots).all())
    require(owner, "exploration", "finite from t = 1 on", finite, f)
    rising = bool((np.diff(knots) >= 0).all())
    require(owner, "exploration", "non-decreasing from t = 1 on", rising, f)
    return Exploration(0.0, np.maximum(knots, 0.0))


def level_at(f: Any, s: Any) -> Any:
    """Return f(s), at least 0; what is not a kernel asks here, and waits for no compilation."""
    if s <= 1.0:
        return 0.0 if f.knots.size == 0 else f.knots[0]
    x = math.log(s)
    if f.knots.size == 0:
        return max(0.0, x + f.loglog * math.log(x))
    x *= _KNOTS
    i = min(int(x), f.knots.size - 2)
    return f.knots[i] + min(x - i, 1.0) * (f.knots[i + 1] - f.knots[i])


level = kernel(level_at)


class IndexCache(NamedTuple):
    """What is known of the indices of K arms."""

    means: NDArray[np.float64]
    """Shape (K,): lambda, the mean of what was observed."""
    entropies: NDArray[np.float64]
    """Shape (K,): the negative entropy of the mean."""
    evidence: NDArray[np.float64]
    """Shape (K,): N d(lambda, g(b)), or -inf where it is no evidence against reaching b."""
    stale: NDArray[np.bool_]
    """Shape (K,): where mean, entropy and evidence are older than the counts; set by the owner."""
    bar: NDArray[np.float64]
    """Shape (1,): b."""
    at_bar: NDArray[np.float64]
    """Shape (K, 3): g(b), its logarithm, and that of 1 - g(b)."""
    latest: NDArray[np.int64]
    """Shape (1,): the latest arm, whose index is solved first."""
    tied: NDArray[np.int64]
    """Shape (K,): the arms among which the latest was drawn, `ties` of them."""
    ties: NDArray[np.int64]
    """Shape (1,): how many."""


def new_index_cache(n_arms: int) -> IndexCache:
    """Return a cache that knows nothing."""
    return IndexCache(
        means=np.zeros(n_arms),
        entropies=np.zeros(n_arms),
        evidence=np.full(n_arms, -np.inf),
        stale=np.zeros(n_arms, np.bool_),
        bar=np.zeros(1),
        at_bar=np.zeros((n_arms, 3)),
        latest=np.zeros(1, np.int64),
        tied=np.zeros(n_arms, np.int64),
        ties=np.ones(1, np.int64),
    )


@kernel
def solve_index(ends: Any, a: Any, N: Any, lam: Any, f: Any) -> Any:
    """Return max{q in [0, 1]: N d(lambda, g_a(q)) <= f}; 1 for an arm without observations."""
    if N == 0:
        return 1.0
    low, high = ends[a, 0], ends[a, 1]
    bound = upper_root(lam, f / N) if low < high else 1.0 - upper_root(1.0 - lam, f / N)
    return min(1.0, max(0.0, (bound - low) / (high - low)))


@kernel
def largest_index(ends: Any, state: Any, tape: Any, t: Any, eligible: Any, f: Any) -> Any:
    """Return the eligible arm with the largest index; ties are drawn.

    `ends` are low and high, in one row for all arms alike or in a row for each. The state has ``counts``,
    ``sums`` and ``lazy``, an `IndexCache`.
    """
    cache, best, n = state.lazy, 0, 0
    for i in range(eligible.size):
        a = eligible[i]
        if cache.stale[a]:
            N = state.counts[a]
            cache.means[a] = min(1.0, max(0.0, state.sums[a] / N)) if N > 0 else 0.0
            cache.entropies[a] = negative_entropy(cache.means[a])
            cache.evidence[a] = _evidence(ends, state.counts, cache, a)
            cache.stale[a] = False
        if cache.evidence[a] <= f:
            best = a
            n += 1
    if n == 1:
        return record_single_choice(cache, best)
    if n == 0:
        _set_bar(ends, state.counts, cache, 0.0, 0, state.counts.size)
    best = _solve(ends, state.counts, cache, tape, t, eligible, f)
    cache.latest[0] = best
    return best


@kernel
def record_single_choice(cache: Any, arm: Any) -> Any:
    """Note that `arm` was chosen without a draw, and return it."""
    cache.ties[0], cache.tied[0], cache.latest[0] = 1, arm, arm
    return arm


@kernel
def probabilities(params: Any, state: Any, t: Any, eligible: Any, out: Any) -> None:
    """Write the probability that each arm had in the latest choice into `out`, shape (K,)."""
    out[:] = 0.0
    for i in range(state.lazy.ties[0]):
        out[state.lazy.tied[i]] = 1.0 / state.lazy.ties[0]


@kernel(inlined=False)
def _solve(ends: Any, counts: Any, cache: Any, tape: Any, t: Any, eligible: Any, f: Any) -> Any:
    # Solve the index of each arm that reaches the bar, which rises to the largest index so far.
    ties, q, least = 0, -1.0, f
    # The latest arm first: most often it is still the best, and its index rules out the others.
    latest = -1
    for i in range(eligible.size):
        if eligible[i] == cache.latest[0]:
            latest = eligible[i]
    for i in range(-1, eligible.size):
        a = latest if i < 0 else eligible[i]
        if a < 0 or (i >= 0 and a == latest) or cache.evidence[a] > least:
            continue
        index = 1.0
        if cache.bar[0] < 1.0:
            index = solve_index(ends, min(a, ends.shape[0] - 1), counts[a], cache.means[a], f)
        if index > q:
            q, ties = index, 0
            _set_bar(ends, counts, cache, q, 0, counts.size)
            # At its own index an arm's evidence is f but for rounding, and its twin's is the same.
            least = max(f, cache.evidence[a])
        if index == q:
            cache.tied[ties] = a
            ties += 1
    cache.ties[0] = ties
    if ties == 1:
        return cache.tied[0]
    return cache.tied[int(uniform(tape, t, 0, CHOICE) * ties)]


@kernel(inlined=False)
def _set_bar(ends: Any, counts: Any, cache: Any, b: Any, first: Any, last: Any) -> None:
    # For the arms first to last - 1.
    cache.bar[0] = b
    at = cache.at_bar
    for a in range(first, last):
        if a >= ends.shape[0]:
            at[a, 0], at[a, 1], at[a, 2] = at[0, 0], at[0, 1], at[0, 2]
        else:
            g = ends[a, 1] if b >= 1.0 else ends[a, 0] + b * (ends[a, 1] - ends[a, 0])
            at[a, 0] = g
            at[a, 1] = math.log(g) if g > 0.0 else -np.inf
            at[a, 2] = math.log1p(-g) if g < 1.0 else -np.inf
        cache.evidence[a] = _evidence(ends, counts, cache, a)


@kernel
def move_line(ends: Any, counts: Any, cache: Any, a: Any) -> None:
    """Note that arm a's row of `ends`, which has a row for each arm, is another than before."""
    before = cache.evidence[a]
    _set_bar(ends, counts, cache, cache.bar[0], a, a + 1)
    cache.evidence[a], cache.stale[a] = before, True  # of an old mean it says nothing


@kernel
def _evidence(ends: Any, counts: Any, cache: Any, a: Any) -> Any:
    row = min(a, ends.shape[0] - 1)
    lam, g = cache.means[a], cache.at_bar[a, 0]
    reached = lam >= g if ends[row, 0] < ends[row, 1] else lam <= g
    if reached or counts[a] == 0 or cache.bar[0] <= 0.0:
        return -np.inf
    return counts[a] * (
        cache.entropies[a] - lam * cache.at_bar[a, 1] - (1.0 - lam) * cache.at_bar[a, 2]
    )
