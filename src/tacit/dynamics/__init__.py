"""Agents who copy what is popular and keep what is good (paper 001)."""

from tacit.dynamics.environments import SocialOptions
from tacit.dynamics.neighbours import edit_adoption
from tacit.dynamics.policies.learning_dynamics import LearningDynamics
from tacit.dynamics.tuning import Recommendation, popularity_noise, recommend

__all__ = [
    "LearningDynamics",
    "Recommendation",
    "SocialOptions",
    "edit_adoption",
    "popularity_noise",
    "recommend",
]
