"""Final regret of the policies on feedback graphs in the nine settings of paper 002, as a table.

Run ``python benchmarks/graph_regret.py``; ``--runs 20`` is ten times as quick.
"""

from __future__ import annotations

import argparse

import tacit
from tacit.arms import AAE, DPSE, GAP, GAPU, TSN, UCBN, AlphaSample
from tacit.arms.policy import ArmsPolicy
from tacit_studies.lu2022.settings import GraphSetting, graph_settings

HORIZON = 100_000


def policies_for(setting: GraphSetting) -> tuple[ArmsPolicy, ...]:
    """Return the policies to compare, the private ones first."""
    return (
        *(kind(n_arms=10, epsilon=setting.epsilon, horizon=HORIZON) for kind in (GAP, GAPU, DPSE)),
        *(kind(n_arms=10, horizon=HORIZON) for kind in (AAE, AlphaSample)),
        *(kind(n_arms=10) for kind in (UCBN, TSN)),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    names = [policy.name for policy in policies_for(graph_settings()[0])]
    print("| gap, edge_prob, epsilon |", " | ".join(names), "|")
    print("| --- |", " | ".join("---:" for _ in names), "|")
    for setting in graph_settings():
        cells = []
        for policy in policies_for(setting):
            result = tacit.simulate(
                policy, setting.environment, horizon=HORIZON, repetitions=runs, checkpoints=1
            )
            cells.append(f"{result.final('regret').mean():.0f}")
        label = f"{setting.gap:g}, {setting.edge_prob:g}, {setting.epsilon:g}"
        print(f"| {label} |", " | ".join(cells), "|", flush=True)
