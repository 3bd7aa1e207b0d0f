"""Running policies: one simulation, a grid of them, and what comes out."""

from tacit.simulation.result import Result
from tacit.simulation.run import simulate

__all__ = ["Result", "simulate"]
