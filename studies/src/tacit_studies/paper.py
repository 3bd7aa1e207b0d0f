"""What a paper is here: how the report introduces it, and the studies that measure it again."""

from __future__ import annotations

from dataclasses import dataclass

from tacit_studies.reproduction import Reproduction
from tacit_studies.words import load_words


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper, introduced to a reader who knows none of it.

    Parameters
    ----------
    name : str
        First author and year, such as ``gajane2023``.
    short : str
        Two or three words for the menu.
    title, cited : str
    question : str
        What the paper is about, in plain words.
    method : str
        What it proposes and claims.
    studies : tuple of Reproduction
        What measures it again, in the order in which the report shows it.
    own : bool
        Whether it is no paper but a page of our own studies, which the report shows after the papers.
    """

    name: str
    short: str
    title: str
    cited: str
    question: str
    method: str
    studies: tuple[Reproduction, ...] = ()
    own: bool = False


def introduce(folder: str, *studies: Reproduction) -> Paper:
    """Return the paper of a folder with its studies, in the words of the folder."""
    return Paper(name=studies[0].paper, studies=studies, **load_words(folder)["paper"])
