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
from tacit_studies.paper import Paper

__all__ = ["PAPER"]

PAPER = Paper(
    name="gajane2023",
    short="A changing environment",
    title=("Local Differential Privacy for Sequential Decision Making in a Changing Environment"),
    cited="P. Gajane, 2023",
    question=(
        "People are asked a yes-or-no question after each decision, and each answers "
        "truthfully only most of the time, by the toss of a coin: nobody, not even the "
        "learner, knows a true answer. Meanwhile tastes change. Can a learner that hears only"
        " such answers follow what is best now?"
    ),
    method=(
        "SW-KLUCB-CF forgets answers older than a window and corrects the rest for the coin "
        "tosses. The paper proves a bound on regret that grows with the square root of time "
        "and of the number of changes, and states the privacy of whole sequences of answers. "
        "It has no experiments: those here are ours."
    ),
    studies=(
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
    ),
)
