"""What callers give a policy of this setting, checked: people, contexts, rewards and tables."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.contextual.table import RECORDED, Table
from tacit.core.constraints import require
from tacit.core.policy import AnyPolicy, require_secure
from tacit.core.tapes import SECURE, Tape

_LARGEST = 1e100
"""Of numbers whose squares and sums of squares are still numbers."""


class _Sized(Protocol):
    """A policy of this setting."""

    @property
    def n_users(self) -> int: ...
    @property
    def dimension(self) -> int: ...
    @property
    def reward_range(self) -> tuple[float, float]: ...


def require_fit(policy: _Sized, table: Table, *, short: bool) -> None:
    """Refuse a table of other sizes than the policy's or, if they must be `short`, contexts beyond 1."""
    rule = f"== {table.n_users}, as the table has"
    require(policy, "n_users", rule, policy.n_users == table.n_users, policy.n_users)
    d = table.features.shape[1]
    require(
        policy, "dimension", f"== {d}, as the table has", policy.dimension == d, policy.dimension
    )
    if short:
        _require_short(policy, "contexts", table.features)


def require_rounds(policy: _Sized, table: Table, last: int) -> None:
    """Refuse to play beyond the end of a recorded table."""
    if table.kind == RECORDED:
        rounds = len(table.users)
        require(policy, "last", f"<= {rounds}, the table's rounds", last <= rounds, last)


def require_person(policy: _Sized, user: int) -> None:
    """Refuse somebody whom the policy does not know."""
    require(policy, "user", f"in 0..{policy.n_users - 1}", 0 <= user < policy.n_users, user)


def require_tape(policy: AnyPolicy, tape: Tape) -> None:
    """Refuse a secure tape if the policy's noise is not exact there."""
    if tape.kind == SECURE:
        require_secure(policy)


def read_reward(policy: _Sized, reward: float) -> float:
    """Return a reward that is a number."""
    require(policy, "reward", "a number", math.isfinite(reward), reward)
    return float(reward)


def read_range(policy: _Sized) -> tuple[float, float]:
    """Return the range of rewards as two numbers."""
    low, high = policy.reward_range
    finite = -math.inf < low < high < math.inf
    require(policy, "reward_range", "(low, high) with low < high", finite, (low, high))
    return float(low), float(high)


def read_context(policy: _Sized, context: ArrayLike, *, short: bool) -> NDArray[np.float64]:
    """Return one context; no longer than 1 if it must be `short`."""
    x = np.ascontiguousarray(context, np.float64)
    fits = x.shape == (policy.dimension,)
    require(policy, "context", f"of shape ({policy.dimension},)", fits, x.shape)
    require(policy, "context", "finite", bool(np.isfinite(x).all()), x.tolist())
    if short:
        _require_short(policy, "context", x[None])
    return x


def read_contexts(policy: _Sized, contexts: Any, *, short: bool = False) -> NDArray[np.float64]:
    """Return contexts, one a row; none longer than 1 if they must be `short`."""
    d = policy.dimension
    try:
        rows = np.ascontiguousarray(contexts, np.float64)
    except (TypeError, ValueError):
        rule = f"rows of {d} numbers, one for each that may be offered"
        require(policy, "contexts", rule, False, contexts)
        raise
    fits = rows.ndim == 2 and rows.shape[1] == d and len(rows) > 0
    require(policy, "contexts", f"of shape (n, {d})", fits, rows.shape)
    require(policy, "contexts", "finite", bool(np.isfinite(rows).all()), "one that is not")
    largest = float(np.abs(rows).max())
    require(policy, "contexts", f"up to {_LARGEST:g}", largest <= _LARGEST, largest)
    if short:
        _require_short(policy, "contexts", rows)
    return rows


def _require_short(policy: _Sized, name: str, rows: NDArray[np.float64]) -> None:
    longest = float(np.sqrt(np.max(np.sum(rows**2, axis=1))))
    require(policy, name, "of length <= 1", longest <= 1 + 1e-9, longest)
