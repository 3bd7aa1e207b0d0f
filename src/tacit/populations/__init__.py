"""Populations in partitions: agents on one machine or many, with the bits of one process.

`partitions` says what a partition and a population are; `diffusion` and `dynamics` are the two settings that
have agents. `actors` hold partitions: in this process, in `processes`, or in a Ray `cluster`. `runs` plays a
repetition, writes snapshots, and goes on when a partition is lost.
"""

from tacit.populations.actors import ActorGroup, LostError
from tacit.populations.partitions import Partition, Population, Run, split_agents
from tacit.populations.runs import Snapshots, make_population, play_in_partitions, start_actors

__all__ = [
    "ActorGroup",
    "LostError",
    "Partition",
    "Population",
    "Run",
    "Snapshots",
    "make_population",
    "play_in_partitions",
    "split_agents",
    "start_actors",
]
