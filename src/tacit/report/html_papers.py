"""The five papers, introduced to a reader who knows none of them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PAPERS", "Paper"]


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper as the report presents it."""

    number: str
    short: str
    """Two or three words for the menu."""
    title: str
    cited: str
    question: str
    """What the paper is about, in plain words."""
    method: str
    """What it proposes and claims."""


PAPERS = (
    Paper(
        number="000",
        short="Agents on a network",
        title="Differential Privacy in Social Networks Using Multi-Armed Bandit",
        cited="O. T. Odeyomi, IEEE Access 10, 2022. doi 10.1109/ACCESS.2022.3144084",
        question=(
            "A few people each get faint hints of what is going on in the environment: which of five "
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
    ),
    Paper(
        number="001",
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
    ),
    Paper(
        number="002",
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
    ),
    Paper(
        number="003",
        short="A changing environment",
        title=(
            "Local Differential Privacy for Sequential Decision Making in a Changing Environment"
        ),
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
    ),
    Paper(
        number="004",
        short="Users who collaborate",
        title="Global and Local Differential Privacy for Collaborative Bandits",
        cited=(
            "H. Wang, Q. Zhao, Q. Wu, S. Chopra, A. Khaitan, H. Wang, RecSys 2020. doi "
            "10.1145/3383313.3412254"
        ),
        question=(
            "A service recommends articles, and its users resemble their friends. Learning for "
            "friends together needs fewer tries than learning for each alone, but what one user "
            "clicks then shapes what friends are shown. How much of the gain is left when clicks "
            "are hidden from other users, or from the service itself?"
        ),
        method=(
            "Noise is added to the running sums from which the model is computed: by the service "
            "(global privacy) or on each user's device (local privacy), in proportion to how "
            "strongly users influence each other. The paper does this for CoLin and GOBLin and "
            "reports that learning together costs less regret at the same privacy than learning "
            "alone, as DP-LinUCB does."
        ),
    ),
)
