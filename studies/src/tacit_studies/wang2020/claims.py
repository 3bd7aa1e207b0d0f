"""Paper 004: how two regrets compare, and what follows for a claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tacit_studies.estimates import Summary, is_close, summarise
from tacit_studies.reproduction import Row
from tacit_studies.verdicts import NOT_REPRODUCED, PARTLY, REPRODUCED, UNDECIDED, Verdict

KNOWN_RUNS = 8
"""How many runs an independent value is the mean of; said of some, taken for all."""


def compare(smaller: Sequence[float], larger: Sequence[float]) -> int:
    """Say whether one is below the other in paired runs: 1 yes, -1 the contrary, 0 cannot be told.

    They are told apart if the 99% interval of the mean difference leaves out zero: a study makes
    about ten comparisons, and three runs must not settle one of them by chance.
    """
    from scipy.stats import t

    difference = summarise(np.subtract(larger, smaller).tolist())
    reach = float(t.ppf(0.995, difference.n - 1)) * difference.error
    return int(difference.mean > reach) - int(difference.mean < -reach)


def holds(comparisons: Sequence[int]) -> bool | None:
    """Say whether a claim holds: most comparisons clearly right, none clearly wrong."""
    if -1 in comparisons:
        return False
    return True if 2 * sum(comparisons) > len(comparisons) else None


def count_held(comparisons: Sequence[int]) -> str:
    """Return how often a claim holds, in words."""
    right, wrong, n = comparisons.count(1), comparisons.count(-1), len(comparisons)
    return f"{right} of {n}" + (f", the contrary in {wrong}" if wrong else "")


def decide(claims: Iterable[bool | None]) -> Verdict:
    """Return the verdict on claims of which each holds, fails or cannot be told."""
    found = list(claims)
    if all(found):
        return REPRODUCED
    if any(found):
        return PARTLY
    return NOT_REPRODUCED if False in found else UNDECIDED


def list_claims(claims: Mapping[str, Sequence[int]], paper: str = "yes") -> list[Row]:
    """Return how often each claim holds; `paper` is what the paper says of all of them."""
    return [Row(words, paper, count_held(c), agrees=holds(c)) for words, c in claims.items()]


def is_known(measured: Summary, known: float) -> bool | None:
    """Say whether a mean is within 5 standard errors of an independent one.

    None where there are too few runs to know the standard error.
    """
    return None if measured.n < 10 else is_close(measured, known, KNOWN_RUNS, digit=0.5)


def compare_known(label: str, measured: Summary, known: float | None, paper: str = "") -> Row:
    """Return a mean beside an independent one, if there is one."""
    if known is None:
        return Row(label, paper, measured.text())
    return Row(label, paper, measured.text(), f"{known:,}", agrees=is_known(measured, known))
