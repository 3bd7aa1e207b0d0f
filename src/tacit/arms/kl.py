"""The Bernoulli Kullback-Leibler index, exact to rounding.

d(p, q) = p ln(p/q) + (1-p) ln((1-p)/(1-q)) is convex in q, so Newton's method started at a point
above the root descends to it without overshooting and without a bracket.
"""

from __future__ import annotations

import math
from typing import Any

from tacit.compiled import kernel

__all__ = ["negative_entropy", "upper_root"]


@kernel
def negative_entropy(p: Any) -> Any:
    """Return p ln p + (1 - p) ln(1 - p), the part of d(p, q) that does not depend on q."""
    if p <= 0.0 or p >= 1.0:
        return 0.0
    return p * math.log(p) + (1.0 - p) * math.log1p(-p)


@kernel
def upper_root(p: Any, bound: Any) -> Any:
    """Return max{q in [p, 1]: d(p, q) <= bound}."""
    if p >= 1.0 or bound == math.inf:
        return 1.0
    if bound <= 0.0:
        return p
    h = negative_entropy(p)
    # Two points that cannot lie below the root: Pinsker's, and the one that drops -p ln q >= 0.
    # Newton runs in y = 1 - q, where a root close to 1 keeps its digits.
    y = max(1.0 - p - math.sqrt(0.5 * bound), math.exp((h - bound) / (1.0 - p)))
    if p <= 0.0:
        return 1.0 - y
    for _ in range(100):
        excess = h - p * math.log1p(-y) - (1.0 - p) * math.log(y) - bound
        step = excess * y * (1.0 - y) / (1.0 - y - p)
        y += step
        if not step > 1e-16 + 4e-16 * y:
            break
    return 1.0 - y
