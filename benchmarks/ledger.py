"""How many charges a second the ledger makes durable: ``python benchmarks/ledger.py [FOLDER]``.

One at a time, from threads that come at once and share commits, and many in one call. A disk decides how
fast commits are: the first rows show what SQLite does on this one, with the same journal, so that
charges a commit can be read off. FOLDER must lie on the disk in question; by default it is the present one.
Times are on the wall, since a durable commit is waiting.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import threading
import time
from pathlib import Path

from tacit.privacy import Charge, Ledger

SECONDS = 3.0


def commits(path: Path) -> float:
    """Return bare commits a second of one row each."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = TRUNCATE")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)")
    begun, n = time.perf_counter(), 0
    while time.perf_counter() - begun < SECONDS:
        connection.execute("INSERT INTO rows (text) VALUES ('a charge')")
        n += 1
    connection.close()
    return n / (time.perf_counter() - begun)


def single(ledger: Ledger, threads: int) -> float:
    """Return charges a second by `spend`, from so many threads at once."""
    until, made = time.perf_counter() + SECONDS, [0] * threads

    def charge(i: int) -> None:
        while time.perf_counter() < until:
            ledger.spend(f"person {i}", 1e-6, key=f"{threads} {made[i]}")
            made[i] += 1

    begun = time.perf_counter()
    workers = [threading.Thread(target=charge, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(made) / (time.perf_counter() - begun)


def many(ledger: Ledger, size: int) -> float:
    """Return charges a second by `spend_many`, so many in a call."""
    begun, n = time.perf_counter(), 0
    while time.perf_counter() - begun < SECONDS:
        ledger.spend_many(
            Charge(subject=f"person {i}", key=f"many {n + i}", epsilon=1e-6) for i in range(size)
        )
        n += size
    return n / (time.perf_counter() - begun)


def main() -> None:
    parent = sys.argv[1] if len(sys.argv) > 1 else "."
    if not Path(parent).is_dir():
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        bare = commits(Path(folder) / "bare.sqlite")
        print(f"bare commits of SQLite    {bare:8,.0f} a second")
        ledger = Ledger(Path(folder) / "ledger.sqlite")
        ledger.allow(1000.0)
        for threads in (1, 8, 32, 128):
            rate = single(ledger, threads)
            print(
                f"spend, {threads:3} threads        {rate:8,.0f} a second,"
                f" {rate / bare:6.1f} for each bare commit",
                flush=True,
            )
        for size in (64, 1024):
            rate = many(ledger, size)
            print(f"spend_many, {size:4} a call   {rate:8,.0f} a second", flush=True)
        ledger.close()


if __name__ == "__main__":
    main()
