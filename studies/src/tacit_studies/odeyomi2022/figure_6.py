"""Paper 000, Fig. 6: regret of the three algorithms, and its bounds."""

from __future__ import annotations

from typing import Any

from tacit_studies.estimates import is_close, summarise
from tacit_studies.odeyomi2022.settings import (
    ALGORITHM_3,
    DOMINANCES,
    HORIZON,
    KNOWN_RUNS,
    PUBLISHED,
    corrected,
    track,
)
from tacit_studies.reproduction import Figure, Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import curve_of, flat, growth_exponent

_STATES = 5

_CURVES = {
    "3": ("Algorithm 3, no privacy", ALGORITHM_3),
    "1": ("1 as published, epsilon = 0.1", PUBLISHED[1]),
    "2": ("2 as published, epsilon = 0.1", PUBLISHED[2]),
    "corrected 1": ("1 corrected, epsilon = 1", corrected(1, 1.0)),
    "corrected 2": ("2 corrected, epsilon = 1 + 1", corrected(2, 1.0)),
}
_KNOWN = {"3": (58, 44, 31), "1": (199, 298, 395), "2": (199, 298, 395)}


def _bounds(T: float) -> Any:
    """Return the bounds on the paper's three agents."""
    from tacit.diffusion import ChangingTruth, regret_bounds

    return regret_bounds(ChangingTruth(), horizon=int(T), epsilon=0.1)


def _judge(found: Outcomes) -> Findings:
    def less(left: str, right: str) -> Any:
        """Compare on the same tables: the regret of `right` less that of `left`."""
        pairs = zip(found[f"{left}/0.8"]["regret"], found[f"{right}/0.8"]["regret"], strict=True)
        return summarise([b - a for a, b in pairs])

    def exponent(key: str) -> float:
        curve = found[f"{key}/0.8"]
        late = [(t, y) for t, y in zip(curve["rounds"], curve["mean"], strict=True) if t >= 100]
        return growth_exponent(*zip(*late, strict=True))

    final = {(k, q): found.summary(f"{k}/{q}", "regret") for k in _CURVES for q in DOMINANCES}
    least = less("3", "1").low > 0 and less("3", "2").low > 0
    gap = less("1", "2")
    highest = gap.low > 0
    growth = {key: exponent(key) for key in _CURVES}
    sublinear = {key: growth[key] < 0.9 for key in ("3", "1", "2")}
    checks = [least, highest, *sublinear.values()]
    rows = [
        Row(
            "Algorithm 3 has the least regret of 3, 1, 2",
            "yes",
            "yes" if least else "no",
            "",
            least,
        ),
        Row(
            "regret of Algorithm 2 minus that of 1, same environments",
            "> 0",
            f"{gap.mean:.2f} ± {gap.error:.2g}",
            agrees=highest,
        ),
        *[
            Row(
                f"growth exponent of regret, Algorithm {key}",
                "1/2 up to logs",
                f"{growth[key]:.2f}",
                agrees=good,
            )
            for key, good in sublinear.items()
        ],
        *[
            Row(
                f"{_CURVES[key][0]}: regret at T = 500, q = {q:g}",
                "",
                final[key, q].text(),
                str(known),
                agrees=is_close(final[key, q], known, KNOWN_RUNS, digit=0.5),
            )
            for key, values in _KNOWN.items()
            for q, known in zip(DOMINANCES, values, strict=True)
        ],
        *[
            Row(f"{_CURVES[key][0]}: regret at T = 500, q = {q:g}", "", final[key, q].text())
            for key in ("corrected 1", "corrected 2")
            for q in DOMINANCES
        ],
        Row(
            "bound of eq. 19 on Algorithm 1 at T = 500, where no more than 500 can be lost",
            "",
            f"{_bounds(HORIZON).outsiders:,.0f}",
        ),
        Row(
            "bound of eq. 20 on Algorithm 2 at T = 500",
            "above that of eq. 19",
            f"{_bounds(HORIZON).spies:,.0f}",
            agrees=_bounds(HORIZON).spies > _bounds(HORIZON).outsiders,
        ),
    ]
    uniform = HORIZON * (0.8 - 1 / _STATES)
    return found.conclude(
        checks=checks,
        because=(
            f"Where the dominant state is true in 80% of {HORIZON} rounds, Algorithm 3 has regret "
            f"{final['3', 0.8].mean:.0f}, Algorithms 1 and 2 as published "
            f"{final['1', 0.8].mean:.0f} and {final['2', 0.8].mean:.0f}, and a belief that never "
            f"changes {uniform:.0f}. The regret of 1 and 2 grows like T^{growth['1']:.2f} and "
            f"T^{growth['2']:.2f}; the difference, 2 minus 1, is {gap.mean:.1f} ± {gap.error:.1f}. "
            f"Corrected, at epsilon = 1, they have {final['corrected 1', 0.8].mean:.0f} and "
            f"{final['corrected 2', 0.8].mean:.0f}."
        ),
        rows=rows,
        figures=[_curve_figure(found), _bound_figure()],
    )


def _curve_figure(found: Outcomes) -> Figure:
    series = [curve_of(label, found[f"{key}/0.8"]) for key, (label, _) in _CURVES.items()]
    rounds = series[0].x
    unchanged = [t * (0.8 - 1 / _STATES) for t in rounds]
    uniform = Series("a belief that never changes", rounds, unchanged, dashed=True)
    return Figure(
        "Regret, measured",
        "round",
        "regret of an agent (rounds lost)",
        [*series, uniform],
        caption="Three agents, 5 states, the dominant one true with probability q = 0.8; 95% bands.",
    )


def _bound_figure() -> Figure:
    rounds = [float(t) for t in range(10, HORIZON + 1, 10)]
    bounds = [_bounds(t) for t in rounds]
    named = {
        "Algorithm 3": [each.base_order for each in bounds],
        "Algorithm 1, eq. 19": [each.outsiders for each in bounds],
        "Algorithm 2, eq. 20": [each.spies for each in bounds],
    }
    series = [
        Series(label, rounds, [y / t for t, y in zip(rounds, bound, strict=True)])
        for label, bound in named.items()
    ]
    series.append(flat("the most that can be lost", rounds, 1.0))
    return Figure(
        "The bounds as printed, divided by the round",
        "round",
        "bound on the loss of a round",
        series,
        y_log=True,
        caption="Epsilon = 0.1; the constant in the bound of Algorithm 3 is 1.",
    )


FIGURE_6 = study(
    Sweep(
        "{curve}/{dominance}",
        {"curve": _CURVES, "dominance": DOMINANCES},
        track,
        policy=lambda curve: curve[1],
        horizon=HORIZON,
        repetitions=Sized(4_000, 200),
        points=50,
    ),
    judge=_judge,
    name="odeyomi2022-figure-6",
)
