"""The audit: try to show that a mechanism leaks more than it claims.

Run something many times on each of two neighbouring inputs. A quarter of the runs learns where the
outputs differ and proposes events, a quarter chooses the one event that looks worst, and
the remaining half, which had no part in the choice, gives a rigorous lower confidence bound on
epsilon. A claim below the bound is refuted; otherwise it is not refuted, which proves nothing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require
from tacit.core.json_codec import dumps
from tacit.privacy.auditing.bounds import (
    LowerBound,
    claim_words,
    epsilon_lower_bound,
    untested_words,
)
from tacit.privacy.auditing.events import Event, candidates
from tacit.privacy.auditing.scores import Rows, Score, make_scores

Run = Callable[[Any, int, int], NDArray[np.float64]]
"""``run(input, runs, seed)`` returns an array (runs, m): one output a row."""

_LEARN, _CHOOSE, _TEST = 0, 1, 2
_CELLS = 2**23
_ROWS = 2**17
_KEPT_PER_SCORE = 24
_KEPT_SCORES = 12
_PICTURED = 20_000
_MOST = 10**9


@dataclass(frozen=True, kw_only=True)
class AuditResult(LowerBound):
    """What an audit found."""

    runs: int
    """How many times each of the two inputs was run."""
    tested: int
    """How many of these runs the bound rests on."""
    event: str
    """The event that tells the inputs apart, in words."""
    likelier: str
    """Under which input the event is likelier, ``"left"`` or ``"right"``."""
    left_hits: int
    right_hits: int
    left_scores: NDArray[Any]
    """Values of the event's score in the first runs of the test, for the picture."""
    right_scores: NDArray[Any]
    left_marked: NDArray[np.bool_]
    """Which of these runs belong to the event."""
    right_marked: NDArray[np.bool_]
    silent: bool = False
    """Whether nothing was released in any run that was looked at, so that nothing was tried."""
    overlooked: int = 0
    """How many values of a run were released and not looked at, because they are too many."""

    @property
    def verdict(self) -> str:
        """``"refuted"``, ``"not refuted"`` or ``"nothing was released"``; never proved."""
        silent = self.silent and not self.refuted
        return "nothing was released" if silent else super().verdict

    def sentence(self) -> str:
        """Return the finding in words."""
        if self.verdict == "nothing was released":
            return untested_words(self.epsilon, self.delta)
        rest = f" The last {self.overlooked:,} released values of a run were not looked at."
        return (
            f"{claim_words(self.epsilon, self.delta)} is {self.verdict}: epsilon is at least "
            f"{self.lower_bound:.4g} with confidence {100 * (1 - self.alpha):g}%. Event: {self.event}; "
            f"it occurred in {self.left_hits} of {self.tested} runs on the left input and in "
            f"{self.right_hits} on the right.{rest if self.overlooked else ''}"
        )

    def to_json(self) -> str:
        """Return everything but the picture's data as JSON."""
        names = "verdict epsilon delta lower_bound alpha runs tested event likelier left_hits right_hits"
        return dumps({name: getattr(self, name) for name in [*names.split(), "overlooked"]})

    def picture(self, path: str | os.PathLike[str]) -> None:
        """Draw both output distributions and the event; the file name says PNG or SVG."""
        from tacit.privacy.auditing.picture import draw

        draw(self, path)


def audit(
    run: Run,
    left: Any,
    right: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    runs: int = 1_000_000,
    alpha: float = 0.05,
    seed: int = 0,
    low_bits: bool = True,
    names: Sequence[str] = (),
) -> AuditResult:
    """Try to refute that `run` is (epsilon, delta)-private for two neighbouring inputs.

    A true claim is refuted with probability at most `alpha`, whatever the mechanism. With n runs
    no audit can show much more than ln(n / 8).

    Parameters
    ----------
    run : callable
        ``run(input, runs, seed)`` returns a float array of shape (runs, m): what an adversary
        sees, one independent execution a row. A missing message may be not-a-number.
    left, right : object
        The two neighbouring inputs, handed to `run`.
    epsilon, delta : float
        The claim.
    runs : int
        How many times to run each input, at most 10^9; half of them choose the event.
    alpha : float
        The probability of refuting a true claim is at most this.
    seed : int
        Same seed, same audit.
    low_bits : bool
        Look at the lowest bits of floating-point outputs too. False audits a seeded mechanism of
        the ``research`` numerics as if it calculated with real numbers.
    names : sequence of str, optional
        What to call the columns of the output in words.

    Returns
    -------
    AuditResult

    Examples
    --------
    >>> def leaky(secret, runs, seed):
    ...     random = np.random.default_rng(seed)
    ...     return secret + random.laplace(size=(runs, 1))
    >>> audit(leaky, 0.0, 1.0, epsilon=0.5, runs=40_000).verdict
    'refuted'
    >>> audit(leaky, 0.0, 1.0, epsilon=1.0, runs=40_000, low_bits=False).verdict
    'not refuted'
    >>> print(audit(leaky, 0.0, 1.0, epsilon=1.0, runs=40_000).event)
    lowest bit of output at most -54
    """
    require("audit", "epsilon", ">= 0", epsilon >= 0, epsilon)
    require("audit", "delta", "in [0, 1]", 0 <= delta <= 1, delta)
    require("audit", "alpha", "in (0, 1)", 0 < alpha < 1, alpha)
    require("audit", "runs", f"in [8, {_MOST:,}]", 8 <= runs <= _MOST, runs)
    inputs = (left, right)
    probe = _outputs(run, left, 2, derive_seed(seed, 3, 0, 0))
    block = max(256, min(_ROWS, _CELLS // max(1, probe.shape[1])))
    learn = min(runs // 4, block)
    choose = runs // 2 - learn
    test = runs - learn - choose
    first = [next(_stream(run, x, learn, block, (seed, _LEARN, i))) for i, x in enumerate(inputs)]
    rule = f"empty or {probe.shape[1]} names"
    require("audit", "names", rule, len(names) in (0, probe.shape[1]), names)
    scores = make_scores(first[0], first[1], low_bits=low_bits, names=names)
    events = _propose(scores, first[0], first[1], delta=delta, alpha=alpha)
    streams = [_stream(run, x, choose, block, (seed, _CHOOSE, i)) for i, x in enumerate(inputs)]
    hits = [_count(events, stream) for stream in streams]
    bounds = _both_ways(hits[0], hits[1], choose, delta=delta, alpha=alpha)
    direction, best = np.unravel_index(int(np.argmax(bounds)), bounds.shape)
    event = events[best]
    streams = [_stream(run, x, test, block, (seed, _TEST, i)) for i, x in enumerate(inputs)]
    tested = [_test(event, stream) for stream in streams]
    counts = tested[0][0], tested[1][0]
    likely, unlikely = counts if direction == 0 else counts[::-1]
    bound = float(epsilon_lower_bound(likely, unlikely, test, delta=delta, alpha=alpha))
    return AuditResult(
        epsilon=epsilon,
        delta=delta,
        lower_bound=bound,
        alpha=alpha,
        runs=runs,
        tested=test,
        event=event.words,
        likelier=("left", "right")[direction],
        left_hits=counts[0],
        right_hits=counts[1],
        left_scores=tested[0][1],
        right_scores=tested[1][1],
        left_marked=event.holds(tested[0][1]),
        right_marked=event.holds(tested[1][1]),
    )


def derive_seed(*words: int) -> int:
    """Return a seed below 2^63; distinct words give independent ones."""
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _outputs(run: Run, value: Any, runs: int, seed: int) -> Rows:
    rows = np.asarray(run(value, runs, seed), dtype=np.float64)
    if rows.ndim == 1:
        rows = rows[:, None]
    require("audit", "run to return one row a run", f"({runs})", len(rows) == runs, rows.shape)
    require("audit", "run to return at least one column", "", rows.shape[1] > 0, rows.shape)
    return np.ascontiguousarray(rows)


def _stream(run: Run, value: Any, runs: int, block: int, seed: tuple[int, ...]) -> Iterator[Rows]:
    for i in range(math.ceil(runs / block)):
        yield _outputs(run, value, min(block, runs - i * block), derive_seed(*seed, i))


def _both_ways(
    left: NDArray[np.int64], right: NDArray[np.int64], runs: int, *, delta: float, alpha: float
) -> NDArray[np.float64]:
    ways = (left, right), (right, left)
    return np.stack([epsilon_lower_bound(*way, runs, delta=delta, alpha=alpha) for way in ways])


def _propose(
    scores: list[Score], left: Rows, right: Rows, *, delta: float, alpha: float
) -> list[Event]:
    """Return the most promising events of the most promising scores."""
    proposals: list[tuple[float, list[Event]]] = []
    for score in scores:
        a, b = score(left), score(right)
        events = candidates(score, a, b)
        bounds = _both_ways(
            _counts(events, a), _counts(events, b), len(left), delta=delta, alpha=alpha
        ).max(axis=0)
        order = np.argsort(-bounds, kind="stable")[:_KEPT_PER_SCORE]
        proposals.append((float(bounds[order[0]]), [events[i] for i in order]))
    proposals.sort(key=lambda proposal: -proposal[0])
    return [event for _, events in proposals[:_KEPT_SCORES] for event in events]


def _counts(events: list[Event], scores: NDArray[Any]) -> NDArray[np.int64]:
    """Count the hits of events that share one score."""
    ordered = np.sort(scores)
    values = np.concatenate([event.values for event in events])
    below = np.searchsorted(ordered, values, side="left")
    until = np.searchsorted(ordered, values, side="right")
    starts = np.cumsum([0] + [len(event.values) for event in events[:-1]])
    inside = np.add.reduceat(until - below, starts)
    kinds = np.array([event.kind for event in events])
    counts = np.where(kinds == "at least", len(ordered) - below[starts], until[starts])
    return np.where(kinds == "in", inside, counts).astype(np.int64)


def _count(events: list[Event], stream: Iterator[Rows]) -> NDArray[np.int64]:
    """Count the hits of all events, computing every score once a block."""
    counts = np.zeros(len(events), np.int64)
    groups: dict[int, list[int]] = {}
    for i, event in enumerate(events):
        groups.setdefault(id(event.score), []).append(i)
    for rows in stream:
        for members in groups.values():
            scores = events[members[0]].score(rows)
            counts[members] += _counts([events[i] for i in members], scores)
    return counts


def _test(event: Event, stream: Iterator[Rows]) -> tuple[int, NDArray[Any]]:
    hits = 0
    kept: list[NDArray[Any]] = []
    for rows in stream:
        scores = event.score(rows)
        hits += int(np.count_nonzero(event.holds(scores)))
        room = _PICTURED - sum(map(len, kept))
        kept.append(scores[:room].copy())
    return hits, np.concatenate(kept)
