"""Learning dynamics: how fast the engines are, what they agree on, and what the population learns.

    python benchmarks/dynamics.py            every section but the long walk
    python benchmarks/dynamics.py walk speed scale table facebook smooth loss memo map elsewhere

Times are CPU seconds of one thread. Regrets are means of runs with standard errors.
"""

from __future__ import annotations

import math
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

from tacit.core.tapes import seeded_tape
from tacit.dynamics import LearningDynamics, SocialOptions, recommend
from tacit.graphs import erdos_renyi, largest_component, read_edges
from tacit_studies.estimates import format_estimate, summarise
from tacit_studies.tao2022.regret_maps import published_regret, regret_map, regret_of

EVEN = tuple(np.linspace(1.0, 0.0, 20).tolist())
WIDE = tuple(np.linspace(0.9, 0.1, 10).tolist())
TOKENS = math.ceil(485 * math.log(10**4) ** 2)


def seconds(policy, qualities, rounds, network=None):
    """Return CPU seconds, trace and state of a run, after one round to compile (but for tokens)."""
    environment = SocialOptions(qualities=qualities, n_agents=policy.n_agents, network=network)
    warm = [] if policy.engine == "tokens" else [1]
    for horizon in (*warm, rounds):
        table, tape = environment.table(0, 0, horizon), seeded_tape(0)
        state, trace = policy.start(table), environment.trace(horizon, np.array([horizon]))
        begun = time.process_time()
        policy.play(state, table, tape, trace, 0, horizon)
        spent = time.process_time() - begun
    return spent, trace, state


def published(engine, n_agents=10**4, **changes):
    return LearningDynamics(
        n_options=20, n_agents=n_agents, epsilon=1.0, variant="published", engine=engine, **changes
    )


def speed():
    """Paper scale: N = 10,000, M = 20, h g(N) = 41,143 tokens, 10,000 rounds."""
    spent, _, _ = seconds(published("mixed"), EVEN, 1000)
    print(f"mixed  {1e3 * spent / 1000:8.3f} ms a round, {10 * spent:6.1f} s a run  (at most 40)")
    spent, trace, _ = seconds(published("crowd"), EVEN, 10_000)
    print(f"crowd  {1e3 * spent / 1e4:8.3f} ms a round, {spent:6.2f} s a run  (at most 6)")
    print(f"       regret {trace.measures[0, 0]:.3f}")


def walk():
    """One round with an eighth of the tokens walked one by one, against a whole round of mixed."""
    mixed, _, _ = seconds(published("mixed"), EVEN, 200)
    mixed /= 200
    network = largest_component(erdos_renyi(10**4, 20 / 10**4, seed=1))
    small = published("tokens", network.n_nodes, tokens=50)
    seconds(small, EVEN, 1, network)
    policy = published("tokens", network.n_nodes, tokens=TOKENS // 8)
    spent, trace, state = seconds(policy, EVEN, 1, network)
    print(f"tokens {spent:8.1f} s for {network.n_nodes} x {TOKENS // 8} tokens, {policy.hops} hops")
    print(f"       {state.public[2]:.0f} slots, {trace.measures[0, 3]:.3g} messages an agent")
    print(f"       {spent / mixed:,.0f} rounds of mixed with all tokens, before scaling by 8:")
    print(f"       all tokens take {8 * spent / mixed:,.0f} rounds of mixed  (at least 10,000)")


def scale():
    """Cost against the number of agents."""
    sizes, costs = (10**4, 10**5, 10**6), []
    for n_agents in sizes:
        rounds = max(3, 10**6 // n_agents)
        spent, _, _ = seconds(published("mixed", n_agents), EVEN, rounds)
        costs.append(spent / rounds)
        print(f"mixed  N = {n_agents:>9,} {1e3 * costs[-1]:9.2f} ms a round")
    slope = np.polyfit(np.log(sizes), np.log(costs), 1)[0]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"       exponent {slope:.2f}; {costs[-1]:.2f} s at a million (at most 0.5)")
    print(f"       peak memory of this process {peak:.2f} GB (at most 2)")
    for n_agents in (10**4, 10**6, 10**8):
        policy = published("crowd", n_agents, tokens=math.ceil(485 * math.sqrt(n_agents)))
        spent, trace, _ = seconds(policy, EVEN, 10_000)
        regret = trace.measures[0, 0]
        print(f"crowd  N = {n_agents:>11,} {spent:6.2f} s for 10,000 rounds, regret {regret:.3f}")


def smooth():
    """Epsilon 1, ten options, 2,000 rounds, 10 N tokens: bits or subsets, forgotten or remembered."""
    qualities = np.linspace(0.9, 0.1, 10).tolist()
    for encoding in ("plain", "least"):
        for smoothed in (False, True):
            cells = []
            for n_agents in (10**4, 10**5, 10**6):
                policy = LearningDynamics(
                    n_options=10,
                    n_agents=n_agents,
                    epsilon=1.0,
                    engine="crowd",
                    encoding=encoding,
                    smoothed=smoothed,
                    tokens=10 * n_agents,
                )
                regret = regret_of(policy, qualities, horizon=2000, repetitions=20)
                cells.append(summarise(regret).text())
            print(
                f"{encoding:6s} {'smoothed' if smoothed else '':9s} {'  '.join(cells)}", flush=True
            )


def table():
    """The paper's setting, mean of 20 runs and its standard error."""
    for epsilon in (0.5, 1.0, 2.0, math.inf):
        cells = []
        for n_agents in (3_000, 6_000, 10_000):
            runs = published_regret(n_agents, epsilon, repetitions=20)
            cells.append(summarise(runs).text())
        print(f"epsilon {epsilon:>4}: " + "   ".join(cells))


def facebook():
    """Endpoints against mixed on 4,039 people, by the length of the walk."""
    root = os.environ.get("TACIT_DATA", Path(__file__).parents[2] / "shared" / "data")
    path = Path(root) / "graphs" / "facebook_combined.txt.gz"
    if not path.is_file():
        print("no data: set TACIT_DATA")
        return
    graph = read_edges(path)
    rounds, runs = 30, 8
    setting = {"n_options": 10, "n_agents": graph.n_nodes, "epsilon": 4.0, "tokens": 400}
    mixed = regret_of(
        LearningDynamics(**setting, engine="mixed"), WIDE, horizon=rounds, repetitions=runs
    )
    print(f"mixed                {summarise(mixed).text()}")
    for length in (1, 2, 4, 16, 64):
        policy = LearningDynamics(**setting, engine="endpoints", walk_length=length)
        begun = time.process_time()
        regret = regret_of(policy, WIDE, horizon=rounds, repetitions=runs, network=graph)
        spent = (time.process_time() - begun) / rounds / runs
        print(
            f"endpoints, {length:>3} hops  {summarise(regret).text()}  {spent:.2f} s a round",
            flush=True,
        )


def loss():
    """Regret against the share of tokens lost, the delay and the share of agents awake."""
    for name, values in (
        ("loss", (0.0, 0.5, 0.9, 0.99, 0.999)),
        ("delay", (0, 1, 3, 10, 30)),
        ("wake_prob", (1.0, 0.5, 0.2, 0.05)),
    ):
        cells = []
        for value in values:
            policy = LearningDynamics(
                n_options=10,
                n_agents=10**5,
                epsilon=1.0,
                engine="crowd",
                tokens=10**5,
                **{name: value},
            )
            regret = regret_of(policy, WIDE, horizon=2_000, repetitions=20)
            cells.append(f"{value:g}: {summarise(regret).text()}")
        print(f"{name:>9}  " + "  ".join(cells))


def memo():
    """How often an adoption changes, which is how often a memoised agent must perturb anew."""
    for variant in ("plain", "memoised"):
        setting = {"n_options": 10, "n_agents": 2_000, "epsilon": 1.0, "tokens": 2_000}
        policy = LearningDynamics(**setting, memoised=variant == "memoised")
        _, trace, state = seconds(policy, WIDE, 500)
        changes = state.public[1] / 500 / 2_000
        print(f"{variant:>9}  regret {trace.measures[0, 0]:.3f}  changes a round {changes:.2f}")


def map_():
    """Regret over agents and epsilon at the recommended beta; the paper's beta in brackets; 20 runs."""
    sizes = [10**k for k in range(3, 11)]
    found = regret_map(n_agents=sizes, betas=(0.505,), repetitions=20)
    print("| N | epsilon " + " | ".join(f"{e:g}" for e in found.epsilons) + " |")
    for i, n_agents in enumerate(found.n_agents):
        cells = (
            f"{format_estimate(new, its)} ({format_estimate(old, error)})"
            for (old, new), (error, its) in zip(found.regret[i], found.error[i], strict=True)
        )
        print(f"| 10^{round(math.log10(n_agents))} | " + " | ".join(cells) + " |", flush=True)


def elsewhere():
    """The recommended beta at epsilon 1 with options that it was not fitted to, and the paper's; 20 runs."""
    for words, qualities in (
        ("one .6, nine .5", (0.6,) + (0.5,) * 9),
        ("one .9, nine .3", (0.9,) + (0.3,) * 9),
        (".5 to .05", tuple(np.linspace(0.5, 0.05, 10).tolist())),
        ("three, .8 .7 .2", (0.8, 0.7, 0.2)),
    ):
        found = regret_map(
            n_agents=(10**4, 10**5, 10**6),
            epsilons=(1.0,),
            betas=(0.505,),
            qualities=qualities,
            repetitions=20,
        )
        chance = max(qualities) - sum(qualities) / len(qualities)
        cells = (
            f"{format_estimate(new, its)} ({format_estimate(old, error)})"
            for (old, new), (error, its) in zip(found.regret[:, 0], found.error[:, 0], strict=True)
        )
        print(f"| {words} | {chance:.3g} | " + " | ".join(cells) + " |", flush=True)


SECTIONS = {
    "speed": speed,
    "scale": scale,
    "table": table,
    "facebook": facebook,
    "smooth": smooth,
    "loss": loss,
    "memo": memo,
    "map": map_,
    "elsewhere": elsewhere,
    "walk": walk,
}


def main():
    wanted = sys.argv[1:] or [name for name in SECTIONS if name != "walk"]
    if not set(wanted) <= set(SECTIONS):
        sys.exit(__doc__)
    print(
        "recommended at N = 10^4, M = 10, epsilon = 1:",
        recommend(n_agents=10**4, n_options=10, epsilon=1.0),
    )
    for name in wanted:
        print(f"\n{name}: {SECTIONS[name].__doc__}")
        SECTIONS[name]()


if __name__ == "__main__":
    main()
