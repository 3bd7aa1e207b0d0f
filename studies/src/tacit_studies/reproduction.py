"""What a reproduction is: jobs to run, and how the verdict is decided from what they return.

A study is declarative: the paper's claim in words, the jobs for its quick and its full size, and a
function that turns their outcomes into rows, figures and a verdict. Who runs the jobs, where and in which
order, is not its business, so the numbers cannot depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tacit.engines import JSON
from tacit_studies.estimates import Quantile, Summary
from tacit_studies.verdicts import Verdict

_NUMBERS = {
    "odeyomi2022": "000",
    "tao2022": "001",
    "lu2022": "002",
    "gajane2023": "003",
    "wang2020": "004",
}
"""What the papers were called before version 0.3."""


def number_of(name: str) -> str:
    """Return what a paper or a study was called before version 0.3, which the command line still takes.

    Examples
    --------
    >>> number_of("gajane2023"), number_of("lu2022-table-1"), number_of("trade-off")
    ('003', '002-table-1', 'trade-off')
    """
    paper, dash, rest = name.partition("-")
    return _NUMBERS.get(paper, paper) + dash + rest


def paper_of(name: str) -> str:
    """Return the paper that a study belongs to, or the page of our own, or nothing."""
    paper = name.partition("-")[0]
    return paper if paper in {*_NUMBERS, "today"} else ""


@dataclass(frozen=True)
class Job:
    """One piece of work: a module-level function and plain arguments; returns JSON-able values."""

    key: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One number of the paper beside ours."""

    label: str
    paper: str
    """What the paper prints, or an empty string."""
    measured: str
    expected: str = ""
    """What an independent calculation expects, or an empty string."""
    agrees: bool | None = None
    """Whether measured and paper (or expected) agree; None where that is not the question."""
    within: str = ""
    """How far apart they may be to agree, where the numbers alone do not show it."""


@dataclass(frozen=True)
class Series:
    """A curve or a set of bars, with a band where there is one."""

    label: str
    x: list[float]
    y: list[float]
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    dashed: bool = False

    @classmethod
    def of(
        cls,
        label: str,
        x: Sequence[float],
        found: Sequence[Summary] | Sequence[Quantile],
        *,
        dashed: bool = False,
    ) -> Series:
        """Return the means or quantiles of repetitions, with their intervals as a band."""
        y = [each.value if isinstance(each, Quantile) else each.mean for each in found]
        low, high = [each.low for each in found], [each.high for each in found]
        return cls(label, [float(v) for v in x], y, low, high, dashed)


@dataclass(frozen=True)
class Panel:
    """A map: a positive value at every point of a grid, and a curve drawn over it."""

    label: str
    x: list[float]
    y: list[float]
    values: list[list[float]]
    """``values[i][k]`` at ``x[i]`` and ``y[k]``."""
    curve: Series


@dataclass(frozen=True)
class Figure:
    """The data of a figure; the report draws it, on paper and on screen."""

    title: str
    x_label: str
    y_label: str
    series: list[Series]
    x_log: bool = False
    y_log: bool = False
    kind: str = "line"
    """``line``, ``points`` (markers joined by lines), ``bar`` (x are positions of `ticks`) or ``map``."""
    ticks: list[str] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)
    """Of a map, in place of series; they share one logarithmic scale of colours."""
    value_label: str = ""
    """What the colours of a map say."""
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What was found."""

    verdict: Verdict
    because: str
    """One or two sentences with the numbers that decided."""
    rows: list[Row] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    agreement: str = ""
    """What it means that a row agrees; needed as soon as one says so, or says that it does not."""
    privacy: str = ""
    """The privacy finding, if the study has one."""

    def __post_init__(self) -> None:
        marked = [row.label for row in self.rows if row.agrees is not None]
        if marked and not self.agreement:
            raise ValueError(
                f"Findings: expected agreement to say what it means that {marked[0]!r} agrees"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        data: dict[str, Any] = JSON.decode(JSON.encode(self))
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Findings:
        """Return the findings that `to_dict` wrote."""
        figures = [
            Figure(
                **{
                    **figure,
                    "series": [_series(each) for each in figure["series"]],
                    "panels": [_panel(each) for each in figure.get("panels", [])],
                }
            )
            for figure in data["figures"]
        ]
        rows = [Row(**row) for row in data["rows"]]
        agreement = data.get("agreement", "As the version that measured it decided.")
        return cls(**{**data, "rows": rows, "figures": figures, "agreement": agreement})


def _read(values: Sequence[Any]) -> list[float]:
    # Infinity is a word in JSON; version 0.1 wrote None for what is no number.
    return [math.nan if value is None else float(value) for value in values]


def _series(data: Mapping[str, Any]) -> Series:
    numbers = {name: _read(data[name]) for name in ("x", "y", "low", "high")}
    return Series(**{**data, **numbers})


def _panel(data: Mapping[str, Any]) -> Panel:
    grid = {
        "x": _read(data["x"]),
        "y": _read(data["y"]),
        "values": list(map(_read, data["values"])),
    }
    return Panel(**{**data, **grid, "curve": _series(data["curve"])})


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A table, a figure or a claim of a paper, to be measured again.

    Parameters
    ----------
    name : str
        Such as ``lu2022-table-1``: the paper's name, then what it is.
    paper : str
        The paper's name; of a study that belongs to no paper, nothing.
    title : str
    question : str
        What is asked, in words for a reader who knows none of it.
    claim : str
        What the paper reports; of a study of our own, what we expected.
    jobs : callable
        ``jobs(quick)`` returns the jobs of the quick or of the full size.
    judge : callable
        ``judge(outcomes, quick)`` turns a mapping of job key to outcome into findings.
    needs : tuple of str
        Folders of data sets it cannot run without.
    own : bool
        Whether the question is ours and no paper answers it. Such a study has no verdict on a paper: it is
        an own finding, and is not counted among those of the papers.
    """

    name: str
    paper: str
    title: str
    question: str
    claim: str
    jobs: Callable[[bool], Sequence[Job]]
    judge: Callable[[Mapping[str, Any], bool], Findings]
    needs: tuple[str, ...] = ()
    own: bool = False
