"""Paper 003 (Gajane): SW-KLUCB-CF in changing environments.

The paper has a theorem and no experiment. These are the experiments: how regret grows with the horizon,
with the number of changes and with privacy, whether the window as written is a good one, and whether
the claimed privacy holds.
"""

from __future__ import annotations

from tacit_studies.gajane2023.bayesian import BAYESIAN
from tacit_studies.gajane2023.contexts import CONTEXTS
from tacit_studies.gajane2023.drift import DRIFT
from tacit_studies.gajane2023.epsilon import EPSILON
from tacit_studies.gajane2023.growth import CHANGES, HORIZON
from tacit_studies.gajane2023.privacy import PRIVACY
from tacit_studies.gajane2023.real_data import REAL_DATA
from tacit_studies.gajane2023.sub_gaussian import SUB_GAUSSIAN
from tacit_studies.gajane2023.timed import TIMED
from tacit_studies.gajane2023.unknown_horizon import UNKNOWN_HORIZON
from tacit_studies.gajane2023.window import WINDOW
from tacit_studies.paper import introduce

__all__ = ["PAPER"]

PAPER = introduce(
    "gajane2023",
    HORIZON,
    CHANGES,
    EPSILON,
    WINDOW,
    SUB_GAUSSIAN,
    UNKNOWN_HORIZON,
    TIMED,
    DRIFT,
    BAYESIAN,
    CONTEXTS,
    REAL_DATA,
    PRIVACY,
)
