"""Users who arrive with contexts and share through a graph: LinUCB, CoLin and GOBLin."""

from tacit.users.colin import CoLin
from tacit.users.environments import Fitted, Synthetic, UsersEnvironment
from tacit.users.goblin import GOBLin
from tacit.users.linucb import LinUCB
from tacit.users.policy import CollaborativePolicy, Theory
from tacit.users.privacy import NoisySums, PerReward, Published
from tacit.users.replay import Delicious, LastFM
from tacit.users.tables import edit_rewards, edit_user, recorded_table

__all__ = [
    "CoLin",
    "CollaborativePolicy",
    "Delicious",
    "Fitted",
    "GOBLin",
    "LastFM",
    "LinUCB",
    "NoisySums",
    "PerReward",
    "Published",
    "Synthetic",
    "Theory",
    "UsersEnvironment",
    "edit_rewards",
    "edit_user",
    "recorded_table",
]
