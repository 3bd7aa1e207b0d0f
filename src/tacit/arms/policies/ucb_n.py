"""UCB-N: UCB1 that also learns from its neighbours' rewards.

The index is UCB1's, but an arm's mean and count take in every reward of it that was observed, whichever
arm was pulled. Caron, Kveton, Lelarge and Bhagat (2012), Algorithm 1; the non-private yardstick for
feedback graphs. Ties go to the lowest index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.arms.loops import rounds_on_graph
from tacit.arms.policies.ucb1 import UCB1, learn, select
from tacit.arms.policy import Kernels
from tacit.graphs import Graph


@dataclass(frozen=True, kw_only=True)
class UCBN(UCB1):
    """Pull the arm with the largest upper confidence bound over all observations.

    Guarantee: none; the decisions depend on every observed reward without noise.

    Parameters
    ----------
    exploration : float, default 2
        c in the bonus sqrt(c ln t / n), n the number of observations.

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import UCB1, UCBN, Bernoulli, GraphFeedback
    >>> environment = GraphFeedback(environment=Bernoulli(means=(0.5, 0.4, 0.4, 0.4)), edge_prob=0.8)
    >>> regret = [
    ...     tacit.simulate(policy, environment, horizon=2000, repetitions=20).final("regret").mean()
    ...     for policy in (UCB1(n_arms=4), UCBN(n_arms=4))
    ... ]
    >>> bool(regret[1] < regret[0])
    True

    References
    ----------
    Caron, Kveton, Lelarge, Bhagat. Leveraging side observations in stochastic bandits. UAI 2012.
    """

    name: ClassVar[str] = "ucb-n"
    summary: ClassVar[str] = "UCB1 with side observations"
    paper: ClassVar[str] = "Caron et al. 2012, Algorithm 1"
    kernels: ClassVar[Kernels] = UCB1.kernels._replace(run=rounds_on_graph(select, learn))
    side_observations: ClassVar[bool] = True

    graph: Graph | None = None
