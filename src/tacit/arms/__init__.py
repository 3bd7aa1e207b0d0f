"""One learner, K arms: policies and worlds."""

from tacit.arms.corruption import Corruption, RandomizedResponse
from tacit.arms.environments import (
    Adversarial,
    Bernoulli,
    Beta,
    Drifting,
    Piecewise,
    Recorded,
    Riser,
    Rotating,
    TruncatedNormal,
)
from tacit.arms.exp3 import EXP3
from tacit.arms.klucb import KLUCB, KLUCBCF
from tacit.arms.learner import Decision, Learner
from tacit.arms.sw_klucb_cf import SWKLUCBCF
from tacit.arms.sw_ucb import SWUCB
from tacit.arms.tables import edit
from tacit.arms.ucb1 import UCB1
from tacit.arms.uniform import Uniform

__all__ = [
    "EXP3",
    "KLUCB",
    "KLUCBCF",
    "SWKLUCBCF",
    "SWUCB",
    "UCB1",
    "Adversarial",
    "Bernoulli",
    "Beta",
    "Corruption",
    "Decision",
    "Drifting",
    "Learner",
    "Piecewise",
    "RandomizedResponse",
    "Recorded",
    "Riser",
    "Rotating",
    "TruncatedNormal",
    "Uniform",
    "edit",
]
