"""Paper 003: the policy its studies play, and the lines they draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.papers.reproduction import (
    Series,
    summarise,
)

__all__ = ["line_of", "sliding"]


def sliding(**parameters: Any) -> dict[str, Any]:
    """Return SW-KLUCB-CF with these parameters."""
    return {"name": "sw-klucb-cf", **parameters}


def line_of(outcomes: Mapping[str, Any], label: str, xs: list[float], keys: list[str]) -> Series:
    """Return the means of these outcomes, with their intervals, as a line."""
    return Series.of(label, xs, [summarise(outcomes[key]) for key in keys])
