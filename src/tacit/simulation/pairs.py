"""Neighbouring tables for settings whose environments do not name their own yet."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tacit.checks import require
from tacit.policy import AnyEnvironment
from tacit.privacy import Neighbours

__all__ = ["pairs_of"]

_UNITS = {"loss": "reward", "message": "round", "agent": "user"}


def pairs_of(
    environment: AnyEnvironment, horizon: int, *, unit: str, seed: int, limit: int
) -> list[Neighbours]:
    """Return pairs of tables that differ in one reward, one round or everything, by all they can."""
    unit = _UNITS.get(unit, unit)
    table = environment.table(seed, 0, horizon)
    if unit == "user" and hasattr(table, "edit_options"):
        return _adoptions(table)
    known = unit in ("reward", "round") or (unit == "user" and environment.setting == "arms")
    require("neighbours_of", "unit", "reward or round (else give the pairs)", known, unit)
    if unit == "user":
        _, (_, zeros), (_, ones) = _editing(table, environment.setting, horizon)[3]
        return [Neighbours(zeros, ones, "all rewards: 0 against 1")]
    rounds = sorted({min(horizon - 1, int(t)) for t in (0, 1, 2, 3, *np.geomspace(4, 1024, 9))})
    ends = environment.public_parameters(horizon).get("reward_range", (0.0, 1.0))
    return list(_pairs(table, environment.setting, horizon, unit, rounds, limit, ends))


def _adoptions(table: Any) -> list[Neighbours]:
    """Return tables in which agent 0 begins with an option, with another, or with none."""
    from tacit.dynamics import edit_adoption

    first, nothing = edit_adoption(table, 0, 0), edit_adoption(table, 0, -1)
    pairs = [Neighbours(first, nothing, "agent 0 begins with option 0 against none")]
    if table.qualities.size > 1:
        other = edit_adoption(table, 0, 1)
        pairs.append(Neighbours(first, other, "agent 0 begins with option 0 against option 1"))
    return pairs


def _pairs(
    table: Any,
    setting: str,
    horizon: int,
    unit: str,
    rounds: list[int],
    limit: int,
    ends: tuple[float, float],
) -> Iterator[Neighbours]:
    width, what, put, environments = _editing(table, setting, horizon)
    single = unit == "reward" and setting != "diffusion"
    whole = what if setting == "diffusion" else "all of it"
    changes = [[j] for j in range(width)] if single else [list(range(width))]
    places = list(itertools.product(rounds, environments, changes))
    early = min(limit // 2, len(places))
    later = min(limit, len(places)) - early
    chosen = [*range(early), *np.linspace(early, len(places) - 1, later, dtype=int)]
    for t, (words, environment), entries in map(places.__getitem__, chosen):
        name = f"{what} {entries[0]}" if single else whole
        left, right = (put(environment, [(t, j, end) for j in entries]) for end in ends)
        change = "{:g} against {:g}".format(*ends)
        yield Neighbours(left, right, f"round {t}, {name}: {change}{words}")


def _editing(table: Any, setting: str, horizon: int) -> tuple[int, str, Any, list[tuple[str, Any]]]:
    """Return how many entries a round has, their name, how to change them, and tables to do it in."""
    if setting == "arms":
        from tacit.arms import tables as arms

        width = table.means.shape[1]
        environments = [("", table)]
        for level in (0.0, 1.0):
            rewards = np.full((horizon, width), level)
            flat = table._replace(kind=arms.RECORDED, recorded=rewards)
            environments.append((f", all other rewards {level:g}", flat))
        return width, "arm", arms.edit_rewards, environments
    if setting == "users":
        from tacit.users import tables as users

        return table.n_shown, "slot", users.edit_rewards, [("", table)]

    from tacit.diffusion import tables as diffusion

    if not isinstance(table, diffusion.Table):
        raise ValueError("neighbours_of: this environment has no losses to change; give the pairs")

    def put(environment: Any, entries: Any) -> Any:
        return diffusion.edit_losses(environment, [(t, 0, j, value) for t, j, value in entries])

    return table.n_states, "the loss of agent 0", put, [("", table)]
