"""Paper 001 (Tao et al.): learning dynamics in a social network, Figs. 2 to 4.

The paper's constants throughout: beta 0.505, mu 6.7e-5, h = 485, 10,000 rounds, qualities evenly
spaced from 1 to 0, so that a population that learns nothing has regret 0.5. The caption of Fig. 2 says
20 options and its text says 10; the caption is followed, and Fig. 3 has both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tacit_studies.reproduction import Figure, Findings, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tao2022.settings import BETA, BOUND, crowd, name_epsilon, options
from tacit_studies.tools import curve_of, mean_curves, plot_bars, plot_points

H = 485
ROUNDS = 10_000
CHANCE = 0.5
_AGENTS = (3_000, 6_000, 10_000)
_INDEPENDENT = {
    0.5: (0.496, 0.495, 0.494),
    1.0: (0.493, 0.490, 0.484),
    2.0: (0.481, 0.468, 0.452),
    math.inf: (0.042, 0.036, 0.018),
}
KNOWN = {
    (e, N): known
    for e, values in _INDEPENDENT.items()
    for N, known in zip(_AGENTS, values, strict=True)
}
"""Mean regret of 20 runs of an independent implementation, rounded, by epsilon and agents."""
KNOWN_CROWDS = {10**6: 0.156, 10**7: 0.069, 10**8: 0.040}
KNOWN_RUNS = 20
_AFTER = "average regret after 10,000 rounds"


_RUN: dict[str, Any] = {"horizon": ROUNDS, "repetitions": Sized(30, 3)}


def _published(epsilon: float = 1.0, **parameters: Any) -> dict[str, Any]:
    return crowd(variant="published", epsilon=epsilon, **parameters)


def _options(n_agents: int, n_options: int = 20) -> dict[str, Any]:
    return options(n_agents, np.linspace(1.0, 0.0, n_options).tolist())


def _check_known(outcomes: Outcomes, known: Mapping[str, float | None]) -> Row:
    """Return how many cells are within 5 standard errors of the known mean of 20 runs."""
    # The standard deviation of a run, pooled over cells: three runs alone say little.
    spread = float(np.sqrt(np.mean([np.var(outcomes[key]["final"], ddof=1) for key in known])))
    close = []
    for key, value in known.items():
        if value is None:
            continue
        final = outcomes[key]["final"]
        deviation = float(np.std(final, ddof=1))
        if len(final) < 10:
            deviation = max(spread, deviation)
        error = deviation * math.sqrt(1 / len(final) + 1 / KNOWN_RUNS)
        close.append(abs(float(np.mean(final)) - value) <= 5 * error + 0.0005)
    n = len(close)
    label = "regrets that agree with an independent implementation"
    return Row(label, "", f"{sum(close)} of {n}", f"{n} of {n}", agrees=all(close))


def _falls(outcomes: Outcomes, keys: Sequence[str]) -> bool:
    """Return whether regret falls from the first to the last key, and no step speaks against it.

    Repetitions are paired. The whole way must be down by 2 standard errors, no step up by 5.
    """

    def step(a: str, b: str) -> tuple[float, float]:
        gap = np.subtract(outcomes[a]["final"], outcomes[b]["final"])
        return float(gap.mean()), float(gap.std(ddof=1) / math.sqrt(gap.size))

    whole, error = step(keys[0], keys[-1])
    steps = [step(a, b) for a, b in itertools.pairwise(keys)]
    return whole > 2 * error and all(gap > -5 * error for gap, error in steps)


def _mean(outcomes: Outcomes, key: str) -> float:
    return float(np.mean(outcomes[key]["final"]))


def _bound_row(
    outcomes: Outcomes, label: str, key: str, claimed: bool | None, known: float | None
) -> Row:
    """Return a cell beside the bound, which it is claimed to meet or not; of some nothing is said."""
    met = None if claimed is None else (_mean(outcomes, key) <= BOUND) == claimed
    said = "" if claimed is None else f"{'at most' if claimed else 'above'} {BOUND:.2f}"
    expected = "" if known is None else f"{known:.3f}"
    return Row(label, said, outcomes.text(key, "final"), expected, agrees=met)


def _level(y: float, xs: Sequence[float], label: str) -> Series:
    return Series(label, [float(xs[0]), float(xs[-1])], [y, y], dashed=True)


def _levels(xs: Sequence[float]) -> list[Series]:
    return [_level(BOUND, xs, "the paper's bound 6 delta"), _level(CHANCE, xs, "nothing learnt")]


def _convergence(title: str, outcomes: Outcomes, curves: Mapping[str, str]) -> Figure:
    """Return regret over time; `curves` are keys by label."""
    series = [curve_of(label, outcomes[key]) for label, key in curves.items()]
    return Figure(
        title,
        "round",
        "average regret so far",
        [*series, _levels(series[0].x)[0]],
        caption="A population that learns nothing stays at 0.5.",
    )


_SIZES = Sized(_AGENTS, _AGENTS[-1:])
"""Only Fig. 2 compares numbers of agents at quick size."""
_FEW_AND_MANY = Sized(_AGENTS, (_AGENTS[0], _AGENTS[-1]))
_CROWDS = Sized((10**5, 10**6, 10**7, 10**8), (10**6, 10**8))
_EVERYBODY = Sized((*_FEW_AND_MANY.full, *_CROWDS.full), (*_FEW_AND_MANY.quick, *_CROWDS.quick))
_GROWTHS = {"log": "g(N) = ln^2 N", "root": "g(N) = sqrt N"}
_ANEW, _ANEW_TOKENS, _ANEW_TIMES = 10**10, math.ceil(H * math.log(10_000) ** 2), (1, 32)
"""In so large a crowd the noise of messages averages out, as if each token were flipped anew."""


def _judge_agents(outcomes: Outcomes) -> Findings:
    sizes, crowds, everybody = (
        each.at(outcomes.quick) for each in (_FEW_AND_MANY, _CROWDS, _EVERYBODY)
    )
    known: dict[str, float | None] = {f"log-{N}": KNOWN[1.0, N] for N in sizes}
    known |= {f"root-{N}": KNOWN_CROWDS.get(N) for N in crowds}
    order = all(_falls(outcomes, [f"{g}-{N}" for N in sizes]) for g in _GROWTHS)
    rows = [
        _bound_row(outcomes, f"N = {N:,}, {words}", f"{g}-{N}", N >= 6_000, known.get(f"{g}-{N}"))
        for g, words in _GROWTHS.items()
        for N in sizes
    ]
    bounds = all(row.agrees for row in rows)
    rows += [
        _bound_row(
            outcomes, f"N = {N:,}, {_GROWTHS['root']}", f"root-{N}", None, known[f"root-{N}"]
        )
        for N in crowds
    ]
    rows += [
        Row(
            f"as if each token were flipped anew (not private): N = 10^{math.log10(_ANEW):.0f} agents, "
            f"so that flips average out, {times * _ANEW_TOKENS:,} tokens of each",
            "",
            outcomes.text(f"anew-{times}", "final"),
        )
        for times in _ANEW_TIMES
    ]
    rows.append(Row("g(N) that Theorem 5.2 needs", "sufficiently large", f"10^{_needed():.0f}"))
    rows.append(_check_known(outcomes, known))
    ends = outcomes.line("epsilon = 1, g(N) = sqrt N", everybody, "root-{}", "final")
    few, most = _mean(outcomes, "log-3000"), _mean(outcomes, "log-10000")
    met = {N: _mean(outcomes, f"root-{N}") <= BOUND for N in everybody}
    enough = min((N for N in everybody if met[N]), default=math.inf)
    lacking = max((N for N in everybody if not met[N]), default=0)
    return outcomes.conclude(
        checks=[order, bounds],
        because=(
            f"Regret {'falls' if order else 'does not fall'} with the number of agents, from "
            f"{few:.3f} at 3,000 to {most:.3f} at 10,000 where learning nothing gives 0.5; the "
            f"claims about the bound {BOUND:.2f} {'hold' if bounds else 'do not hold'}: "
            f"{lacking:,} agents miss it, {enough:,} meet it."
        ),
        rows=rows,
        figures=[
            *(
                _convergence(
                    f"Fig. 2: more agents, {words}",
                    outcomes,
                    {f"N = {N:,}": f"{g}-{N}" for N in sizes},
                )
                for g, words in _GROWTHS.items()
            ),
            plot_points(
                "How many agents it takes", "agents N", _AFTER, [ends, *_levels(everybody)], log="x"
            ),
        ],
    )


def _needed() -> float:
    """Return log10 of the right-hand side of (11) without ln N: 20 options, epsilon 1."""
    M, mu, delta = 20, 6.7e-5, BOUND / 6
    c = 4 * M * (2 * M + 1) / (mu * (1 - BETA)) / math.tanh(0.25)
    return 2 * math.log10(c / delta) + 2 * math.log(5) / delta**2 * math.log10(M)


_NUMBERS = (10, 20, 30)
"""Of options."""


def _judge_options(outcomes: Outcomes) -> Findings:
    sizes = _SIZES.at(outcomes.quick)
    order = all(_falls(outcomes, [f"{N}-{M}" for M in reversed(_NUMBERS)]) for N in sizes)
    rows = [
        _bound_row(
            outcomes,
            f"N = {N:,}, {M} options",
            f"{N}-{M}",
            (N, M) not in ((3_000, 20), (3_000, 30), (6_000, 30)),
            KNOWN[1.0, N] if M == 20 else None,
        )
        for N in sizes
        for M in _NUMBERS
    ]
    bounds = all(row.agrees for row in rows)
    rows.append(_check_known(outcomes, {f"{N}-20": KNOWN[1.0, N] for N in sizes}))
    N = sizes[-1]
    return outcomes.conclude(
        checks=[order, bounds],
        because=(
            f"Regret {'grows' if order else 'does not grow'} with the number of options, among "
            f"{N:,} agents from {_mean(outcomes, f'{N}-10'):.3f} with 10 to "
            f"{_mean(outcomes, f'{N}-30'):.3f} with 30; the bound "
            f"{BOUND:.2f}, which the paper sees hold there for up to 30, "
            f"{'holds where it says' if bounds else 'does not hold where it says'}."
        ),
        rows=rows,
        figures=[
            _convergence(
                f"Fig. 3: more options, N = {N:,}",
                outcomes,
                {f"{M} options": f"{N}-{M}" for M in _NUMBERS},
            ),
            plot_points(
                "Regret against the number of options",
                "options M",
                _AFTER,
                [
                    *(outcomes.line(f"N = {n:,}", _NUMBERS, f"{n}-{{}}", "final") for n in sizes),
                    *_levels(_NUMBERS),
                ],
                log="",
            ),
        ],
    )


_EPSILONS = Sized((0.5, 1.0, 1.5, 2.0, math.inf), (0.5, 2.0, math.inf))


def _judge_budget(outcomes: Outcomes) -> Findings:
    sizes, epsilons = _SIZES.at(outcomes.quick), _EPSILONS.at(outcomes.quick)
    order = all(_falls(outcomes, [f"{N}-{e:g}" for e in epsilons]) for N in sizes)
    rows = [
        _bound_row(
            outcomes,
            f"N = {N:,}, {name_epsilon(e)}",
            f"{N}-{e:g}",
            # Of 6,000 agents the text says nothing.
            {3_000: e > 1.5, 10_000: True}.get(N),
            KNOWN.get((e, N)),
        )
        for N in sizes
        for e in epsilons
    ]
    bounds = not any(row.agrees is False for row in rows)
    N = sizes[-1]
    plain, two = _mean(outcomes, f"{N}-inf"), _mean(outcomes, f"{N}-2")
    near = two <= 2 * plain
    label = f"N = {N:,}: epsilon = 2 against not private"
    rows.append(Row(label, "very close", f"{two:.3f} against {plain:.3f}", agrees=near))
    private = {f"{N}-{e:g}": KNOWN.get((e, N)) for N in sizes for e in epsilons[:-1]}
    rows.append(_check_known(outcomes, private))
    open_ = _check_known(outcomes, {f"{N}-inf": KNOWN[math.inf, N] for N in sizes})
    rows.append(replace(open_, label="the same, not private"))
    return outcomes.conclude(
        checks=[order, bounds and near],
        because=(
            f"Less privacy {'means' if order else 'does not mean'} less regret, but among {N:,} "
            f"agents it is {two:.3f} at epsilon = 2 and {plain:.3f} without privacy, "
            f"{'close as claimed' if near else 'not close'}; the claims about the bound "
            f"{BOUND:.2f} {'hold' if bounds else 'do not hold'}."
        ),
        rows=rows,
        figures=[
            _convergence(
                f"Fig. 4: less privacy, N = {N:,}",
                outcomes,
                {name_epsilon(e): f"{N}-{e:g}" for e in epsilons},
            ),
            plot_bars(
                "What privacy costs",
                _AFTER,
                map(name_epsilon, epsilons),
                {
                    f"N = {n:,}": [outcomes.summary(f"{n}-{e:g}", "final") for e in epsilons]
                    for n in sizes
                },
                caption=f"The paper's bound is {BOUND:.2f}; nothing learnt is 0.5.",
            ),
        ],
    )


FIGURES = (
    study(
        Sweep(
            "log-{n_agents}",
            {"n_agents": _FEW_AND_MANY},
            mean_curves,
            policy=_published(),
            environment=_options,
            **_RUN,
        ),
        Sweep(
            "root-{n_agents}",
            {"n_agents": _EVERYBODY},
            mean_curves,
            policy=lambda n_agents: _published(tokens=math.ceil(H * math.sqrt(n_agents))),
            environment=_options,
            **_RUN,
        ),
        Sweep(
            "anew-{times}",
            {"times": _ANEW_TIMES},
            mean_curves,
            policy=lambda times: _published(tokens=times * _ANEW_TOKENS),
            environment=_options(_ANEW),
            **_RUN,
        ),
        judge=_judge_agents,
        name="tao2022-figure-2",
    ),
    study(
        Sweep(
            "{n_agents}-{n_options}",
            {"n_agents": _SIZES, "n_options": _NUMBERS},
            mean_curves,
            policy=_published(),
            environment=_options,
            **_RUN,
        ),
        judge=_judge_options,
        name="tao2022-figure-3",
    ),
    study(
        Sweep(
            "{n_agents}-{epsilon:g}",
            {"n_agents": _SIZES, "epsilon": _EPSILONS},
            mean_curves,
            policy=_published,
            environment=_options,
            **_RUN,
        ),
        judge=_judge_budget,
        name="tao2022-figure-4",
    ),
)
