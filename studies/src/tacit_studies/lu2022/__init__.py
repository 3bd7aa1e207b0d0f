"""Paper 002 (Lu et al.): GAP, a private learner with a feedback graph, against its rivals."""

from __future__ import annotations

from tacit_studies.lu2022.figures import FIGURES
from tacit_studies.lu2022.lipschitz import LIPSCHITZ
from tacit_studies.lu2022.privacy import PRIVACY
from tacit_studies.lu2022.table_1 import TABLE_1
from tacit_studies.lu2022.theorems import THEOREMS
from tacit_studies.paper import introduce

__all__ = ["PAPER"]

PAPER = introduce("lu2022", TABLE_1, *FIGURES, THEOREMS, LIPSCHITZ, PRIVACY)
