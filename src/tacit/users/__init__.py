"""Users who arrive with contexts and share through a graph: told who resembles whom or not."""

from tacit.users.club import CLUB
from tacit.users.colin import CoLin
from tacit.users.collaborative import Question
from tacit.users.environments import Fitted, Synthetic, UsersEnvironment
from tacit.users.factorised import Factorised
from tacit.users.fed_ucb import FedUCB
from tacit.users.goblin import GOBLin
from tacit.users.learned_kernel import LearnedKernel
from tacit.users.linucb import LinUCB
from tacit.users.neighbours import edit_rewards, edit_user, edit_visit
from tacit.users.policy import CollaborativePolicy, Theory
from tacit.users.preparation import principal_components, relation, tag_features
from tacit.users.privacy import NoisySums, PerReward, Published, Residual
from tacit.users.private_contexts import PrivateContexts
from tacit.users.recorded import Recorded
from tacit.users.replay import Delicious, LastFM
from tacit.users.restarting_linucb import RestartingLinUCB
from tacit.users.statistics import Statistics, statistics_of
from tacit.users.table import recorded_table

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
