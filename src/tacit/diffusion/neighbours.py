"""Pairs of tables that differ in all that one unit of the diffusion setting contains.

A unit is one agent's ``"loss"`` of a round, whatever state it names; its ``"message"``, the loss and
the signal of a round, of which everything it sends is made; or the ``"agent"``, all its losses and
signals. Other agents and other rounds lose nothing, lose everything, or are as the environment
has them: a loss is best seen in a block where no other tells against it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from tacit.core.constraints import require
from tacit.diffusion.table import RECORDED, SIGNAL_EDIT, Table
from tacit.privacy import NeighbouringPair

_NAMES = {"reward": "loss", "round": "message", "user": "agent"}
_UNITS = ("loss", "message", "agent")


def pairs_of(table: Table, unit: str, horizon: int, limit: int) -> list[NeighbouringPair]:
    """Return at most `limit` pairs for `unit`, the earliest and flattest first."""
    unit = _NAMES.get(unit, unit)
    require("neighbours", "unit", f"one of {', '.join(_UNITS)}", unit in _UNITS, unit)
    agents = sorted({0, table.group.size - 1})
    rounds = sorted({min(horizon - 1, int(t)) for t in (0, 1, 2, 3, *np.geomspace(4, 1024, 9))})
    spans = [range(horizon)] if unit == "agent" else [range(t, t + 1) for t in rounds]
    tables = list(_tables(table, horizon))
    places = list(itertools.product(spans, tables, agents))
    early = min(limit // 2 + 1, limit, len(places))
    later = min(limit, len(places)) - early
    chosen = [*range(early), *np.linspace(early, len(places) - 1, later, dtype=int)]
    return [_pair(unit, *places[i]) for i in chosen]


def _tables(table: Table, horizon: int) -> Iterator[tuple[str, Table]]:
    for level in (0.0, 1.0):
        losses = np.full((horizon, *table.losses.shape[1:]), level)
        flat = table._replace(loss_kind=RECORDED, losses=losses, flip_prob=0.0)
        yield f", all other losses {level:g}", flat
    yield "", table


def _pair(unit: str, span: range, base: tuple[str, Table], agent: int) -> NeighbouringPair:
    words, table = base
    M = table.n_states
    ends = []
    for loss, signal in ((0.0, 0.0), (1.0, M - 1.0)):
        end = edit_losses(table, [(t, agent, state, loss) for t in span for state in range(M)])
        if unit != "loss":
            end = edit_signals(end, [(t, agent, signal) for t in span])
        ends.append(end)
    when = f"rounds 0 to {span[-1]}" if unit == "agent" else f"round {span[0]}"
    what = "loss" if unit == "loss" else "losses and signals" if unit == "agent" else "loss, signal"
    return NeighbouringPair(
        ends[0], ends[1], f"{when}, {what} of agent {agent}: least against most{words}"
    )


def edit_losses(table: Table, entries: Sequence[tuple[int, int, int, float]]) -> Table:
    """Return the neighbouring table in which losses (round, agent, state) have the given values."""
    for t, k, state, value in entries:
        inside = t >= 0 and 0 <= k < table.n_agents and 0 <= state < table.n_states
        if not inside or not 0.0 <= value <= 1.0:
            raise ValueError(
                f"edit_losses: expected round >= 0, agent in 0..{table.n_agents - 1}, state in "
                f"0..{table.n_states - 1} and value in [0, 1], got {(t, k, state, value)}"
            )
    return _edited(table, entries)


def edit_signals(table: Table, entries: Sequence[tuple[int, int, float]]) -> Table:
    """Return the neighbouring table in which signals (round, agent) have the given values."""
    for t, k, value in entries:
        if t < 0 or not 0 <= k < table.n_agents or not np.isfinite(value):
            raise ValueError(
                f"edit_signals: expected round >= 0, agent in 0..{table.n_agents - 1} and a "
                f"finite value, got {(t, k, value)}"
            )
    return _edited(table, [(t, k, SIGNAL_EDIT, value) for t, k, value in entries])


def _edited(table: Table, entries: Sequence[tuple[int, int, int, float]]) -> Table:
    # Later entries win, so they come first: the accessors take the first match.
    rounds, agents, states, values = zip(*reversed(entries), strict=True)
    return table._replace(
        edit_rounds=np.concatenate((np.array(rounds, np.int64), table.edit_rounds)),
        edit_agents=np.concatenate((np.array(agents, np.int64), table.edit_agents)),
        edit_states=np.concatenate((np.array(states, np.int64), table.edit_states)),
        edit_values=np.concatenate((np.array(values, np.float64), table.edit_values)),
    )
