"""Paper 002 (Lu et al.), Theorems 2 and 3: the bounds on GAP's regret beside its regret."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit_studies.lu2022.settings import HORIZON, GraphSetting, graph_settings
from tacit_studies.reproduction import Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import growth_exponent, plot_points, simulate

_ARMS, _GAP, _EPSILON = 12, 0.2, 1.0
_LONG = 10**6
_STRAIGHT = 0.1
_HORIZONS = Sized([10**k for k in range(4, 9)], [10**k for k in range(4, 8)])
_CLIQUES = Sized([1, 2, 3, 4, 6, 12], [1, 3, 12])


def regret_bound(n_arms: int, independence: int, gap: float, epsilon: float, delta: float) -> float:
    """Return the right side of equation (4): with probability 1 - delta, GAP's regret is below it.

    Examples
    --------
    >>> round(regret_bound(n_arms=10, independence=4, gap=0.2, epsilon=0.2, delta=1e-5))
    376317
    """
    phases = math.ceil(math.log2(1 / gap))
    scale = 176 * independence / gap**2 + 32 * independence / (epsilon * gap)
    return scale * math.log(8 * n_arms * phases**2 / delta)


def measure_in_cliques(cliques: int, horizon: int, repetitions: int) -> list[float]:
    """Return GAP's final regrets where twelve arms stand in cliques: as many as are independent."""
    from tacit.arms import GAP, Bernoulli, GraphFeedback
    from tacit.graphs import Graph

    size = _ARMS // cliques
    pairs = [
        (first + i, first + k)
        for first in range(0, _ARMS, size)
        for i, k in itertools.combinations(range(size), 2)
    ]
    means = Bernoulli(means=(*[0.9 - _GAP] * (_ARMS - 1), 0.9))
    graph = Graph.from_edges(np.array(pairs, np.int64).reshape(-1, 2), n_nodes=_ARMS)
    environment = GraphFeedback(environment=means, graph=graph)
    policy = GAP(n_arms=_ARMS, epsilon=_EPSILON, horizon=horizon)
    result = simulate(policy, environment, horizon, repetitions)
    return [float(v) for v in result.final("regret")]


def measure_with_bounds(setting: Sequence[Any], repetitions: int) -> list[tuple[float, float]]:
    """Return GAP's final regret in one of the paper's settings, and the bound for that run's graph."""
    from tacit.arms import GAP
    from tacit.graphs import Graph, independence_number

    _, gap, _, epsilon = place = GraphSetting(*setting)
    environment = place.environment
    K = environment.n_arms
    policy = GAP(n_arms=K, epsilon=epsilon, horizon=HORIZON)
    result = simulate(policy, environment, HORIZON, repetitions)
    found = []
    for repetition, regret in enumerate(result.final("regret")):
        table = environment.table(seed=0, repetition=repetition, horizon=1)
        rows = np.repeat(np.arange(K), np.diff(table.indptr))
        pairs = np.stack([rows, table.indices], axis=1)
        graph = Graph.from_edges(pairs[pairs[:, 0] < pairs[:, 1]], n_nodes=K)
        alpha = independence_number(graph).lower  # ten arms: exact
        found.append((float(regret), regret_bound(K, alpha, gap, epsilon, 1 / HORIZON)))
    return found


def _judge(outcomes: Outcomes) -> Findings:
    Ts, alphas = _HORIZONS.at(outcomes.quick), _CLIQUES.at(outcomes.quick)
    over_time = [outcomes.summary(f"T/{T}") for T in Ts]
    over_alpha = [outcomes.summary(f"alpha/{a}") for a in alphas]
    time_bound = [_expected_bound(3, T) for T in Ts]
    alpha_bound = [_expected_bound(a, _LONG) for a in alphas]
    runs = [pair for i in range(len(graph_settings())) for pair in outcomes[f"paper/{i}"]]
    kept = sum(regret <= bound for regret, bound in runs)
    empty = sum(bound > HORIZON for _, bound in runs)

    # Once every worse arm is gone, a longer horizon only lengthens phases, by their logarithm.
    means = [s.mean for T, s in zip(Ts, over_time, strict=True) if 2 * s.mean / _GAP < T]
    decades = np.diff(means)
    straight = float(decades[-1] / decades[0]) if len(decades) > 1 else math.nan
    slope = growth_exponent(alphas, [s.mean for s in over_alpha])
    bounded = [
        *zip((f"T = 10^{round(math.log10(T))}" for T in Ts), over_time, time_bound, strict=True),
        *zip((f"independence number {a}" for a in alphas), over_alpha, alpha_bound, strict=True),
    ]
    below = all(s.high <= bound for _, s, bound in bounded)
    checks = [kept == len(runs), below, abs(straight - 1) <= _STRAIGHT, slope <= 1.05]
    useful = next((T for T, bound in zip(Ts, time_bound, strict=True) if bound < T * _GAP), None)
    return outcomes.conclude(
        checks=checks,
        because=(
            f"No run is above its bound ({kept:,} of {len(runs):,} in the nine settings), but there the "
            f"bound says nothing: in {empty:,} of them it is above the horizon of {HORIZON:,}. In three "
            f"cliques of four arms it is below what choosing the worse arms throughout would cost "
            + (f"from T = 10^{round(math.log10(useful))} on, " if useful else "at no T tried, ")
            + f"and is {time_bound[-1] / over_time[-1].mean:,.0f} times the regret. Regret is a straight "
            f"line in ln T once all worse arms are gone (the last decade adds {straight:.2f} times what "
            f"the first does), and grows like "
            f"the independence number to the {slope:.2f}."
        ),
        agreement=(
            "A bound agrees if it is above the 95% interval of the mean regret; ln T if the last "
            f"decade adds what the first does, within {100 * _STRAIGHT:.0f}%; the independence number if the "
            "exponent is at most 1.05."
        ),
        rows=[
            Row(
                "runs within (4), nine settings",
                "all but 1 in T",
                f"{kept:,} of {len(runs):,}",
                agrees=checks[0],
            ),
            Row("of these, bound above T", "", f"{empty:,}"),
            Row(
                "order stated after Theorem 3",
                "(α/Δ + α/ε) ln T",
                "(α/Δ² + α/(εΔ)) ln T, by its own formula",
            ),
            Row(
                "what the last decade of T adds, over the first",
                "1",
                f"{straight:.2f}",
                agrees=checks[2],
            ),
            Row(
                "exponent of the independence number", "at most 1", f"{slope:.2f}", agrees=checks[3]
            ),
            *(
                Row(
                    f"regret and bound, {label}",
                    f"below {bound:,.0f}",
                    s.text(),
                    agrees=s.high <= bound,
                )
                for label, s, bound in bounded
            ),
        ],
        figures=[
            plot_points(
                "Regret and its bound over the horizon",
                "horizon T",
                "final regret",
                [
                    Series.of("GAP", Ts, over_time),
                    Series("Theorem 3", [float(T) for T in Ts], time_bound, dashed=True),
                    Series(
                        "the worse arms throughout",
                        [float(T) for T in Ts],
                        [_GAP * T for T in Ts],
                        dashed=True,
                    ),
                ],
                caption=f"Twelve arms in three cliques, smallest gap {_GAP}, epsilon = {_EPSILON:g}.",
            ),
            plot_points(
                "Regret and its bound over the independence number",
                "independence number",
                "final regret",
                [
                    Series.of("GAP", alphas, over_alpha),
                    Series("Theorem 3", [float(a) for a in alphas], alpha_bound, dashed=True),
                ],
                caption=f"Twelve arms in as many equal cliques, T = {_LONG:,}.",
            ),
        ],
    )


def _expected_bound(alpha: int, horizon: int) -> float:
    """Theorem 3: equation (4) at delta = 1/T, and one more."""
    return regret_bound(_ARMS, alpha, _GAP, _EPSILON, 1 / horizon) + 1


THEOREMS = study(
    Sweep(
        "T/{horizon}",
        {"horizon": _HORIZONS},
        measure_in_cliques,
        cliques=3,
        repetitions=Sized(40, 4),
    ),
    Sweep(
        "alpha/{cliques}",
        {"cliques": _CLIQUES},
        measure_in_cliques,
        horizon=_LONG,
        repetitions=Sized(40, 4),
    ),
    Sweep(
        "paper/{setting}",
        {"setting": {i: list(setting) for i, setting in enumerate(graph_settings())}},
        measure_with_bounds,
        repetitions=Sized(200, 20),
    ),
    judge=_judge,
    name="lu2022-theorems",
)
