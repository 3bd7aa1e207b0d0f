"""The words of a page: ``words.toml`` in its folder introduces the paper and each of its studies."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from tacit_studies.reproduction import paper_of


@cache
def load_words(folder: str) -> dict[str, dict[str, Any]]:
    """Return the words of a folder: those of the paper, and those of each study by what it is called."""
    text = files("tacit_studies").joinpath(folder, "words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def find_words(study: str) -> dict[str, str]:
    """Return the words of a study: title, question, claim, and what it says of agreement and privacy.

    Examples
    --------
    >>> find_words("gajane2023-window")["title"]
    'The window of Theorem 1'
    """
    paper, rest = paper_of(study), study.partition("-")[2]
    if not paper:
        return load_words("extra")[study]
    return load_words("leaderboard" if paper == "today" else paper)[rest]
