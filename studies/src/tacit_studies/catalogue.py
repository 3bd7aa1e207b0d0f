"""Every paper and every study, found in the folders beside this file."""

from __future__ import annotations

import importlib
import pkgutil
import types
from functools import cache

from tacit_studies.paper import Paper
from tacit_studies.reproduction import Reproduction, number_of


@cache
def pages() -> tuple[Paper, ...]:
    """Return every paper, in the order of their numbers, and then the pages of our own."""
    found = [folder.PAPER for folder in _folders() if hasattr(folder, "PAPER")]
    return tuple(sorted(found, key=lambda paper: (paper.own, number_of(paper.name))))


def papers() -> tuple[Paper, ...]:
    """Return every paper, in the order of their numbers."""
    return tuple(paper for paper in pages() if not paper.own)


@cache
def reproductions() -> dict[str, Reproduction]:
    """Return every study by its name: those of no paper first, then in the papers' order."""
    alone = [s for folder in _folders() for s in getattr(folder, "STUDIES", ())]
    of_papers = [study for paper in pages() for study in paper.studies]
    return {study.name: study for study in [*alone, *of_papers]}


def _folders() -> list[types.ModuleType]:
    package = importlib.import_module("tacit_studies")
    names = sorted(info.name for info in pkgutil.iter_modules(package.__path__) if info.ispkg)
    return [importlib.import_module(f"tacit_studies.{name}") for name in names]
