"""A guarantee over units and time: one reward, one round, one person; one message, the whole run.

Nothing here knows a setting. A policy whose history costs more or less than the sum of its records
has ``history_guarantee(horizon, delta=...)``, which is asked then.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.core.constraints import require
from tacit.core.policy import AnyPolicy
from tacit.privacy import Guarantee, L2CalibratedLaplaceRelease, compose, strength

_NAMES = {
    "loss": "losses",
    "reward": "rewards",
    "round": "rounds",
    "visit": "visits",
    "message": "messages",
}
_ONE = {"user": "one user's history", "agent": "one agent's history"}


def spans(
    policy: AnyPolicy, horizon: int, delta: float, *, records: int | None = None
) -> list[dict[str, Any]]:
    """Return rows of what is protected over `horizon` rounds, at what epsilon.

    Rewards of one round compose where several are used. A person who takes part m times is
    protected by composition, at delta 0 and, where that gains something that four digits show, at
    `delta`. An epsilon that is infinite, or perhaps larger than it need be, says so under
    ``remark``. No row is repeated.

    Parameters
    ----------
    policy : Policy
    horizon : int
    delta : float
        The delta of composed guarantees.
    records : int, optional
        How many rewards (rounds, losses) one person has; by default several numbers up to `horizon`.
    """
    stated = policy.guarantee(horizon)
    one = _ONE.get(stated.unit, f"one {stated.unit}")
    rows = [_row(one, stated)]
    if stated.unused:
        return rows
    if stated.private and not _composes(policy, stated):
        rows[0]["remark"] = "from a theorem, of which no more follows for rounds or users"
        return rows
    if not (stated.private or stated.releases):
        return rows
    if stated.releases:
        rows.append(_row(one, stated.at(delta), delta))
        if stated.unit == "reward" and policy.rewards_per_round > 1:
            rows.append(_row(*_round(stated, policy.rewards_per_round)))
    for m in _counts(horizon) if records is None else [records]:
        for allowed in (0.0, delta):
            rows.append(_row(_who(stated, m), person(policy, horizon, m, allowed), allowed))
    return _distinct(rows)


def person(policy: AnyPolicy, horizon: int, records: int, delta: float = 0.0) -> Guarantee:
    """Return what one person with `records` rewards (rounds, losses, messages) keeps at `delta`.

    Parameters
    ----------
    policy : Policy
    horizon : int
        Rounds of the whole run.
    records : int
        At most `horizon`, or what a round shows of a person times that.
    delta : float
    """
    most = horizon * max(1, policy.rewards_per_round)
    require("person", "records", f"in [1, {most}]", 1 <= records <= most, records)
    history: Any = getattr(policy, "history_guarantee", None)
    stated = policy.guarantee(horizon)
    if stated.unused or not _composes(policy, stated):
        return stated
    if history is not None:
        found: Guarantee = history(records, delta=delta)
        return found
    if stated.unit in _ONE:
        return policy.guarantee(records).at(delta)
    return stated.for_user(records, delta=delta)


def horizons(policy: AnyPolicy, horizon: int, delta: float) -> list[tuple[int, float]]:
    """Return (m, epsilon at `delta`) for a person who takes part in m rounds."""
    return [(m, person(policy, horizon, m, delta).epsilon) for m in _counts(horizon)]


def _composes(policy: AnyPolicy, stated: Guarantee) -> bool:
    return bool(stated.releases) or hasattr(policy, "history_guarantee")


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
    return f"one round, up to {together} rewards", whole


def _who(stated: Guarantee, m: int) -> str:
    if stated.unit in _ONE:
        return f"{'an agent' if stated.unit == 'agent' else 'a user'} over {m:,} round{'' if m == 1 else 's'}"
    whole = "an agent" if stated.unit in ("loss", "message") else "a user"
    return f"{whole} with {m:,} {stated.unit if m == 1 else _NAMES[stated.unit]}"


def _counts(horizon: int) -> list[int]:
    return sorted({round(m) for m in np.geomspace(1, horizon, 9).tolist()})


def _row(protected: str, guarantee: Guarantee, delta: float | None = None) -> dict[str, Any]:
    return {
        "protected": protected,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta if delta is None else delta,
        "which": "no record is used" if guarantee.unused else strength(guarantee.epsilon),
        "trust": guarantee.trust if guarantee.private else "",
        "basis": guarantee.basis,
        "remark": _remark(guarantee),
    }


def _distinct(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what a row before says as well: the same or a lesser epsilon at a lesser delta."""
    kept: list[dict[str, Any]] = []
    for row in rows:
        shown = float(f"{row['epsilon']:.4g}")
        said = (
            each["delta"] <= row["delta"] and float(f"{each['epsilon']:.4g}") <= shown
            for each in kept
            if _same(each["protected"], row["protected"])
        )
        if not any(said):
            kept.append(row)
    return kept


def _same(one: str, other: str) -> bool:
    single = {"one reward": "a user with 1 reward", "one round": "a user with 1 round"}
    single |= {"one loss": "an agent with 1 loss", "one message": "an agent with 1 message"}
    return one == other or single.get(one) == other


def _remark(guarantee: Guarantee) -> str:
    if math.isinf(guarantee.epsilon):
        return guarantee.note.rstrip(".").rpartition(". ")[2]
    for release, count in guarantee.releases:
        if isinstance(release, L2CalibratedLaplaceRelease) and guarantee.delta > 0 and count == 1:
            return f"some change needs {release.bracket(guarantee.delta)[0]:.4g}"
    return ""
