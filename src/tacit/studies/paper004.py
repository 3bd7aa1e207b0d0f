"""Paper 004 (Wang et al.): users who share a model, with noise on what they share.

The paper does not print enough of its synthetic world to play it again, and the one it describes cannot
give the regrets it prints. Table 1 and Fig. 1 are played in a world fitted to the table: lambda = 0.3,
a constant width of 0.3, rewards not clipped. Fig. 2 replays what people liked.
"""

from __future__ import annotations

from tacit.studies.paper004_privacy import PRIVACY, SOUND_NOISE
from tacit.studies.paper004_replay import FIGURE_2
from tacit.studies.paper004_synthetic import FIGURE_1
from tacit.studies.paper004_table import COLLABORATION, TABLE_1

__all__ = ["REPRODUCTIONS"]

REPRODUCTIONS = (TABLE_1, *FIGURE_1, COLLABORATION, *FIGURE_2, SOUND_NOISE, PRIVACY)
