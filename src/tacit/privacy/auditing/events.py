"""Events: sets of outputs, chosen where two output distributions differ most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.auditing.scores import MISSING, Rows, Score

_RANKS = 150
_SETS = 40


@dataclass(frozen=True, eq=False)
class Event:
    """A set of outputs, as a condition on one score."""

    score: Score
    kind: str
    """``"at least"``, ``"at most"`` or ``"in"``."""
    values: NDArray[Any]
    """The threshold, or the values of the set in increasing order."""

    def holds(self, scores: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each score whether its output belongs to the event."""
        if self.kind == "at least":
            return np.asarray(scores >= self.values[0])
        if self.kind == "at most":
            return np.asarray(scores <= self.values[0])
        return np.isin(scores, self.values)

    def hits(self, rows: Rows) -> int:
        """Return how many rows belong to the event."""
        return int(np.count_nonzero(self.holds(self.score(rows))))

    @property
    def words(self) -> str:
        """The event in words."""
        if self.kind == "at most" and self.values[0] == MISSING:
            return f"{self.score.words} missing"
        if self.kind != "in":
            return f"{self.score.words} {self.kind} {self.values[0]:.12g}"
        examples = self.score.examples
        shown = [
            f"{v:.17g}" if examples is None else _row(examples.get(int(v), ()))
            for v in self.values[:4]
        ]
        if len(self.values) == 1:
            return f"{self.score.words} exactly {shown[0]}"
        more = len(self.values) - len(shown)
        rest = f" or {more} more" if more else ""
        return f"{self.score.words} one of {', '.join(shown)}{rest}"


def _row(values: tuple[float, ...]) -> str:
    shown = ", ".join(f"{v:.6g}" for v in values[:12])
    return f"({shown}{', ...' if len(values) > 12 else ''})"


def candidates(score: Score, left: NDArray[Any], right: NDArray[Any]) -> list[Event]:
    """Return events of one score worth counting on fresh runs.

    Thresholds stand at ranks spaced geometrically from both ends, where ratios are largest. Values
    that occur more than once are point masses: each of the most telling ones is an
    event, and so are unions of them in the order of their likelihood ratios.
    """
    values, inverse = np.unique(np.concatenate([left, right]), return_inverse=True)
    a = np.bincount(inverse[: len(left)], minlength=len(values))
    b = np.bincount(inverse[len(left) :], minlength=len(values))
    events: list[Event] = []
    if score.ordered:
        for index in _ranks(np.cumsum(a + b)):
            events.append(Event(score, "at most", values[index : index + 1]))
        for index in _ranks(np.cumsum((a + b)[::-1])):
            place = len(values) - 1 - index
            events.append(Event(score, "at least", values[place : place + 1]))
    masses = np.flatnonzero(a + b > 1)
    if len(masses) > 0:
        ratio = np.log(a[masses] + 0.5) - np.log(b[masses] + 0.5)
        weight = np.sqrt(a[masses] + b[masses])
        telling = masses[np.argsort(-np.abs(ratio) * weight, kind="stable")]
        events += [Event(score, "in", values[i : i + 1]) for i in telling[:_SETS]]
        order = masses[np.argsort(ratio, kind="stable")]
        lengths = np.unique(np.geomspace(1, len(order), _SETS).astype(int))
        for ranked in (order, order[::-1]):
            events += [Event(score, "in", np.sort(values[ranked[:size]])) for size in lengths]
    return events


def _ranks(cumulative: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return indices at which the cumulative count reaches geometrically spaced ranks."""
    total = int(cumulative[-1])
    wanted = np.unique(np.geomspace(1, total, _RANKS).astype(np.int64))
    places = np.searchsorted(cumulative, wanted)
    return np.unique(np.minimum(places, len(cumulative) - 1)).astype(np.int64)
