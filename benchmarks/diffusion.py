"""Diffusion bandits: the paper's setting, regret against epsilon, and scale.

    python benchmarks/diffusion.py [paper]    # 1,000 runs of every algorithm on three agents
    python benchmarks/diffusion.py epsilon    # regret against epsilon, and the T needed at epsilon 1
    python benchmarks/diffusion.py history    # what a whole history costs when shared seldom
    python benchmarks/diffusion.py scale      # one run on graphs of up to 326,186 agents
    python benchmarks/diffusion.py pictures FOLDER

The graphs are read from the directory ``TACIT_DATA``.
"""

from __future__ import annotations

import math
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

import tacit
from tacit.diffusion import (
    ChangingTruth,
    DiffusionBandit,
    OutsiderPrivateDiffusion,
    SpyPrivateDiffusion,
)
from tacit.graphs import MixingMatrix, barabasi_albert, read_edges
from tacit.simulation.bands import Band
from tacit.simulation.plots import draw_beliefs, draw_network_beliefs, draw_privacy_cost

M = 5


def paper() -> None:
    print("algorithm                 q   regret   s.e.  converged  at round  seconds")
    b = math.log(400) / 0.1
    policies = {
        "3": DiffusionBandit(n_states=M),
        "1 published": OutsiderPrivateDiffusion(
            n_states=M, epsilon=0.1, variant="published", horizon=500
        ),
        "2 published": SpyPrivateDiffusion(
            n_states=M, epsilon=0.1, variant="published", noise_bound=b
        ),
        "3, adaptive rates": DiffusionBandit(n_states=M, rates="adaptive"),
        "1 corrected, eps 1": OutsiderPrivateDiffusion(n_states=M, epsilon=1.0),
        "2 corrected, eps 1+1": SpyPrivateDiffusion(n_states=M, epsilon=1.0),
    }
    for label, policy in policies.items():
        _runs(policy, horizon=10, repetitions=1)
        for q in (0.6, 0.8, 1.0):
            begin = time.perf_counter()
            result = _runs(policy, q=q)
            seconds = time.perf_counter() - begin
            regret, done = result.final("regret"), result.final("converged") > 0
            at = result.final("convergence_time")[done].mean() if done.any() else math.nan
            error = regret.std(ddof=1) / math.sqrt(regret.size)
            print(
                f"{label:22s} {q:4.1f} {regret.mean():8.2f} {error:6.2f} {done.mean():9.1%} "
                f"{at:9.0f} {seconds:8.2f}",
                flush=True,
            )


EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SHOWN = {
    "algorithm 3": lambda eps: DiffusionBandit(n_states=M),
    "algorithm 3, adaptive rates": lambda eps: DiffusionBandit(n_states=M, rates="adaptive"),
    "1 corrected": lambda eps: OutsiderPrivateDiffusion(n_states=M, epsilon=eps),
    "2 corrected": lambda eps: SpyPrivateDiffusion(n_states=M, epsilon=eps),
    "1 published": lambda eps: OutsiderPrivateDiffusion(
        n_states=M, epsilon=eps, variant="published", horizon=5000
    ),
    "2 published": lambda eps: SpyPrivateDiffusion(
        n_states=M, epsilon=eps, variant="published", horizon=5000
    ),
}


def bands(measure: str = "regret") -> dict[str, list[Band]]:
    return {
        label: [
            _runs(make(eps), horizon=5000, repetitions=40).band(measure)
            for eps in (EPSILONS if "algorithm" not in label else EPSILONS[:1])
        ]
        for label, make in SHOWN.items()
    }


def epsilon() -> None:
    print("q = 0.8, T = 5,000: mean of 40 runs and 95% half-width; a uniform belief has 3,000")
    believed, named = bands(), bands("choice_regret")
    for label in SHOWN:
        for i, (a, b) in enumerate(zip(believed[label], named[label], strict=True)):
            shown = "none" if "algorithm" in label else f"{EPSILONS[i]:g}"
            cells = [f"{x.mean[-1]:8.1f} ± {x.high[-1] - x.mean[-1]:5.1f}" for x in (a, b)]
            print(f"{label:28s} epsilon {shown:>4s}: regret {cells[0]}, of states named {cells[1]}")
    print("regret of corrected 1 over that of a uniform belief at epsilon 1")
    for q in (0.6, 0.8):
        policy = OutsiderPrivateDiffusion(n_states=M, epsilon=1.0)
        result = _runs(policy, q=q, horizon=20000, repetitions=40, checkpoints=2000)
        share = result.measures["regret"].mean(axis=0) / (result.checkpoints * (q - 0.2))
        for level in (0.5, 0.2, 0.1, 0.05):
            T = int(result.checkpoints[np.argmax(share < level)])
            print(f"  q = {q}: below {level:4.0%} from T = {T}")


def pictures() -> None:
    folder = Path(sys.argv[2])
    note = "three agents, 5 states, q = 0.8, T = 5,000; mean of 40 runs, 95% bands"
    draw_privacy_cost(EPSILONS, bands(), folder / "regret-epsilon", uniform=3000.0, note=note)
    rounds = np.arange(1, 501)
    small, large = (
        ChangingTruth(dominant=3),
        ChangingTruth(dominant=3, network=barabasi_albert(200, 3, seed=1)),
    )
    for name, policy, environment in (
        ("algorithm-3", DiffusionBandit(n_states=M), small),
        ("published-1", SHOWN["1 published"](0.1), small),
        ("corrected-1", SHOWN["1 corrected"](1.0), small),
        ("corrected-1-of-200", SHOWN["1 corrected"](1.0), large),
    ):
        result = tacit.simulate(
            policy, environment, horizon=500, seed=2, checkpoints=rounds, record=True
        )
        draw_beliefs(result, folder / f"beliefs-{name}")
        draw_network_beliefs(result, folder / f"network-{name}", rounds=(1, 50, 150, 500))


def history() -> None:
    print("2 corrected, signals not shared, q = 0.8, T = 5,000, 30 runs; uniform belief 3,000")
    print("history epsilon  rounds a report  report epsilon  one loss   regret, 95% half-width")
    for total in (20, 100, 500):
        for block in (1, 10, 50, 250):
            report = total * block / 5000
            policy = SpyPrivateDiffusion.with_report_epsilon(
                n_states=M, report_epsilon=report, signal_epsilon=0.0, block=block
            )
            band = _runs(policy, horizon=5000, repetitions=30).band("regret")
            spent = policy.history_guarantee(5000).epsilon
            half = band.high[-1] - band.mean[-1]
            print(
                f"{spent:15.0f} {block:16d} {report:15.3f} {policy.epsilon:9.4f} "
                f"{band.mean[-1]:9.0f} ± {half:4.0f}",
                flush=True,
            )


def scale() -> None:
    folder = Path(os.environ["TACIT_DATA"]) / "graphs"
    epinions = read_edges(
        folder / "soc-Epinions1-lcc.txt.gz", directed=True, loops="drop", duplicates="merge"
    )
    dblp = read_edges(folder / "dblp-2010.edges.txt.gz", n_nodes=326_186, duplicates="merge")
    _one_run("warm-up", barabasi_albert(100, 3, seed=1), horizon=10)
    _one_run("Epinions", epinions)
    _one_run("DBLP", dblp)
    sizes, seconds = [], []
    for share in (16, 8, 4, 2, 1):
        graph = barabasi_albert(dblp.n_nodes // share, 3, seed=1)
        size, taken = _one_run(f"Barabasi-Albert / {share}", graph, horizon=100)
        sizes.append(size)
        seconds.append(taken)
    exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    print(f"processor seconds grow as weights to the power {exponent:.2f}")


def _one_run(label, graph, horizon=500):
    policy = OutsiderPrivateDiffusion(n_states=M, epsilon=1.0)
    environment = ChangingTruth(network=MixingMatrix.uniform(graph), connectivity="weak")
    begin, processor = time.perf_counter(), time.process_time()
    result = tacit.simulate(policy, environment, horizon=horizon, seed=1, threads=1, checkpoints=5)
    taken, used = time.perf_counter() - begin, time.process_time() - processor
    arcs = environment.mixing_matrix.weights.size
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{label:22s} {environment.n_agents:7d} agents {arcs:8d} weights {horizon} rounds: "
        f"{taken:6.2f} s, {used:6.2f} s of processor, {memory:5.2f} GB at most so far, "
        f"regret {result.final('regret')[0]:.1f}",
        flush=True,
    )
    return arcs, used


def _runs(policy, *, q=0.8, horizon=500, repetitions=1000, checkpoints=1):
    environment = ChangingTruth(n_states=M, dominance=q)
    return tacit.simulate(
        policy,
        environment,
        horizon=horizon,
        repetitions=repetitions,
        seed=7,
        checkpoints=checkpoints,
        threads=1,
    )


if __name__ == "__main__":
    modes = {mode.__name__: mode for mode in (paper, epsilon, history, scale, pictures)}
    word = sys.argv[1] if len(sys.argv) > 1 else "paper"
    if word not in modes or (word == "pictures") != (len(sys.argv) > 2):
        sys.exit(__doc__)
    modes[word]()
