"""How long ``tacit guarantee`` takes at 10^15 rounds: ``python benchmarks/guarantees.py [words]``.

Runs the whole command for every policy of the registry under every parameter set of the battery (words
select those that contain them) and prints its seconds of CPU. What takes two seconds or more is run once
more, because a kernel may have been compiled; if it takes as long again, this exits with 1.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

MOST = 2.0


def written(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}={written(each)}" for name, each in value.items()) + "}"
    return json.dumps(value)


def seconds(target: str) -> float:
    words = ["guarantee", target, "--rewards", "50", "--horizon", str(10**15)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", "from tacit.cli import main; main()", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    from battery.cases import cases

    took = {}
    for case in cases():
        if any(value is None or is_dataclass(value) for value in case.parameters.values()):
            continue  # a value of Python's, which no command line takes
        parameters = ",".join(f"{name}={written(each)}" for name, each in case.parameters.items())
        target = f"{case.kind.name}:{parameters}".rstrip(":")
        if all(word in target for word in sys.argv[1:]):
            took[target] = seconds(target)
            if took[target] >= MOST:
                took[target] = seconds(target)
            print(f"{took[target]:6.2f}  {target}", flush=True)
    if not took:
        sys.exit(__doc__)
    print(f"{len(took)} policies, at most {max(took.values()):.2f} seconds of CPU")
    if max(took.values()) >= MOST:
        sys.exit(1)


if __name__ == "__main__":
    main()
