"""Learning with two aggregators, neither of whom sees a report."""

from tacit.aggregation.prio3 import Prio3, Report, Verification, best_chunk

__all__ = ["Prio3", "Report", "Verification", "best_chunk"]
