"""Policies side by side: what was known before, what is new, over epsilon, horizon, size and world.

A contest is a few policies and a few sweeps; a sweep changes one thing. All policies of a point play on the
same tables. Medians are compared, and where a new policy is behind the row says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tacit.papers.reproduction import (
    OWN,
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    as_expected,
    verdict_of,
)
from tacit.papers.tools import final_values

__all__ = ["BEFORE", "BESIDE", "NEW", "Contest", "Line", "Point", "Sweep", "contested"]

BEFORE, NEW, BESIDE = "before", "new", "beside"
_LOW, _HIGH = 10, 90
_SEED = 17


class Line(NamedTuple):
    """A policy of a contest."""

    label: str
    policy: Mapping[str, Any]
    role: str
    """`BEFORE` and `NEW` are compared; `BESIDE`, with another guarantee or none, is only shown."""


class Point(NamedTuple):
    """A place of a sweep."""

    x: float
    environment: Mapping[str, Any]
    horizon: int
    epsilon: float


class Sweep(NamedTuple):
    """One thing that changes while all else stays."""

    name: str
    title: str
    x_label: str
    points: tuple[Point, ...]
    quick: tuple[int, ...] = ()
    """Which points the quick size has; none leaves the sweep out."""


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Who plays what.

    Parameters
    ----------
    lines : tuple of Line
    sweeps : tuple of Sweep
    repetitions, quick_repetitions : int
    quick_share : float
        The part of every horizon that the quick size plays.
    unit : str
        What regret is counted in, for the axis.
    """

    lines: tuple[Line, ...]
    sweeps: tuple[Sweep, ...]
    repetitions: int
    quick_repetitions: int
    quick_share: float = 0.1
    unit: str = "regret"

    def points(self, sweep: Sweep, quick: bool) -> list[Point]:
        """Return the points of a sweep at one of the two sizes."""
        if not quick:
            return list(sweep.points)
        share = self.quick_share
        chosen = [sweep.points[i] for i in sweep.quick]
        return [each._replace(horizon=max(50, int(share * each.horizon))) for each in chosen]


def contested(contest: Contest, **words: Any) -> Reproduction:
    """Return the study of a contest; `words` are those of `Reproduction`."""
    return Reproduction(
        paper="today",
        own=True,
        jobs=partial(_jobs, contest),
        judge=partial(_judge, contest),
        **words,
    )


def private(policy: Mapping[str, Any], epsilon: float) -> dict[str, Any]:
    """Return a policy's description at an epsilon; ``epsilon: None`` is left as it is."""
    spec = dict(policy)
    if "privacy" in spec:
        spec["privacy"] = {**spec["privacy"], "epsilon": epsilon}
    elif "epsilon" not in spec:
        spec["epsilon"] = epsilon
    if spec["epsilon"] is None if "epsilon" in spec else False:
        del spec["epsilon"]
    return spec


def _key(sweep: Sweep, line: Line, point: Point) -> str:
    return f"{sweep.name}/{line.label}/{point.x:g}"


def _jobs(contest: Contest, quick: bool) -> list[Job]:
    repetitions = contest.quick_repetitions if quick else contest.repetitions
    return [
        Job(
            _key(sweep, line, point),
            final_values,
            {
                "policy": private(line.policy, point.epsilon),
                "environment": point.environment,
                "horizon": point.horizon,
                "repetitions": repetitions,
                "seed": _SEED,
            },
        )
        for sweep in contest.sweeps
        for point in contest.points(sweep, quick)
        for line in contest.lines
    ]


class Middle(NamedTuple):
    """The median of repetitions, and where eight in ten of them lie."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Middle:
        """Return the median and the quantiles."""
        return cls(*(float(q) for q in np.percentile(values, [50, _LOW, _HIGH])))

    def text(self) -> str:
        """Return the numbers.

        Examples
        --------
        >>> Middle.of([1000.0, 2000.0, 3000.0]).text()
        '2,000 (1,200 to 2,800)'
        """
        return f"{_short(self.median)} ({_short(self.low)} to {_short(self.high)})"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _judge(contest: Contest, outcomes: Mapping[str, Any], quick: bool) -> Findings:
    rows, figures, factors = [], [], []
    for sweep in contest.sweeps:
        points = contest.points(sweep, quick)
        if not points:
            continue
        found = {
            line.label: [Middle.of(outcomes[_key(sweep, line, point)]) for point in points]
            for line in contest.lines
        }
        for i, point in enumerate(points):
            new, before = (_least(contest, found, role, i) for role in (NEW, BEFORE))
            factors.append(found[before][i].median / max(found[new][i].median, 1e-12))
            rows.append(
                Row(
                    f"{sweep.title}, {sweep.x_label} = {_named(point.x)}",
                    "",
                    f"{new} {found[new][i].text()}; before, {before} {found[before][i].text()}: "
                    + _compared(factors[-1]),
                )
            )
        figures.append(_figure(contest, sweep, points, found))
    lost = {row.label: f for row, f in zip(rows, factors, strict=True) if f < 1}
    return Findings(
        verdict=OWN,
        because=as_expected(verdict_of(factor >= 1 for factor in factors))
        + _summary(factors, lost),
        rows=rows,
        figures=figures,
    )


def _compared(factor: float) -> str:
    return f"{factor:.3g} times as much" if factor >= 1 else f"behind, {factor:.3g} times as much"


def _least(contest: Contest, found: Mapping[str, list[Middle]], role: str, i: int) -> str:
    labels = [line.label for line in contest.lines if line.role == role]
    return min(labels, key=lambda label: found[label][i].median)


def _figure(
    contest: Contest, sweep: Sweep, points: list[Point], found: Mapping[str, list[Middle]]
) -> Figure:
    rounds = {point.horizon for point in points}
    length = f", {points[0].horizon:,} rounds" if len(rounds) == 1 else ""
    return Figure(
        sweep.title + length,
        sweep.x_label,
        f"{contest.unit} (median)",
        [
            Series(
                line.label,
                [point.x for point in points],
                [each.median for each in found[line.label]],
                [each.low for each in found[line.label]],
                [each.high for each in found[line.label]],
                dashed=line.role == BESIDE,
            )
            for line in contest.lines
        ],
        x_log=True,
        y_log=True,
        kind="points",
        caption="Medians; eight in ten runs lie in the band. Dashed: another guarantee, or none.",
    )


def _summary(factors: list[float], lost: Mapping[str, float]) -> str:
    text = (
        f"the new policies are ahead in {len(factors) - len(lost)} of {len(factors)} cells, by a "
        f"factor of {np.median(factors):.3g} in the median and {max(factors):.3g} at most."
    )
    if lost:
        cells = "; ".join(f"{label} ({factor:.2g} times)" for label, factor in lost.items())
        text += f" Behind: {cells}."
    return text


def _named(x: float) -> str:
    return f"{x:,.0f}" if x >= 1000 else f"{x:g}"


def epsilons(
    values: Sequence[float], environment: Mapping[str, Any], horizon: int
) -> tuple[Point, ...]:
    """Return a point for every epsilon."""
    return tuple(Point(e, environment, horizon, e) for e in values)


def horizons(
    values: Sequence[int], environment: Mapping[str, Any], epsilon: float
) -> tuple[Point, ...]:
    """Return a point for every horizon."""
    return tuple(Point(float(T), environment, T, epsilon) for T in values)


def sizes(
    values: Sequence[int],
    environment: Callable[[int], Mapping[str, Any]],
    horizon: int,
    epsilon: float,
) -> tuple[Point, ...]:
    """Return a point for every size, of which `environment` makes an environment."""
    return tuple(Point(float(n), environment(n), horizon, epsilon) for n in values)
