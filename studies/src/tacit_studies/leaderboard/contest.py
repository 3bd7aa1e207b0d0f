"""Policies side by side: what was known before, what is new, over epsilon, horizon, size and environment.

A contest is a few policies and a few variations, each of which changes one thing. All policies of a point
play on the same tables. Medians are compared, and where a new policy is behind, or the runs do not tell, the
row says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from tacit_studies.estimates import Quantile, estimate_quantile
from tacit_studies.reproduction import Figure, Findings, Reproduction, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import plot_points

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


class Variation(NamedTuple):
    """One thing that changes while all else stays."""

    name: str
    title: str
    x_label: str
    points: tuple[Point, ...]
    quick: tuple[int, ...] = ()
    """Which points the quick size has; none leaves the variation out."""


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Who plays what.

    Parameters
    ----------
    lines : tuple of Line
    variations : tuple of Variation
    repetitions, quick_repetitions : int
        At least 40, for a median; from 200 on the rows show the first and the ninth tenth as well.
    quick_share : float
        The part of every horizon that the quick size plays.
    unit : str
        What regret is counted in, for the axis.
    """

    lines: tuple[Line, ...]
    variations: tuple[Variation, ...]
    repetitions: int = 40
    quick_repetitions: int = 40
    quick_share: float = 0.1
    unit: str = "regret"

    def points(self, variation: Variation) -> Sized[list[Point]]:
        """Return the points of a variation."""
        chosen = [variation.points[i] for i in variation.quick]
        shares = [max(50, int(self.quick_share * each.horizon)) for each in chosen]
        shorter = [p._replace(horizon=T) for p, T in zip(chosen, shares, strict=True)]
        return Sized(list(variation.points), shorter)


def make_study(name: str, contest: Contest, words: Mapping[str, str] | None = None) -> Reproduction:
    """Return the study of a contest."""
    sweeps = [
        Sweep(
            variation.name + "/{line}/{point.x:g}",
            {
                "point": contest.points(variation),
                "line": {line.label: line.policy for line in contest.lines},
            },
            policy=lambda line, point: set_epsilon(line, point.epsilon),
            environment=lambda point: point.environment,
            horizon=lambda point: point.horizon,
            repetitions=Sized(contest.repetitions, contest.quick_repetitions),
            seed=_SEED,
        )
        for variation in contest.variations
    ]
    return study(*sweeps, name=name, judge=partial(_judge, contest), own=True, words=words)


def set_epsilon(policy: Mapping[str, Any], epsilon: float) -> dict[str, Any]:
    """Return a policy's description at an epsilon; one with ``epsilon: None`` has no privacy."""
    spec = dict(policy)
    if "privacy" in spec:
        return {**spec, "privacy": {**spec["privacy"], "epsilon": epsilon}}
    if spec.get("epsilon", epsilon) is None:
        del spec["epsilon"]
        return spec
    return {"epsilon": epsilon, **spec}


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


def _judge(contest: Contest, outcomes: Outcomes) -> Findings:
    rows, figures, cells = [], [], []
    for variation in contest.variations:
        points = contest.points(variation).at(outcomes.quick)
        if not points:
            continue
        found = {
            line.label: [
                Regrets.of(outcomes[f"{variation.name}/{line.label}/{point.x:g}"])
                for point in points
            ]
            for line in contest.lines
        }
        for i, point in enumerate(points):
            new, before = (_find_best(contest, found, role, i) for role in (NEW, BEFORE))
            label = f"{variation.title}, {variation.x_label} = {_name_value(point.x)}"
            cells.append(_compare(label, found[new][i].median, found[before][i].median))
            rows.append(
                Row(
                    label,
                    "",
                    f"{new} {found[new][i].text()}. Before, {before} {found[before][i].text()}: "
                    f"{cells[-1].words} {cells[-1].factor:.3g} times as much.",
                )
            )
        figures.append(_figure(contest, variation, points, found))
    return outcomes.conclude(
        checks=[cell.words != _BEHIND for cell in cells],
        because=_summarise(cells),
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


def _find_best(contest: Contest, found: Mapping[str, list[Regrets]], role: str, i: int) -> str:
    labels = [line.label for line in contest.lines if line.role == role]
    return min(labels, key=lambda label: found[label][i].median.value)


def _figure(
    contest: Contest, variation: Variation, points: list[Point], found: Mapping[str, list[Regrets]]
) -> Figure:
    rounds = {point.horizon for point in points}
    length = f", {points[0].horizon:,} rounds" if len(rounds) == 1 else ""
    xs = [point.x for point in points]
    return plot_points(
        variation.title + length,
        variation.x_label,
        f"{contest.unit} (median)",
        [
            Series.of(
                line.label,
                xs,
                [each.median for each in found[line.label]],
                dashed=line.role == BESIDE,
            )
            for line in contest.lines
        ],
        caption="Medians and their 95% intervals. Dashed: another guarantee, or none.",
    )


def _summarise(cells: Sequence[Cell]) -> str:
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


def _name_value(x: float) -> str:
    return f"{x:,.0f}" if x >= 1000 else f"{x:g}"
