"""One learner, K arms: policies and environments."""

from tacit.arms.corruption import Corruption
from tacit.arms.corruption_schedule import CorruptionSchedule
from tacit.arms.environments.changing import Adversarial, Drifting, Riser, Rotating, Switching
from tacit.arms.environments.graph_feedback import GraphFeedback
from tacit.arms.environments.lipschitz import Lipschitz
from tacit.arms.environments.recorded import Recorded
from tacit.arms.environments.stationary import Bernoulli, Beta, Gaussian, TruncatedNormal
from tacit.arms.lower_bounds import asymptotic_regret
from tacit.arms.neighbours import edit_rewards
from tacit.arms.plain_python import PythonPolicy, RewardFunction, from_river, wrap_plain_python
from tacit.arms.policies.aae import AAE
from tacit.arms.policies.adap_klucb import AdaPKLUCB
from tacit.arms.policies.alpha_sample import AlphaSample
from tacit.arms.policies.bocpd_klucb_cf import BOCPDKLUCBCF
from tacit.arms.policies.doubling_sw_klucb_cf import DoublingSWKLUCBCF
from tacit.arms.policies.dp_imed import DPIMED
from tacit.arms.policies.dp_klucb import DPKLUCB
from tacit.arms.policies.dp_top_two import DPTopTwo
from tacit.arms.policies.dp_zooming import DPZooming
from tacit.arms.policies.dpse import DPSE
from tacit.arms.policies.exp3 import EXP3
from tacit.arms.policies.gap import GAP
from tacit.arms.policies.gapu import GAPU
from tacit.arms.policies.glr_klucb_cf import GLRKLUCBCF
from tacit.arms.policies.klucb import KLUCB
from tacit.arms.policies.klucb_cf import KLUCBCF
from tacit.arms.policies.lazy_dp_ts import LazyDPTS
from tacit.arms.policies.p_imed_cf import PIMEDCF
from tacit.arms.policies.shuffled_klucb_cf import ShuffledKLUCBCF
from tacit.arms.policies.sub_gaussian_ucb import SubGaussianUCB
from tacit.arms.policies.sw_klucb_cf import SWKLUCBCF
from tacit.arms.policies.sw_ucb import SWUCB
from tacit.arms.policies.timed_klucb_cf import TimedKLUCBCF
from tacit.arms.policies.top_two_cf import TopTwoCF
from tacit.arms.policies.ts_n import TSN
from tacit.arms.policies.ucb1 import UCB1
from tacit.arms.policies.ucb_n import UCBN
from tacit.arms.policies.uniform import Uniform

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
    "asymptotic_regret",
    "edit_rewards",
    "from_river",
    "wrap_plain_python",
]
