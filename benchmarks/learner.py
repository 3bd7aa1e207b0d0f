"""How fast a learner decides and learns, with every check on, in memory and on a disk.

Rates are pairs of a decision and its report for each second of CPU time of one thread; the store's are by
the clock on the wall, because waiting for the disk is what it is about.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from tacit.arms import DPSE, TSN
from tacit.contextual import LinUCB
from tacit.core.registry import policies

ARMS = 10
MEMORY_FIGURE, STORE_FIGURE = 70_000, 5_000


def every_policy() -> list[Any]:
    """Return every policy of the arms setting, private where it can be."""
    wanted = {"n_arms": ARMS, "epsilon": 1.0, "horizon": 10**6}
    made = []
    for kind in policies().values():
        if kind.setting == "arms":
            fields = {field.name for field in dataclasses.fields(kind) if field.init}
            made.append(kind(**{name: wanted[name] for name in wanted if name in fields}))
    return made


def value_of(learner: tacit.Learner) -> Any:
    return 1.0 if learner.trust == "central" else 1


def in_memory(policy: Any, pairs: int) -> float:
    """Return pairs a second of CPU time, the best of three passes."""
    learner, best = tacit.Learner(policy), 0.0
    value = value_of(learner)
    for _ in range(3):
        begun = time.process_time()
        for _ in range(pairs):
            decision = learner.decide()
            learner.learn({"v": 1, "id": decision.id, "value": value})
        best = max(best, pairs / (time.process_time() - begun))
    return best


def on_disk(policy: Any, pairs: int, batch: int) -> tuple[float, float, float]:
    """Return durable pairs a second by the clock and of CPU time, and bytes a pair."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "learner.db")
        learner = tacit.Learner(policy, store=store)
        value, done = value_of(learner), 0
        begun, worked = time.perf_counter(), time.process_time()
        while done < pairs:
            made = learner.decide_many([{}] * batch)
            learner.learn_many([{"v": 1, "id": each.id, "value": value} for each in made])
            done += batch
        wall, cpu = time.perf_counter() - begun, time.process_time() - worked
        learner.close()
        return done / wall, done / cpu, store.stat().st_size / done


def with_contexts(pairs: int) -> float:
    """Return pairs a second of CPU time of LinUCB with 100 people and 10 items of 10 features."""
    learner = tacit.Learner(LinUCB(n_users=100, dimension=10, epsilon=2.0))
    items = np.random.default_rng(0).normal(size=(10, 10)).tolist()
    begun = 0.0
    for i in range(pairs + 1):
        decision = learner.decide(person=str(i % 100), contexts=items)
        learner.learn({"v": 1, "id": decision.id, "value": 5})
        begun = begun or time.process_time()  # after the first pair, which may compile
    return pairs / (time.process_time() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=50_000)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    figures: dict[str, float] = {}
    for policy in every_policy():
        figures[f"{policy.name}, in memory"] = in_memory(policy, asked.pairs // 5)
    figures["linucb, 100 people, in memory"] = with_contexts(asked.pairs // 10)
    for policy, batch in (
        (DPSE(n_arms=ARMS, epsilon=1.0, horizon=10**6), 1),
        (DPSE(n_arms=ARMS, epsilon=1.0, horizon=10**6), 64),
        (TSN(n_arms=ARMS), 64),
    ):
        wall, cpu, size = on_disk(policy, asked.pairs // (100 if batch == 1 else 2), batch)
        figures[f"{policy.name}, stored, batches of {batch}"] = wall
        figures[f"{policy.name}, stored, batches of {batch}, of CPU time"] = cpu
        figures[f"{policy.name}, stored, batches of {batch}, bytes a pair"] = size
    for name, figure in figures.items():
        print(f"{name:45} {figure:12,.0f}")
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=1))
    missed = [
        name
        for name, least in (
            *((f"{each.name}, in memory", MEMORY_FIGURE) for each in every_policy()),
            ("dpse, stored, batches of 64", STORE_FIGURE),
        )
        if figures[name] < least
    ]
    busy = os.getloadavg()[0] > 0.5 + (os.cpu_count() or 1) / 2
    if missed and busy:
        print(f"not reached on a busy machine: {', '.join(missed)}")
    elif missed:
        raise SystemExit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
