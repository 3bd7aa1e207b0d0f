"""Differentially private bandits on networks: learn together without telling."""

from tacit.simulation import Result, simulate

__all__ = ["Result", "__version__", "simulate"]

__version__ = "0.1.0"
