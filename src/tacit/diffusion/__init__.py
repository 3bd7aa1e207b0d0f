"""Agents who track a changing truth and pool their beliefs over a network (paper 000)."""

from tacit.diffusion.bounds import RegretBounds, regret_bounds
from tacit.diffusion.environments import THREE_AGENTS, ChangingTruth, RecordedTruth
from tacit.diffusion.neighbours import edit_losses, edit_signals
from tacit.diffusion.policies.bandit import DiffusionBandit
from tacit.diffusion.policies.batched import BatchedTsallis
from tacit.diffusion.policies.learning import DiffusionLearning
from tacit.diffusion.policies.private_losses import OutsiderPrivateDiffusion
from tacit.diffusion.policies.private_messages import SpyPrivateDiffusion

__all__ = [
    "THREE_AGENTS",
    "BatchedTsallis",
    "ChangingTruth",
    "DiffusionBandit",
    "DiffusionLearning",
    "OutsiderPrivateDiffusion",
    "RecordedTruth",
    "RegretBounds",
    "SpyPrivateDiffusion",
    "edit_losses",
    "edit_signals",
    "regret_bounds",
]
