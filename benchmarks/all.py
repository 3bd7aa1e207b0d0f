"""Every measurement of speed that needs no data set, one after another: ``python benchmarks/all.py``.

Exits with 1 if one of them misses a figure; the others run all the same.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
COMMANDS = (
    ("arms.py",),
    ("gap.py",),
    ("users.py", "naive", "peers"),
    ("dynamics.py", "speed"),
    ("diffusion.py", "paper"),
    ("secure_samplers.py",),
)


def main() -> None:
    missed = []
    for name, *words in COMMANDS:
        command = " ".join(["python", f"benchmarks/{name}", *words])
        print(f"\n$ {command}", flush=True)
        done = subprocess.run([sys.executable, FOLDER / name, *words], check=False)
        if done.returncode != 0:
            missed.append(command)
    if missed:
        print("\nmissed a figure: " + "; ".join(missed))
        sys.exit(1)


if __name__ == "__main__":
    main()
