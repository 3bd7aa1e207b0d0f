"""Every audit the documentation speaks of, at full size: ``python benchmarks/audits.py [words]``.

Prints a table: what was audited, the claim, the lower bound found, the verdict and whether it is
the expected one, seconds, the event. Then what a game costs that an audited policy plays, beside the
same game played by `Policy.play` from Python. Words select the rows that contain them. Exits non-zero if
a verdict is not the expected one. ``--table PAGE`` audits every private policy instead and writes their
table into a page (audit_table.py).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import audit_table
from tacit.arms import KLUCBCF, UCB1, Bernoulli
from tacit.contextual import CoLin, Synthetic
from tacit.core.policy import Environment, Policy
from tacit.core.tapes import secure_tape, seeded_tape
from tacit.diffusion import ChangingTruth, OutsiderPrivateDiffusion
from tacit.dynamics import LearningDynamics, SocialOptions
from tacit.privacy import (
    BoundedNoise,
    ClampedLaplace,
    Gaussian,
    L2Ball,
    L2CalibratedLaplace,
    Laplace,
    Piecewise,
    RandomizedResponse,
    UnaryEncoding,
    audit,
)
from tacit.privacy.mechanisms import Mechanism
from tacit.simulation.audits import PolicyRun

MILLION = 1_000_000
E1 = np.eye(5)[0]
DENSE = np.full(2500, 2500**-0.5)


@dataclass(frozen=True)
class Row:
    name: str
    run: Callable[[Any, int, int], Any]
    left: Any
    right: Any
    epsilon: float
    refuted: bool
    above: float = 0.0
    """The lower bound to reach."""
    delta: float = 0.0
    runs: int = MILLION
    low_bits: bool = False


def seeded(mechanism: Mechanism) -> Callable[[Any, int, int], Any]:
    return mechanism.run


def secure(mechanism: Mechanism) -> Callable[[Any, int, int], Any]:
    return lambda value, n, seed: mechanism.run(value, n, None)


def algorithm_2(p: Any, n: int, seed: int) -> Any:
    """Paper 000, Algorithm 2: bounded noise with b' = 1 on each entry of a probability vector."""
    noise = BoundedNoise(epsilon=0.1, bound=1.0)
    columns = [noise.run(p[j], n, seed + j) for j in range(len(p))]
    return (np.concatenate(columns, axis=1) + 1.0) / 3.0


def silence(adopted: bool, n: int, seed: int) -> Any:
    """Paper 001: agents without an adoption send nothing, the others five flipped bits."""
    if not adopted:
        return np.full((n, 5), np.nan)
    return UnaryEncoding(epsilon=1.0, options=5).run(E1, n, seed)


def pairs(
    name: str, make: Callable[[float], Mechanism], left: Any, right: Any, **options: Any
) -> list[Row]:
    """A mechanism at its true epsilon of 1, and with half the noise against the same claim."""
    return [
        Row(name, seeded(make(1.0)), left, right, 1.0, False, **options),
        Row(f"{name}, noise halved", seeded(make(2.0)), left, right, 1.0, True, **options),
    ]


ROWS = [
    Row(
        "paper 000: bounded noise",
        seeded(BoundedNoise(epsilon=0.1, bound=math.log(400) / 0.1)),
        0.0,
        1.0,
        0.1,
        True,
        above=3.0,
    ),
    Row(
        "paper 000: Algorithm 2",
        algorithm_2,
        np.full(5, 0.2),
        np.array([0.3, 0.1, 0.2, 0.2, 0.2]),
        0.1,
        True,
        above=3.0,
    ),
    Row("paper 001: silence", silence, False, True, 1.0, True, above=3.0, delta=0.5),
    Row(
        "paper 004: Laplace with an L2 sensitivity in 2500 dimensions",
        seeded(L2CalibratedLaplace(epsilon=2.0, dimension=2500)),
        0 * DENSE,
        DENSE,
        2.0,
        True,
        above=3.0,
        runs=20_000,
    ),
    Row(
        "float Laplace, low bits",
        seeded(Laplace(epsilon=0.1)),
        0.0,
        1.0,
        0.1,
        True,
        delta=0.01,
        low_bits=True,
    ),
    Row(
        "randomized response",
        seeded(RandomizedResponse(epsilon=1.0)),
        0,
        1,
        1.0,
        False,
        above=0.97,
        low_bits=True,
    ),
    Row(
        "randomized response, noise halved",
        seeded(RandomizedResponse(epsilon=2.0)),
        0,
        1,
        1.0,
        True,
        low_bits=True,
    ),
    *pairs("Laplace", lambda e: Laplace(epsilon=e), 0.0, 1.0),
    *pairs("clamped Laplace", lambda e: ClampedLaplace(epsilon=e, low=-2.0, high=3.0), 0.0, 1.0),
    *pairs("L2 ball", lambda e: L2Ball(epsilon=e, dimension=5), 0 * E1, E1),
    *pairs("unary encoding", lambda e: UnaryEncoding(epsilon=e, options=5), E1, E1[::-1]),
    *pairs("piecewise", lambda e: Piecewise(epsilon=e), -1.0, 1.0),
    Row(
        "secure randomized response",
        secure(RandomizedResponse(epsilon=1.0)),
        0,
        1,
        1.0,
        False,
        above=0.97,
        low_bits=True,
    ),
    Row(
        "secure Laplace, low bits",
        secure(Laplace(epsilon=1.0)),
        0.0,
        1.0,
        1.0,
        False,
        low_bits=True,
    ),
    Row(
        "secure clamped Laplace, low bits",
        secure(ClampedLaplace(epsilon=1.0, low=-2.0, high=3.0)),
        0.0,
        1.0,
        1.0,
        False,
        low_bits=True,
    ),
    Row(
        "secure Gaussian, low bits",
        secure(Gaussian(epsilon=1.0, delta=1e-3)),
        0.0,
        1.0,
        1.0,
        False,
        delta=1e-3,
        low_bits=True,
    ),
]


@dataclass(frozen=True)
class Game:
    policy: Policy
    environment: Environment
    rounds: int
    secure: bool = False

    @property
    def name(self) -> str:
        words = f"a game of {self.policy.name}, {self.rounds} rounds"
        return words + (", secure" if self.secure else "")

    def compiled(self, games: int) -> float:
        """Return the microseconds of a game in an audit."""
        table = self.environment.table(0, 0, self.rounds)
        run = PolicyRun(
            policy=self.policy,
            environment=self.environment,
            horizon=self.rounds,
            secure=self.secure,
        )
        run(table, 2, 0)
        return min(self._timed(lambda: run(table, games, 1), games) for _ in range(3))

    def plain(self, games: int) -> float:
        """Return the microseconds of a game started and played from Python."""
        table = self.environment.table(0, 0, self.rounds)
        checkpoints = np.array([self.rounds])

        def play() -> None:
            for i in range(games):
                tape = secure_tape(log=16) if self.secure else seeded_tape(1, i, log=16)
                trace = self.environment.trace(self.rounds, checkpoints, record=True)
                state = self.policy.start(table)
                self.policy.play(state, table, tape, trace, 0, self.rounds)

        return min(self._timed(play, games) for _ in range(3))

    @staticmethod
    def _timed(work: Callable[[], Any], games: int) -> float:
        started = time.perf_counter()
        work()
        return (time.perf_counter() - started) / games * 1e6


TRUTH = ChangingTruth(dominance=0.8)
GAMES = [
    Game(UCB1(n_arms=2), Bernoulli(means=(0.3, 0.7)), 12),
    Game(KLUCBCF(n_arms=2, epsilon=1.0), Bernoulli(means=(0.3, 0.7)), 12),
    Game(KLUCBCF(n_arms=2, epsilon=1.0), Bernoulli(means=(0.3, 0.7)), 12, secure=True),
    Game(CoLin(n_users=3, dimension=2, epsilon=1.0), Synthetic(n_users=3, dimension=2), 12),
    Game(OutsiderPrivateDiffusion(n_states=5, epsilon=1.0), TRUTH, 2),
    Game(
        LearningDynamics(n_options=3, n_agents=5, epsilon=1.0, beta=0.9, mu=0.01),
        SocialOptions(qualities=(0.9, 0.5, 0.1), n_agents=5),
        2,
    ),
]


def main(words: list[str]) -> int:
    if words[:1] == ["--table"]:
        return audit_table.write(Path(words[1]))
    wrong = 0
    for row in ROWS:
        if any(word not in row.name for word in words):
            continue
        started = time.perf_counter()
        result = audit(
            row.run,
            row.left,
            row.right,
            epsilon=row.epsilon,
            delta=row.delta,
            runs=row.runs,
            low_bits=row.low_bits,
        )
        seconds = time.perf_counter() - started
        expected = result.refuted == row.refuted and result.lower_bound >= row.above
        wrong += not expected
        print(
            f"{row.name}: claim {row.epsilon:g}"
            + (f" at delta {row.delta:g}" if row.delta else "")
            + f", at least {result.lower_bound:.4f}, {result.verdict}"
            + ("" if expected else " (NOT EXPECTED)")
            + f"; {row.runs} runs, {seconds:.1f} s; {result.event}",
            flush=True,
        )
    for game in GAMES:
        if all(word in game.name for word in words):
            compiled, plain = game.compiled(20_000), game.plain(1_000)
            print(f"{game.name}: {compiled:.2f} us; from Python {plain:.0f} us", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
