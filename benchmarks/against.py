"""How fast this checkout plays beside an older one: ratios of CPU time, measured in turns.

    python benchmarks/against.py OLD_CHECKOUT [--rounds 7] [WORD ...]

Each case is played by two processes that stay, one on either checkout, in turn: old, new, old, new. A row
shows the least CPU time of either and their ratio; above 1.1 this checkout is more than 10% slower, and
the command ends with 1. Words select the cases that contain one of them.
OLD_CHECKOUT must run in this virtual environment; version 0.1 does.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MEANS = (0.9, 0.9, *(0.8 - 0.05 * k for k in range(8)))
EVEN = tuple(np.linspace(0.9, 0.1, 10).tolist())
MOST = 1.1


def module(*names: str) -> Any:
    """Return the first module there is: 0.3 has other names than the version it is measured against."""
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(f"tacit.{name}")
    raise ModuleNotFoundError(names[0])


def seeded_tape(seed: int) -> Any:
    """Return a tape of this version."""
    return module("core.tapes", "tapes").seeded_tape(seed)


def simulated(policy: str, **parameters: Any) -> Callable[[], Any]:
    """Return ten runs of a policy on ten Bernoulli arms, 20,000 rounds each."""
    import tacit
    from tacit import arms

    chosen = getattr(arms, policy)(n_arms=10, **parameters)
    environment = arms.Bernoulli(means=EVEN)
    return lambda: tacit.simulate(chosen, environment, horizon=20_000, repetitions=10, threads=1)


def on_graph(rewards: str, horizon: int = 100_000, **graph: Any) -> Callable[[], Any]:
    """Return twenty runs of GAP on ten arms with a feedback graph."""
    import tacit
    from tacit import arms

    complete = module("graphs", "networks").complete

    inner = getattr(arms, rewards)(means=MEANS)
    word = "environment" if "environment" in arms.GraphFeedback.__annotations__ else "world"
    environment = arms.GraphFeedback(**{word: inner}, **(graph or {"graph": complete(10)}))
    policy = arms.GAP(n_arms=10, epsilon=0.1, horizon=horizon)
    return lambda: tacit.simulate(policy, environment, horizon=horizon, repetitions=20, threads=1)


def for_users(
    kind: str, n_users: int, d: int, shown: int, horizon: int, **parameters: Any
) -> Callable[[], Any]:
    """Return a run of a policy of the users setting on a recorded table."""
    contextual = module("contextual", "users")
    new_trace = module("contextual.trace", "users.tables").new_trace

    rng = np.random.default_rng(0)
    contexts = rng.standard_normal((horizon, shown, d))
    contexts /= np.linalg.norm(contexts, axis=2, keepdims=True)
    weights = rng.random((n_users, n_users)) * (rng.random((n_users, n_users)) < 0.1)
    weights += np.eye(n_users)
    weights /= weights.sum(axis=0)
    people = np.arange(horizon) % n_users
    taste = rng.standard_normal((n_users, d)) / np.sqrt(d)
    means = np.einsum("tad,td->ta", contexts, taste[people])
    rewards = means + 0.1 * rng.standard_normal(means.shape)
    table = contextual.recorded_table(people, contexts, rewards, weights=weights)
    policy = getattr(contextual, kind)(
        n_users=n_users, dimension=d, regularisation=0.3, exploration=0.3, **parameters
    )

    def play() -> None:
        trace = new_trace(horizon, np.array([horizon]))
        policy.play(policy.start(table), table, seeded_tape(0), trace, 0, horizon)

    return play


def dynamics(engine: str, rounds: int, **changes: Any) -> Callable[[], Any]:
    """Return a run of learning dynamics in the setting of paper 001."""
    try:
        from tacit.dynamics import LearningDynamics, SocialOptions
    except ImportError:
        from tacit.agents import LearningDynamics, SocialOptions
    graphs = module("graphs", "networks")

    network = None
    if engine in ("tokens", "endpoints"):
        network = graphs.largest_component(graphs.erdos_renyi(1000, 20 / 1000, seed=1))
    n_agents = 10**4 if network is None else network.n_nodes
    policy = LearningDynamics(
        n_options=20,
        n_agents=n_agents,
        epsilon=1.0,
        variant="published",
        engine=engine,
        **changes,
    )
    qualities = tuple(np.linspace(1.0, 0.0, 20).tolist())
    environment = SocialOptions(qualities=qualities, n_agents=n_agents, network=network)

    def play() -> None:
        table, tape = environment.table(0, 0, rounds), seeded_tape(0)
        state, trace = policy.start(table), environment.trace(rounds, np.array([rounds]))
        policy.play(state, table, tape, trace, 0, rounds)

    return play


def diffusion(kind: str, horizon: int, repetitions: int, **parameters: Any) -> Callable[[], Any]:
    """Return runs of a diffusion policy on the three agents of paper 000."""
    import tacit

    try:
        from tacit import diffusion as setting
    except ImportError:
        from tacit import agents as setting
    policy = getattr(setting, kind)(n_states=5, **parameters)
    environment = setting.ChangingTruth(n_states=5, dominance=0.8)
    return lambda: tacit.simulate(
        policy, environment, horizon=horizon, repetitions=repetitions, threads=1
    )


CASES: dict[str, Callable[[], Callable[[], Any]]] = {
    "arms: ucb1": lambda: simulated("UCB1"),
    "arms: klucb": lambda: simulated("KLUCB"),
    "arms: klucb-cf, epsilon 1": lambda: simulated("KLUCBCF", epsilon=1.0),
    "arms: sw-klucb-cf, window 1,000": lambda: simulated("SWKLUCBCF", horizon=20_000, window=1000),
    "arms: sw-klucb-cf, epsilon 1": lambda: simulated(
        "SWKLUCBCF", horizon=20_000, window=1000, epsilon=1.0
    ),
    "arms: dp-se, epsilon 1": lambda: simulated("DPSE", horizon=20_000, epsilon=1.0),
    **{
        f"gap: {rewards}, ER(10, {p})": lambda rewards=rewards, p=p: on_graph(rewards, edge_prob=p)
        for rewards in ("Bernoulli", "TruncatedNormal")
        for p in (0.1, 0.2, 0.3)
    },
    **{
        f"gap: {rewards}, clique": lambda rewards=rewards: on_graph(rewards)
        for rewards in ("Bernoulli", "TruncatedNormal")
    },
    "users: linucb, d 25, 25 shown": lambda: for_users("LinUCB", 1, 25, 25, 10_000),
    "users: linucb, 10 people, d 5": lambda: for_users("LinUCB", 10, 5, 10, 20_000),
    "users: colin, 10 people, d 5": lambda: for_users("CoLin", 10, 5, 10, 10_000),
    "users: goblin, 10 people, d 5": lambda: for_users("GOBLin", 10, 5, 10, 10_000),
    "users: colin, 100 people, d 25": lambda: for_users("CoLin", 100, 25, 10, 500),
    "users: goblin, 100 people, d 25": lambda: for_users("GOBLin", 100, 25, 10, 500),
    "dynamics: mixed": lambda: dynamics("mixed", 200),
    "dynamics: crowd": lambda: dynamics("crowd", 2000),
    "dynamics: endpoints": lambda: dynamics("endpoints", 3, tokens=200),
    "dynamics: tokens": lambda: dynamics("tokens", 1, tokens=200),
    "diffusion: bandit": lambda: diffusion("DiffusionBandit", 1000, 40),
    "diffusion: outsiders, epsilon 1": lambda: diffusion(
        "OutsiderPrivateDiffusion", 1000, 40, epsilon=1.0
    ),
    "diffusion: spies, epsilon 1": lambda: diffusion("SpyPrivateDiffusion", 1000, 40, epsilon=1.0),
}


class Player:
    """A process that plays cases on one checkout, and says how long each took."""

    def __init__(self, checkout: Path) -> None:
        command = [sys.executable, str(Path(__file__).resolve()), "--play"]
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def seconds(self, case: str) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return float(json.loads(line)) if line else math.nan


def play() -> None:
    """Play the cases named on standard input, compiling before the first time."""
    made: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        case = json.loads(line)
        if case not in made:
            made[case] = CASES[case]()
            made[case]()
        begun = time.process_time()
        made[case]()
        print(json.dumps(time.process_time() - begun), flush=True)


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("old", type=Path, help="the older checkout")
    parser.add_argument("words", nargs="*", help="only cases that contain one of these")
    parser.add_argument("--rounds", type=int, default=7, help="how often each side plays")
    options = parser.parse_args()
    old, new = Player(options.old.resolve()), Player(Path(__file__).resolve().parents[1])
    slower = []
    print(f"{'case':36s} {'old ms':>9} {'new ms':>9} {'new/old':>8}")
    for case in CASES:
        if options.words and not any(word in case for word in options.words):
            continue
        turns = [(old.seconds(case), new.seconds(case)) for _ in range(options.rounds)]
        before, now = np.min(turns, axis=0)
        print(f"{case:36s} {1e3 * before:9.2f} {1e3 * now:9.2f} {now / before:8.2f}", flush=True)
        if not now / before <= MOST:
            slower.append(case)
    if slower:
        sys.exit(f"more than {MOST - 1:.0%} slower: " + "; ".join(slower))


if __name__ == "__main__":
    if sys.argv[1:] == ["--play"]:
        play()
    else:
        main()
