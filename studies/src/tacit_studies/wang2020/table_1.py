"""Paper 004, Table 1: regret at each epsilon."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit_studies.reproduction import (
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    summarise,
)
from tacit_studies.wang2020.settings import (
    COUNTERPARTS,
    NAMES,
    PLAIN,
    SYNTHETIC,
    close,
    compared,
    corrected,
    decide,
    final,
    final_line,
    held,
    holds,
    played,
    private,
)

HORIZON = 10_000
_EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
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
_KNOWN_PLAIN: dict[str, int | None] = {"LinUCB": 42, "CoLin": 14, "GOBLin": 22}
_KNOWN_THEORY: dict[str, int | None] = {"LinUCB": 1150, "CoLin": 635, "GOBLin": None}
"""The width of Lemma 2; of equation 5, which GOBLin has, there is no independent value."""
_KNOWN_WRITTEN = {5: (880, 2111), 10: (716, 1608), 25: (456, 970)}


def as_written(dimension: int, repetitions: int, horizon: int) -> dict[str, list[float]]:
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


def _epsilons(quick: bool) -> list[float]:
    return [0.5, 2.0, 10.0] if quick else list(_EPSILONS)


def _table_jobs(quick: bool) -> list[Job]:
    common = {
        "environment": SYNTHETIC,
        "horizon": HORIZON,
        "repetitions": 3 if quick else 40,
    }
    policies = {f"{name}/{e:g}": private(name, e) for e in _epsilons(quick) for name in NAMES}
    for e in _epsilons(quick):
        policies[f"corrected/{e:g}"] = corrected("CoLin", e)
    for name in PLAIN:
        policies[name] = corrected(name, None)
        policies[f"{name}/theory"] = corrected(name, None, exploration="theory")
    written = {"repetitions": 20 if quick else 200, "horizon": HORIZON}
    return [
        *[Job(key, played, {"policy": p, **common}) for key, p in policies.items()],
        *[Job(f"written/{d}", as_written, {"dimension": d, **written}) for d in _KNOWN_WRITTEN],
    ]


def _judge_table(outcomes: Mapping[str, Any], quick: bool) -> Findings:
    es = _epsilons(quick)
    regret = {
        key: final(outcome) for key, outcome in outcomes.items() if not key.startswith("written")
    }
    cell = {key: summarise(values) for key, values in regret.items()}
    random = {d: summarise(outcomes[f"written/{d}"]["random"]) for d in _KNOWN_WRITTEN}
    worst = {d: summarise(outcomes[f"written/{d}"]["worst"]) for d in _KNOWN_WRITTEN}
    largest = max(max(line) for line in PRINTED.values())
    reach = max(summary.mean for summary in random.values())

    def order(smaller: str, larger: str) -> int:
        return compared(regret[smaller], regret[larger])

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
    near = [
        abs(cell[f"{name}/{e:g}"].mean / PRINTED[name][_EPSILONS.index(e)] - 1) < 0.15
        for name in NAMES
        for e in es
    ]
    rows = [
        Row(
            "the largest regret of the table can occur as written",
            f"{largest:,.0f}",
            f"choosing at random costs at most {reach:,.0f}",
            agrees=possible,
        ),
        *[
            Row(words, "always", held(found), agrees=holds(found))
            for words, found in claims.items()
        ],
    ]
    for name in NAMES:
        for e in es:
            found = cell[f"{name}/{e:g}"]
            known = _KNOWN[name].get(e)
            printed = PRINTED[name][_EPSILONS.index(e)]
            rows.append(
                Row(
                    f"{name}, epsilon = {e:g}",
                    f"{printed:,.0f}",
                    found.text(),
                    f"{known:,}" if known else "",
                    agrees=close(found, known) if known else None,
                )
            )
    for suffix, words, expected in (
        ("", "not private", _KNOWN_PLAIN),
        ("/theory", "not private, width of theory", _KNOWN_THEORY),
    ):
        rows += [
            Row(
                f"{name}, {words}",
                "",
                cell[f"{name}{suffix}"].text(),
                f"{known:,}" if known else "",
                agrees=close(cell[f"{name}{suffix}"], known) if known else None,
            )
            for name, known in expected.items()
        ]
    for d, (known_random, known_worst) in _KNOWN_WRITTEN.items():
        rows += [
            Row(
                f"environment as written, d = {d}: random",
                "",
                random[d].text(),
                f"{known_random:,}",
                agrees=close(random[d], known_random),
            ),
            Row(
                f"environment as written, d = {d}: always the worst arm",
                "",
                worst[d].text(),
                f"{known_worst:,}",
                agrees=close(worst[d], known_worst),
            ),
        ]
    rows += [
        Row(f"CoLin, corrected, local, epsilon = {e:g}", "", cell[f"corrected/{e:g}"].text())
        for e in es
    ]
    return Findings(
        verdict=decide([possible, *[holds(found) for found in claims.values()]]),
        because=(
            f"In the environment as written a random choice costs at most {reach:,.0f}, and the table "
            f"goes up to {largest:,.0f}. In an environment fitted to the table, {sum(near)} of "
            f"{len(near)} regrets are within 15% of the printed ones; "
            + "; ".join(f"{words}: {held(found)}" for words, found in claims.items())
            + "."
        ),
        agreement=(
            "A claim holds if most of its comparisons are clear (99% interval of the paired "
            "differences) and none is clearly the contrary; an independent value agrees "
            "within 5 standard errors of the difference."
        ),
        rows=rows,
        figures=[
            _table_figure("With a trusted server", NAMES[:3], es, regret),
            _table_figure("Without a trusted server", NAMES[3:], es, regret, corrected=True),
        ],
    )


def _table_figure(
    title: str,
    names: tuple[str, ...],
    es: list[float],
    regret: Mapping[str, list[float]],
    corrected: bool = False,
) -> Figure:
    series = [final_line(name, es, [regret[f"{name}/{e:g}"] for e in es]) for name in names]
    series += [
        Series(f"{name}, printed", list(_EPSILONS), list(PRINTED[name]), dashed=True)
        for name in names
    ]
    if corrected:
        fixed = [regret[f"corrected/{e:g}"] for e in es]
        series.append(final_line("CoLin, corrected", es, fixed))
    return Figure(
        title,
        "epsilon (smaller is more private)",
        "regret after 10,000 rounds",
        series,
        x_log=True,
        y_log=True,
        kind="points",
        caption="Published noise, which does not deliver its epsilon, in the environment fitted to the "
        "table; bands are 95%.",
    )


TABLE_1 = Reproduction(
    name="wang2020-table-1",
    paper="wang2020",
    title="Table 1: regret at each level of privacy",
    question=(
        "Ten users get recommendations from a system that learns from all of them. How much worse "
        "does it get if their reactions are hidden behind noise?"
    ),
    claim=(
        "Regret falls as epsilon grows; private algorithms have more than those that hide nothing, "
        "local ones more than those with a trusted server; DP-CoLin and DP-GOBLin, which share "
        "between users, have less than DP-LinUCB, which does not."
    ),
    jobs=_table_jobs,
    judge=_judge_table,
)
