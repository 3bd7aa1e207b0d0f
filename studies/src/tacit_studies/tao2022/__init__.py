"""Paper 001 (Tao et al.): learning dynamics in a social network."""

from __future__ import annotations

from tacit_studies.paper import Paper
from tacit_studies.tao2022.constants import CONSTANTS
from tacit_studies.tao2022.figures import FIGURES
from tacit_studies.tao2022.initial_conditions import INITIAL_CONDITIONS
from tacit_studies.tao2022.privacy import PRIVACY
from tacit_studies.tao2022.theorem_5_1 import THEOREM_5_1
from tacit_studies.tao2022.theorem_5_2 import MAP
from tacit_studies.tao2022.tokens import TOKENS

__all__ = ["PAPER"]

PAPER = Paper(
    name="tao2022",
    short="A crowd that copies",
    title="A Distributed Privacy-Preserving Learning Dynamics in General Social Networks",
    cited="Y. Tao, S. Chen, F. Li, D. Yu, J. Yu, H. Sheng, 2022",
    question=(
        "Thousands of people choose among a few options again and again. Nobody keeps "
        "statistics: each looks at what others have adopted, tries one of those, and adopts "
        "it if it went well. Such a crowd finds the best option by itself. Does it still if "
        "nobody may learn what any one person has adopted?"
    ),
    method=(
        "In each round people flip the bits of their vote at random, send the flipped vote on"
        " random walks through the network, estimate from what arrives how popular each "
        "option is, and choose by that. The paper proves that a large enough crowd comes "
        "close to the best option, and reports that with epsilon between 1 and 2 hardly "
        "anything is lost."
    ),
    studies=(*FIGURES, CONSTANTS, TOKENS, INITIAL_CONDITIONS, THEOREM_5_1, MAP, PRIVACY),
)
