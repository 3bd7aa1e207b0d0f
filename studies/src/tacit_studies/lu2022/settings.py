"""The settings of paper 002, Section 5, as jobs are told them."""

from __future__ import annotations

from typing import Any, NamedTuple

from tacit.arms import GraphFeedback, TruncatedNormal

HORIZON = 100_000


class GraphSetting(NamedTuple):
    """A setting of the experiments of paper 002, Section 5."""

    figure: int
    gap: float
    """The smallest gap."""
    edge_prob: float
    epsilon: float

    @property
    def environment(self) -> GraphFeedback:
        """Ten arms: two best ones of mean 0.9, the others lower by the gap, then by 0.05 each."""
        means = (0.9, 0.9, *(0.9 - self.gap - 0.05 * k for k in range(8)))
        return GraphFeedback(environment=TruncatedNormal(means=means), edge_prob=self.edge_prob)

    def describe_environment(self) -> dict[str, Any]:
        """Return the environment by name and parameters."""
        rewards: Any = self.environment.environment
        return {
            "name": self.environment.name,
            "environment": {"name": rewards.name, "means": list(rewards.means)},
            "edge_prob": self.edge_prob,
        }


def graph_settings() -> tuple[GraphSetting, ...]:
    """Return the nine settings of Figures 1 to 3 of paper 002; its horizon is 100,000.

    Examples
    --------
    >>> graph_settings()[0]
    GraphSetting(figure=1, gap=0.05, edge_prob=0.2, epsilon=0.05)
    """
    return (
        *(GraphSetting(1, gap, 0.2, 0.05) for gap in (0.05, 0.1, 0.2)),
        *(GraphSetting(2, 0.1, edge_prob, 0.1) for edge_prob in (0.1, 0.2, 0.3)),
        *(GraphSetting(3, 0.2, 0.1, epsilon) for epsilon in (0.05, 0.1, 0.2)),
    )
