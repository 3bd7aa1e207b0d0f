"""Agents on a network, each of whom decides, learns and talks to neighbours."""

from tacit.agents.dynamics import LearningDynamics
from tacit.agents.dynamics_tables import SocialOptions

__all__ = ["LearningDynamics", "SocialOptions"]
