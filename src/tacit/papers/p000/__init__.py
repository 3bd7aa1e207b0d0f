"""Paper 000 (Odeyomi): agents who track a changing truth.

The figures show agents who become certain of the state that dominates, and the regret of that. The
paper does not say how often the dominant state is the true one, so every study plays 60%, 80% and 100%.
"""

from __future__ import annotations

from tacit.papers.p000.beliefs import BELIEFS, CONVERGENCE
from tacit.papers.p000.privacy import PRIVACY
from tacit.papers.p000.regret import EPSILON, FIGURE_6, SIZE

__all__ = ["REPRODUCTIONS"]

REPRODUCTIONS = (*BELIEFS, CONVERGENCE, FIGURE_6, EPSILON, SIZE, PRIVACY)
