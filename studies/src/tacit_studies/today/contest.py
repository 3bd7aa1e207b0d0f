"""Policies side by side: what was known before, what is new, over epsilon, horizon, size and world.

A contest is a few policies and a few sweeps; a sweep changes one thing. All policies of a point play on the
same tables. Medians are compared, and where a new policy is behind, or the runs do not tell, the row says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from tacit_studies.reproduction import (
    OWN,
    Figure,
    Findings,
    Job,
    Quantile,
    Reproduction,
    Row,
    Series,
    as_expected,
    estimate_quantile,
    verdict_of,
)
from tacit_studies.tools import final_values

BEFORE, NEW, BESIDE = "before", "new", "beside"
_TAILS = (0.1, 0.9)
_FOR_TAILS = 200
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
        At least 40, for a median; from 200 on the rows show the first and the ninth tenth as well.
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


class Regrets(NamedTuple):
    """The median of repetitions and, of enough of them, where eight in ten lie."""

    median: Quantile
    tails: tuple[Quantile, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> Regrets:
        """Return the quantiles that so many runs allow."""
        shares = _TAILS if len(values) >= _FOR_TAILS else ()
        tails = tuple(estimate_quantile(values, share) for share in shares)
        return cls(estimate_quantile(values, 0.5), tails)

    def text(self) -> str:
        """Return the numbers with their 95% intervals.

        Examples
        --------
        >>> Regrets.of(range(1000, 1041)).text()
        '1,020 (1,013 to 1,026)'
        >>> Regrets.of(range(1000, 1201)).text()
        '1,100 (1,085 to 1,114); eight in ten from 1,020 (1,010 to 1,028) to 1,180 (1,171 to 1,189)'
        """
        tails = " to ".join(each.text() for each in self.tails)
        return self.median.text() + (f"; eight in ten from {tails}" if tails else "")


def _judge(contest: Contest, outcomes: Mapping[str, Any], quick: bool) -> Findings:
    rows, figures, cells = [], [], []
    for sweep in contest.sweeps:
        points = contest.points(sweep, quick)
        if not points:
            continue
        found = {
            line.label: [Regrets.of(outcomes[_key(sweep, line, point)]) for point in points]
            for line in contest.lines
        }
        for i, point in enumerate(points):
            new, before = (_least(contest, found, role, i) for role in (NEW, BEFORE))
            label = f"{sweep.title}, {sweep.x_label} = {_named(point.x)}"
            cells.append(_compare(label, found[new][i].median, found[before][i].median))
            rows.append(
                Row(
                    label,
                    "",
                    f"{new} {found[new][i].text()}. Before, {before} {found[before][i].text()}: "
                    f"{cells[-1].words} {cells[-1].factor:.3g} times as much.",
                )
            )
        figures.append(_figure(contest, sweep, points, found))
    return Findings(
        verdict=OWN,
        because=as_expected(verdict_of(cell.words != _BEHIND for cell in cells)) + _summary(cells),
        rows=rows,
        figures=figures,
    )


_AHEAD, _BEHIND, _CLOSE = "ahead,", "behind,", "too close to call,"


class Cell(NamedTuple):
    """How the best new policy stands beside the best one before, at one point."""

    label: str
    factor: float
    words: str


def _compare(label: str, new: Quantile, before: Quantile) -> Cell:
    """Return who has the smaller median, unless their 95% intervals overlap."""
    close = new.low <= before.high and before.low <= new.high
    words = _CLOSE if close else _AHEAD if new.value <= before.value else _BEHIND
    return Cell(label, before.value / max(new.value, 1e-12), words)


def _least(contest: Contest, found: Mapping[str, list[Regrets]], role: str, i: int) -> str:
    labels = [line.label for line in contest.lines if line.role == role]
    return min(labels, key=lambda label: found[label][i].median.value)


def _figure(
    contest: Contest, sweep: Sweep, points: list[Point], found: Mapping[str, list[Regrets]]
) -> Figure:
    rounds = {point.horizon for point in points}
    length = f", {points[0].horizon:,} rounds" if len(rounds) == 1 else ""
    return Figure(
        sweep.title + length,
        sweep.x_label,
        f"{contest.unit} (median)",
        [
            Series.of(
                line.label,
                [point.x for point in points],
                [each.median for each in found[line.label]],
                dashed=line.role == BESIDE,
            )
            for line in contest.lines
        ],
        x_log=True,
        y_log=True,
        kind="points",
        caption="Medians and their 95% intervals. Dashed: another guarantee, or none.",
    )


def _summary(cells: Sequence[Cell]) -> str:
    factors = [cell.factor for cell in cells]
    lost, close = ([c for c in cells if c.words == words] for words in (_BEHIND, _CLOSE))
    text = (
        f"the new policies are ahead in {len(cells) - len(lost) - len(close)} of {len(cells)} cells. "
        f"The best one before has {min(factors):.3g} to {max(factors):.3g} times the regret of the best "
        "new one."
    )
    for words, some in (("Behind", lost), ("Too close to call", close)):
        if some:
            named = "; ".join(f"{cell.label} ({cell.factor:.2g} times)" for cell in some)
            text += f" {words}: {named}."
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
