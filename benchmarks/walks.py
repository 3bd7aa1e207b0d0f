"""How far a reader walks: how many functions of Tacit one step enters, and in how many files they stand.

    python benchmarks/walks.py [WORD ...]

A case prepares something and returns the step to follow. The step runs interpreted under a profiler, which
counts each function of Tacit once, and each file. A case that enters more than it may ends the command
with 1. Words select the cases that contain one of them; ``--list`` prints the functions too.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

# Before Tacit is imported: a compiled function enters nothing.
os.environ["NUMBA_DISABLE_JIT"] = "1"

SOURCE = Path(__file__).resolve().parents[1] / "src/tacit"
Step = Callable[[], object]


class Case(NamedTuple):
    """A step, and how many functions in how many files it may enter."""

    name: str
    prepare: Callable[[], Step]
    functions: int
    files: int
    begins_in: str = ""
    """The function that the walk begins in, which is not counted."""
    ends_in: str = ""
    """The function that the walk ends in as soon as it is entered, which is not counted."""


def round_of_klucb_cf() -> Step:
    """Return the one of 200 rounds that enters most; others solve no index or draw between no ties."""
    import numpy as np

    from tacit.arms import KLUCBCF, Bernoulli
    from tacit.core.tapes import seeded_tape

    environment, policy = Bernoulli(means=(0.3, 0.5, 0.7)), KLUCBCF(n_arms=3, epsilon=1.0)

    def rounds() -> Iterator[Step]:
        table, trace = environment.table(0, 0, 200), environment.trace(200, np.array([200]))
        run, arguments = policy.program(policy.start(table), table, seeded_tape(0), trace)
        return (partial(run, *arguments, t, t + 1) for t in range(200))

    sizes = [len(entered(step)) for step in rounds()]
    steps = rounds()
    for _, step in zip(range(sizes.index(max(sizes))), steps, strict=False):
        step()
    return next(steps)


def words_to_a_kernel() -> Step:
    """Return a command line that was run once before, so that everything is imported."""
    from tacit.cli import app

    words = [
        "compare",
        "klucb",
        "klucb-cf",
        "--epsilon",
        "1",
        "--environment",
        "bernoulli:means=[0.3,0.7]",
    ]
    words += ["--horizon", "10", "--repetitions", "1", "--engine", "serial", "--out"]

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
            app([*words, folder], standalone_mode=False)

    run()
    return run


CASES = (
    Case("one round of klucb-cf", round_of_klucb_cf, 25, 10, begins_in="rounds.<locals>.run"),
    Case("words to the first kernel", words_to_a_kernel, 60, 20, ends_in="rounds.<locals>.run"),
)


class ArrivedError(BaseException):
    """The walk has come to its end."""


def entered(step: Step, ends_in: str = "") -> set[tuple[str, str]]:
    """Return file and name of every function of Tacit that a step enters before it ends."""
    found = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)) and code.co_name[0] != "<":
            if code.co_qualname == ends_in:
                raise ArrivedError
            found.add((str(Path(code.co_filename).relative_to(SOURCE)), code.co_qualname))

    sys.setprofile(note)
    try:
        step()
    except ArrivedError:
        pass
    finally:
        sys.setprofile(None)
    return found


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("words", nargs="*", help="only cases that contain one of these")
    parser.add_argument("--list", action="store_true", help="print the functions")
    options = parser.parse_args()
    longer = []
    print(f"{'case':36s} {'functions':>10} {'allowed':>8} {'files':>6} {'allowed':>8}")
    for case in CASES:
        if options.words and not any(word in case.name for word in options.words):
            continue
        walked = entered(case.prepare(), case.ends_in)
        found = sorted(each for each in walked if each[1] != case.begins_in)
        files = len({file for file, _ in found})
        print(f"{case.name:36s} {len(found):10d} {case.functions:8d} {files:6d} {case.files:8d}")
        if options.list:
            print("\n".join(f"    {file}: {name}" for file, name in found))
        if len(found) > case.functions or files > case.files:
            longer.append(case.name)
    if longer:
        sys.exit("walks further than it may: " + "; ".join(longer))


if __name__ == "__main__":
    main()
