"""Beyond one process: sweeps on a cluster, partitioned populations, a machine that is lost, and costs.

    python benchmarks/distribution.py sweep                    # 64 jobs on two machines, and overhead
    python benchmarks/distribution.py diffusion [LOG N [FROM]] # agents in 8 partitions beside one process
    python benchmarks/distribution.py steps                    # partitions with nothing to compute
    python benchmarks/distribution.py lost                     # one of two machines killed at half time

The cluster is a real Ray cluster of two machines, as far as Ray can tell, with one core each, on this host.
Exits with 1 if a figure is missed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import tacit
from tacit.diffusion import ChangingTruth, DiffusionLearning
from tacit.engines import JSON, Cluster, Engine, SerialEngine, Store, run_jobs
from tacit.graphs import Blocks

#: Two machines that notice each other's death within a second or two, and whose processes are no lower in
#: rank than others of the host.
WATCHFUL = {
    "worker_niceness": 0,
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 300,
    "health_check_timeout_ms": 500,
    "health_check_failure_threshold": 3,
}
STATES, PARTITIONS, EDGES_EACH = 5, 8, 10
TICK = os.sysconf("SC_CLK_TCK")
MISSED: list[str] = []


def figure(name: str, value: float, rule: str, holds: bool) -> None:
    print(f"{name}: {value:.4g} ({rule})" + ("" if holds else "  MISSED"), flush=True)
    if not holds:
        MISSED.append(name)


@contextmanager
def machines() -> Iterator[Any]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster as Machines

    cluster = Machines(
        initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": WATCHFUL}
    )
    cluster.add_node(num_cpus=1)
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    ray.init(
        address=cluster.address,
        log_to_driver=False,
        logging_level="ERROR",
        runtime_env={"env_vars": {"PYTHONPATH": paths}},
    )
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def actors() -> list[int]:
    """Return the processes of partitions: Ray names them after what they do."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if words.startswith(b"ray::_RayActor"):
            found.append(int(folder.name))
    return found


def cpu_seconds(pids: list[int]) -> float:
    """Return the processor time of processes so far."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICK


def own_bytes(pids: list[int]) -> int:
    """Return the memory of processes, what they share counted once."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def busy(seconds: float) -> float:
    """Take so much processor time."""
    end = time.process_time() + seconds
    x = 1.0
    while time.process_time() < end:
        for _ in range(1000):
            x = x * 1.0000001
    return x


def nothing(_i: int) -> int:
    return 0


def sweep() -> None:
    import ray

    def seconds(engine: Engine, function: Any, jobs: dict[str, tuple[Any, ...]]) -> float:
        with TemporaryDirectory() as folder:
            begun = time.perf_counter()
            run_jobs(function, jobs, Store(folder, JSON), engine=engine)
            return time.perf_counter() - begun

    jobs = {str(i): (1.0,) for i in range(64)}
    with machines():
        seconds(Cluster(), busy, {str(i): (0.1,) for i in range(4)})
        two = seconds(Cluster(), busy, jobs)
        small = {str(i): (i,) for i in range(2000)}
        seconds(Cluster(), nothing, small)
        engine = min(seconds(Cluster(), nothing, small) for _ in range(2))
        own = min(_tasks_alone(ray, len(small)) for _ in range(2))
    one = seconds(SerialEngine(), busy, jobs)
    print(f"64 jobs: {one:.1f} s with one worker, {two:.1f} s on two machines")
    figure("sweep, times one worker", one / two, ">= 1.6", one / two >= 1.6)
    over = 1000 * (engine - own) / len(small)
    print(f"2,000 empty jobs: {engine:.2f} s with the engine, {own:.2f} s of Ray alone")
    figure("overhead of a job, ms", over, "< 3", over < 3)


def _tasks_alone(ray: Any, count: int) -> float:
    """Return how long Ray takes by itself, with as many tasks under way and no outcome kept."""
    task = ray.remote(nothing).options(num_cpus=1)
    begun, under_way = time.perf_counter(), []
    for i in range(count):
        if len(under_way) == 4:
            (done,), under_way = ray.wait(under_way, num_returns=1)
            ray.get(done)
        under_way.append(task.remote(i))
    ray.get(under_way)
    return time.perf_counter() - begun


def society(n: int) -> ChangingTruth:
    """Return n agents with about 10 edges each, in blocks of a thousand, a fifth of them anywhere."""
    degree = 2 * EDGES_EACH
    network = Blocks(nodes=n, blocks=max(1, n // 1000), within=0.8 * degree, across=0.2 * degree)
    return ChangingTruth(network=network, connectivity="weak", n_states=STATES)


class Clock:
    """Notes wall and processor time after every round, and the most memory that was ever in use."""

    def __init__(self, pids: Any) -> None:
        self._pids, self.marks, self.bytes = pids, [], 0
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()

    def _look(self) -> None:
        while not self._over.wait(1.0):
            with suppress(OSError):
                self.bytes = max(self.bytes, own_bytes(self._pids()))

    def stop(self) -> None:
        self._over.set()
        self._watch.join()

    def __call__(self, _rounds: int) -> None:
        self.marks.append((time.perf_counter(), cpu_seconds(self._pids())))

    @property
    def round(self) -> tuple[float, float]:
        """Wall and processor time of the cheapest round."""
        steps = np.diff(np.array(self.marks), axis=0)
        wall, cpu = steps.min(axis=0)
        return float(wall), float(cpu)


def measured(n: int, engine: Engine, partitions: int, rounds: int = 4) -> tuple[Clock, Any, float]:
    pids = actors if isinstance(engine, Cluster) else lambda: [os.getpid()]
    clock, begun = Clock(pids), time.perf_counter()
    result = tacit.simulate(
        DiffusionLearning(n_states=STATES),
        society(n),
        horizon=rounds,
        checkpoints=np.array([rounds]),
        partitions=partitions,
        engine=engine,
        progress=clock,
    )
    clock.stop()
    return clock, result.measures, time.perf_counter() - begun


def diffusion(largest: int = 7, smallest: int = 5) -> None:
    print("      N  where          a round: wall s  processor s    memory GB    in all s")
    costs: dict[int, float] = {}
    for log in range(smallest, largest + 1):
        n, rounds = 10**log, 4 if log < 7 else 3
        with machines():
            parts, mine, seconds = measured(n, Cluster(), PARTITIONS, rounds)
        _row(n, f"{PARTITIONS} partitions", parts, seconds)
        one, theirs, seconds = measured(n, SerialEngine(), 1, rounds)
        _row(n, "one process", one, seconds)
        same = all(np.array_equal(mine[name], theirs[name]) for name in mine)
        ratio = parts.round[1] / one.round[1]
        figure(f"10^{log} agents, the same bits", float(same), "1", same)
        name = f"10^{log} agents, processor time beside one process"
        if log == largest:  # smaller ones are mostly Ray's own work
            figure(name, ratio, "<= 1.5", ratio <= 1.5)
        else:
            print(f"{name}: {ratio:.4g}")
        figure(f"10^{log} agents, GB in all", parts.bytes / 1e9, "< 12", parts.bytes < 12e9)
        costs[n] = parts.round[1]
    if len(costs) > 1:
        slope = float(np.polyfit(np.log(list(costs)), np.log(list(costs.values())), 1)[0])
        figure("exponent of the cost of a round in N", slope, "<= 1.15", slope <= 1.15)


def _row(n: int, where: str, clock: Clock, seconds: float) -> None:
    wall, cpu = clock.round
    print(
        f"{n:10,}  {where:12}  {wall:16.3f} {cpu:12.3f} {clock.bytes / 1e9:12.2f} {seconds:11.1f}",
        flush=True,
    )


def lost(log: int = 5, rounds: int = 150) -> None:
    policy, environment = DiffusionLearning(n_states=STATES), society(10**log)

    def run(progress: Any) -> tuple[float, Any]:
        with TemporaryDirectory() as folder:
            begun = time.perf_counter()
            result = tacit.simulate(
                policy,
                environment,
                horizon=rounds,
                checkpoints=4,
                partitions=PARTITIONS,
                engine=Cluster(),
                snapshot_dir=folder,
                snapshot_every=rounds // 20,
                progress=progress,
            )
            return time.perf_counter() - begun, result.measures

    with machines() as cluster:
        alone, whole = run(lambda _rounds: None)
        told = []

        def lose(count: int) -> None:
            told.append(count)
            if sum(told) == rounds // 2:
                cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)

        again, parts = run(lose)
    same = all(np.array_equal(whole[name], parts[name]) for name in whole)
    print(
        f"10^{log} agents, {rounds} rounds: undisturbed {alone:.1f} s, a machine lost {again:.1f} s"
    )
    figure("a machine lost at half time, the same bits", float(same), "1", same)
    figure(
        "a machine lost at half time, times undisturbed",
        again / alone,
        "<= 1.6",
        again <= 1.6 * alone,
    )


def steps(rounds: int = 300) -> None:
    """Print what a step costs where there is nothing to compute: what the driver and Ray do by themselves."""
    with machines():
        for partitions in (2, PARTITIONS):
            clock, _, _ = measured(1000, Cluster(), partitions, rounds)
            wall = np.median(np.diff(np.array(clock.marks)[:, 0]))
            print(
                f"{partitions} partitions of {1000 // partitions} agents: {1000 * wall:.1f} ms a step"
            )


def main() -> None:
    word, *rest = sys.argv[1:] or ["sweep"]
    parts = {"sweep": sweep, "diffusion": diffusion, "lost": lost, "steps": steps}
    if word not in parts:
        sys.exit(__doc__)
    parts[word](*map(int, rest))
    if MISSED:
        print("missed: " + "; ".join(MISSED))
        sys.exit(1)


if __name__ == "__main__":
    main()
