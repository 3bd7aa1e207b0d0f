"""Running policies: one simulation, a grid of them, and what comes out."""

from tacit.simulation.comparison import Comparison, compare
from tacit.simulation.files import StudyResult, read
from tacit.simulation.grid import run_study
from tacit.simulation.identification import Identified, identify
from tacit.simulation.result import Result
from tacit.simulation.run import simulate
from tacit.simulation.study import Study
from tacit.simulation.tables import CellResult

__all__ = [
    "CellResult",
    "Comparison",
    "Identified",
    "Result",
    "Study",
    "StudyResult",
    "compare",
    "identify",
    "read",
    "run_study",
    "simulate",
]
