"""The arms setting: speed beside its peers, regret beside the speed, start-up time and memory.

    python benchmarks/arms.py [--json FILE] [--cache FOLDER]

Takes about three minutes on an idle core, after the first time, which makes the peers' environments.
Rates are rounds for each CPU second of one thread; only what is said to be wall time is.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import peers
import tacit
from tacit.arms import KLUCB, SWKLUCBCF, UCB1, Bernoulli
from tacit.arms.table import reward
from tacit.core.kernels import kernel
from tacit.core.policy import Policy
from tacit.core.tapes import CHOICE, seeded_tape, uniform

K, T, REPETITIONS, WINDOW = 10, 20_000, 10, 1_000
MEANS = tuple(np.linspace(0.9, 0.1, K).tolist())
ENVIRONMENT = Bernoulli(means=MEANS)
IDLE = 0.5  # load below which a missed figure cannot be blamed on other people's work


@dataclass
class Row:
    """One figure: Tacit's, the peer's, and what their ratio must be."""

    what: str
    tacit: float
    peer: str = ""
    theirs: float = math.nan
    required: float = math.nan
    unit: str = "rounds/s"
    regret: tuple[float, float] | None = None
    peer_regret: tuple[float, float] | None = None
    below: float = math.nan
    excused: str = ""

    @property
    def ratio(self) -> float:
        return self.tacit / self.theirs

    @property
    def verdict(self) -> str:
        if math.isnan(self.required) and math.isnan(self.below):
            return ""
        good = self.ratio >= self.required if math.isnan(self.below) else self.tacit < self.below
        return "pass" if good else self.excused or "FAIL"


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--cache", type=Path, default=peers.CACHE, help="the peers' environments")
    options = parser.parse_args()
    for peer in peers.PACKAGES:
        peers.python_of(peer, options.cache)
    load = os.getloadavg()[0]
    busy = f"busy (load {load:.1f})" if load > IDLE else ""
    rows = [*threads(busy), *speed(options.cache), *start(busy), memory()]
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {load:.2f} at the start")
    print(f"Bernoulli, K = {K}, T = {T:,}, {REPETITIONS} repetitions; compile time excluded\n")
    show(rows)
    if options.json is not None:
        figures = [
            {**asdict(row), "ratio": row.ratio, "verdict": row.verdict, "load": load}
            for row in rows
        ]
        text = json.dumps(figures, indent=1, default=str).replace("NaN", "null")
        options.json.write_text(text + "\n", encoding="utf-8")
    sys.exit(any(row.verdict == "FAIL" for row in rows))


@kernel
def touch(table: Any, tape: Any, rounds: Any) -> Any:
    """Read one reward and one uniform a round, and nothing else."""
    total = 0.0
    for t in range(rounds):
        total += reward(table, t, t % K) + uniform(tape, t, 0, CHOICE)
    return total


def threads(busy: str) -> list[Row]:
    """Two threads against one, by the clock on the wall, and what a round costs them."""
    policy = KLUCB(n_arms=K)

    def take(n: int) -> tuple[float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        tacit.simulate(policy, ENVIRONMENT, horizon=10 * T, repetitions=4, threads=n)
        rounds = 40 * T
        return rounds / (time.perf_counter() - wall), rounds / (time.process_time() - cpu)

    take(2)
    runs = [(take(1), take(2)) for _ in range(5)]
    one, two = (np.max([run[i] for run in runs], axis=0) for i in (0, 1))
    return [
        Row("two threads, wall time", two[0], "one thread", one[0], 1.7, excused=busy),
        Row("two threads, CPU time", two[1], "one thread", one[1]),
    ]


def speed(cache: Path) -> list[Row]:
    """Rounds a second of whole runs and of single steps, beside the peers'."""
    size = (str(K), str(T))
    river = peers.measure("river", "river_ucb.py", *size, str(REPETITIONS), cache=cache)
    table, tape = ENVIRONMENT.table(0, 0, T), seeded_tape(0)
    floor = fastest(lambda: touch(table, tape, REPETITIONS * T))
    rows = [Row("floor: a reward and a uniform", floor)]

    def against(what: str, policy: Policy, *rivals: tuple[str, dict[str, Any], float]) -> None:
        runs = []
        rate = fastest(lambda: runs.append(simulate(policy)))
        ours = summary(runs[-1].final("regret"))
        for peer, found, required in rivals:
            theirs = summary(found["regrets"])
            name = f"{peer} ({len(found['regrets'])} runs)"
            rows.append(Row(what, rate, name, found["rate"], required, "rounds/s", ours, theirs))

    def smpybandits(name: str, repetitions: int, build: str = "released") -> dict[str, Any]:
        script = "smpybandits_policies.py"
        count = str(repetitions)
        found: dict[str, Any] = peers.measure(
            "smpybandits", script, name, *size, count, build, cache=cache
        )
        return found

    against(
        "UCB1",
        UCB1(n_arms=K),
        ("river UCB", river, 100),
        ("SMPyBandits UCB", smpybandits("UCB", REPETITIONS), 200),
    )
    against(
        "KL-UCB",
        KLUCB(n_arms=K),
        ("SMPyBandits klUCB", smpybandits("klUCB", 3), 500),
        ("the same, numba put back", smpybandits("klUCB", 3, "numba"), math.nan),
    )
    windowed = SWKLUCBCF(n_arms=K, horizon=T, window=WINDOW)
    against(
        f"SW-KLUCB-CF, window {WINDOW:,}",
        windowed,
        ("SMPyBandits SWklUCB", smpybandits("SWklUCB", 3), 500),
        ("the same, numba put back", smpybandits("SWklUCB", 3, "numba"), math.nan),
    )
    rows.append(Row("one-step select/update, UCB1", steps(), "river UCB", river["rate"], 1))
    return rows


def simulate(policy: Policy) -> tacit.Result:
    return tacit.simulate(policy, ENVIRONMENT, horizon=T, repetitions=REPETITIONS, threads=1)


def fastest(play: Any) -> float:
    """Return rounds for each CPU second, best of three after one that compiles."""
    play()
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        play()
        seconds.append(time.process_time() - begin)
    return REPETITIONS * T / min(seconds)


def steps() -> float:
    """Return decisions and updates a second from Python, best of three after a short one."""
    draws = np.random.default_rng(0).random(T).tolist()

    def play(rounds: int) -> float:
        learner = tacit.Learner(UCB1(n_arms=K), seed=0)
        begin = time.process_time()
        for t in range(rounds):
            decision = learner.decide()
            value = 1.0 if draws[t] < MEANS[int(decision.option)] else 0.0
            learner.learn({"v": 1, "id": decision.id, "value": value})
        return rounds / (time.process_time() - begin)

    play(100)
    return max(play(T) for _ in range(3))


def start(busy: str) -> list[Row]:
    """How long the command line takes to answer, and what a second process still compiles."""
    command = [sys.executable, "-m", "tacit", "policies"]
    wall, cpu = [], []
    with tempfile.TemporaryDirectory() as folder:
        # Python keeps bytecode, as it does unless told otherwise; the first call writes it.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(4):
            begin, before = time.perf_counter(), os.times()
            subprocess.run(command, check=True, capture_output=True, env=environment)
            after = os.times()
            wall.append(time.perf_counter() - begin)
            cpu.append(after[2] + after[3] - before[2] - before[3])
    with tempfile.TemporaryDirectory() as cache:
        first, second = (in_new_process(FIRST_RUN, NUMBA_CACHE_DIR=cache) for _ in range(2))
    return [
        Row("tacit policies, wall time", min(wall), unit="s", below=1.0, excused=busy),
        Row("tacit policies, CPU time", min(cpu), unit="s"),
        Row("first process: kernels compiled", first["compiled"], unit="kernels"),
        Row("first process: CPU time to two results", first["seconds"], unit="s"),
        Row("second process: kernels compiled", second["compiled"], unit="kernels", below=1.0),
        Row("second process: CPU time to two results", second["seconds"], unit="s"),
    ]


FIRST_RUN = f"""
import json, time
begin = time.process_time()
import tacit
from tacit.arms import SWKLUCBCF, UCB1, Bernoulli
environment = Bernoulli(means={MEANS})
for policy in (UCB1(n_arms={K}), SWKLUCBCF(n_arms={K}, horizon=100, epsilon=1.0)):
    tacit.simulate(policy, environment, horizon=100)
seconds = time.process_time() - begin
misses = [kind.kernels.run.stats.cache_misses for kind in (UCB1, SWKLUCBCF)]
print(json.dumps({{"seconds": seconds, "compiled": sum(len(m) for m in misses)}}))
"""

LONG_RUN = f"""
import json, resource
import tacit
from tacit.arms import UCB1, Bernoulli
tacit.simulate(UCB1(n_arms={K}), Bernoulli(means={MEANS}), horizon=10**8, threads=1)
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
"""


def memory() -> Row:
    """The peak memory of a hundred million rounds."""
    return Row("peak memory, T = 100,000,000", in_new_process(LONG_RUN), unit="MB", below=500.0)


def in_new_process(code: str, **environment: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )
    return json.loads(done.stdout)


def summary(values: Any) -> tuple[float, float]:
    """Return mean and standard error."""
    array = np.asarray(values, float)
    return float(array.mean()), float(array.std(ddof=1) / math.sqrt(array.size))


def show(rows: list[Row]) -> None:
    head = (
        "figure",
        "tacit",
        "peer",
        "theirs",
        "ratio",
        "needed",
        "",
        "regret (s.e.)",
        "theirs (s.e.)",
    )
    lines = [head] + [
        (
            row.what,
            f"{number(row.tacit)} {row.unit}",
            row.peer,
            number(row.theirs),
            "" if math.isnan(row.theirs) else f"{row.ratio:.3g}x",
            f"< {row.below:g}"
            if math.isnan(row.required) and not math.isnan(row.below)
            else ""
            if math.isnan(row.required)
            else f">= {row.required:g}x",
            row.verdict,
            *(f"{r[0]:.1f} ({r[1]:.1f})" if r else "" for r in (row.regret, row.peer_regret)),
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip())


def number(value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
