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
from tacit_studies.paper import Paper

__all__ = ["PAPER"]

PAPER = Paper(
    name="odeyomi2022",
    short="Agents on a network",
    title="Differential Privacy in Social Networks Using Multi-Armed Bandit",
    cited="O. T. Odeyomi, IEEE Access 10, 2022. doi 10.1109/ACCESS.2022.3144084",
    question=(
        "A few people each get faint hints of what is going on in the world: which of five "
        "stories is the true one today, say. The truth moves about as it likes, but one story"
        " is true more often than the others. By talking to those they follow, can all of "
        "them come to believe in that one, without their messages giving away what each has "
        "seen?"
    ),
    method=(
        "Every agent keeps a belief, tests it against a loss that only it sees, and blends it"
        " with its neighbours' beliefs. Algorithm 1 adds noise to the losses, against "
        "strangers who listen; Algorithm 2 adds noise to the probabilities too, against "
        "neighbours who spy. The paper reports that both still reach the dominant story, "
        "somewhat later than without noise."
    ),
    studies=(
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
    ),
)
