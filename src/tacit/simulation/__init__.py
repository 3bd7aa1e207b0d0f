"""Running policies: one simulation, a grid of them, and what comes out."""

from tacit.simulation.files import CellResult, StudyResult, read
from tacit.simulation.grid import run_study
from tacit.simulation.result import Result
from tacit.simulation.run import simulate
from tacit.simulation.study import Study

__all__ = ["CellResult", "Result", "Study", "StudyResult", "read", "run_study", "simulate"]
