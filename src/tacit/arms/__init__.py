"""One learner, K arms: policies and environments."""

from tacit.arms.corruption import Corruption as Corruption
from tacit.arms.corruption import CorruptionSchedule as CorruptionSchedule
from tacit.arms.environments.changing import Adversarial as Adversarial
from tacit.arms.environments.changing import Drifting as Drifting
from tacit.arms.environments.changing import Riser as Riser
from tacit.arms.environments.changing import Rotating as Rotating
from tacit.arms.environments.changing import Switching as Switching
from tacit.arms.environments.graph_feedback import GraphFeedback as GraphFeedback
from tacit.arms.environments.lipschitz import Lipschitz as Lipschitz
from tacit.arms.environments.recorded import Recorded as Recorded
from tacit.arms.environments.stationary import Bernoulli as Bernoulli
from tacit.arms.environments.stationary import Beta as Beta
from tacit.arms.environments.stationary import Gaussian as Gaussian
from tacit.arms.environments.stationary import TruncatedNormal as TruncatedNormal
from tacit.arms.lower_bounds import asymptotic_regret as asymptotic_regret
from tacit.arms.neighbours import edit_rewards as edit_rewards
from tacit.arms.plain_python import PythonPolicy as PythonPolicy
from tacit.arms.plain_python import RewardFunction as RewardFunction
from tacit.arms.plain_python import from_river as from_river
from tacit.arms.plain_python import wrap_plain_python as wrap_plain_python
from tacit.arms.policies.aae import AAE as AAE
from tacit.arms.policies.adap_klucb import AdaPKLUCB as AdaPKLUCB
from tacit.arms.policies.alpha_sample import AlphaSample as AlphaSample
from tacit.arms.policies.bocpd_klucb_cf import BOCPDKLUCBCF as BOCPDKLUCBCF
from tacit.arms.policies.doubling_sw_klucb_cf import DoublingSWKLUCBCF as DoublingSWKLUCBCF
from tacit.arms.policies.dp_imed import DPIMED as DPIMED
from tacit.arms.policies.dp_klucb import DPKLUCB as DPKLUCB
from tacit.arms.policies.dp_top_two import DPTopTwo as DPTopTwo
from tacit.arms.policies.dp_zooming import DPZooming as DPZooming
from tacit.arms.policies.dpse import DPSE as DPSE
from tacit.arms.policies.exp3 import EXP3 as EXP3
from tacit.arms.policies.gap import GAP as GAP
from tacit.arms.policies.gapu import GAPU as GAPU
from tacit.arms.policies.glr_klucb_cf import GLRKLUCBCF as GLRKLUCBCF
from tacit.arms.policies.klucb import KLUCB as KLUCB
from tacit.arms.policies.klucb_cf import KLUCBCF as KLUCBCF
from tacit.arms.policies.lazy_dp_ts import LazyDPTS as LazyDPTS
from tacit.arms.policies.p_imed_cf import PIMEDCF as PIMEDCF
from tacit.arms.policies.shuffled_klucb_cf import ShuffledKLUCBCF as ShuffledKLUCBCF
from tacit.arms.policies.sub_gaussian_ucb import SubGaussianUCB as SubGaussianUCB
from tacit.arms.policies.sw_klucb_cf import SWKLUCBCF as SWKLUCBCF
from tacit.arms.policies.sw_ucb import SWUCB as SWUCB
from tacit.arms.policies.timed_klucb_cf import TimedKLUCBCF as TimedKLUCBCF
from tacit.arms.policies.top_two_cf import TopTwoCF as TopTwoCF
from tacit.arms.policies.ts_n import TSN as TSN
from tacit.arms.policies.ucb1 import UCB1 as UCB1
from tacit.arms.policies.ucb_n import UCBN as UCBN
from tacit.arms.policies.uniform import Uniform as Uniform

# Every name above is public: a new policy is one line.
__all__ = [
    name
    for name, value in globals().items()
    if getattr(value, "__module__", "").startswith(__name__)
]
