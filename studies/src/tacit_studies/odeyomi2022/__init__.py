"""Paper 000 (Odeyomi): agents who track a changing truth.

The figures show agents who become certain of the state that dominates, and the regret of that. The
paper does not say how often the dominant state is the true one, so every study plays 60%, 80% and 100%.
"""

from __future__ import annotations

from tacit_studies.odeyomi2022.adversarial import ADVERSARIAL
from tacit_studies.odeyomi2022.beliefs import BELIEFS, CONVERGENCE
from tacit_studies.odeyomi2022.bounds import BOUNDS
from tacit_studies.odeyomi2022.epsilon import EPSILON
from tacit_studies.odeyomi2022.figure_6 import FIGURE_6
from tacit_studies.odeyomi2022.network_size import SIZE
from tacit_studies.odeyomi2022.privacy import PRIVACY
from tacit_studies.odeyomi2022.real_networks import REAL_NETWORKS
from tacit_studies.odeyomi2022.weak_networks import WEAK, WEAK_REAL
from tacit_studies.paper import introduce

__all__ = ["PAPER"]

PAPER = introduce(
    "odeyomi2022",
    *BELIEFS,
    CONVERGENCE,
    FIGURE_6,
    BOUNDS,
    EPSILON,
    SIZE,
    REAL_NETWORKS,
    WEAK,
    WEAK_REAL,
    ADVERSARIAL,
    PRIVACY,
)
