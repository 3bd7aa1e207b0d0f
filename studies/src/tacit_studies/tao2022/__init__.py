"""Paper 001 (Tao et al.): learning dynamics in a social network."""

from __future__ import annotations

from tacit_studies.paper import introduce
from tacit_studies.tao2022.constants import CONSTANTS
from tacit_studies.tao2022.figures import FIGURES
from tacit_studies.tao2022.initial_conditions import INITIAL_CONDITIONS
from tacit_studies.tao2022.privacy import PRIVACY
from tacit_studies.tao2022.theorem_5_1 import THEOREM_5_1
from tacit_studies.tao2022.theorem_5_2 import MAP
from tacit_studies.tao2022.tokens import TOKENS

__all__ = ["PAPER"]

PAPER = introduce(
    "tao2022", *FIGURES, CONSTANTS, TOKENS, INITIAL_CONDITIONS, THEOREM_5_1, MAP, PRIVACY
)
