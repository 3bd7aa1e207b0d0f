"""Running policies: one simulation, a grid of them, and what comes out."""

from tacit.simulation.audits import audit_policy
from tacit.simulation.bands import Band, band_of
from tacit.simulation.comparison import Comparison, compare
from tacit.simulation.files import StudyResult, read
from tacit.simulation.grid import run_study
from tacit.simulation.identification import Identified, identify
from tacit.simulation.playing import Played, play
from tacit.simulation.result import Result
from tacit.simulation.result_tables import CellResult
from tacit.simulation.run import simulate
from tacit.simulation.study import Study

__all__ = [
    "Band",
    "CellResult",
    "Comparison",
    "Identified",
    "Played",
    "Result",
    "Study",
    "StudyResult",
    "audit_policy",
    "band_of",
    "compare",
    "identify",
    "play",
    "read",
    "run_study",
    "simulate",
]
