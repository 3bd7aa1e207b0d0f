"""The table of docs/audit.md: every private policy of the registry, audited as it is and with half its noise.

``python benchmarks/audits.py --table docs/audit.md``. The games are those of tests/battery/small_games.py. Of
a few neighbouring pairs a short search takes the one that tells most of the twin, with half the noise; both
bounds then rest on it, each with fresh runs.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

TESTS = Path(__file__).parents[1] / "tests"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
RUNS, RUNS_LONG = 100_000, 40_000
PAIRS = 6
ALPHA = 0.05


class Line(NamedTuple):
    name: str
    unit: str
    rounds: int
    epsilon: float
    delta: float
    bound: float
    half_bound: float
    runs: int
    seconds: float

    @property
    def right(self) -> bool:
        """Whether half the noise is refuted and the whole is not."""
        return self.bound <= self.epsilon < self.half_bound

    def row(self) -> str:
        stated = f"{self.epsilon:.3g}" + (f", delta {self.delta:.2g}" if self.delta else "")
        half = f"{self.half_bound:.3f}" + (
            "" if self.half_bound > self.epsilon else " (not refuted)"
        )
        bound = f"{self.bound:.3f} ({self.bound / self.epsilon:.0%})"
        cells = (self.name, self.unit, self.rounds, stated, bound, half, f"{self.runs:,}")
        return f"| {' | '.join(map(str, cells))} | {self.seconds:.1f} |"


def audited(game: Any) -> Line:
    runs = RUNS if game.horizon < 100 else RUNS_LONG
    for half in (False, True):
        game.audited(game.pairs(1), half=half, runs=16)  # which compiles
    started = time.process_time()
    cheat = game.audited(game.pairs(PAIRS), half=True, runs=runs, alpha=ALPHA)
    found = game.audited([cheat.worst], runs=runs, alpha=ALPHA, seed=1)
    seconds = time.process_time() - started
    epsilon, delta = game.claim
    bounds = found.result.lower_bound, cheat.result.lower_bound
    return Line(words(game.case), game.unit, game.horizon, epsilon, delta, *bounds, runs, seconds)


def words(case: Any) -> str:
    """Return the policy and its parameters as the command line takes them, in short."""
    parameters = dict(case.parameters)
    hidden = dict(parameters.pop("privacy", {}))
    plain = (bool, int, float, str)
    parts = [
        f"{name}={value if isinstance(value, plain) else type(value).__name__}"
        for name, value in (hidden | parameters).items()
    ]
    return f"`{case.kind.name}` {', '.join(parts)}".strip()


def written(page: str, lines: list[Line]) -> str:
    """Return the page with another table between its marks."""
    before, begun, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (begun and ended):
        raise ValueError(f"expected a page with {BEGIN} and {END}, got one without")
    head = (
        "| policy | unit | rounds | stated epsilon | lower bound | with half the noise | runs | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    )
    total = sum(line.seconds for line in lines)
    took = f"{len(lines)} rows in {total:.0f} seconds of one core"
    foot = f"\n{took}, alpha {ALPHA}, at most {PAIRS} pairs each.\n"
    table = "\n".join([*head, *(line.row() for line in lines), foot])
    return f"{before}{BEGIN}\n\n{table}\n{END}{after}"


def write(path: Path) -> int:
    """Audit the registry, put the table into the page, and return 1 if a verdict is not the expected one."""
    sys.path.insert(0, str(TESTS))
    from battery.small_games import private_cases, small_game

    lines = []
    for case in private_cases():
        lines.append(audited(small_game(case)))
        print(lines[-1].row() + ("" if lines[-1].right else " NOT EXPECTED"), flush=True)
    path.write_text(written(path.read_text(), lines))
    return int(not all(line.right for line in lines))
