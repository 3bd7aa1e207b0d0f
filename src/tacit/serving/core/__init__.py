"""The life of an experiment as a function of its log: events, decisions, budget, and the core itself."""

from tacit.serving.core.budget import Allowance
from tacit.serving.core.config import MODES, ExperimentConfig, require_mode
from tacit.serving.core.core import Core
from tacit.serving.core.decisions import OpenDecision, Receipt, format_life
from tacit.serving.core.events import BrokenError, Event, Journal, RefusedError

__all__ = [
    "MODES",
    "Allowance",
    "BrokenError",
    "Core",
    "Event",
    "ExperimentConfig",
    "Journal",
    "OpenDecision",
    "Receipt",
    "RefusedError",
    "format_life",
    "require_mode",
]
