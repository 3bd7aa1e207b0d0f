"""Deciding for real people: a learner for every setting, its event-sourced core, and its stores."""

from tacit.serving.core import Allowance, Core, Event, ExperimentConfig, Receipt, RefusedError
from tacit.serving.experiment import Experiment
from tacit.serving.learner import Decision, Learner
from tacit.serving.storage import MemoryStore, SQLiteStore, Store, StoreError

__all__ = [
    "Allowance",
    "Core",
    "Decision",
    "Event",
    "Experiment",
    "ExperimentConfig",
    "Learner",
    "MemoryStore",
    "Receipt",
    "RefusedError",
    "SQLiteStore",
    "Store",
    "StoreError",
]
