"""How fast GAP plays: ten arms, and the 4,039 of the Facebook graph.

python benchmarks/gap.py             # ten arms, one thread
python benchmarks/gap.py --facebook  # needs TACIT_DATA, the folder of the data sets
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path

import numpy as np

import tacit
from tacit.arms import GAP, Bernoulli, GraphFeedback, TruncatedNormal
from tacit.graphs import complete, read_edges

MEANS = (0.9, 0.9, *(0.8 - 0.05 * k for k in range(8)))


def rounds_a_second(environment: GraphFeedback, horizon: int, repetitions: int) -> float:
    """Return rounds a second of CPU time, the best of three, compilation aside."""
    policy = GAP(n_arms=environment.n_arms, epsilon=0.1, horizon=horizon)
    tacit.simulate(policy, environment, horizon=horizon, threads=1)
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        tacit.simulate(policy, environment, horizon=horizon, repetitions=repetitions, threads=1)
        seconds.append(time.process_time() - begun)
    return repetitions * horizon / min(seconds)


def ten_arms() -> None:
    """Print the speed on random graphs and on a clique."""
    for rewards in (Bernoulli(means=MEANS), TruncatedNormal(means=MEANS)):
        for label, graph in (
            *((f"ER(10, {p})", {"edge_prob": p}) for p in (0.1, 0.2, 0.3)),
            ("clique", {"graph": complete(10)}),
        ):
            environment = GraphFeedback(environment=rewards, **graph)
            rate = rounds_a_second(environment, 100_000, 20)
            print(f"{rewards.name:17s} {label:11s} {rate / 1e6:6.1f} million rounds/s")


def facebook(horizon: int) -> None:
    """Print time and memory of one run with an arm for each of 4,039 people."""
    data = Path(os.environ["TACIT_DATA"])
    graph = read_edges(data / "graphs" / "facebook_combined.txt.gz")
    means = np.random.default_rng(0).uniform(0.1, 0.9, graph.n_nodes)
    environment = GraphFeedback(environment=Bernoulli(means=tuple(means)), graph=graph)
    policy = GAP(n_arms=graph.n_nodes, epsilon=1.0, horizon=horizon)
    tacit.simulate(policy, environment, horizon=1000, threads=1)
    begun, cpu = time.perf_counter(), time.process_time()
    result = tacit.simulate(policy, environment, horizon=horizon, threads=1)
    wall, cpu = time.perf_counter() - begun, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{graph}, {horizon} rounds: {wall:.1f} s ({cpu:.1f} s of CPU), peak memory {peak:.0f} MB, "
        f"regret {result.final('regret')[0]:.0f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facebook", action="store_true")
    parser.add_argument("--horizon", type=int, default=10_000_000)
    arguments = parser.parse_args()
    if arguments.facebook:
        facebook(arguments.horizon)
    else:
        ten_arms()
