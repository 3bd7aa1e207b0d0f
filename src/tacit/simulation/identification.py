"""Which arm is best: play until a policy is sure, and say how long that took and how often it was wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require
from tacit.core.policy import AnyEnvironment, AnyPolicy
from tacit.core.tapes import seeded_tape
from tacit.simulation.run import require_match

_LOOKS = 1.01


@dataclass(frozen=True)
class Identified:
    """What repetitions named, and when."""

    policy: AnyPolicy
    environment: AnyEnvironment
    confidence: float
    arms: NDArray[np.int64]
    """Shape (repetitions,): the arm named."""
    rounds: NDArray[np.int64]
    """Shape (repetitions,): when; the limit where it was never sure."""
    errors: NDArray[np.float64]
    """Shape (repetitions,): the error that goes with it."""

    @property
    def sure(self) -> NDArray[np.bool_]:
        """Which repetitions ended by being sure."""
        found: NDArray[np.bool_] = self.errors <= 1.0 - self.confidence
        return found


def identify(
    policy: Any,
    environment: AnyEnvironment,
    *,
    confidence: float = 0.95,
    limit: int = 1_000_000,
    repetitions: int = 1,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Identified:
    """Play until `policy` is sure which arm is best.

    Parameters
    ----------
    policy : Policy
        One that names arms: it has ``best_arm``.
    environment : Environment
    confidence : float, default 0.95
        The chance of naming a best arm that is promised, if means do not change.
    limit : int, default 1,000,000
        When to give up.
    repetitions : int, default 1
    seed : int, default 0
    progress : callable, optional
        Called with the number of repetitions done, and of all.

    Returns
    -------
    Identified

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import Bernoulli, TopTwoCF
    >>> found = tacit.identify(TopTwoCF(n_arms=3), Bernoulli(means=(0.5, 0.9, 0.1)), repetitions=5)
    >>> found.arms.tolist()
    [1, 1, 1, 1, 1]
    """
    require("identify", "confidence", "in (0, 1)", 0 < confidence < 1, confidence)
    require("identify", "limit", ">= 1", limit >= 1, limit)
    require("identify", "repetitions", ">= 1", repetitions >= 1, repetitions)
    names = hasattr(policy, "best_arm")
    require("identify", "policy", "one that names arms, such as dp-top-two", names, policy.name)
    require_match(policy, environment, limit)
    found = []
    for repetition in range(repetitions):
        table = environment.table(seed, repetition, limit)
        tape, state = seeded_tape(seed, repetition), policy.start(table)
        trace = environment.trace(limit, np.array([limit]))
        t, named = 0, None
        while t < limit and (named is None or named.error > 1.0 - confidence):
            look = min(limit, max(t + 1, int(t * _LOOKS)))
            policy.play(state, table, tape, trace, t, look)
            t, named = look, policy.best_arm(state)
        found.append((named.arm, t, named.error) if named is not None else (0, t, 1.0))
        if progress is not None:
            progress(repetition + 1, repetitions)
    arms, rounds, errors = zip(*found, strict=True)
    return Identified(
        policy, environment, confidence, np.array(arms), np.array(rounds), np.array(errors)
    )
