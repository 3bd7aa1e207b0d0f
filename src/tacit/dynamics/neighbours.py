"""Neighbouring tables of the learning dynamics: somebody adopts another option."""

from __future__ import annotations

import numpy as np

from tacit.core.constraints import require
from tacit.dynamics.table import Table
from tacit.privacy import NeighbouringPair


def pairs_of(table: Table, unit: str, horizon: int, limit: int) -> list[NeighbouringPair]:
    """Return at most `limit` pairs of tables for `unit`, the earliest rounds first."""
    unit = {"round": "message", "user": "agent"}.get(unit, unit)
    require("neighbours", "unit", "one of message, agent", unit in ("message", "agent"), unit)
    last, rounds = table.qualities.shape[1] - 1, range(horizon)
    spans = [rounds] if unit == "agent" else [range(t, t + 1) for t in rounds]
    pairs = []
    for span in spans:
        when = f"rounds 0 to {span[-1]}" if unit == "agent" else f"round {span[0]}"
        for agent in sorted({0, table.n_agents - 1}):
            for left, right in ((0, last), (0, -1), (last, -1))[0 if last > 0 else 1 :]:
                ends = [_adopt(table, agent, option, span) for option in (left, right)]
                other = "none" if right < 0 else f"option {right}"
                words = f"{when}, agent {agent} adopts option {left} against {other}"
                pairs.append(NeighbouringPair(ends[0], ends[1], words))
    return pairs[:limit]


def _adopt(table: Table, agent: int, option: int, rounds: range) -> Table:
    for t in rounds:
        table = edit_adoption(table, agent, option, before=t)
    return table


def edit_adoption(table: Table, agent: int, option: int, *, before: int = 0) -> Table:
    """Return the neighbouring table in which `agent` enters round `before` with another adoption.

    `option` -1 is for nothing; round 0 changes what the agent begins with.
    """
    M = table.qualities.shape[1]
    place = (before, agent)
    edited = set(zip(table.edit_rounds.tolist(), table.edit_agents.tolist(), strict=True))
    require("edit_adoption", "agent", "edited once a round", place not in edited, agent)
    inside = 0 <= agent < table.n_agents
    require("edit_adoption", "agent", f"in 0..{table.n_agents - 1}", inside, agent)
    require("edit_adoption", "option", f"in -1..{M - 1}", -1 <= option < M, option)
    require("edit_adoption", "before", ">= 0", before >= 0, before)
    return table._replace(
        edit_rounds=np.append(table.edit_rounds, np.int64(before)),
        edit_agents=np.append(table.edit_agents, np.int64(agent)),
        edit_options=np.append(table.edit_options, np.int64(option)),
    )
