"""Paper 002 (Lu et al.), Table 1: change one reward and compare all decisions.

The paper does not say whether the second run draws its noise anew. Both readings are measured, and beside
them a learner that hides nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tacit_studies.lu2022.settings import HORIZON, GraphSetting
from tacit_studies.reproduction import Figure, Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import plot_points
from tacit_studies.verdicts import NOT_REPRODUCED, REPRODUCED, UNDECIDED

_GAPS, _EDGE_PROBS, _EPSILONS = (0.05, 0.1, 0.2), (0.1, 0.2, 0.3), (0.05, 0.1, 0.2)
_CELLS = list(itertools.product(_GAPS, _EDGE_PROBS, _EPSILONS))
_PRINTED_CELLS = """
94 91 89 93 90 88 91 89 86
97 95 90 94 91 88 93 92 89
98 96 92 94 91 91 92 90 90
"""
_PRINTED = dict(zip(_CELLS, map(int, _PRINTED_CELLS.split()), strict=True))
_PRINTED_PAIRS = 100
_AXES = {
    "epsilon": (2, _EPSILONS, "epsilon"),
    "p": (1, _EDGE_PROBS, "edge probability p"),
    "gap": (0, _GAPS, "smallest gap"),
}
_READINGS = {"shared": "same noise in both runs", "fresh": "fresh noise in the second run"}
_EXPECTED_RANGE = {"shared": (99.75, 100.0), "fresh": (71.5, 95.8)}
_EXPECTED_PAIRS = 400
_LEVEL = 1e-3
_NO_PRIVACY = 30.0


class _Count(NamedTuple):
    """How many pairs made the same decisions."""

    same: int
    pairs: int

    @property
    def percent(self) -> float:
        """The share of such pairs."""
        return 100.0 * self.same / self.pairs

    @property
    def error(self) -> float:
        """Its standard error, never quite zero."""
        share = (self.same + 1) / (self.pairs + 2)
        return 100.0 * math.sqrt(share * (1 - share) / self.pairs)


def count_twins(
    gap: float, edge_prob: float, epsilon: float, noise: str, pairs: int, seed: int
) -> list[int]:
    """Return how many of `pairs` twin runs made the same decisions, and `pairs`."""
    from tacit.arms import GAP
    from tacit_studies.lu2022.twin_runs import twin_runs

    environment = GraphSetting(0, gap, edge_prob, epsilon).environment
    policy = GAP(n_arms=environment.n_arms, epsilon=epsilon, horizon=HORIZON)
    found = twin_runs(
        policy, environment, horizon=HORIZON, pairs=pairs, noise=noise, seed=seed, threads=1
    )
    return [int((found.parted == HORIZON).sum()), pairs]


def _cell_key(reading: str, cell: Sequence[float]) -> str:
    return "/".join([reading, *(f"{value:g}" for value in cell)])


def _judge(outcomes: Outcomes) -> Findings:
    counts = {
        reading: {cell: _Count(*outcomes[_cell_key(reading, cell)]) for cell in _CELLS}
        for reading in _READINGS
    }
    counts["printed"] = {cell: _Count(same, _PRINTED_PAIRS) for cell, same in _PRINTED.items()}
    bare = _Count(*outcomes["no privacy"])
    p_values = {reading: _p_value(counts[reading], counts["printed"]) for reading in _READINGS}
    trends = {reading: _trend(cells, "epsilon") for reading, cells in counts.items()}
    fits = [reading for reading, p in p_values.items() if p >= _LEVEL]
    alike = [
        reading
        for reading in fits
        if _is_clear(trends[reading]) and _is_same_trend(trends[reading], trends["printed"])
    ]
    overall = {reading: _pool(cells, _CELLS).percent for reading, cells in counts.items()}
    blind = ": the share says nothing about privacy" if bare.percent >= overall["fresh"] else ""
    return outcomes.conclude(
        verdict=REPRODUCED if alike else UNDECIDED if fits else NOT_REPRODUCED,
        because=(
            f"Printed: {overall['printed']:.1f}% over all cells, {trends['printed'][0]:+.1f} points "
            "from the smallest to the largest epsilon. Measured with the same noise "
            f"{overall['shared']:.1f}% and {trends['shared'][0]:+.1f} points "
            f"(p = {p_values['shared']:.1g}), with fresh noise {overall['fresh']:.1f}% and "
            f"{trends['fresh'][0]:+.1f} points (p = {p_values['fresh']:.1g}). At epsilon = 30, "
            f"which hides nothing, {bare.percent:.1f}%{blind}."
        ),
        rows=_twin_rows(counts, p_values, trends, bare),
        figures=[_twin_figure(counts, axis) for axis in _AXES],
    )


def _pool(counts: Mapping[Any, _Count], cells: Sequence[Any]) -> _Count:
    return _Count(sum(counts[c].same for c in cells), sum(counts[c].pairs for c in cells))


def _levels(counts: Mapping[Any, _Count], axis: str) -> list[_Count]:
    place, levels, _ = _AXES[axis]
    return [_pool(counts, [c for c in _CELLS if c[place] == level]) for level in levels]


def _p_value(counts: Mapping[Any, _Count], printed: Mapping[Any, _Count]) -> float:
    """Return how probable so large a difference from the print is by chance, at most.

    Cells are pooled by each parameter in turn, which leaves three counts large enough for a
    chi-square test; the smallest of the three results is multiplied by three.
    """
    from scipy.stats import chi2

    smallest = 1.0
    for axis in _AXES:
        statistic = 0.0
        for ours, theirs in zip(_levels(counts, axis), _levels(printed, axis), strict=True):
            share = (ours.same + theirs.same) / (ours.pairs + theirs.pairs)
            variance = share * (1 - share) * (1 / ours.pairs + 1 / theirs.pairs)
            if variance > 0:
                statistic += ((ours.percent - theirs.percent) / 100.0) ** 2 / variance
        smallest = min(smallest, float(chi2.sf(statistic, 3)))
    return min(1.0, len(_AXES) * smallest)


def _trend(counts: Mapping[Any, _Count], axis: str) -> tuple[float, float]:
    """Return the change from the lowest to the highest level, and its standard error."""
    first, *_, last = _levels(counts, axis)
    return last.percent - first.percent, math.hypot(first.error, last.error)


def _is_clear(trend: tuple[float, float]) -> bool:
    return abs(trend[0]) > 3 * trend[1]


def _is_same_trend(ours: tuple[float, float], theirs: tuple[float, float]) -> bool:
    return abs(ours[0] - theirs[0]) <= _margin(ours, theirs)


def _margin(ours: tuple[float, float], theirs: tuple[float, float]) -> float:
    """Return 3 standard errors of the difference of two changes."""
    return 3 * math.hypot(ours[1], theirs[1])


def _twin_rows(
    counts: Mapping[str, Mapping[Any, _Count]],
    p_values: Mapping[str, float],
    trends: Mapping[str, tuple[float, float]],
    bare: _Count,
) -> list[Row]:
    rows = []
    printed = counts["printed"]
    low, high = min(_PRINTED.values()), max(_PRINTED.values())
    for reading, words in _READINGS.items():
        cells, bounds = counts[reading], _EXPECTED_RANGE[reading]
        worst, best = (f(cells.values(), key=lambda c: c.percent) for f in (min, max))
        close = all(
            abs(found.percent - bound)
            <= 5 * found.error * math.sqrt(1 + found.pairs / _EXPECTED_PAIRS)
            for found, bound in zip((worst, best), bounds, strict=True)
        )
        whole = _pool(cells, _CELLS)
        rows += [
            Row(
                f"range over 27 cells ({low} to {high} in the paper), {words}, %",
                "",
                f"{worst.percent:.1f} to {best.percent:.1f}",
                f"{bounds[0]:g} to {bounds[1]:g}",
                agrees=close,
            ),
            Row(
                f"all cells, {words}, %",
                f"{_pool(printed, _CELLS).percent:.1f}",
                f"{whole.percent:.1f} ± {whole.error:.2g}",
                agrees=p_values[reading] >= _LEVEL,
            ),
        ]
        for axis, (_, _, name) in _AXES.items():
            ours, theirs = _trend(cells, axis), _trend(printed, axis)
            rows.append(
                Row(
                    f"change along {name}, {words}, points",
                    f"{theirs[0]:+.1f}",
                    f"{ours[0]:+.1f} ± {ours[1]:.2g}",
                    agrees=_is_same_trend(ours, theirs),
                    within=f"{_margin(ours, theirs):.1f} points",
                )
            )
    label = "epsilon = 30, no privacy to speak of, fresh noise, %"
    rows.append(Row(label, "", f"{bare.percent:.1f} ± {bare.error:.2g}"))
    for cell, same in _PRINTED.items():
        shared, fresh = (counts[reading][cell].percent for reading in ("shared", "fresh"))
        label = "gap {:g}, p {:g}, epsilon {:g}, %".format(*cell)
        rows.append(Row(label, str(same), f"{shared:.1f} same noise, {fresh:.1f} fresh"))
    return rows


def _twin_figure(counts: Mapping[str, Mapping[Any, _Count]], axis: str) -> Figure:
    from scipy.stats import binomtest

    _, levels, name = _AXES[axis]
    series = []
    for key, words in {"printed": "printed in the paper", **_READINGS}.items():
        pools = _levels(counts[key], axis)
        found = [binomtest(c.same, c.pairs).proportion_ci(0.95, "exact") for c in pools]
        low, high = ([100.0 * float(getattr(f, end)) for f in found] for end in ("low", "high"))
        shares = [c.percent for c in pools]
        series.append(Series(words, list(levels), shares, low, high, dashed=key == "printed"))
    return plot_points(
        f"Same decisions after one reward changed, by {name}",
        name,
        "pairs with identical decisions (%)",
        series,
        log="x",
        caption="Nine cells of Table 1 pooled for each point; bands are 95% intervals.",
    )


_PAIRS = {"shared": Sized(200, 10), "fresh": Sized(200, 16)}
TABLE_1 = study(
    Sweep(
        "{noise}/{cell}",
        {
            "noise": list(_READINGS),
            "cell": {"{:g}/{:g}/{:g}".format(*cell): (i, *cell) for i, cell in enumerate(_CELLS)},
        },
        count_twins,
        gap=lambda cell: cell[1],
        edge_prob=lambda cell: cell[2],
        epsilon=lambda cell: cell[3],
        pairs=lambda noise: _PAIRS[noise],
        seed=lambda cell: cell[0],
    ),
    Sweep(
        "no privacy",
        {},
        count_twins,
        gap=0.1,
        edge_prob=0.2,
        epsilon=_NO_PRIVACY,
        noise="fresh",
        pairs=Sized(400, 32),
        seed=len(_CELLS),
    ),
    judge=_judge,
    name="lu2022-table-1",
)
