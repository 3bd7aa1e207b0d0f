"""Learning with two aggregators, neither of whom sees a report."""

from tacit.aggregation.edge_learner import EdgeLearner, EdgePlan, Model
from tacit.aggregation.prio3 import Prio3, Report, Verification, best_chunk

__all__ = ["EdgeLearner", "EdgePlan", "Model", "Prio3", "Report", "Verification", "best_chunk"]
