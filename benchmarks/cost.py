"""What a population in partitions costs, and what that says of 10^9 agents on 100 machines.

    python benchmarks/cost.py model         # seconds and bytes for an agent, a weight, a border, a round
    python benchmarks/cost.py predict       # from those: 10^9 agents on 100 machines, round by round
    python benchmarks/cost.py crowd [LOG N] # crowd beside mixed in partitions at 10^7 agents

Seconds are processor time of one thread of this machine.
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any, NamedTuple

import numpy as np

import tacit
from distribution import STATES
from tacit.core.tapes import seeded_tape
from tacit.diffusion import ChangingTruth, DiffusionLearning
from tacit.dynamics import LearningDynamics, SocialOptions
from tacit.engines import Processes
from tacit.graphs import Blocks
from tacit.populations import Run, make_population, split_agents
from tacit.populations.actors import LocalActors

ROUNDS = 6
QUALITIES = tuple(np.linspace(0.9, 0.1, 10).tolist())


class Costs(NamedTuple):
    """Of one round of `diffusion` with five states."""

    agent: float
    """Seconds for an agent."""
    weight: float
    """Seconds for a weight: a neighbour that is heard."""
    halo: float
    """Seconds for a value that crosses a border, gathered, copied and put in place."""
    measure: float
    """Seconds for an agent at a checkpoint, one after the other through all partitions."""
    agent_bytes: float
    weight_bytes: float
    halo_bytes: float
    """Bytes of memory for each."""
    wire: float
    """Bytes that cross a border for an agent that is heard there."""
    jitter: float
    """Relative standard deviation of the time of a step."""


class Layout(NamedTuple):
    agents: int
    weights: int
    halo: int


def population(network: Blocks, partitions: int) -> tuple[LocalActors, Any, Layout]:
    environment = ChangingTruth(network=network, connectivity="weak", n_states=STATES)
    run = Run(0, 0, 10**6, np.array([10**6]), record=False)
    bounds = split_agents(network.n_nodes, partitions)
    agents = make_population(DiffusionLearning(n_states=STATES), environment, bounds, run)
    actors = LocalActors([agents.maker(i) for i in range(partitions)])
    actors.step(-1, None)
    tables = [partition.table for partition in actors.partitions]
    weights, halo = sum(t.senders.size for t in tables), sum(t.halo for t in tables)
    return actors, agents, Layout(network.n_nodes, weights, halo)


def round_seconds(actors: LocalActors) -> list[float]:
    """Return the processor time of some rounds, after one that compiles."""
    spent = []
    for t in range(ROUNDS):
        begun = time.process_time()
        actors.step(t, None)
        spent.append(time.process_time() - begun)
    return spent[2:]


def held_bytes(actors: LocalActors) -> int:
    total = 0
    for partition in actors.partitions:
        for part in (partition.table, partition.state, partition.trace):
            total += sum(x.nbytes for x in part if isinstance(x, np.ndarray))
        total += partition.border.halo.nbytes + sum(
            x.nbytes for x in partition.border.wanted if x is not None
        )
    return total


def measure_model(n: int = 200_000) -> Costs:
    """Fit the costs to runs that differ in agents, weights and borders."""
    layouts, seconds, memory, jitter = [], [], [], []
    for degree, across, partitions in (
        (4, 0, 1),
        (24, 0, 1),
        (24, 24, 1),
        (24, 0, 16),
        (24, 24, 16),
    ):
        network = Blocks(nodes=n, blocks=n // 1000, within=degree - across, across=across)
        actors, _, layout = population(network, partitions)
        rounds = round_seconds(actors)
        layouts.append(layout)
        seconds.append(min(rounds))
        memory.append(held_bytes(actors))
        jitter.append(np.std(rounds) / np.mean(rounds))
        print(
            f"  {layout}, {partitions} partitions: {seconds[-1]:.3f} s, {memory[-1] / 1e6:.1f} MB"
        )
        if layout.halo == 0 and degree == 4:
            begun = time.process_time()
            sums = actors.reduce("add_up", np.zeros(4 + STATES))
            actors.reduce("add_distances", sums)
            measure = (time.process_time() - begun) / n
            begun = time.process_time()
            actors.reduce("add_distances", actors.reduce("add_up", np.zeros(4 + STATES)))
            measure = min(measure, (time.process_time() - begun) / n)
    # The third is as the second but for neighbours who are far away in memory.
    rows = np.array(layouts, float)
    agent, weight, halo = _nonnegative(rows, np.array(seconds))
    bytes_each = _nonnegative(rows, np.array(memory, float))
    wire = 8.0 * STATES
    return Costs(agent, weight, halo, measure, *bytes_each, wire, float(np.median(jitter)))


def _nonnegative(rows: Any, values: Any) -> list[float]:
    from scipy.optimize import nnls

    scale = values[:, None]
    return [float(x) for x in nnls(rows / scale, np.ones(len(values)))[0]]


def model() -> Costs:
    costs = measure_model()
    print(f"a round: {1e9 * costs.agent:.0f} ns an agent, {1e9 * costs.weight:.1f} ns a weight,")
    print(f"  {1e9 * costs.halo:.0f} ns a value that crosses a border")
    print(f"at a checkpoint: {1e9 * costs.measure:.1f} ns an agent, one partition after the other")
    print(
        f"memory: {costs.agent_bytes:.0f} bytes an agent, {costs.weight_bytes:.1f} a weight, "
        f"{costs.halo_bytes:.0f} an agent of a halo; on the wire {costs.wire:.0f} bytes for each and round"
    )
    print(f"a step varies by {100 * costs.jitter:.1f}%")
    return costs


def predict(n: int = 10**9, machines: int = 100, cores: int = 16, gigabits: float = 10.0) -> None:
    costs = model()
    partitions = machines * cores
    degree, anywhere = (
        21.0,
        4.0,
    )  # as `society`: twenty neighbours and oneself, four of them anywhere
    here = n / partitions
    # Whom the agents here hear anywhere: each stands in the halo unless it is heard twice, or is here.
    halo = n * (1.0 - math.exp(-anywhere * here / n)) * (1 - 1 / partitions)
    compute = here * costs.agent + here * degree * costs.weight + halo * costs.halo
    rng = np.random.default_rng(0)
    steps = compute * (1.0 + costs.jitter * np.abs(rng.standard_normal((200, partitions))))
    slowest = steps.max(axis=1)
    wire = halo * costs.wire * cores  # into a machine, and as much out of it
    sending = wire * 8 / (gigabits * 1e9)
    rounds = slowest + sending
    memory = cores * (
        here * costs.agent_bytes + here * degree * costs.weight_bytes + halo * costs.halo_bytes
    )
    print(
        f"\n{n:.0e} agents, {n * (degree - 1) / 2:.0e} edges on {machines} machines of {cores} cores, "
        f"{gigabits:g} Gbit/s, {partitions} partitions"
    )
    print(f"  a partition: {here:,.0f} agents, {here * degree:,.0f} weights, {halo:,.0f} halo")
    print(f"  memory of a machine: {memory / 1e9:.1f} GB")
    print(
        f"  computing: {compute:.2f} s a round, the slowest of {partitions} {slowest.mean():.2f} s"
    )
    print(f"  on the wire: {wire / 1e9:.2f} GB into each machine, {sending:.2f} s")
    print(f"  a round: {rounds.mean():.2f} s ({rounds.min():.2f} to {rounds.max():.2f})")
    print(f"  a checkpoint: {n * costs.measure:.0f} s, since measures are added up in order")
    print(f"  one core would take {n * (costs.agent + degree * costs.weight):,.0f} s a round")


def crowd(log: int = 7, rounds: int = 40) -> None:
    n = 10**log
    environment = SocialOptions(qualities=QUALITIES, n_agents=n)
    at = np.array([rounds // 4, rounds // 2, rounds])
    settings: dict[str, Any] = {"n_options": 10, "n_agents": n, "epsilon": 1.0}
    begun = time.perf_counter()
    mixed = tacit.simulate(
        LearningDynamics(engine="mixed", **settings),
        environment,
        horizon=rounds,
        checkpoints=at,
        partitions=8,
        engine=Processes(2),
    )
    spent = time.perf_counter() - begun
    policy = LearningDynamics(engine="crowd", **settings)
    runs = []
    for tape in range(40):  # on the same signals, with other draws
        table, trace = environment.table(0, 0, rounds), environment.trace(rounds, at)
        policy.play(policy.start(table), table, seeded_tape(7, tape), trace, 0, rounds)
        runs.append(trace.measures)
    spread = np.array(runs)
    print(f"{n:,} agents, mixed in 8 partitions on two processes: {spent / rounds:.2f} s a round")
    for i, name in enumerate(("regret", "best_popularity")):
        for c, t in enumerate(at):
            mean, sd = spread[:, c, i].mean(), spread[:, c, i].std(ddof=1)
            value = mixed.measures[name][0, c]
            print(
                f"  after {t:3d} rounds, {name}: mixed {value:.5f}, crowd {mean:.5f} +- {sd:.5f} "
                f"({(value - mean) / sd:+.1f} standard deviations)"
            )


def main() -> None:
    word, *rest = sys.argv[1:] or ["model"]
    parts = {"model": model, "predict": predict, "crowd": crowd}
    if word not in parts:
        sys.exit(__doc__)
    parts[word](*map(int, rest))


if __name__ == "__main__":
    main()
