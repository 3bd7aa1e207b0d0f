"""Scores: one number for every output, by which two output distributions may differ.

A score is any function of the output alone, so whatever an event of scores shows, an adversary who
sees the output can see. Some scores are fixed (a coordinate, a sum, the lowest bit of a float, the
whole row); others are learned from runs that are not used again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]
Values = NDArray[Any]
Function = Callable[[Rows], Values]

_FEW = 64
"""Columns that get scores of their own, and distinct values that a discrete column may have."""
_MANY = 512
"""Columns whose log ratios are added up."""
_LINEAR = 192
"""Columns of the best projection."""
_DIGITS = 4
"""Digits that get scores of their own."""
_NOTICED = 2.3
"""Standard errors from which on a column counts as different."""
_LEARNED = 4_000
"""Rows that the discriminant learns from."""
_RANKED = 4096
"""Rows that rank the columns."""
MISSING = -1.7e308
"""Stands for not-a-number, below every other value."""


@dataclass(frozen=True)
class Score:
    """A function of the output, with words for it."""

    words: str
    of: Function
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


def make_scores(
    left: Rows, right: Rows, *, low_bits: bool, names: Sequence[str] = ()
) -> list[Score]:
    """Return the scores worth trying, some of them learned from these outputs.

    There may be thousands of columns. Those that never change are left out; the others are ranked
    by how much their distributions differ, the best get scores of their own, and what differs
    noticeably enters the sums of log ratios and the discriminants.
    """
    m = left.shape[1]
    labels = list(names) or (["output"] if m == 1 else [f"output[{j}]" for j in range(m)])
    vary = _varying(left, right)
    a, b = left[:, vary], right[:, vary]
    low, high = _winsorise(a, b)
    ranked, strength = _rank(a, b, low, high)
    columns = [vary[j] for j in ranked[:_FEW]]
    scores = [Score(labels[j], _column(j)) for j in columns]
    if low_bits:
        scores += [Score(f"lowest bit of {labels[j]}", _lowest_bit(j)) for j in columns[:8]]
    scores += [
        Score(f"{digit.words} of {labels[digit.j]}", digit) for digit in _digits(left, right, vary)
    ]
    if len(vary) > 1:
        medians = np.median(np.concatenate([low, high]), axis=0)
        whole: dict[str, Function] = {
            "sum of the output": lambda rows: np.asarray(rows.sum(axis=1)),
            "largest entry": lambda rows: np.asarray(rows.max(axis=1)),
            "smallest entry": lambda rows: np.asarray(rows.min(axis=1)),
            "L1 norm": _l1_norm,
            "L2 norm": _l2_norm,
            "number of entries above their medians": lambda rows: np.asarray(
                np.count_nonzero(rows > medians, axis=1).astype(np.float64)
            ),
            "projection on the difference of means": _mean_projection(low, high),
            "L1 distance to left less right mean": _nearer(low, high, _l1_norm),
            "L2 distance to left less right mean": _nearer(low, high, _l2_norm),
        }
        scores += [Score(words, _among(vary, of)) for words, of in whole.items()]
    # Of columns that do not differ about one in forty looks as if it did: their sum would be noise.
    telling = [vary[j] for j in ranked if strength[j] > _NOTICED][:_MANY] or columns[:1]
    scores += [
        Score("likelihood ratio by histograms", _histograms(left, right, telling)),
        Score("linear discriminant", _discriminant(left, right, columns)),
    ]
    if len(vary) > 1:
        chosen = sorted(vary[j] for j in ranked[:_LINEAR])
        scores.append(Score("best projection", _linear(left, right, chosen)))
    both = np.concatenate([left, right])
    return scores + _row_scores(both, labels, vary, telling)


def _varying(left: Rows, right: Rows) -> list[int]:
    """Return the columns in which not all values are the same; the first if there is none."""
    first = left[0]
    same = np.ones(left.shape[1], np.bool_)
    for rows in (left, right):
        equal = (rows == first) | (np.isnan(rows) & np.isnan(first))
        same &= equal.all(axis=0)
    return [int(j) for j in np.flatnonzero(~same)] or [0]


def _rank(left: Rows, right: Rows, low: Rows, high: Rows) -> tuple[list[int], Rows]:
    """Return the columns, the most telling first, and how many standard errors each differs by."""
    n = len(low)
    spread = np.sqrt(low.var(axis=0) + high.var(axis=0)) + 1e-300
    moved = np.abs(low.mean(axis=0) - high.mean(axis=0)) / spread * np.sqrt(n)
    shapes = [_histogram_difference(left[:, j], right[:, j]) for j in range(left.shape[1])]
    strength = np.maximum(moved, shapes)
    order = np.argsort(-strength, kind="stable")
    return [int(j) for j in order], strength


def _histogram_difference(left: Values, right: Values) -> float:
    """Return Fisher's normal deviate of the chi-square statistic of two histograms."""
    a, b = left[:_RANKED], right[:_RANKED]
    edges = _edges(np.concatenate([a, b]), 8)
    return _difference(_bin_counts(edges, a), _bin_counts(edges, b))


def _difference(x: Values, y: Values) -> float:
    total = x + y
    used = total > 0
    if used.sum() < 2:
        return 0.0
    chi = float((((x - y) ** 2)[used] / total[used]).sum())
    return float(np.sqrt(2 * chi) - np.sqrt(2 * (int(used.sum()) - 1) - 1))


def _edges(values: Values, bins: int) -> Values:
    """Return every value of a column that has few, else quantiles of it."""
    known = values[~np.isnan(values)]
    few = np.unique(known[:256])
    if len(few) <= _FEW and len(few := np.unique(known)) <= _FEW:
        return few
    return np.unique(np.quantile(known, np.linspace(0, 1, bins + 1)[1:-1], method="nearest"))


def _winsorise(left: Rows, right: Rows) -> tuple[Rows, Rows]:
    """Pull extreme and non-finite values in, so that moments exist."""
    both = np.nan_to_num(np.concatenate([left, right]), nan=0.0)
    low, high = np.quantile(both, [0.001, 0.999], axis=0, method="nearest")
    clipped = np.clip(both, np.maximum(low, -1e100), np.minimum(high, 1e100))
    return clipped[: len(left)], clipped[len(left) :]


def _column(j: int) -> Function:
    return lambda rows: rows[:, j]


def _among(columns: list[int], of: Function) -> Function:
    """Return a score of some columns, without those that never change; what is missing counts as nought."""

    def score(rows: Rows) -> Values:
        chosen = rows if len(columns) == rows.shape[1] else rows[:, columns]
        if np.isnan(chosen).any():
            chosen = np.nan_to_num(chosen, nan=0.0)
        return of(chosen)

    return score


def _lowest_bit(j: int) -> Function:
    """Return the exponent of the lowest bit that is set: the coarsest power-of-two grid holding it.

    Noise added to 0 keeps bits that the same noise added to 1 must round away.
    """

    def score(rows: Rows) -> Values:
        bits = np.ascontiguousarray(rows[:, j]).view(np.int64)
        exponent = (bits >> 52) & 0x7FF
        mantissa = np.where(exponent > 0, (bits & (2**52 - 1)) | 2**52, bits & (2**52 - 1))
        lowest = mantissa & -mantissa
        place = np.frexp(np.maximum(lowest, 1).astype(np.float64))[1] - 1
        position = np.maximum(exponent, 1) - 1075 + place
        return np.where(mantissa == 0, 2000, position).astype(np.float64)

    return score


@dataclass(frozen=True)
class _Digit:
    """One digit behind the point, where rewards can hide under noise that is far larger."""

    j: int
    base: int
    place: int

    @property
    def words(self) -> str:
        return f"{'decimal' if self.base == 10 else 'bit'} {self.place} behind the point"

    def __call__(self, rows: Rows) -> Values:
        return _digit(rows[:, self.j], self.base, self.place)


def _digit(values: Values, base: int, place: int) -> Values:
    scaled = np.abs(values) * float(base) ** place
    # Decimals are rounded, since 0.1 is none of the numbers of a computer; bits are cut off.
    whole = np.rint(scaled) if base == 10 else np.floor(scaled)
    return np.where(np.isnan(values), np.nan, np.mod(whole, base))


def _digits(left: Rows, right: Rows, vary: list[int]) -> list[_Digit]:
    """Return the digits whose distributions differ most, of the columns that are no whole numbers.

    Arithmetic rounds the digits that lie 2^44 times below the largest value, which tells nothing about
    the design: noise on floats, as simulations draw it, is private to that precision only.
    """
    n = min(len(left), _RANKED // 4)
    both = np.concatenate([left[:n], right[:n]])
    side = 16 * np.repeat([0, 1], n)
    found: list[tuple[float, _Digit]] = []
    for j in vary[:_MANY]:
        values = both[:, j]
        known = values[np.isfinite(values)]
        if (known == np.rint(known)).all():
            continue
        finest = 44 - int(np.frexp(np.abs(known).max())[1])
        places = [(10, k) for k in range(1, int(finest * 0.301) + 1)]
        places += [(2, k) for k in range(1, finest + 1)]
        for base, place in places:
            digits = np.nan_to_num(_digit(values, base, place), nan=15.0).astype(np.int64)
            counts = np.bincount(digits + side, minlength=32)
            found.append((_difference(counts[:16], counts[16:]), _Digit(j, base, place)))
    found.sort(key=lambda each: -each[0])
    return [digit for _, digit in found[:_DIGITS]]


def _l1_norm(rows: Rows) -> Values:
    return np.asarray(np.abs(rows).sum(axis=1))


def _l2_norm(rows: Rows) -> Values:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _mean_projection(low: Rows, high: Rows) -> Function:
    spread = low.var(axis=0) + high.var(axis=0) + 1e-300
    weights = (high.mean(axis=0) - low.mean(axis=0)) / spread
    return lambda rows: rows @ weights


def _nearer(low: Rows, high: Rows, distance: Function) -> Function:
    """Return how much nearer to one centre than to the other: the log ratio of Laplace and ball noise.

    Beyond both centres the difference is a constant but for its rounding, which would tell the
    lowest bits of the output; so it is rounded to a grid that hides them.
    """
    left, right = low.mean(axis=0), high.mean(axis=0)
    grid = max(float(np.abs(low).max()), float(np.abs(high).max()), 1e-200) * 2.0**-40

    def score(rows: Rows) -> Values:
        return np.asarray(grid * np.rint((distance(rows - left) - distance(rows - right)) / grid))

    return score


def _histograms(left: Rows, right: Rows, columns: list[int]) -> Function:
    """Return the sum over columns of the log ratio of histogram counts; discrete values are never binned."""
    learned = []
    for j in columns:
        edges = _edges(np.concatenate([left[:, j], right[:, j]]), 32)
        a, b = (_bin_counts(edges, side[:, j]) for side in (left, right))
        ratios = np.log((b + 0.5) / (len(right) + 0.5)) - np.log((a + 0.5) / (len(left) + 0.5))
        learned.append((j, edges, ratios))

    def score(rows: Rows) -> Values:
        total = np.zeros(len(rows))
        for j, edges, ratios in learned:
            total += ratios[np.searchsorted(edges, rows[:, j], side="right")]
        return total

    return score


def _bin_counts(edges: Values, values: Values) -> Values:
    return np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)


def _discriminant(left: Rows, right: Rows, columns: list[int]) -> Function:
    """Return the best linear combination of columns, their squares and their signs about the median."""
    chosen = columns[: _FEW // 4]
    a, b = _winsorise(left[:_LEARNED, chosen], right[:_LEARNED, chosen])
    both = np.concatenate([a, b])
    centre, spread = np.median(both, axis=0), both.std(axis=0) + 1e-300

    def features(rows: Rows) -> Rows:
        z = np.clip(np.nan_to_num((rows - centre) / spread), -5, 5)
        return np.concatenate([z, z * z, np.sign(z)], axis=1)

    x, y = features(a), features(b)
    pooled = np.cov(x, rowvar=False) + np.cov(y, rowvar=False) + 1e-6 * np.eye(x.shape[1])
    weights = np.linalg.solve(pooled, y.mean(axis=0) - x.mean(axis=0))
    return lambda rows: features(rows[:, chosen]) @ weights


def _linear(left: Rows, right: Rows, columns: list[int]) -> Function:
    """Return the linear combination of many columns that tells best: noise that is shared cancels."""
    a, b = _winsorise(left[:, columns], right[:, columns])
    both = np.concatenate([a, b])
    spread = both.std(axis=0)
    spread[spread == 0] = 1.0
    centre = both.mean(axis=0)
    x, y = (a - centre) / spread, (b - centre) / spread
    pooled = np.cov(x, rowvar=False) + np.cov(y, rowvar=False)
    # As if a few more rows had been seen in which no two columns go together.
    ridge = 1e-9 + 2 * len(columns) / (len(a) * 50)
    pooled += ridge * np.eye(len(columns))
    weights = np.linalg.solve(pooled, y.mean(axis=0) - x.mean(axis=0)) / spread
    least, most = both.min(axis=0), both.max(axis=0)

    def score(rows: Rows) -> Values:
        chosen = np.nan_to_num(rows[:, columns], nan=0.0)
        return np.asarray(np.clip(chosen, least, most) @ weights)

    return score


def _row_label(columns: tuple[int, ...]) -> Function:
    """Return a 64-bit label of some columns taken together; equal outputs have equal labels."""

    def score(rows: Rows) -> Values:
        chosen = np.ascontiguousarray(rows[:, list(columns)]) + 0.0  # -0.0 equals 0.0
        bits = chosen.view(np.uint64)
        label = np.full(len(rows), 0x9E3779B97F4A7C15, np.uint64)
        for j in range(bits.shape[1]):
            label = (label ^ bits[:, j]) * np.uint64(0xD6E8FEB86659FD93)
            label ^= label >> np.uint64(32)
        return label

    return score


def _row_scores(both: Rows, labels: list[str], vary: list[int], telling: list[int]) -> list[Score]:
    """Return labels of whole rows, and of growing prefixes of the discrete columns."""
    sample = both[:: max(1, len(both) // 4096)]
    discrete = [j for j in vary[:_MANY] if len(np.unique(sample[:, j])) <= _FEW]
    known_few = set(discrete)
    foremost = [j for j in telling if j in known_few]
    prefixes = {tuple(some[: 2**k]) for some in (discrete, foremost) for k in range(1, 10)}
    prefixes |= {tuple(vary)} if len(vary) <= _MANY else set()
    scores = []
    for columns in sorted(prefixes, key=lambda c: (len(c), c)):
        label = _row_label(columns)
        if len(columns) < 2 or 2 * len(np.unique(label(sample))) > len(sample):
            continue
        known, first = np.unique(label(both), return_index=True)
        examples = {
            int(v): tuple(map(float, both[i, list(columns)]))
            for v, i in zip(known, first, strict=True)
        }
        few = ", ".join(labels[j] for j in columns[:6]) + (", ..." if len(columns) > 6 else "")
        words = "the whole output" if columns == tuple(vary) else f"({few}) together"
        scores.append(Score(words, label, ordered=False, examples=examples))
    return scores
