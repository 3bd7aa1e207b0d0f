"""The papers' tables and figures: settings, what the paper reports, how the verdict is decided."""

from __future__ import annotations

import importlib
from functools import cache

from tacit.papers.reproduction import Figure, Findings, Job, Panel, Reproduction, Row, Series
from tacit.papers.runner import Finished, last_findings, reproduce

__all__ = [
    "Figure",
    "Findings",
    "Finished",
    "Job",
    "Panel",
    "Reproduction",
    "Row",
    "Series",
    "last_findings",
    "reproduce",
    "reproductions",
]

_MODULES = ("trade_off", "p000", "p001", "p002", "p003", "p004")


@cache
def reproductions() -> dict[str, Reproduction]:
    """Return every reproduction by its name, in the papers' order."""
    found = {}
    for name in _MODULES:
        module = importlib.import_module(f"tacit.papers.{name}")
        for reproduction in module.REPRODUCTIONS:
            found[reproduction.name] = reproduction
    return found
