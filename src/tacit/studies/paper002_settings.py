"""The settings of paper 002, Section 5, as jobs are told them."""

from __future__ import annotations

from typing import Any

from tacit.arms import GraphSetting

__all__ = ["HORIZON", "described"]

HORIZON = 100_000


def described(setting: GraphSetting) -> dict[str, Any]:
    """Return the world of a setting by name and parameters."""
    rewards: Any = setting.world.world
    return {
        "name": setting.world.name,
        "world": {"name": rewards.name, "means": list(rewards.means)},
        "edge_prob": setting.edge_prob,
    }
