"""Exploration functions: how much evidence against an arm is enough to leave it, as rounds go by.

kl-UCB and its kin compare evidence with f(t). The named ones are ``"paper"``, ln t + 3 ln ln t, which
the regret bounds are proved for, and ``"log"``, ln t, which does better in practice. Any other
non-decreasing function of t can be given; kernels read it from a table of its values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import Constraint, require
from tacit.core.kernels import kernel

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


def exploration_of(owner: Any, f: str | Callable[[float], float]) -> Exploration:
    """Return what kernels need to know of an exploration function.

    Examples
    --------
    >>> from tacit.arms.exploration import exploration_of, level
    >>> round(level(exploration_of("KLUCB", "log"), 100.0), 3)
    4.605
    >>> round(level(exploration_of("KLUCB", lambda t: 2 * math.log(t)), 100.0), 3)
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
