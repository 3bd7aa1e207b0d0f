"""Has an arm changed? A generalised likelihood ratio over its feedback, in bounded memory.

The feedback of an arm since the last restart is kept in buckets of 1, 2, 4, ... values, newest first, at
most eight of each size: the finer, the more recent. Where a bucket ends the feedback may be split, and
s kl(m1, m) + (n - s) kl(m2, m) weighs the means of both parts against the common one. A change is
looked for at every split; what buckets have merged was looked at when it was recent. Memory grows with
the logarithm of the number of values: 40 sizes hold more than 10^12.

A Bayesian asks instead how much more probable the bits are with a change at the split than without one, if
every mean was drawn evenly from [0, 1] before: the probability of n bits of which S are ones is then
B(S + 1, n - S + 1), and the answer is a ratio of three such.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arms.divergence import negative_entropy
from tacit.core.kernels import kernel

_SIZES, _ALIKE = 40, 8


class History(NamedTuple):
    """The feedback of K arms since the last restart."""

    sums: NDArray[np.float64]
    """Shape (K, 40, 9): the sum of each bucket, oldest first; bucket [a, j] holds 2^j values."""
    held: NDArray[np.int64]
    """Shape (K, 40): how many buckets of each size there are."""


def new_history(n_arms: int) -> History:
    """Return that nothing was seen."""
    return History(np.zeros((n_arms, _SIZES, _ALIKE + 1)), np.zeros((n_arms, _SIZES), np.int64))


@kernel
def forget_all(history: Any) -> None:
    """Forget the feedback of all arms."""
    history.held[:] = 0


@kernel
def remember(history: Any, arm: Any, value: Any) -> None:
    """Add one value; where there are nine buckets of a size, the two oldest become one."""
    for j in range(_SIZES):
        n = history.held[arm, j]
        history.sums[arm, j, n] = value
        if n < _ALIKE or j + 1 == _SIZES:
            history.held[arm, j] = min(n + 1, _ALIKE)
            return
        value = history.sums[arm, j, 0] + history.sums[arm, j, 1]
        for i in range(2, n + 1):
            history.sums[arm, j, i - 2] = history.sums[arm, j, i]
        history.held[arm, j] = n - 1


@kernel
def two_sample_ratio(n1: Any, sum1: Any, n2: Any, sum2: Any) -> Any:
    """Return n1 kl(m1, m) + n2 kl(m2, m) for the means m1, m2 of two samples and m of both."""
    if n1 <= 0 or n2 <= 0:
        return 0.0
    n = n1 + n2
    m1, m2 = min(1.0, max(0.0, sum1 / n1)), min(1.0, max(0.0, sum2 / n2))
    m = min(1.0, max(0.0, (sum1 + sum2) / n))
    return n1 * negative_entropy(m1) + n2 * negative_entropy(m2) - n * negative_entropy(m)


@kernel(inlined=False)
def largest_ratio(history: Any, arm: Any, n: Any, total: Any) -> Any:
    """Return the largest ratio over all splits of the arm's n values, whose sum is `total`."""
    largest, late, late_sum = 0.0, 0, 0.0
    for j in range(_SIZES):
        for i in range(history.held[arm, j] - 1, -1, -1):
            late += 1 << j
            late_sum += history.sums[arm, j, i]
            if late < n:
                ratio = two_sample_ratio(n - late, total - late_sum, late, late_sum)
                largest = max(largest, ratio)
    return largest


@kernel
def log_probability(n: Any, total: Any) -> Any:
    """Return the logarithm of the probability of n bits that sum to `total`, their mean unknown."""
    return math.lgamma(total + 1.0) + math.lgamma(n - total + 1.0) - math.lgamma(n + 2.0)


@kernel(inlined=False)
def largest_odds(history: Any, arm: Any, n: Any, total: Any) -> Any:
    """Return the log of the largest odds of a change, over all splits of the arm's n values."""
    largest, late, late_sum = -np.inf, 0, 0.0
    whole = log_probability(n, total)
    for j in range(_SIZES):
        for i in range(history.held[arm, j] - 1, -1, -1):
            late += 1 << j
            late_sum += history.sums[arm, j, i]
            if late < n:
                early_sum = max(0.0, total - late_sum)
                both = log_probability(n - late, early_sum) + log_probability(late, late_sum)
                largest = max(largest, both - whole)
    return largest
