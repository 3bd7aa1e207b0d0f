"""A guarantee over units and time: one reward, one round, one user; one message, the whole run."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.policy import Policy
from tacit.privacy import Guarantee, compose

__all__ = ["horizons", "spans"]


def spans(policy: Policy, horizon: int, delta: float) -> list[dict[str, Any]]:
    """Return rows of what is protected over `horizon` rounds, at what epsilon.

    Rewards of one round compose where several are used. A person who takes part in m rounds is
    protected by composition over those rounds, at delta 0 and at `delta`.
    """
    stated = policy.guarantee(horizon)
    rows = [_row(f"one {stated.unit}", stated)]
    if not (stated.private and stated.releases):
        return rows
    if stated.unit == "reward":
        rows.append(_row(*_round(stated, policy.rewards_per_round)))
    for m in _rounds(horizon):
        if m > 1 or stated.unit == "user":
            rows.append(_row(*_user(policy, stated, m, 0.0)))
            rows.append(_row(*_user(policy, stated, m, delta)))
    return rows


def horizons(policy: Policy, horizon: int, delta: float) -> list[tuple[int, float]]:
    """Return (m, epsilon at `delta`) for a user who takes part in m rounds."""
    stated = policy.guarantee(horizon)
    if not (stated.private and stated.releases):
        return [(m, stated.epsilon) for m in _rounds(horizon)]
    return [(m, _user(policy, stated, m, delta)[1].epsilon) for m in _rounds(horizon)]


def _round(stated: Guarantee, together: int) -> tuple[str, Guarantee]:
    parts = [(release, together * n) for release, n in stated.releases]
    whole = compose(parts, unit="round", trust=stated.trust, span=stated.span, basis=stated.basis)
    return "one round" + ("" if together == 1 else f", up to {together} rewards"), whole


def _user(policy: Policy, stated: Guarantee, m: int, delta: float) -> tuple[str, Guarantee]:
    if stated.unit == "user":
        return f"a user over {m:,} rounds", policy.guarantee(m).at(delta)
    return f"a user with {m:,} {stated.unit}s", stated.for_user(m, delta=delta)


def _rounds(horizon: int) -> list[int]:
    return sorted({int(m) for m in np.geomspace(1, horizon, 9).round()})


def _row(protected: str, guarantee: Guarantee) -> dict[str, Any]:
    return {
        "protected": protected,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "trust": guarantee.trust,
        "basis": guarantee.basis,
    }
