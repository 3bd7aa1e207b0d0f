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

from tacit_studies.reproduction import (
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    summarise,
    verdict_of,
)
from tacit_studies.tao2022.settings import BETA, BOUND, epsilon_name
from tacit_studies.tools import mean_curves

H = 485
ROUNDS = 10_000
CHANCE = 0.5
#: Mean regret of 20 runs of an independent implementation, rounded, by epsilon and agents.
KNOWN = {
    (0.5, 3_000): 0.496,
    (0.5, 6_000): 0.495,
    (0.5, 10_000): 0.494,
    (1.0, 3_000): 0.493,
    (1.0, 6_000): 0.490,
    (1.0, 10_000): 0.484,
    (2.0, 3_000): 0.481,
    (2.0, 6_000): 0.468,
    (2.0, 10_000): 0.452,
    (math.inf, 3_000): 0.042,
    (math.inf, 6_000): 0.036,
    (math.inf, 10_000): 0.018,
}
KNOWN_CROWDS = {10**6: 0.156, 10**7: 0.069, 10**8: 0.040}
KNOWN_RUNS = 20

Outcomes = Mapping[str, Any]


def _job(
    key: str,
    n_agents: int,
    repetitions: int,
    *,
    n_options: int = 20,
    epsilon: float = 1.0,
    **parameters: Any,
) -> Job:
    policy = {"name": "learning-dynamics", "variant": "published", "engine": "crowd"}
    qualities = np.linspace(1.0, 0.0, n_options).tolist()
    return Job(
        key,
        mean_curves,
        {
            "policy": {**policy, "epsilon": epsilon, **parameters},
            "environment": {"name": "social-options", "qualities": qualities, "n_agents": n_agents},
            "horizon": ROUNDS,
            "repetitions": repetitions,
        },
    )


def _runs(quick: bool) -> int:
    return 3 if quick else 30


def _spread(outcomes: Outcomes, keys: Sequence[str]) -> float:
    """Return the standard deviation of a run, pooled over cells: three runs alone say little."""
    return float(np.sqrt(np.mean([np.var(outcomes[key]["final"], ddof=1) for key in keys])))


def _checked(outcomes: Outcomes, known: Mapping[str, float | None]) -> Row:
    """Return how many cells are within 5 standard errors of the known mean of 20 runs."""
    spread = _spread(outcomes, list(known))
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
    return Row(
        "regrets that agree with an independent implementation",
        "",
        f"{sum(close)} of {len(close)}",
        f"{len(close)} of {len(close)}",
        agrees=all(close),
    )


def _expected(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


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


def _bounded(final: Sequence[float]) -> bool:
    return float(np.mean(final)) <= BOUND


def _says(holds: bool) -> str:
    return f"at most {BOUND:.2f}" if holds else f"above {BOUND:.2f}"


def _curve(outcomes: Outcomes, key: str, label: str) -> Series:
    found = outcomes[key]
    return Series(label, found["rounds"], found["mean"], found["low"], found["high"])


def _ends(outcomes: Outcomes, keys: Sequence[str], xs: Sequence[float], label: str) -> Series:
    return Series.of(label, xs, [summarise(outcomes[key]["final"]) for key in keys])


def _level(y: float, xs: Sequence[float], label: str) -> Series:
    return Series(label, [float(xs[0]), float(xs[-1])], [y, y], dashed=True)


def _bound(xs: Sequence[float]) -> Series:
    return _level(BOUND, xs, "the paper's bound 6 delta")


def _convergence(title: str, series: list[Series], caption: str = "") -> Figure:
    return Figure(
        title,
        "round",
        "average regret so far",
        [*series, _bound(series[0].x)],
        caption=caption or "A population that learns nothing stays at 0.5.",
    )


def _mean(outcomes: Outcomes, key: str) -> float:
    return float(np.mean(outcomes[key]["final"]))


_SIZES = [3_000, 6_000, 10_000]


def _sizes(quick: bool) -> list[int]:
    """Return the numbers of agents; only Fig. 2 compares them at quick size."""
    return _SIZES[-1:] if quick else _SIZES


def _few_and_many(quick: bool) -> list[int]:
    return [_SIZES[0], _SIZES[-1]] if quick else _SIZES


_GROWTHS = {"log": "g(N) = ln^2 N", "root": "g(N) = sqrt N"}


def _crowds(quick: bool) -> list[int]:
    return [10**6, 10**8] if quick else [10**5, 10**6, 10**7, 10**8]


def _root_tokens(n_agents: int) -> int:
    return math.ceil(H * math.sqrt(n_agents))


#: In so large a crowd the noise of messages averages out, as if each token were flipped anew.
_ANEW, _ANEW_TOKENS, _ANEW_TIMES = 10**10, math.ceil(H * math.log(10_000) ** 2), (1, 32)


def _agents_jobs(quick: bool) -> list[Job]:
    n, sizes = _runs(quick), _few_and_many(quick)
    jobs = [_job(f"log-{N}", N, n) for N in sizes]
    jobs += [_job(f"root-{N}", N, n, tokens=_root_tokens(N)) for N in (*sizes, *_crowds(quick))]
    return jobs + [
        _job(f"anew-{times}", _ANEW, n, tokens=times * _ANEW_TOKENS) for times in _ANEW_TIMES
    ]


def _judge_agents(outcomes: Outcomes, quick: bool) -> Findings:
    sizes, crowds = _few_and_many(quick), _crowds(quick)
    order, bounds, rows, figures = True, True, [], []
    known: dict[str, float | None] = {f"log-{N}": KNOWN[1.0, N] for N in sizes}
    known |= {f"root-{N}": KNOWN_CROWDS.get(N) for N in crowds}
    for g, words in _GROWTHS.items():
        order &= _falls(outcomes, [f"{g}-{N}" for N in sizes])
        for N in sizes:
            final = outcomes[f"{g}-{N}"]["final"]
            claimed = N >= 6_000
            bounds &= _bounded(final) == claimed
            rows.append(
                Row(
                    f"N = {N:,}, {words}",
                    _says(claimed),
                    summarise(final).text(),
                    _expected(known.get(f"{g}-{N}")),
                    agrees=_bounded(final) == claimed,
                )
            )
        curves = [_curve(outcomes, f"{g}-{N}", f"N = {N:,}") for N in sizes]
        figures.append(_convergence(f"Fig. 2: more agents, {words}", curves))
    rows += [
        Row(
            f"N = {N:,}, {_GROWTHS['root']}",
            "",
            summarise(outcomes[f"root-{N}"]["final"]).text(),
            _expected(known[f"root-{N}"]),
        )
        for N in crowds
    ]
    rows += [
        Row(
            f"as if each token were flipped anew (not private): N = 10^{math.log10(_ANEW):.0f} agents, "
            f"so that flips average out, {times * _ANEW_TOKENS:,} tokens of each",
            "",
            summarise(outcomes[f"anew-{times}"]["final"]).text(),
        )
        for times in _ANEW_TIMES
    ]
    rows.append(Row("g(N) that Theorem 5.2 needs", "sufficiently large", f"10^{_needed():.0f}"))
    rows.append(_checked(outcomes, known))
    everybody = [*sizes, *crowds]
    ends = _ends(
        outcomes, [f"root-{N}" for N in everybody], everybody, "epsilon = 1, g(N) = sqrt N"
    )
    figures.append(
        Figure(
            "How many agents it takes",
            "agents N",
            "average regret after 10,000 rounds",
            [ends, _bound(everybody), _level(CHANCE, everybody, "nothing learnt")],
            x_log=True,
            kind="points",
        )
    )
    few, most = _mean(outcomes, "log-3000"), _mean(outcomes, "log-10000")
    met = {N: _bounded(outcomes[f"root-{N}"]["final"]) for N in everybody}
    enough = min((N for N in everybody if met[N]), default=math.inf)
    lacking = max((N for N in everybody if not met[N]), default=0)
    return Findings(
        verdict=verdict_of([order, bounds]),
        because=(
            f"Regret {'falls' if order else 'does not fall'} with the number of agents, from "
            f"{few:.3f} at 3,000 to {most:.3f} at 10,000 where learning nothing gives 0.5; the "
            f"claims about the bound {BOUND:.2f} {'hold' if bounds else 'do not hold'}: "
            f"{lacking:,} agents miss it, {enough:,} meet it."
        ),
        agreement=(
            "A claim about the bound agrees if the mean is on the side of it that the paper "
            "says; an independent value agrees within 5 standard errors of the difference."
        ),
        rows=rows,
        figures=figures,
    )


def _needed() -> float:
    """Return log10 of the right-hand side of (11) without ln N: 20 options, epsilon 1."""
    M, mu, delta = 20, 6.7e-5, BOUND / 6
    c = 4 * M * (2 * M + 1) / (mu * (1 - BETA)) / math.tanh(0.25)
    return 2 * math.log10(c / delta) + 2 * math.log(5) / delta**2 * math.log10(M)


_OPTIONS = (10, 20, 30)


def _options_jobs(quick: bool) -> list[Job]:
    n = _runs(quick)
    return [_job(f"{N}-{M}", N, n, n_options=M) for N in _sizes(quick) for M in _OPTIONS]


def _judge_options(outcomes: Outcomes, quick: bool) -> Findings:
    sizes, options = _sizes(quick), _OPTIONS
    order, bounds, rows = True, True, []
    for N in sizes:
        order &= _falls(outcomes, [f"{N}-{M}" for M in reversed(options)])
        for M in options:
            final = outcomes[f"{N}-{M}"]["final"]
            claimed = (N, M) not in ((3_000, 20), (3_000, 30), (6_000, 30))
            bounds &= _bounded(final) == claimed
            rows.append(
                Row(
                    f"N = {N:,}, {M} options",
                    _says(claimed),
                    summarise(final).text(),
                    _expected(KNOWN[1.0, N] if M == 20 else None),
                    agrees=_bounded(final) == claimed,
                )
            )
    rows.append(_checked(outcomes, {f"{N}-20": KNOWN[1.0, N] for N in sizes}))
    N = sizes[-1]
    means = [_mean(outcomes, f"{N}-{M}") for M in options]
    curves = [_curve(outcomes, f"{N}-{M}", f"{M} options") for M in options]
    ends = [_ends(outcomes, [f"{n}-{M}" for M in options], options, f"N = {n:,}") for n in sizes]
    return Findings(
        verdict=verdict_of([order, bounds]),
        because=(
            f"Regret {'grows' if order else 'does not grow'} with the number of options, among "
            f"{N:,} agents from {means[0]:.3f} with 10 to {means[-1]:.3f} with 30; the bound "
            f"{BOUND:.2f}, which the paper sees hold there for up to 30, "
            f"{'holds where it says' if bounds else 'does not hold where it says'}."
        ),
        agreement=(
            "A claim about the bound agrees if the mean is on the side of it that the paper "
            "says; an independent value agrees within 5 standard errors of the difference."
        ),
        rows=rows,
        figures=[
            _convergence(f"Fig. 3: more options, N = {N:,}", curves),
            Figure(
                "Regret against the number of options",
                "options M",
                "average regret after 10,000 rounds",
                [*ends, _bound(options), _level(CHANCE, options, "nothing learnt")],
                kind="points",
            ),
        ],
    )


def _epsilons(quick: bool) -> list[float]:
    return [0.5, 2.0, math.inf] if quick else [0.5, 1.0, 1.5, 2.0, math.inf]


def _budget_jobs(quick: bool) -> list[Job]:
    n = _runs(quick)
    return [_job(f"{N}-{e:g}", N, n, epsilon=e) for N in _sizes(quick) for e in _epsilons(quick)]


def _judge_budget(outcomes: Outcomes, quick: bool) -> Findings:
    sizes, epsilons = _sizes(quick), _epsilons(quick)
    order, bounds, rows = True, True, []
    for N in sizes:
        order &= _falls(outcomes, [f"{N}-{e:g}" for e in epsilons])
        for e in epsilons:
            final = outcomes[f"{N}-{e:g}"]["final"]
            # Of 6,000 agents the text says nothing.
            claimed = {3_000: e > 1.5, 10_000: True}.get(N)
            met = None if claimed is None else _bounded(final) == claimed
            bounds &= met is not False
            rows.append(
                Row(
                    f"N = {N:,}, {epsilon_name(e)}",
                    "" if claimed is None else _says(claimed),
                    summarise(final).text(),
                    _expected(KNOWN.get((e, N))),
                    agrees=met,
                )
            )
    N = sizes[-1]
    plain, two = _mean(outcomes, f"{N}-inf"), _mean(outcomes, f"{N}-2")
    near = two <= 2 * plain
    rows.append(
        Row(
            f"N = {N:,}: epsilon = 2 against not private",
            "very close",
            f"{two:.3f} against {plain:.3f}",
            agrees=near,
        )
    )
    private = {f"{N}-{e:g}": KNOWN.get((e, N)) for N in sizes for e in epsilons[:-1]}
    rows.append(_checked(outcomes, private))
    rows.append(
        replace(
            _checked(outcomes, {f"{N}-inf": KNOWN[math.inf, N] for N in sizes}),
            label="the same, not private",
        )
    )
    curves = [_curve(outcomes, f"{N}-{e:g}", epsilon_name(e)) for e in epsilons]
    bars = [
        _ends(outcomes, [f"{n}-{e:g}" for e in epsilons], range(len(epsilons)), f"N = {n:,}")
        for n in sizes
    ]
    return Findings(
        verdict=verdict_of([order, bounds and near]),
        because=(
            f"Less privacy {'means' if order else 'does not mean'} less regret, but among {N:,} "
            f"agents it is {two:.3f} at epsilon = 2 and {plain:.3f} without privacy, "
            f"{'close as claimed' if near else 'not close'}; the claims about the bound "
            f"{BOUND:.2f} {'hold' if bounds else 'do not hold'}."
        ),
        agreement=(
            "A claim about the bound agrees if the mean is on the side of it that the paper "
            "says, very close means at most twice the regret; an independent value agrees "
            "within 5 standard errors of the difference."
        ),
        rows=rows,
        figures=[
            _convergence(f"Fig. 4: less privacy, N = {N:,}", curves),
            Figure(
                "What privacy costs",
                "",
                "average regret after 10,000 rounds",
                bars,
                kind="bar",
                ticks=[epsilon_name(e) for e in epsilons],
                caption=f"The paper's bound is {BOUND:.2f}; nothing learnt is 0.5.",
            ),
        ],
    )


FIGURES = (
    Reproduction(
        name="tao2022-figure-2",
        paper="tao2022",
        title="Fig. 2: more agents",
        question=(
            "People tell each other, through noise, which option they like, and follow what seems "
            "popular. Do more people find the best option better?"
        ),
        claim=(
            "Regret falls with the number of agents, and from 6,000 agents on stays below "
            "6 delta = 0.12 at epsilon = 1, whether they send ln^2 N or sqrt N messages."
        ),
        jobs=_agents_jobs,
        judge=_judge_agents,
    ),
    Reproduction(
        name="tao2022-figure-3",
        paper="tao2022",
        title="Fig. 3: more options",
        question="Is it harder to agree on the best of many options than on the best of few?",
        claim=(
            "Regret grows with the number of options; 10,000 agents keep it below 0.12 for up to "
            "30 options at epsilon = 1, fewer agents only for fewer options."
        ),
        jobs=_options_jobs,
        judge=_judge_options,
    ),
    Reproduction(
        name="tao2022-figure-4",
        paper="tao2022",
        title="Fig. 4: privacy against learning",
        question="How much worse do people learn from each other if all they say is randomised?",
        claim=(
            "Regret grows as epsilon falls; 10,000 agents keep it below 0.12 from 0.5 to 2, and "
            "from 1 to 2 it is very close to that without privacy."
        ),
        jobs=_budget_jobs,
        judge=_judge_budget,
    ),
)
