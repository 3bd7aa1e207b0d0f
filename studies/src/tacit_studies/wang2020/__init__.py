"""Paper 004 (Wang et al.): users who share a model, with noise on what they share.

The paper does not print enough of its synthetic environment to play it again, and the one it describes cannot
give the regrets it prints. Table 1 and Fig. 1 are played in an environment fitted to the table: lambda = 0.3,
a constant width of 0.3, rewards not clipped. Fig. 2 replays what people liked.
"""

from __future__ import annotations

from tacit_studies.paper import introduce
from tacit_studies.wang2020.collaboration import COLLABORATION
from tacit_studies.wang2020.federated import FEDERATED
from tacit_studies.wang2020.figure_1 import FIGURE_1
from tacit_studies.wang2020.figure_2 import FIGURE_2
from tacit_studies.wang2020.privacy import PRIVACY
from tacit_studies.wang2020.sound_noise import SOUND_NOISE
from tacit_studies.wang2020.table_1 import TABLE_1
from tacit_studies.wang2020.theorems import THEOREMS

__all__ = ["PAPER"]

PAPER = introduce(
    "wang2020",
    TABLE_1,
    *FIGURE_1,
    COLLABORATION,
    *FIGURE_2,
    SOUND_NOISE,
    PRIVACY,
    THEOREMS,
    FEDERATED,
)
