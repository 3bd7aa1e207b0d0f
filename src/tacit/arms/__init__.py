"""One learner, K arms: policies and environments."""

from tacit.arms.aae import AAE
from tacit.arms.adap_klucb import AdaPKLUCB
from tacit.arms.alpha_sample import AlphaSample
from tacit.arms.bocpd_klucb_cf import BOCPDKLUCBCF
from tacit.arms.changing import Adversarial, Drifting, Riser, Rotating, Switching
from tacit.arms.corruption import Corruption
from tacit.arms.corruption_schedule import CorruptionSchedule
from tacit.arms.doubling_sw_klucb_cf import DoublingSWKLUCBCF
from tacit.arms.dp_imed import DPIMED
from tacit.arms.dp_klucb import DPKLUCB
from tacit.arms.dp_top_two import DPTopTwo
from tacit.arms.dp_zooming import DPZooming
from tacit.arms.dpse import DPSE
from tacit.arms.exp3 import EXP3
from tacit.arms.gap import GAP
from tacit.arms.gapu import GAPU
from tacit.arms.glr_klucb_cf import GLRKLUCBCF
from tacit.arms.graph_environments import GraphFeedback
from tacit.arms.klucb import KLUCB
from tacit.arms.klucb_cf import KLUCBCF
from tacit.arms.lazy_dp_ts import LazyDPTS
from tacit.arms.lipschitz import Lipschitz
from tacit.arms.lower_bounds import asymptotic_regret
from tacit.arms.neighbours import edit_rewards
from tacit.arms.p_imed_cf import PIMEDCF
from tacit.arms.python import PythonPolicy, RewardFunction, adopted, from_river
from tacit.arms.recorded import Recorded
from tacit.arms.shuffled_klucb_cf import ShuffledKLUCBCF
from tacit.arms.stationary import Bernoulli, Beta, Gaussian, TruncatedNormal
from tacit.arms.sub_gaussian_ucb import SubGaussianUCB
from tacit.arms.sw_klucb_cf import SWKLUCBCF
from tacit.arms.sw_ucb import SWUCB
from tacit.arms.timed_klucb_cf import TimedKLUCBCF
from tacit.arms.top_two_cf import TopTwoCF
from tacit.arms.ts_n import TSN
from tacit.arms.ucb1 import UCB1
from tacit.arms.ucb_n import UCBN
from tacit.arms.uniform import Uniform

__all__ = [
    "AAE",
    "BOCPDKLUCBCF",
    "DPIMED",
    "DPKLUCB",
    "DPSE",
    "EXP3",
    "GAP",
    "GAPU",
    "GLRKLUCBCF",
    "KLUCB",
    "KLUCBCF",
    "PIMEDCF",
    "SWKLUCBCF",
    "SWUCB",
    "TSN",
    "UCB1",
    "UCBN",
    "AdaPKLUCB",
    "Adversarial",
    "AlphaSample",
    "Bernoulli",
    "Beta",
    "Corruption",
    "CorruptionSchedule",
    "DPTopTwo",
    "DPZooming",
    "DoublingSWKLUCBCF",
    "Drifting",
    "Gaussian",
    "GraphFeedback",
    "LazyDPTS",
    "Lipschitz",
    "PythonPolicy",
    "Recorded",
    "RewardFunction",
    "Riser",
    "Rotating",
    "ShuffledKLUCBCF",
    "SubGaussianUCB",
    "Switching",
    "TimedKLUCBCF",
    "TopTwoCF",
    "TruncatedNormal",
    "Uniform",
    "adopted",
    "asymptotic_regret",
    "edit_rewards",
    "from_river",
]
