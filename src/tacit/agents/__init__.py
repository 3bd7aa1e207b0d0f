"""Many agents who learn from each other: policies and worlds."""

from tacit.agents.diffusion import DiffusionLearning
from tacit.agents.diffusion_bandit import DiffusionBandit
from tacit.agents.diffusion_outsiders import OutsiderPrivateDiffusion
from tacit.agents.diffusion_spies import SpyPrivateDiffusion
from tacit.agents.environments import THREE_AGENTS, ChangingTruth, RecordedTruth
from tacit.agents.tables import edit_losses, edit_signals

__all__ = [
    "THREE_AGENTS",
    "ChangingTruth",
    "DiffusionBandit",
    "DiffusionLearning",
    "OutsiderPrivateDiffusion",
    "RecordedTruth",
    "SpyPrivateDiffusion",
    "edit_losses",
    "edit_signals",
]
