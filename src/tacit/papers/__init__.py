"""The papers' tables and figures: settings, what the paper reports, how the verdict is decided.

Each paper has a folder, found by itself: a package here that has a ``PAPER``, which may be a page of our own
studies instead. A package with ``STUDIES`` alone belongs to no page.
"""

from __future__ import annotations

import importlib
import pkgutil
import types
from functools import cache

from tacit.papers.paper import Paper
from tacit.papers.reproduction import Figure, Findings, Job, Panel, Reproduction, Row, Series
from tacit.papers.runner import Finished, last_findings, reproduce

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
    "pages",
    "papers",
    "reproduce",
    "reproductions",
]


@cache
def pages() -> tuple[Paper, ...]:
    """Return every paper, by its number, and then the pages of our own."""
    found = [folder.PAPER for folder in _folders() if hasattr(folder, "PAPER")]
    return tuple(sorted(found, key=lambda paper: paper.own))


def papers() -> tuple[Paper, ...]:
    """Return every paper, by its number."""
    return tuple(paper for paper in pages() if not paper.own)


@cache
def reproductions() -> dict[str, Reproduction]:
    """Return every study by its name: those of no paper first, then in the papers' order."""
    alone = [s for folder in _folders() for s in getattr(folder, "STUDIES", ())]
    of_papers = [study for paper in pages() for study in paper.studies]
    return {study.name: study for study in [*alone, *of_papers]}


def _folders() -> list[types.ModuleType]:
    names = sorted(info.name for info in pkgutil.iter_modules(__path__) if info.ispkg)
    return [importlib.import_module(f"{__name__}.{name}") for name in names]
