"""Populations in pieces: agents on one machine or many, with the bits of one process.

`partitions` says what a piece and the middle of a run are, `diffusion` and `dynamics` are the two settings
that have agents. `actors` are the pieces where they live: here, in `processes`, or in a Ray `cluster`. `runs`
plays a repetition, keeps it now and then, and goes on when a piece is lost.
"""

from tacit.populations.actors import Crew, LostError
from tacit.populations.partitions import Piece, Population, bounds_of
from tacit.populations.places import crew_on, population_of
from tacit.populations.runs import Keeping, play_in_pieces

__all__ = [
    "Crew",
    "Keeping",
    "LostError",
    "Piece",
    "Population",
    "bounds_of",
    "crew_on",
    "play_in_pieces",
    "population_of",
]
