"""Paper 004, Table 1: regret at each epsilon."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit_studies.estimates import summarise
from tacit_studies.reproduction import Figure, Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import plot_points
from tacit_studies.wang2020.claims import (
    compare,
    compare_known,
    count_held,
    decide,
    holds,
    list_claims,
)
from tacit_studies.wang2020.settings import (
    COUNTERPARTS,
    NAMES,
    PLAIN,
    SYNTHETIC,
    corrected,
    final,
    final_line,
    play_runs,
    private,
)

HORIZON = 10_000
_EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
_PLAYED = Sized(_EPSILONS, (0.5, 2.0, 10.0))
PRINTED = {
    "DP-LinUCB": (3082.90, 2683.69, 1504.14, 910.97, 496.11),
    "DP-CoLin": (2619.56, 2450.70, 1327.70, 884.19, 297.18),
    "DP-GOBLin": (2672.56, 2550.22, 964.63, 685.65, 246.92),
    "LDP-CoLin": (3310.53, 3095.10, 2389.05, 1795.40, 938.76),
    "LDP-GOBLin": (3268.70, 3004.80, 2334.62, 1743.57, 1060.53),
}
_KNOWN = {
    "DP-LinUCB": {0.5: 2889, 2.0: 1696, 10.0: 494},
    "DP-CoLin": {0.5: 3070, 2.0: 2058, 10.0: 494},
    "DP-GOBLin": {0.5: 3023, 2.0: 1961, 10.0: 569},
    "LDP-CoLin": {0.5: 3261, 2.0: 2651, 10.0: 969},
    "LDP-GOBLin": {0.5: 3266, 2.0: 2641, 10.0: 1057},
}
_KNOWN_PLAIN = {
    **{"LinUCB, not private": 42, "CoLin, not private": 14, "GOBLin, not private": 22},
    "LinUCB, not private, width of theory": 1150,
    "CoLin, not private, width of theory": 635,
}
"""The width of Lemma 2; of equation 5, which GOBLin has, there is no independent value."""
_KNOWN_WRITTEN = {
    5: {"random": 880, "worst": 2111},
    10: {"random": 716, "worst": 1608},
    25: {"random": 456, "worst": 970},
}


def measure_as_written(dimension: int, repetitions: int, horizon: int) -> dict[str, list[float]]:
    """Return the regret of random choice and of always the worst arm in the environment as written.

    Nothing is played: the mean of the largest of n of K values is a weighted mean of all, sorted.
    """
    from scipy.special import gammaln

    from tacit.contextual import Synthetic

    environment = Synthetic(dimension=dimension)
    K, n = environment.n_items, environment.n_shown
    rank = np.arange(n, K + 1)
    weights = np.zeros(K)
    # The share of the subsets whose largest member has this rank: C(rank - 1, n - 1) / C(K, n).
    weights[n - 1 :] = np.exp(
        gammaln(rank)
        - gammaln(n)
        - gammaln(rank - n + 1)
        - gammaln(K + 1)
        + gammaln(n + 1)
        + gammaln(K - n + 1)
    )
    random, worst = [], []
    for repetition in range(repetitions):
        table = environment.table(4, repetition, horizon)
        values = np.sort(table.features @ table.preferences.T, axis=0)
        best = float((weights @ values).mean())
        random.append(horizon * (best - float(values.mean())))
        worst.append(horizon * (best - float((weights[::-1] @ values).mean())))
    return {"random": random, "worst": worst}


def _judge(outcomes: Outcomes) -> Findings:
    es = _PLAYED.at(outcomes.quick)
    regret = {
        key: final(outcome) for key, outcome in outcomes.items() if not key.startswith("written")
    }
    cell = {key: summarise(values) for key, values in regret.items()}
    largest = max(max(line) for line in PRINTED.values())
    reach = max(outcomes.mean(f"written/{d}", "random") for d in _KNOWN_WRITTEN)

    def order(smaller: str, larger: str) -> int:
        return compare(regret[smaller], regret[larger])

    claims = {
        "private above not private": [
            order(COUNTERPARTS[name], f"{name}/{e:g}") for name in NAMES for e in es
        ],
        "local above central": [
            order(f"DP-{a}/{e:g}", f"LDP-{a}/{e:g}") for a in ("CoLin", "GOBLin") for e in es
        ],
        "less regret at each larger epsilon": [
            order(f"{name}/{b:g}", f"{name}/{a:g}")
            for name in NAMES
            for a, b in itertools.pairwise(es)
        ],
        "DP-CoLin and DP-GOBLin below DP-LinUCB": [
            order(f"DP-{a}/{e:g}", f"DP-LinUCB/{e:g}") for a in ("CoLin", "GOBLin") for e in es
        ],
    }
    possible = reach >= largest
    printed = {(n, e): PRINTED[n][_EPSILONS.index(e)] for n in NAMES for e in es}
    near = [abs(cell[f"{n}/{e:g}"].mean / value - 1) < 0.15 for (n, e), value in printed.items()]
    rows = [
        Row(
            "the largest regret of the table can occur as written",
            f"{largest:,.0f}",
            f"choosing at random costs at most {reach:,.0f}",
            agrees=possible,
        ),
        *list_claims(claims, "always"),
        *[
            compare_known(
                f"{n}, epsilon = {e:g}", cell[f"{n}/{e:g}"], _KNOWN[n].get(e), f"{value:,.0f}"
            )
            for (n, e), value in printed.items()
        ],
        *[
            compare_known(f"{n}, {words}", cell[key], _KNOWN_PLAIN.get(f"{n}, {words}"))
            for pattern, words in (
                ("{}", "not private"),
                ("{}/theory", "not private, width of theory"),
            )
            for n, key in ((name, pattern.format(name)) for name in PLAIN)
        ],
        *[
            compare_known(
                f"environment as written, d = {d}: {words}",
                outcomes.summary(f"written/{d}", part),
                known[part],
            )
            for d, known in _KNOWN_WRITTEN.items()
            for part, words in (("random", "random"), ("worst", "always the worst arm"))
        ],
        *[
            Row(f"CoLin, corrected, local, epsilon = {e:g}", "", cell[f"corrected/{e:g}"].text())
            for e in es
        ],
    ]
    return outcomes.conclude(
        verdict=decide([possible, *[holds(found) for found in claims.values()]]),
        because=(
            f"In the environment as written a random choice costs at most {reach:,.0f}, and the table "
            f"goes up to {largest:,.0f}. In an environment fitted to the table, {sum(near)} of "
            f"{len(near)} regrets are within 15% of the printed ones; "
            + "; ".join(f"{words}: {count_held(found)}" for words, found in claims.items())
            + "."
        ),
        rows=rows,
        figures=[
            _table_figure("With a trusted server", NAMES[:3], es, regret),
            _table_figure("Without a trusted server", NAMES[3:], es, regret),
        ],
    )


def _table_figure(
    title: str, names: tuple[str, ...], es: tuple[float, ...], regret: Mapping[str, list[float]]
) -> Figure:
    series = [final_line(name, es, [regret[f"{name}/{e:g}"] for e in es]) for name in names]
    series += [
        Series(f"{name}, printed", list(_EPSILONS), list(PRINTED[name]), dashed=True)
        for name in names
    ]
    if names[0].startswith("LDP"):
        series.append(final_line("CoLin, corrected", es, [regret[f"corrected/{e:g}"] for e in es]))
    return plot_points(
        title,
        "epsilon (smaller is more private)",
        "regret after 10,000 rounds",
        series,
        caption="Published noise, which does not deliver its epsilon, in the environment fitted to the "
        "table; bands are 95%.",
    )


def _list_policies(epsilons: tuple[float, ...]) -> dict[str, dict[str, Any]]:
    policies = {f"{name}/{e:g}": private(name, e) for e in epsilons for name in NAMES}
    for e in epsilons:
        policies[f"corrected/{e:g}"] = corrected("CoLin", e)
    for name in PLAIN:
        policies[name] = corrected(name, None)
        policies[f"{name}/theory"] = corrected(name, None, exploration="theory")
    return policies


TABLE_1 = study(
    Sweep(
        "{policy}",
        {"policy": Sized(_list_policies(_PLAYED.full), _list_policies(_PLAYED.quick))},
        play_runs,
        environment=SYNTHETIC,
        horizon=HORIZON,
        repetitions=Sized(40, 3),
    ),
    Sweep(
        "written/{dimension}",
        {"dimension": list(_KNOWN_WRITTEN)},
        measure_as_written,
        repetitions=Sized(200, 20),
        horizon=HORIZON,
    ),
    judge=_judge,
    name="wang2020-table-1",
)
