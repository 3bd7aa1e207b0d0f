"""What a policy would have earned, from a log of decisions that another one made."""

from tacit.simulation.evaluation.estimates import (
    Estimate,
    doubly_robust,
    importance_weighted,
    self_normalised,
)
from tacit.simulation.evaluation.evaluate import Evaluation, evaluate
from tacit.simulation.evaluation.log import Log, read_log
from tacit.simulation.evaluation.open_bandit import open_bandit
from tacit.simulation.evaluation.replay import Replay, replay

__all__ = [
    "Estimate",
    "Evaluation",
    "Log",
    "Replay",
    "doubly_robust",
    "evaluate",
    "importance_weighted",
    "open_bandit",
    "read_log",
    "replay",
    "self_normalised",
]
