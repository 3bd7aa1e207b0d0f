"""DP-IMED and DP-KLUCB beside GAP: regret in the nine settings of paper 002, and speed.

    python benchmarks/dp_imed.py [--runs 60]   # the table, about a minute
    python benchmarks/dp_imed.py --tail        # the setting with the heaviest tail, 2,000 runs
    python benchmarks/dp_imed.py --plain       # without a graph, beside the baselines and the bound
    python benchmarks/dp_imed.py --speed       # ten arms, one thread
    python benchmarks/dp_imed.py --draws       # what a reward costs, one by one and four at a time
    python benchmarks/dp_imed.py --facebook    # 4,039 arms; needs TACIT_DATA

The seeds are none that any constant was chosen on.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from tacit.arms import (
    DPIMED,
    DPKLUCB,
    DPSE,
    GAP,
    UCBN,
    AdaPKLUCB,
    Bernoulli,
    GraphFeedback,
    LazyDPTS,
    TruncatedNormal,
    asymptotic_regret,
)
from tacit.arms.environments.base import ArmsEnvironment
from tacit.arms.policy import ArmsPolicy
from tacit.arms.table import four_rewards, reward
from tacit.core.kernels import kernel
from tacit.graphs import complete, read_edges
from tacit_studies.estimates import estimate_quantile, summarise
from tacit_studies.lu2022.settings import HORIZON, graph_settings

SEED = 20_260
TEN = (0.9, 0.9, *(0.8 - 0.05 * k for k in range(8)))
FIVE = (0.75, 0.625, 0.5, 0.375, 0.25)


def regret(policy: ArmsPolicy, environment: ArmsEnvironment, runs: int) -> np.ndarray:
    """Return the final regret of each run."""
    result = tacit.simulate(
        policy, environment, horizon=HORIZON, repetitions=runs, seed=SEED, checkpoints=1
    )
    return result.final("regret")


def cell(values: np.ndarray) -> str:
    """Return mean and standard error."""
    return summarise(values).text()


def nine_settings(runs: int) -> bool:
    """Print the table; return whether every ratio is reached."""
    good = True
    print(
        "gap, p, epsilon: GAP | DP-IMED reward | DP-IMED round | DP-KLUCB reward | UCB-N, no privacy"
    )
    for setting in graph_settings():
        epsilon, where = setting.epsilon, setting.environment
        gap = regret(GAP(n_arms=10, epsilon=epsilon, horizon=HORIZON), where, runs)
        found = [
            regret(policy, where, runs)
            for policy in (
                DPIMED(n_arms=10, epsilon=epsilon),
                DPIMED(n_arms=10, epsilon=epsilon, unit="round"),
                DPKLUCB(n_arms=10, epsilon=epsilon),
                UCBN(n_arms=10),
            )
        ]
        reward, whole = (gap.mean() / values.mean() for values in found[:2])
        good &= reward >= 8 and whole >= 2.5
        print(
            f"{setting.gap:4g} {setting.edge_prob:3g} {epsilon:4g}: {cell(gap)} | "
            f"{' | '.join(map(cell, found))} | times {reward:.1f} and {whole:.1f}",
            flush=True,
        )
    return good


def tail() -> None:
    """Print quantiles of regret with intervals, and the ratio to GAP, where the tail is heaviest."""
    setting = next(
        s for s in graph_settings() if (s.gap, s.edge_prob, s.epsilon) == (0.05, 0.2, 0.05)
    )
    policies = (
        GAP(n_arms=10, epsilon=setting.epsilon, horizon=HORIZON),
        DPIMED(n_arms=10, epsilon=setting.epsilon),
        DPKLUCB(n_arms=10, epsilon=setting.epsilon),
    )
    gap, *others = (regret(policy, setting.environment, 2000) for policy in policies)
    for policy, values in zip(policies, (gap, *others), strict=True):
        shown = ", ".join(
            f"q{100 * share:g} {estimate_quantile(values, share).text()}"
            for share in (0.1, 0.5, 0.9, 0.99)
        )
        ratio = gap.mean() / values.mean()
        # The delta method; runs are paired.
        relative = gap / gap.mean() - values / values.mean()
        error = ratio * relative.std() / len(values) ** 0.5
        print(
            f"{policy.name}: {cell(values)}, {shown}; GAP has {ratio:.1f} +- {error:.1f} times its "
            "regret"
        )


def plain(runs: int) -> None:
    """Print regrets without a graph beside the baselines and the bound."""
    for means in (TEN, FIVE):
        for epsilon in (0.05, 0.1, 1.0):
            K, where = len(means), Bernoulli(means=means)
            policies = (
                DPSE(n_arms=K, epsilon=epsilon, horizon=HORIZON),
                AdaPKLUCB(n_arms=K, epsilon=epsilon),
                LazyDPTS(n_arms=K, epsilon=epsilon),
                DPIMED(n_arms=K, epsilon=epsilon),
                DPKLUCB(n_arms=K, epsilon=epsilon),
            )
            cells = [f"{policy.name} {cell(regret(policy, where, runs))}" for policy in policies]
            bound = asymptotic_regret(means, epsilon, HORIZON)
            print(f"{K} arms, {epsilon:g}: {' | '.join(cells)} | bound {bound:.0f}", flush=True)


def speed() -> None:
    """Print rounds a second of CPU time, the best of three, compilation aside."""
    T = 1_000_000
    for rewards in (Bernoulli(means=TEN), TruncatedNormal(means=TEN)):
        for label, where in (
            ("no graph", rewards),
            ("ER(10, 0.2)", GraphFeedback(environment=rewards, edge_prob=0.2)),
            ("clique", GraphFeedback(environment=rewards, graph=complete(10))),
        ):
            for kind in (DPIMED, DPKLUCB):
                policy = kind(n_arms=10, epsilon=0.1)
                tacit.simulate(policy, where, horizon=1000, threads=1)
                seconds = []
                for _ in range(3):
                    begun = time.process_time()
                    tacit.simulate(policy, where, horizon=T, repetitions=2, threads=1)
                    seconds.append(time.process_time() - begun)
                rate = 2 * T / min(seconds) / 1e6
                print(
                    f"{policy.name:9s} {rewards.name:17s} {label:12s} {rate:6.1f} million rounds/s"
                )


@kernel
def one_by_one(table: Any, rounds: int) -> float:
    """Return the sum of an arm's rewards."""
    total = 0.0
    for t in range(rounds):
        total += reward(table, t, 0)
    return total


@kernel
def by_four(table: Any, rounds: int) -> float:
    """Return the same, as DP-IMED adds it up."""
    total = 0.0
    for t in range(0, rounds, 4):
        for value in four_rewards(table, 0, t, 0):
            total += value
    return total


def draws() -> None:
    """Print nanoseconds of CPU time a reward, the best of seven."""
    rounds = 1_000_000
    for rewards in (Bernoulli(means=(0.8,)), TruncatedNormal(means=(0.8,))):
        table = rewards.table(SEED, 0, rounds)
        assert one_by_one(table, rounds) == by_four(table, rounds)
        for add in (one_by_one, by_four):
            seconds = []
            for _ in range(7):
                begun = time.process_time()
                add(table, rounds)
                seconds.append(time.process_time() - begun)
            nanoseconds = 1e9 * min(seconds) / rounds
            print(f"{rewards.name:17s} {add.__name__:11s} {nanoseconds:5.1f} ns a reward")


def facebook(horizon: int) -> None:
    """Print the time of one run with an arm for each of 4,039 people."""
    graph = read_edges(Path(os.environ["TACIT_DATA"]) / "graphs" / "facebook_combined.txt.gz")
    means = np.random.default_rng(0).uniform(0.1, 0.9, graph.n_nodes)
    where = GraphFeedback(environment=Bernoulli(means=tuple(means)), graph=graph)
    policy = DPIMED(n_arms=graph.n_nodes, epsilon=1.0)
    tacit.simulate(policy, where, horizon=1000, threads=1)
    begun, cpu = time.perf_counter(), time.process_time()
    result = tacit.simulate(policy, where, horizon=horizon, threads=1)
    wall, cpu = time.perf_counter() - begun, time.process_time() - cpu
    print(
        f"{graph}, {horizon} rounds: {wall:.1f} s ({cpu:.1f} s of CPU), "
        f"regret {result.final('regret')[0]:.0f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--horizon", type=int, default=10_000_000)
    for name in ("tail", "plain", "speed", "draws", "facebook"):
        parser.add_argument(f"--{name}", action="store_true")
    arguments = parser.parse_args()
    if arguments.tail:
        tail()
    elif arguments.plain:
        plain(arguments.runs)
    elif arguments.speed:
        speed()
    elif arguments.draws:
        draws()
    elif arguments.facebook:
        facebook(arguments.horizon)
    elif not nine_settings(arguments.runs):
        raise SystemExit("a ratio is missed")
