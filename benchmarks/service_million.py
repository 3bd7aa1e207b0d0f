"""A million decisions and reports of one experiment: memory, size of the file, time to start again.

    python benchmarks/service_million.py [--pairs 1000000]

Commands reach the experiment as the service gives them, 64 to a commit, without HTTP in between. The store
is a SQLite file with every commit durable; retention is long, so that nothing is deleted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from tacit.service import open_service
from tacit.service.hosting import clock, decide_once
from tacit.service.messages import ExperimentRequest
from tacit.serving.core import Core

BATCH = 64
EXPERIMENT = {
    "name": "million",
    "policy": {"name": "klucb-cf", "epsilon": 1.0},
    "options": [str(i) for i in range(10)],
    "reward": {"kind": "binary", "report_after": 3600},
}
AGAIN = """
import sys, time
from tacit.service import open_service
begun = time.perf_counter()
opened = open_service(sys.argv[1])
print(time.perf_counter() - begun, opened.host.experiments["million"].core.learned)
"""


def memory() -> float:
    """Return the memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    pairs = parser.parse_args().pairs
    with tempfile.TemporaryDirectory(dir=".") as folder:
        store = Path(folder, "million.db")
        opened = open_service(store)
        hosted = opened.host.create(msgspec.convert(EXPERIMENT, ExperimentRequest))
        experiment, seen = hosted.experiment, []
        begun, cpu = time.perf_counter(), time.process_time()
        for done in range(0, pairs, BATCH):
            now = clock()
            asked = (now, None, None, None, True)
            made = experiment.run_many([(decide_once, asked, {})] * BATCH)
            reports = [(Core.report, (now, each.id, i % 2), {}) for i, each in enumerate(made)]
            experiment.run_many(reports)
            if done % (pairs // 10) < BATCH:
                seen.append(memory())
        rate = pairs / (time.perf_counter() - begun)
        busy = 1e6 * (time.process_time() - cpu) / pairs
        seen.append(memory())
        size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
        # As after a crash: no last snapshot.
        opened.host.store.close()
        said = subprocess.run(
            [sys.executable, "-c", AGAIN, str(store)], capture_output=True, text=True, check=True
        ).stdout.split()
        assert int(said[1]) >= pairs
    print(f"{pairs:,} decisions and reports: {rate:,.0f} a second, {busy:.0f} us of CPU each")
    print(f"memory  {' '.join(f'{each:.0f}' for each in seen)} MB")
    print(f"files   {size:.0f} MB ({1e6 * size / pairs:.0f} bytes a pair)")
    print(f"restart {float(said[0]):.2f} s")


if __name__ == "__main__":
    main()
