"""The papers' tables and figures: settings, what the paper reports, how the verdict is decided.

This package uses Tacit as anybody would, through its public names only. Each paper has a folder, found by
itself: a package here that has a ``PAPER``, which may be a page of our own studies instead. A package with
``STUDIES`` alone belongs to no page.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit_studies.catalogue import pages, papers, reproductions
    from tacit_studies.paper import Paper
    from tacit_studies.reproduction import (
        Figure,
        Findings,
        Job,
        Panel,
        Reproduction,
        Row,
        Series,
        number_of,
    )
    from tacit_studies.runner import Finished, last_findings, reproduce

__all__ = [
    "Figure",
    "Findings",
    "Finished",
    "Job",
    "Panel",
    "Paper",
    "Reproduction",
    "Row",
    "Series",
    "last_findings",
    "number_of",
    "pages",
    "papers",
    "reproduce",
    "reproductions",
]

_HOMES = {
    "catalogue": ("pages", "papers", "reproductions"),
    "paper": ("Paper",),
    "runner": ("Finished", "last_findings", "reproduce"),
}


def __getattr__(name: str) -> Any:
    """Load a name when it is first asked for: `tacit --help` waits for no NumPy."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((each for each, names in _HOMES.items() if name in names), "reproduction")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
