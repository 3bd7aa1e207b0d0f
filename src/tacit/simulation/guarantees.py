"""A guarantee over units and time: one reward, one round, one user; one message, the whole run."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.privacy import Guarantee

__all__ = ["horizons", "spans"]


def spans(guarantee: Guarantee, horizon: int, delta: float) -> list[dict[str, Any]]:
    """Return rows of what is protected, for how long, at what epsilon.

    A person who takes part in m rounds is protected by composition over those rounds, at delta 0
    and at `delta`.
    """
    rows = [_row(f"one {guarantee.unit}", guarantee)]
    if guarantee.private and guarantee.unit != "user" and guarantee.releases:
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
