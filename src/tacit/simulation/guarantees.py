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
    guarantee = policy.guarantee(horizon)
    rows = [_row(f"one {guarantee.unit}", guarantee)]
    if guarantee.private and guarantee.unit != "user" and guarantee.releases:
        if guarantee.unit == "reward":
            together = policy.rewards_per_round
            parts = [(release, together * n) for release, n in guarantee.releases]
            scope = {"trust": guarantee.trust, "span": guarantee.span, "basis": guarantee.basis}
            most = "" if together == 1 else f", up to {together} rewards"
            rows.append(_row(f"one round{most}", compose(parts, unit="round", **scope)))
        for m in _rounds(horizon):
            if m > 1:
                who = f"a user with {m:,} {guarantee.unit}s"
                rows.append(_row(who, guarantee.for_user(m, delta=0.0)))
                rows.append(_row(who, guarantee.for_user(m, delta=delta)))
    return rows


def horizons(guarantee: Guarantee, horizon: int, delta: float) -> list[tuple[int, float]]:
    """Return (m, epsilon at `delta`) for a user who takes part in m rounds."""
    if not (guarantee.private and guarantee.unit != "user" and guarantee.releases):
        return [(m, guarantee.epsilon) for m in _rounds(horizon)]
    return guarantee.curve(_rounds(horizon), delta=delta)


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
