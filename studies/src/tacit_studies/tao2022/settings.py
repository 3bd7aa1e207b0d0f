"""Paper 001: what its studies share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

BETA = 0.505
BOUND = 6 * math.log(BETA / (1 - BETA))
"""6 delta, the paper's bound on regret."""
QUALITIES = tuple(np.linspace(0.9, 0.1, 10).tolist())
"""Of ten options."""


def name_epsilon(epsilon: float) -> str:
    """Name a level of privacy for a reader."""
    return "not private" if math.isinf(epsilon) else f"epsilon = {epsilon:g}"


def crowd(**parameters: Any) -> dict[str, Any]:
    """Return the learning dynamics of a whole crowd at once, with these parameters."""
    return {"name": "learning-dynamics", "engine": "crowd", **parameters}


def options(
    n_agents: int, qualities: Sequence[float] = QUALITIES, **parameters: Any
) -> dict[str, Any]:
    """Return so many agents who choose among options of these qualities."""
    chosen = {"name": "social-options", "qualities": list(qualities), "n_agents": n_agents}
    return {**chosen, **parameters}
