"""What a study can conclude."""

from __future__ import annotations

from collections.abc import Iterable

Verdict = str
REPRODUCED, PARTLY, NOT_REPRODUCED, UNDECIDED, OWN = (
    "reproduced",
    "partly",
    "not reproduced",
    "cannot be decided",
    "own finding",
)


def as_expected(verdict: Verdict) -> str:
    """Begin the sentence of an own finding: whether what we expected was seen.

    Examples
    --------
    >>> as_expected(verdict_of([True, False]))
    'Partly as expected: '
    """
    words = {
        REPRODUCED: "As expected",
        PARTLY: "Partly as expected",
        NOT_REPRODUCED: "Not as expected",
        UNDECIDED: "Too close to call",
    }
    return f"{words[verdict]}: "


def verdict_of(checks: Iterable[bool]) -> Verdict:
    """Return reproduced if every check holds, partly if some do."""
    held = list(checks)
    return REPRODUCED if all(held) else PARTLY if any(held) else NOT_REPRODUCED


def verdict_on(main: bool, *others: bool) -> Verdict:
    """Return reproduced if all holds, partly if the main point does."""
    return REPRODUCED if main and all(others) else PARTLY if main else NOT_REPRODUCED
