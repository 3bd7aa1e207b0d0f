"""Paper 002 (Lu et al.): GAP, a private learner with a feedback graph, against its rivals."""

from __future__ import annotations

from tacit_studies.lu2022.figures import FIGURES
from tacit_studies.lu2022.lipschitz import LIPSCHITZ
from tacit_studies.lu2022.privacy import PRIVACY
from tacit_studies.lu2022.table_1 import TABLE_1
from tacit_studies.lu2022.theorems import THEOREMS
from tacit_studies.paper import Paper

__all__ = ["PAPER"]

PAPER = Paper(
    name="lu2022",
    short="Hints from neighbours",
    title="Differentially Private Algorithm for Graphical Bandits (in Chinese)",
    cited="S. Lu, G. Wang, Z. Qiu, L. Zhang, Journal of Software 33(9), 2022, 3223–3235",
    question=(
        "A shop shows one offer to each visitor. Offers are related: how one of them does "
        "also tells how its neighbours would have done. Such hints make learning cheaper, but"
        " each hint is one more fact about a visitor. Can a learner use them and still hide "
        "every single answer?"
    ),
    method=(
        "GAP works in phases. In each it shows a few offers that between them reveal all that"
        " are left, adds noise to their average rewards, and drops those that are clearly "
        "worse. The paper proves that every reward is protected and reports less regret than "
        "private learners that ignore the graph, and about as little as learners without "
        "privacy."
    ),
    studies=(TABLE_1, *FIGURES, THEOREMS, LIPSCHITZ, PRIVACY),
)
