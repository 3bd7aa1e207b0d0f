"""Users who arrive with contexts and share through a graph: told who resembles whom or not."""

from tacit.contextual.environments.base import Fitted, Synthetic, UsersEnvironment
from tacit.contextual.environments.recorded import Recorded
from tacit.contextual.environments.replay import Delicious, LastFM
from tacit.contextual.features import principal_components, relation, tag_features
from tacit.contextual.neighbours import edit_rewards, edit_user, edit_visit
from tacit.contextual.policies.club import CLUB
from tacit.contextual.policies.colin import CoLin
from tacit.contextual.policies.factorised import Factorised
from tacit.contextual.policies.fed_ucb import FedUCB
from tacit.contextual.policies.goblin import GOBLin
from tacit.contextual.policies.learned_kernel import LearnedKernel
from tacit.contextual.policies.linucb import LinUCB
from tacit.contextual.policies.private_contexts import PrivateContexts
from tacit.contextual.policies.restarting_linucb import RestartingLinUCB
from tacit.contextual.policy import CollaborativePolicy, Theory
from tacit.contextual.privacy import NoisySums, PerReward, Published, Residual
from tacit.contextual.questions import Question
from tacit.contextual.statistics import Statistics, statistics_of
from tacit.contextual.table import recorded_table

__all__ = [
    "CLUB",
    "CoLin",
    "CollaborativePolicy",
    "Delicious",
    "Factorised",
    "FedUCB",
    "Fitted",
    "GOBLin",
    "LastFM",
    "LearnedKernel",
    "LinUCB",
    "NoisySums",
    "PerReward",
    "PrivateContexts",
    "Published",
    "Question",
    "Recorded",
    "Residual",
    "RestartingLinUCB",
    "Statistics",
    "Synthetic",
    "Theory",
    "UsersEnvironment",
    "edit_rewards",
    "edit_user",
    "edit_visit",
    "principal_components",
    "recorded_table",
    "relation",
    "statistics_of",
    "tag_features",
]
