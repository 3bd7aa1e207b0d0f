"""Paper 004 (Wang et al.): users who share a model, with noise on what they share.

The paper does not print enough of its synthetic environment to play it again, and the one it describes cannot
give the regrets it prints. Table 1 and Fig. 1 are played in an environment fitted to the table: lambda = 0.3,
a constant width of 0.3, rewards not clipped. Fig. 2 replays what people liked.
"""

from __future__ import annotations

from tacit.papers.p004.privacy import PRIVACY, SOUND_NOISE
from tacit.papers.p004.replay import FIGURE_2
from tacit.papers.p004.synthetic import FIGURE_1
from tacit.papers.p004.table import COLLABORATION, TABLE_1

__all__ = ["REPRODUCTIONS"]

REPRODUCTIONS = (TABLE_1, *FIGURE_1, COLLABORATION, *FIGURE_2, SOUND_NOISE, PRIVACY)
