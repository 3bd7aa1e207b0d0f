"""Paper 001: what its studies share."""

from __future__ import annotations

import math

BETA = 0.505
BOUND = 6 * math.log(BETA / (1 - BETA))
"""6 delta, the paper's bound on regret."""


def epsilon_name(epsilon: float) -> str:
    """Name a level of privacy for a reader."""
    return "not private" if math.isinf(epsilon) else f"epsilon = {epsilon:g}"
