"""Scores: one number for every output, by which two output distributions may differ.

A score is any function of the output alone, so whatever an event of scores shows, an adversary who
sees the output can see. Some scores are fixed (a coordinate, a sum, the lowest bit of a float, the
whole row); others are learned from runs that are not used again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Score", "scores_for"]

Rows = NDArray[np.float64]
Values = NDArray[Any]

_FEW = 64
"""Columns that get scores of their own, and distinct values that a discrete column may have."""
MISSING = -1.7e308
"""Stands for not-a-number, below every other value."""


@dataclass(frozen=True)
class Score:
    """A function of the output, with words for it."""

    words: str
    of: Callable[[Rows], Values]
    ordered: bool = True
    """False if only equality of values means something (a label of the row)."""
    examples: dict[int, tuple[float, ...]] | None = None
    """What output an unordered value stands for."""

    def __call__(self, rows: Rows) -> Values:
        """Return the score of each row, with an ordinary number in place of not-a-number."""
        with np.errstate(all="ignore"):
            values = self.of(rows)
        if values.dtype == np.float64:
            return np.where(np.isnan(values), MISSING, values)
        return values


def scores_for(
    left: Rows, right: Rows, *, low_bits: bool, names: Sequence[str] = ()
) -> list[Score]:
    """Return the scores worth trying, some of them learned from these outputs."""
    both = np.concatenate([left, right])
    m = both.shape[1]
    labels = list(names) or (["output"] if m == 1 else [f"output[{j}]" for j in range(m)])
    low, high = _winsorised(left, right)
    columns = _strongest_columns(low, high) or [0]
    scores = [Score(labels[j], _Column(j)) for j in columns]
    if low_bits:
        scores += [Score(f"lowest bit of {labels[j]}", _LowestBit(j)) for j in columns[:8]]
    if m > 1:
        scores += [
            Score("sum of the output", _total),
            Score("largest entry", _largest),
            Score("smallest entry", _smallest),
            Score("L1 norm", _l1_norm),
            Score("L2 norm", _l2_norm),
            Score("number of entries above their medians", _AboveMedian(np.median(both, axis=0))),
            Score("projection on the difference of means", _mean_projection(low, high)),
            Score("L1 distance to left less right mean", _Nearer.learn(low, high, 1)),
            Score("L2 distance to left less right mean", _Nearer.learn(low, high, 2)),
        ]
    scores += [
        Score("likelihood ratio by histograms", _Histograms.learn(left, right, columns)),
        Score("linear discriminant", _Discriminant.learn(low, high, columns)),
    ]
    return scores + _row_scores(both, labels)


def _strongest_columns(low: Rows, high: Rows) -> list[int]:
    """Return the columns that vary, those whose means differ most if there are many."""
    vary = np.flatnonzero((low != low[0]).any(axis=0) | (high != low[0]).any(axis=0))
    if len(vary) <= _FEW:
        return [int(j) for j in vary]
    spread = np.sqrt(low.var(axis=0) + high.var(axis=0)) + 1e-300
    difference = np.abs(low.mean(axis=0) - high.mean(axis=0)) / spread
    return [int(j) for j in np.argsort(-difference)[:_FEW]]


def _winsorised(left: Rows, right: Rows) -> tuple[Rows, Rows]:
    """Pull extreme and non-finite values in, so that moments exist."""
    both = np.nan_to_num(np.concatenate([left, right]), nan=0.0)
    low, high = np.quantile(both, [0.001, 0.999], axis=0, method="nearest")
    clipped = np.clip(both, np.maximum(low, -1e100), np.minimum(high, 1e100))
    return clipped[: len(left)], clipped[len(left) :]


@dataclass(frozen=True)
class _Column:
    j: int

    def __call__(self, rows: Rows) -> Values:
        return rows[:, self.j]


@dataclass(frozen=True)
class _LowestBit:
    """The exponent of the lowest bit that is set: the coarsest power-of-two grid holding it.

    Noise added to 0 keeps bits that the same noise added to 1 must round away.
    """

    j: int

    def __call__(self, rows: Rows) -> Values:
        bits = np.ascontiguousarray(rows[:, self.j]).view(np.int64)
        exponent = (bits >> 52) & 0x7FF
        mantissa = np.where(exponent > 0, (bits & (2**52 - 1)) | 2**52, bits & (2**52 - 1))
        lowest = mantissa & -mantissa
        place = np.frexp(np.maximum(lowest, 1).astype(np.float64))[1] - 1
        position = np.maximum(exponent, 1) - 1075 + place
        return np.where(mantissa == 0, 2000, position).astype(np.float64)


def _total(rows: Rows) -> Values:
    return np.asarray(rows.sum(axis=1))


def _largest(rows: Rows) -> Values:
    return np.asarray(rows.max(axis=1))


def _smallest(rows: Rows) -> Values:
    return np.asarray(rows.min(axis=1))


def _l1_norm(rows: Rows) -> Values:
    return np.asarray(np.abs(rows).sum(axis=1))


def _l2_norm(rows: Rows) -> Values:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


@dataclass(frozen=True)
class _AboveMedian:
    medians: Rows

    def __call__(self, rows: Rows) -> Values:
        return np.asarray(np.count_nonzero(rows > self.medians, axis=1).astype(np.float64))


@dataclass(frozen=True)
class _Projection:
    weights: Rows

    def __call__(self, rows: Rows) -> Values:
        return rows @ self.weights


def _mean_projection(low: Rows, high: Rows) -> _Projection:
    spread = low.var(axis=0) + high.var(axis=0) + 1e-300
    return _Projection((high.mean(axis=0) - low.mean(axis=0)) / spread)


@dataclass(frozen=True)
class _Nearer:
    """How much nearer to one centre than to the other: the log ratio of Laplace and ball noise.

    Beyond both centres the difference is a constant but for its rounding, which would tell the
    lowest bits of the output; so it is rounded to a grid that hides them.
    """

    left: Rows
    right: Rows
    norm: int
    grid: float

    @classmethod
    def learn(cls, low: Rows, high: Rows, norm: int) -> _Nearer:
        largest = max(float(np.abs(low).max()), float(np.abs(high).max()), 1e-200)
        return cls(low.mean(axis=0), high.mean(axis=0), norm, largest * 2.0**-40)

    def __call__(self, rows: Rows) -> Values:
        distance = _l1_norm if self.norm == 1 else _l2_norm
        nearer = distance(rows - self.left) - distance(rows - self.right)
        return np.asarray(self.grid * np.rint(nearer / self.grid))


@dataclass(frozen=True)
class _Histograms:
    """Sum over columns of the log ratio of histogram counts; discrete values are never binned."""

    columns: tuple[int, ...]
    edges: tuple[Rows, ...]
    ratios: tuple[Rows, ...]

    @classmethod
    def learn(cls, left: Rows, right: Rows, columns: list[int]) -> _Histograms:
        edges, ratios = [], []
        for j in columns:
            both = np.concatenate([left[:, j], right[:, j]])
            values = np.unique(both[~np.isnan(both)])
            if len(values) > _FEW:
                values = np.unique(np.quantile(both, np.linspace(0, 1, 33)[1:-1], method="nearest"))
            size = len(values) + 1
            a = np.bincount(np.searchsorted(values, left[:, j], side="right"), minlength=size)
            b = np.bincount(np.searchsorted(values, right[:, j], side="right"), minlength=size)
            edges.append(values)
            ratios.append(
                np.log((b + 0.5) / (len(right) + 0.5)) - np.log((a + 0.5) / (len(left) + 0.5))
            )
        return cls(tuple(columns), tuple(edges), tuple(ratios))

    def __call__(self, rows: Rows) -> Values:
        score = np.zeros(len(rows))
        for j, edges, ratios in zip(self.columns, self.edges, self.ratios, strict=True):
            score += ratios[np.searchsorted(edges, rows[:, j], side="right")]
        return score


@dataclass(frozen=True)
class _Discriminant:
    """The best linear combination of columns, their squares and their signs about the median."""

    columns: tuple[int, ...]
    centre: Rows
    spread: Rows
    weights: Rows

    @classmethod
    def learn(cls, left: Rows, right: Rows, columns: list[int], rows: int = 4_000) -> _Discriminant:
        chosen = columns[: _FEW // 4]
        a, b = left[:rows, chosen], right[:rows, chosen]
        both = np.concatenate([a, b])
        blank = cls(tuple(chosen), np.median(both, axis=0), both.std(axis=0) + 1e-300, np.zeros(0))
        x, y = blank._features(a), blank._features(b)
        pooled = np.cov(x, rowvar=False) + np.cov(y, rowvar=False) + 1e-6 * np.eye(x.shape[1])
        weights = np.linalg.solve(pooled, y.mean(axis=0) - x.mean(axis=0))
        return replace(blank, weights=weights)

    def _features(self, rows: Rows) -> Rows:
        z = np.clip(np.nan_to_num((rows - self.centre) / self.spread), -5, 5)
        return np.concatenate([z, z * z, np.sign(z)], axis=1)

    def __call__(self, rows: Rows) -> Values:
        return self._features(rows[:, list(self.columns)]) @ self.weights


@dataclass(frozen=True)
class _RowLabel:
    """A 64-bit label of some columns taken together; equal outputs have equal labels."""

    columns: tuple[int, ...]

    def __call__(self, rows: Rows) -> Values:
        chosen = np.ascontiguousarray(rows[:, list(self.columns)]) + 0.0  # -0.0 equals 0.0
        bits = chosen.view(np.uint64)
        label = np.full(len(rows), 0x9E3779B97F4A7C15, np.uint64)
        for j in range(bits.shape[1]):
            label = (label ^ bits[:, j]) * np.uint64(0xD6E8FEB86659FD93)
            label ^= label >> np.uint64(32)
        return label


def _row_scores(both: Rows, labels: list[str]) -> list[Score]:
    """Return labels of whole rows, and of growing prefixes of the discrete columns."""
    m = both.shape[1]
    sample = both[:: max(1, len(both) // 4096)]
    discrete = [j for j in range(m) if len(np.unique(sample[:, j])) <= _FEW]
    prefixes = {tuple(discrete[: 2**k]) for k in range(1, 12)} | {tuple(range(m))}
    scores = []
    for columns in sorted(prefixes, key=lambda c: (len(c), c)):
        label = _RowLabel(columns)
        if len(columns) < 2 or 2 * len(np.unique(label(sample))) > len(sample):
            continue
        known, first = np.unique(label(both), return_index=True)
        examples = {
            int(v): tuple(map(float, both[i, list(columns)]))
            for v, i in zip(known, first, strict=True)
        }
        few = ", ".join(labels[j] for j in columns[:6]) + (", ..." if len(columns) > 6 else "")
        words = "the whole output" if len(columns) == m else f"({few}) together"
        scores.append(Score(words, label, ordered=False, examples=examples))
    return scores
