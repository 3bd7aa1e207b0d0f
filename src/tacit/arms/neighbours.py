"""Neighbouring tables of the arms setting: the same rewards but for a few."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tacit.arms.table import GAUSSIAN, Table


def edit_rewards(table: Table, entries: Sequence[tuple[int, int, float]]) -> Table:
    """Return the neighbouring table in which entries (round, arm) have the given values."""
    n_arms = table.means.shape[1]
    rule = "finite" if table.kind == GAUSSIAN else "in [0, 1]"
    for t, a, value in entries:
        paid = math.isfinite(value) if table.kind == GAUSSIAN else 0.0 <= value <= 1.0
        if t < 0 or not 0 <= a < n_arms or not paid:
            raise ValueError(
                f"edit_rewards: expected round >= 0, arm in 0..{n_arms - 1} and value {rule}, "
                f"got ({t}, {a}, {value})"
            )
    # Later entries win, so they come first: `reward` takes the first match.
    return table._replace(
        edit_rounds=np.concatenate(
            [np.array([e[0] for e in entries][::-1], np.int64), table.edit_rounds]
        ),
        edit_arms=np.concatenate(
            [np.array([e[1] for e in entries][::-1], np.int64), table.edit_arms]
        ),
        edit_values=np.concatenate(
            [np.array([e[2] for e in entries][::-1], np.float64), table.edit_values]
        ),
    )
