"""Many agents who learn from each other: policies and worlds."""

from tacit.agents.diffusion import DiffusionLearning
from tacit.agents.diffusion_bandit import DiffusionBandit
from tacit.agents.diffusion_outsiders import OutsiderPrivateDiffusion
from tacit.agents.diffusion_spies import SpyPrivateDiffusion
from tacit.agents.dynamics import LearningDynamics
from tacit.agents.dynamics_studies import RegretMap, published_regret, regret_map
from tacit.agents.dynamics_tables import SocialOptions, edit_adoption
from tacit.agents.dynamics_tuning import Recommendation, popularity_noise, recommend
from tacit.agents.environments import THREE_AGENTS, ChangingTruth, RecordedTruth
from tacit.agents.tables import edit_losses, edit_signals

__all__ = [
    "THREE_AGENTS",
    "ChangingTruth",
    "DiffusionBandit",
    "DiffusionLearning",
    "LearningDynamics",
    "OutsiderPrivateDiffusion",
    "Recommendation",
    "RecordedTruth",
    "RegretMap",
    "SocialOptions",
    "SpyPrivateDiffusion",
    "edit_adoption",
    "edit_losses",
    "edit_signals",
    "popularity_noise",
    "published_regret",
    "recommend",
    "regret_map",
]
