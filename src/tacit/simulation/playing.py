"""One repetition, with everything it leaves behind: for whoever edits a table or looks inside a policy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require
from tacit.core.policy import AnyEnvironment, AnyPolicy
from tacit.core.tapes import seeded_tape
from tacit.simulation.run import require_match


class Played(NamedTuple):
    """What one repetition leaves behind."""

    trace: Any
    """Its measures after the last round, and what else its setting keeps."""
    state: Any
    """The state of the policy after the last round."""
    released: NDArray[np.float64]
    """The first values released, in order; as many as were asked for."""


def play(
    policy: AnyPolicy,
    environment: AnyEnvironment,
    *,
    horizon: int,
    table: Any = None,
    seed: int = 0,
    repetition: int = 0,
    record: bool = False,
    released: int = 0,
) -> Played:
    """Play one repetition, on any table of the environment's setting.

    Two tables with the same seed and repetition are played with the same noise.

    Parameters
    ----------
    policy : Policy
    environment : Environment
        Of the same setting as the policy.
    horizon : int
        Number of rounds T.
    table : optional
        By default that of the environment: ``environment.table(seed, repetition, horizon)``.
    seed, repetition : int
        Choose the noise, and the table unless one is given; the same as in `simulate`.
    record : bool, default False
        Keep every decision in the trace.
    released : int, default 0
        How many released values to keep.

    Examples
    --------
    >>> from tacit.arms import KLUCBCF, Bernoulli, edit_rewards
    >>> from tacit.simulation import play
    >>> environment = Bernoulli(means=(0.3, 0.7))
    >>> policy = KLUCBCF(n_arms=2, epsilon=1.0)
    >>> table = environment.table(0, 0, 100)
    >>> other = edit_rewards(table, [(0, 0, 1.0)])
    >>> one, two = (play(policy, environment, horizon=100, table=t, record=True) for t in (table, other))
    >>> one.trace.decisions.shape == two.trace.decisions.shape == (100,)
    True
    """
    require("play", "horizon", ">= 1", horizon >= 1, horizon)
    require_match(policy, environment, horizon)
    chosen = environment.table(seed, repetition, horizon) if table is None else table
    tape = seeded_tape(seed, repetition, log=released)
    state = policy.start(chosen)
    trace = environment.trace(horizon, np.array([horizon]), record=record)
    policy.play(state, chosen, tape, trace, 0, horizon)
    return Played(trace, state, tape.log)
