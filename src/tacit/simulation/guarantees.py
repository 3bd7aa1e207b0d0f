"""A guarantee over units and time: one reward, one round, one user; one message, the whole run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.policy import AnyPolicy
from tacit.privacy import Guarantee, L2CalibratedLaplaceRelease, compose

__all__ = ["horizons", "spans"]


def spans(policy: AnyPolicy, horizon: int, delta: float) -> list[dict[str, Any]]:
    """Return rows of what is protected over `horizon` rounds, at what epsilon.

    Rewards of one round compose where several are used. A person who takes part in m rounds is
    protected by composition over those rounds, at delta 0 and, where that gains something, at
    `delta`. An epsilon that is infinite, or perhaps larger than it need be, says so under
    ``remark``.
    """
    stated = policy.guarantee(horizon)
    one = f"one {stated.unit}"
    rows = [_row(one, stated, stated.delta)]
    if not (stated.private and stated.releases):
        if stated.private:
            rows[0]["remark"] = "from a theorem, of which no more follows for rounds or users"
        return rows
    loose = stated.at(delta)
    if loose.epsilon != stated.epsilon and loose.private and delta > stated.delta:
        rows.append(_row(one, loose, delta))
    if stated.unit == "reward":
        rows.append(_row(*_round(stated, policy.rewards_per_round), stated.delta))
    for m in _rounds(horizon):
        if m > 1 or stated.unit in ("user", "agent"):
            who, pure = _user(policy, stated, m, 0.0)
            _, loose = _user(policy, stated, m, delta)
            if pure.private:
                rows.append(_row(who, pure, 0.0))
            if loose.epsilon < pure.epsilon or not pure.private:
                rows.append(_row(who, loose, delta))
    return rows


def horizons(policy: AnyPolicy, horizon: int, delta: float) -> list[tuple[int, float]]:
    """Return (m, epsilon at `delta`) for a user who takes part in m rounds."""
    stated = policy.guarantee(horizon)
    if not (stated.private and stated.releases):
        return [(m, stated.epsilon) for m in _rounds(horizon)]
    return [(m, _user(policy, stated, m, delta)[1].epsilon) for m in _rounds(horizon)]


def _round(stated: Guarantee, together: int) -> tuple[str, Guarantee]:
    parts = [(release, together * n) for release, n in stated.releases]
    whole = compose(
        parts,
        delta=stated.delta,
        unit="round",
        trust=stated.trust,
        span=stated.span,
        basis=stated.basis,
    )
    return "one round" + ("" if together == 1 else f", up to {together} rewards"), whole


def _user(policy: AnyPolicy, stated: Guarantee, m: int, delta: float) -> tuple[str, Guarantee]:
    who = "an agent" if stated.unit in ("loss", "message", "agent") else "a user"
    if stated.unit in ("user", "agent"):
        return f"{who} over {m:,} rounds", policy.guarantee(m).at(delta)
    many = f"{stated.unit}es" if stated.unit == "loss" else f"{stated.unit}s"
    return f"{who} with {m:,} {many}", stated.for_user(m, delta=delta)


def _rounds(horizon: int) -> list[int]:
    return sorted({int(m) for m in np.geomspace(1, horizon, 9).round()})


def _row(protected: str, guarantee: Guarantee, delta: float) -> dict[str, Any]:
    return {
        "protected": protected,
        "epsilon": guarantee.epsilon,
        "delta": delta,
        "trust": guarantee.trust,
        "basis": guarantee.basis,
        "remark": _remark(guarantee),
    }


def _remark(guarantee: Guarantee) -> str:
    if math.isinf(guarantee.epsilon):
        return guarantee.note.rstrip(".").rpartition(". ")[2]
    for release, count in guarantee.releases:
        if isinstance(release, L2CalibratedLaplaceRelease) and guarantee.delta > 0 and count == 1:
            return f"some change needs {release.bracket(guarantee.delta)[0]:.4g}"
    return ""
