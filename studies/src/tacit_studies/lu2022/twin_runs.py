"""Twin runs: change one reward and see whether the decisions stay the same.

The experiment of paper 002, Table 1: run a policy, set the reward of one random arm in one random round to
zero, run it again, and count how often the two whole sequences of decisions are identical. With the same
noise in both runs it measures how sensitive the policy is, with fresh noise how often it repeats itself.
Neither is evidence of privacy; an audit is (``docs/graph-feedback.md``).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arms import edit_rewards
from tacit.simulation import play

_ENTRY_STREAM = 11


@dataclass(frozen=True, kw_only=True)
class TwinRuns:
    """What twin runs found, one entry a pair.

    Parameters
    ----------
    noise : "shared" or "fresh"
        Whether both runs of a pair read the same tape.
    rounds, arms : arrays of int
        The reward that was changed.
    parted : array of int
        The first round in which the decisions differ; the horizon if they never do.
    horizon : int
    """

    noise: str
    rounds: NDArray[np.int64]
    arms: NDArray[np.int64]
    parted: NDArray[np.int64]
    horizon: int

    @property
    def same_share(self) -> float:
        """The share of pairs whose whole sequences are identical."""
        return float(np.mean(self.parted == self.horizon))

    def sentence(self) -> str:
        """Return the finding in words."""
        return (
            f"With {self.noise} noise {100 * self.same_share:.4g}% of {len(self.parted)} pairs made "
            f"the same {self.horizon} decisions after one reward was changed; this says nothing "
            "about privacy."
        )


def twin_runs(
    policy: Any,
    environment: Any,
    *,
    horizon: int,
    pairs: int = 100,
    noise: str = "shared",
    value: float = 0.0,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> TwinRuns:
    """Run `policy` on neighbouring tables and compare its decisions.

    Parameters
    ----------
    policy : Policy
    environment : Environment
        Of the setting arms, both.
    horizon : int
        Number of rounds T.
    pairs : int, default 100
        How many tables to try, each with another random entry changed.
    noise : "shared" or "fresh", default "shared"
        Whether the second run of a pair reads the tape of the first or one of its own.
    value : float, default 0
        What the changed reward becomes.
    seed : int, default 0
        Same seed, same pairs, whatever the policy.
    threads : int, optional
        How many pairs run side by side.
    progress : callable, optional
        Called with 1 after every pair.

    Examples
    --------
    >>> from tacit.arms import GAP
    >>> from tacit_studies.lu2022.settings import graph_settings
    >>> from tacit_studies.lu2022.twin_runs import twin_runs
    >>> setting = graph_settings()[0]
    >>> policy = GAP(n_arms=10, epsilon=setting.epsilon, horizon=20_000)
    >>> twin_runs(policy, setting.environment, horizon=20_000, pairs=5).same_share
    1.0
    """
    for name, given in (("horizon", horizon), ("pairs", pairs)):
        if given < 1:
            raise ValueError(f"twin_runs: expected {name} >= 1, got {given}")
    if noise not in ("shared", "fresh"):
        raise ValueError(f"twin_runs: expected noise shared or fresh, got {noise!r}")
    rounds, arms = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    parted = np.full(pairs, horizon)

    def decisions(table: Any, repetition: int) -> NDArray[np.int32]:
        found: NDArray[np.int32] = play(
            policy,
            environment,
            horizon=horizon,
            table=table,
            seed=seed,
            repetition=repetition,
            record=True,
        ).trace.decisions
        return found

    def compare(pair: int) -> None:
        table = environment.table(seed, pair, horizon)
        words = np.random.SeedSequence(seed, spawn_key=(_ENTRY_STREAM, pair))
        rng = np.random.Generator(np.random.Philox(key=words.generate_state(2, np.uint64)))
        rounds[pair], arms[pair] = rng.integers(horizon), rng.integers(environment.n_arms)
        other = edit_rewards(table, [(int(rounds[pair]), int(arms[pair]), value)])
        first = decisions(table, pair)
        second = decisions(other, pair if noise == "shared" else pairs + pair)
        differ = first != second
        if differ.any():
            parted[pair] = int(differ.argmax())
        if progress is not None:
            progress(1)

    with ThreadPoolExecutor(threads or cpu_count() or 1) as pool:
        list(pool.map(compare, range(pairs)))
    return TwinRuns(noise=noise, rounds=rounds, arms=arms, parted=parted, horizon=horizon)
