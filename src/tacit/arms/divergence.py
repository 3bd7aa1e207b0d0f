"""Divergences between Bernoulli means, and the largest mean that a divergence allows.

d(p, q) = p ln(p/q) + (1-p) ln((1-p)/(1-q)), Kullback and Leibler's, is convex in q. Close to p its root has a
power series that leaves one step of Halley's method to do; elsewhere Newton's method, started at a point
above the root, descends to it without overshooting and without a bracket.

d_eps(x, y) = inf over z of eps |z - x| + d(z, y) says how well epsilon-private data tells a mean x from a
larger one y: what a private learner can tell from its own noise it pays for at eps a unit, the rest at the
rate of d. The best z is z* = y e^-eps / (1 - y + y e^-eps), unless x is larger already, and there the sum is
-eps x - ln(1 - y (1 - e^-eps)). Azize, Wu, Honda, Orabona, Ito, Basu (2025).
"""

from __future__ import annotations

import math
from typing import Any

from tacit.core.kernels import kernel


@kernel
def negative_entropy(p: Any) -> Any:
    """Return p ln p + (1 - p) ln(1 - p), the part of d(p, q) that does not depend on q."""
    if p <= 0.0 or p >= 1.0:
        return 0.0
    return p * math.log(p) + (1.0 - p) * math.log1p(-p)


@kernel
def upper_root(p: Any, bound: Any) -> Any:
    """Return max{q in [p, 1]: d(p, q) <= bound}."""
    if p >= 1.0:
        return 1.0
    if bound <= 0.0:
        return p
    if p < 1e-300:
        return 1.0 - math.exp(-bound)
    # Steps are taken in y = 1 - q, where a root close to 1 keeps its digits.
    v = p * (1.0 - p)
    s = math.sqrt(2.0 * v * bound)
    if s < 0.2 * min(p, 1.0 - p):
        b = 2.0 * (2.0 * p - 1.0) / (3.0 * v)
        c = (1.0 - 3.0 * v) / (2.0 * v * v)
        y = 1.0 - p - s * (1.0 + s * (-0.5 * b + s * (0.625 * b * b - 0.5 * c)))
    else:
        # Points that cannot lie below the root. d(p, q) >= (q - p)^2 / 2v, v the largest x(1 - x) on
        # [p, q], gives one, twice; dropping -p ln q >= 0 gives another, which is sharp near 1.
        q = p + (s if p >= 0.5 else math.sqrt(0.5 * bound))
        if q < 0.5:
            q = p + math.sqrt(2.0 * bound * q * (1.0 - q))
        y = max(1.0 - q, math.exp((negative_entropy(p) - bound) / (1.0 - p)))
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
        q = 1.0 - y
        step = excess * y * q / gap
        # Halley's correction; the second and third derivatives bound the error that it leaves.
        # They are multiplied by the step before y, which may be tiny, can divide them.
        turn = step / y
        bend = 0.5 * (p * y / q * step + (1.0 - p) * q * turn) / gap
        left = abs(step)
        if abs(bend) < 0.1:
            step /= 1.0 - bend
            twist = ((1.0 - p) * q * turn * turn - p * y * step * step / (q * q)) / (3.0 * gap)
            left *= bend * bend + abs(twist)
        y += step
        if left <= 1e-16 + 1e-16 * y:
            break
    return 1.0 - y


@kernel
def private_divergence(x: Any, y: Any, epsilon: Any) -> Any:
    """Return d_eps(x, y); 0 where y is not larger than x."""
    if y <= x:
        return 0.0
    lost = -math.expm1(-epsilon)
    left = 1.0 - y * lost
    if y * math.exp(-epsilon) <= x * left:
        if y >= 1.0:
            return math.inf
        return negative_entropy(x) - x * math.log(y) - (1.0 - x) * math.log1p(-y)
    return max(0.0, -epsilon * x - math.log1p(-y * lost))


@kernel
def private_upper_root(x: Any, bound: Any, epsilon: Any) -> Any:
    """Return max{q in [x, 1]: d_eps(x, q) <= bound}."""
    lost = -math.expm1(-epsilon)
    turn = x / (x * lost + math.exp(-epsilon)) if x > 0.0 else 0.0  # where z* is x
    if turn < 1.0 and private_divergence(x, turn, epsilon) < bound:
        return min(1.0, -math.expm1(-(bound + epsilon * x)) / lost)
    return min(upper_root(x, bound), 1.0)


@kernel
def private_slope(x: Any, y: Any, epsilon: Any) -> Any:
    """Return the derivative of d_eps(x, y) by y in 0 < y < 1; 0 where y is not larger than x."""
    if y <= x:
        return 0.0
    lost = -math.expm1(-epsilon)
    left = 1.0 - y * lost
    if y * math.exp(-epsilon) <= x * left:
        return (y - x) / (y * (1.0 - y))
    return lost / left
