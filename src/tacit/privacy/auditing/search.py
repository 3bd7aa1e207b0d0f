"""Search for the pair of neighbouring inputs that tells most, then audit it afresh."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tacit.core.constraints import require
from tacit.privacy.auditing.core import AuditResult, Run, audit, derive_seed
from tacit.privacy.mechanisms.base import NeighbouringPair


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """The audit of the worst pair, and how it was found."""

    worst: NeighbouringPair
    result: AuditResult
    candidates: int
    """How many pairs were compared."""
    runs: int
    """How many runs of each input the search cost, before the last audit."""
    among: int | None = None
    """How many pairs there are to choose from, if somebody counted."""

    @property
    def untried(self) -> int:
        """How many pairs are known that were not compared."""
        return max(0, (self.among or 0) - self.candidates)

    def sentence(self) -> str:
        """Return the finding in words."""
        tried = f"{self.candidates:,}" + (f" of {self.among:,}" if self.untried else "")
        pairs = f"Worst of {tried} neighbouring pairs"
        return f"{pairs}: {self.worst.words or 'unnamed'}. {self.result.sentence()}"


def search(
    run: Run,
    neighbours: Iterable[NeighbouringPair],
    *,
    epsilon: float,
    delta: float = 0.0,
    runs: int = 1_000_000,
    alpha: float = 0.05,
    seed: int = 0,
    short: int = 4_000,
    keep: int = 2,
    low_bits: bool = True,
    names: Sequence[str] = (),
) -> SearchResult:
    """Audit the neighbouring pair that looks worst in short audits.

    Successive halving: every pair gets a short audit, the better half goes on with twice as many
    runs, until one is left. The last audit uses fresh runs, so the search costs no confidence.

    Parameters
    ----------
    run : callable
        As for `audit`.
    neighbours : iterable of NeighbouringPair
        The pairs to compare.
    epsilon, delta, runs, alpha, seed, low_bits, names
        As for `audit`; `runs` is for the last audit.
    short : int
        How many runs of each input the first, shortest audits get.
    keep : int
        One pair in so many goes on, with so many times the runs.

    Returns
    -------
    SearchResult

    Examples
    --------
    >>> import numpy as np
    >>> def noisy(secret, runs, seed):
    ...     return secret + np.random.default_rng(seed).laplace(size=(runs, 1))
    >>> pairs = [NeighbouringPair(0.0, x, f"0 against {x}") for x in (0.1, 0.2, 0.5, 1.0)]
    >>> search(noisy, pairs, epsilon=0.5, runs=40_000, low_bits=False).worst.words
    '0 against 1.0'
    """
    require("search", "runs", "in [8, 1,000,000,000]", 8 <= runs <= 10**9, runs)
    alive = list(neighbours)
    require("search", "neighbours", "not empty", bool(alive), len(alive))
    count, size, cost, turn = len(alive), min(short, runs), 0, 0

    def tell(pair: NeighbouringPair, runs: int, *turn: int) -> AuditResult:
        return audit(
            run,
            pair.left,
            pair.right,
            epsilon=epsilon,
            delta=delta,
            runs=runs,
            alpha=alpha,
            seed=derive_seed(seed, *turn),
            low_bits=low_bits,
            names=names,
        )

    while len(alive) > 1:
        bounds = [tell(pair, size, turn, i).lower_bound for i, pair in enumerate(alive)]
        cost += size * len(alive)
        order = sorted(range(len(alive)), key=lambda i, b=bounds: -b[i])  # type: ignore[misc]
        alive = [alive[i] for i in order[: max(1, len(alive) // keep)]]
        size, turn = min(keep * size, runs), turn + 1
    result = tell(alive[0], runs, turn, 0)
    return SearchResult(worst=alive[0], result=result, candidates=count, runs=cost)
