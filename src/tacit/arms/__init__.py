"""One learner, K arms: policies and environments."""

from tacit.arms.aae import AAE
from tacit.arms.alpha_sample import AlphaSample
from tacit.arms.changing import Adversarial, Drifting, Riser, Rotating, Switching
from tacit.arms.corruption import Corruption
from tacit.arms.dpse import DPSE
from tacit.arms.exp3 import EXP3
from tacit.arms.gap import GAP
from tacit.arms.gapu import GAPU
from tacit.arms.graph_environments import GraphFeedback
from tacit.arms.klucb import KLUCB
from tacit.arms.klucb_cf import KLUCBCF
from tacit.arms.recorded import Recorded
from tacit.arms.stationary import Bernoulli, Beta, TruncatedNormal
from tacit.arms.sw_klucb_cf import SWKLUCBCF
from tacit.arms.sw_ucb import SWUCB
from tacit.arms.tables import edit_rewards
from tacit.arms.ts_n import TSN
from tacit.arms.ucb1 import UCB1
from tacit.arms.ucb_n import UCBN
from tacit.arms.uniform import Uniform

__all__ = [
    "AAE",
    "DPSE",
    "EXP3",
    "GAP",
    "GAPU",
    "KLUCB",
    "KLUCBCF",
    "SWKLUCBCF",
    "SWUCB",
    "TSN",
    "UCB1",
    "UCBN",
    "Adversarial",
    "AlphaSample",
    "Bernoulli",
    "Beta",
    "Corruption",
    "Drifting",
    "GraphFeedback",
    "Recorded",
    "Riser",
    "Rotating",
    "Switching",
    "TruncatedNormal",
    "Uniform",
    "edit_rewards",
]
