"""Neighbouring tables of the users setting: other rewards, another visit, another user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.contextual.table import Table
from tacit.core.constraints import require


def edit_rewards(table: Table, entries: Sequence[tuple[int, int, float]]) -> Table:
    """Return the neighbouring table in which entries (round, slot) have the given rewards."""
    for t, slot, value in entries:
        if t < 0 or not 0 <= slot < table.n_shown:
            raise ValueError(
                f"edit_rewards: expected round >= 0 and slot in 0..{table.n_shown - 1}, "
                f"got ({t}, {slot}, {value})"
            )
    latest = list(entries)[::-1]
    return table._replace(
        edit_rounds=np.concatenate([np.array([e[0] for e in latest], np.int64), table.edit_rounds]),
        edit_slots=np.concatenate([np.array([e[1] for e in latest], np.int64), table.edit_slots]),
        edit_values=np.concatenate(
            [np.array([e[2] for e in latest], np.float64), table.edit_values]
        ),
    )


def edit_user(table: Table, user: int, value: float) -> Table:
    """Return the neighbouring table in which every reward of one user has the given value."""
    require("edit_user", "user", f"in 0..{table.n_users - 1}", 0 <= user < table.n_users, user)
    return table._replace(
        edit_users=np.concatenate([np.array([user], np.int64), table.edit_users]),
        edit_levels=np.concatenate([np.array([value], np.float64), table.edit_levels]),
    )


def edit_visit(table: Table, t: int, context: Any, value: float) -> Table:
    """Return the neighbouring table in which all candidates of a round are this one.

    They have the same context and the same reward, so that the choice among them tells nothing.
    """
    x = np.asarray(context, np.float64)
    fits = x.shape == table.edit_contexts.shape[1:]
    require("edit_visit", "context", f"of shape {table.edit_contexts.shape[1:]}", fits, x.shape)
    edited = edit_rewards(table, [(t, slot, value) for slot in range(table.n_shown)])
    return edited._replace(
        edit_visits=np.concatenate([np.array([t], np.int64), table.edit_visits]),
        edit_contexts=np.concatenate([x[None], table.edit_contexts]),
    )


def level_rewards(table: Table, value: float) -> Table:
    """Return the table in which every reward has the given value; edits come after."""
    return table._replace(level=float(value))
