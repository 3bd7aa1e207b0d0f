"""Paper 004 (Wang et al.): users who share a model, with noise on what they share.

The paper does not print enough of its synthetic environment to play it again, and the one it describes cannot
give the regrets it prints. Table 1 and Fig. 1 are played in an environment fitted to the table: lambda = 0.3,
a constant width of 0.3, rewards not clipped. Fig. 2 replays what people liked.
"""

from __future__ import annotations

from tacit_studies.paper import Paper
from tacit_studies.wang2020.collaboration import COLLABORATION
from tacit_studies.wang2020.federated import FEDERATED
from tacit_studies.wang2020.figure_1 import FIGURE_1
from tacit_studies.wang2020.figure_2 import FIGURE_2
from tacit_studies.wang2020.privacy import PRIVACY
from tacit_studies.wang2020.sound_noise import SOUND_NOISE
from tacit_studies.wang2020.table_1 import TABLE_1
from tacit_studies.wang2020.theorems import THEOREMS

__all__ = ["PAPER"]

PAPER = Paper(
    name="wang2020",
    short="Users who collaborate",
    title="Global and Local Differential Privacy for Collaborative Bandits",
    cited=(
        "H. Wang, Q. Zhao, Q. Wu, S. Chopra, A. Khaitan, H. Wang, RecSys 2020. doi "
        "10.1145/3383313.3412254"
    ),
    question=(
        "A service recommends articles, and its users resemble their friends. Learning for "
        "friends together needs fewer tries than learning for each alone, but what one user "
        "clicks then shapes what friends are shown. How much of the gain is left when clicks "
        "are hidden from other users, or from the service itself?"
    ),
    method=(
        "Noise is added to the running sums from which the model is computed: by the service "
        "(global privacy) or on each user's device (local privacy), in proportion to how "
        "strongly users influence each other. The paper does this for CoLin and GOBLin and "
        "reports that learning together costs less regret at the same privacy than learning "
        "alone, as DP-LinUCB does."
    ),
    studies=(
        TABLE_1,
        *FIGURE_1,
        COLLABORATION,
        *FIGURE_2,
        SOUND_NOISE,
        PRIVACY,
        THEOREMS,
        FEDERATED,
    ),
)
