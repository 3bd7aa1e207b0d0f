"""d_eps: how well epsilon-private data tells one Bernoulli mean from a larger one.

d_eps(x, y) = inf over z of eps |z - x| + kl(z, y): what a private learner can tell from its own noise it pays
for at eps a unit, the rest at the Kullback-Leibler rate. For x < y the best z is
z* = y e^-eps / (1 - y + y e^-eps), unless x is larger already, and there the sum is
-eps x - ln(1 - y (1 - e^-eps)). Azize, Wu, Honda, Orabona, Ito, Basu (2025).
"""

from __future__ import annotations

import math
from typing import Any

from tacit.arms.kl import negative_entropy, upper_root
from tacit.core.kernels import kernel


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
