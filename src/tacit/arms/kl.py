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
def upper_root(p: Any, h: Any, bound: Any) -> Any:
    """Return max{q in [p, 1]: d(p, q) <= bound}, given h, the negative entropy of p."""
    if p >= 1.0:
        return 1.0
    if bound <= 0.0:
        return p
    if p < 1e-300:
        return 1.0 - math.exp(-bound)
    # Points that cannot lie below the root. d(p, q) >= (q - p)^2 / 2v, v the largest x(1 - x) on
    # [p, q], gives one, twice; dropping -p ln q >= 0 gives another, which is sharp near 1.
    q = p + math.sqrt(2.0 * bound * (p * (1.0 - p) if p >= 0.5 else 0.25))
    if q < 0.5:
        q = p + math.sqrt(2.0 * bound * q * (1.0 - q))
    # Newton runs in y = 1 - q, where a root close to 1 keeps its digits.
    y = max(1.0 - q, math.exp((h - bound) / (1.0 - p)))
    if y < 1e-300:
        return 1.0
    for _ in range(100):
        gap = 1.0 - y - p
        if gap <= 0.0:
            break
        # Of two equal forms of each logarithm, the one that keeps its digits.
        part = gap / (1.0 - p)
        log_y = math.log1p(-part) if part < 0.5 else math.log(y / (1.0 - p))
        excess = -p * math.log1p(gap / p) - (1.0 - p) * log_y - bound
        step = excess * y * (1.0 - y) / gap
        y += step
        # The error left is at most about step^2 f''/2f'.
        if step * step * (1.0 / gap + 1.0 / y) <= 1e-16:
            break
    return 1.0 - y
