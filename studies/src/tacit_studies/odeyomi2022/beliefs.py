"""Paper 000, Figs. 2 to 5 and the times read off them: whether agents become certain, and when."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tacit_studies.estimates import is_close, summarise
from tacit_studies.odeyomi2022.settings import (
    ALGORITHM_3,
    DOMINANCES,
    HORIZON,
    KNOWN_RUNS,
    PUBLISHED,
    corrected,
    trace_beliefs,
    track,
)
from tacit_studies.reproduction import Figure, Findings, Reproduction, Row, Series
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.verdicts import NOT_REPRODUCED, PARTLY, REPRODUCED


def _find_certain(outcome: Mapping[str, Any]) -> list[float]:
    """Return the rounds at which runs became certain of the state that really dominates."""
    pairs = zip(outcome["time"], outcome["belief"], strict=True)
    return [time for time, belief in pairs if time > 0 and belief > 0.9]


def _is_close_share(hits: int, n: int, known: float) -> bool:
    """Say whether a share is within 5 standard errors, and rounding, of a known one."""
    error = math.sqrt(known * (1 - known) * (1 / n + 1 / KNOWN_RUNS))
    return abs(hits / n - known) <= 5 * error + 0.005


class _Printed(NamedTuple):
    figure: int
    algorithm: int
    state: int
    """The dominant state, counted from 1 as in the paper."""
    iteration: int
    time: int


_PRINTED = (
    _Printed(2, 1, 4, 1, 127),
    _Printed(3, 1, 2, 50, 132),
    _Printed(4, 2, 4, 1, 251),
    _Printed(5, 2, 2, 50, 306),
)
_SOUND = (0.1, 1.0)
"""The epsilons of the corrected algorithms."""


def _judge_beliefs(printed: _Printed, outcomes: Outcomes) -> Findings:
    found = {q: _find_certain(outcomes[f"q{q}"]) for q in DOMINANCES}
    runs = {q: len(outcomes[f"q{q}"]["time"]) for q in DOMINANCES}
    all_runs, hits = sum(runs.values()), sum(len(times) for times in found.values())
    usual = [times for q, times in found.items() if len(times) > runs[q] / 2]
    fits = any(
        np.quantile(times, 0.025) <= printed.time <= np.quantile(times, 0.975) for times in usual
    )
    final = {q: outcomes.summary(f"q{q}", "belief") for q in DOMINANCES}
    fixed = {epsilon: _find_certain(outcomes[f"corrected{epsilon}"]) for epsilon in _SOUND}
    fixed_runs = len(outcomes["corrected1.0"]["time"])
    after = f", after {np.mean(fixed[1.0]):.0f} rounds on average" if fixed[1.0] else ""
    median = f"; median {np.median(np.concatenate(usual)):.0f}" if usual else ""
    rows = [
        Row(
            "round from which all agents are certain",
            str(printed.time),
            f"{hits:,} of {all_runs:,} runs get there{median}",
            agrees=fits,
        ),
        *[
            Row(
                f"runs that become certain, q = {q:g}",
                "",
                f"{len(found[q]):,} of {runs[q]:,}",
                "0 of 1,000",
                agrees=_is_close_share(len(found[q]), runs[q], 0.0),
            )
            for q in DOMINANCES
        ],
        *[
            Row(
                f"final belief in the dominant state, q = {q:g}",
                "1",
                final[q].text(),
                agrees=final[q].mean > 0.99,
            )
            for q in DOMINANCES
        ],
        *[
            Row(
                f"runs that become certain, corrected, epsilon = {epsilon:g}, q = 0.8",
                "",
                f"{len(times):,} of {fixed_runs:,}",
            )
            for epsilon, times in fixed.items()
        ],
    ]
    return outcomes.conclude(
        verdict=REPRODUCED if fits else PARTLY if hits else NOT_REPRODUCED,
        because=(
            f"As published, {hits:,} of {all_runs:,} runs become certain of the dominant state "
            f"within {HORIZON} rounds; the paper prints round {printed.time}. Their belief in "
            f"it ends at {final[0.8].mean:.2f} on average where the state is true in 80% of "
            f"the rounds; a guess is 0.20. Corrected, at epsilon = 1, "
            f"{len(fixed[1.0]) / fixed_runs:.0%} of the runs do{after}."
        ),
        rows=rows,
        figures=[_belief_figure(printed, outcomes)],
    )


def _belief_figure(printed: _Printed, outcomes: Outcomes) -> Figure:
    shown = outcomes["shown"]
    rounds = [float(t) for t in shown["rounds"]]
    series = [
        Series(f"agent {k + 1}, as published, epsilon = 0.1", rounds, list(line))
        for k, line in enumerate(shown["agents"])
    ]
    for key, label in (
        ("shown corrected", "mean of agents, corrected, epsilon = 1"),
        ("shown open", "mean of agents, Algorithm 3, no privacy"),
    ):
        series.append(Series(label, rounds, np.mean(outcomes[key]["agents"], axis=0).tolist()))
    at = [float(printed.time)] * 2
    series.append(Series("certain from here on, in the paper", at, [0.0, 1.0], dashed=True))
    return Figure(
        f"Belief in state {printed.state}, iteration {printed.iteration}",
        "round",
        "belief in the dominant state",
        series,
        caption="One run: three agents, 5 states, the dominant one true with probability q = 0.8.",
    )


def _belief_study(printed: _Printed) -> Reproduction:
    common: dict[str, Any] = {"dominant": printed.state - 1, "horizon": HORIZON}
    runs, letter = Sized(2_000, 200), PUBLISHED[printed.algorithm]
    shown = {
        "shown": letter,
        "shown corrected": corrected(printed.algorithm, 1.0),
        "shown open": ALGORITHM_3,
    }
    return study(
        Sweep(
            "q{dominance}",
            {"dominance": DOMINANCES},
            track,
            **common,
            policy=letter,
            repetitions=runs,
        ),
        Sweep(
            "corrected{epsilon}",
            {"epsilon": _SOUND},
            track,
            **common,
            policy=lambda epsilon: corrected(printed.algorithm, epsilon),
            dominance=0.8,
            repetitions=runs,
        ),
        Sweep(
            "{policy}",
            {"policy": shown},
            trace_beliefs,
            **common,
            dominance=0.8,
            iteration=printed.iteration,
        ),
        judge=partial(_judge_beliefs, printed),
        name=f"odeyomi2022-figure-{printed.figure}",
    )


BELIEFS = tuple(map(_belief_study, _PRINTED))

_SLOWER = {1: 0.23, 2: 0.56}
_KNOWN = {0.6: (0.13, 384), 0.8: (0.55, 334), 1.0: (0.61, 286)}
_LABELS = {
    "3": "Algorithm 3, no privacy",
    "1": "1 as published, epsilon = 0.1",
    "2": "2 as published, epsilon = 0.1",
    "corrected 1": "1 corrected, epsilon = 1",
    "corrected 2": "2 corrected, epsilon = 1 + 1",
}
_POLICIES = {
    "3": ALGORITHM_3,
    "1": PUBLISHED[1],
    "2": PUBLISHED[2],
    "corrected 1": corrected(1, 1.0),
    "corrected 2": corrected(2, 1.0),
}


def _judge_convergence(outcomes: Outcomes) -> Findings:
    times = {key: _find_certain(outcome) for key, outcome in outcomes.items()}
    runs = {key: len(outcome["time"]) for key, outcome in outcomes.items()}
    share = {key: len(times[key]) / runs[key] for key in times}
    rows, slower = [], {}
    for algorithm, printed in _SLOWER.items():
        key = f"{algorithm}/0.8"
        text, fits = f"none of {runs[key]:,} runs is ever certain", False
        if times[key] and times["3/0.8"]:
            ratio = float(np.mean(times[key]) / np.mean(times["3/0.8"])) - 1
            slower[algorithm] = ratio
            text, fits = f"{ratio:+.0%}", abs(ratio - printed) < 0.1
        label = f"Algorithm {algorithm} slower than 3, q = 0.8"
        rows.append(Row(label, f"{printed:+.0%}", text, agrees=fits))
    for q, (known, when) in _KNOWN.items():
        key = f"3/{q}"
        rows.append(
            Row(
                f"Algorithm 3: runs that become certain, q = {q:g}",
                "",
                f"{share[key]:.1%}",
                f"{known:.0%}",
                agrees=_is_close_share(len(times[key]), runs[key], known),
            )
        )
        if len(times[key]) > 1:
            at = summarise(times[key])
            # The independent mean is over those of its runs that got there.
            close = is_close(at, when, known * KNOWN_RUNS, digit=0.5)
            label = f"Algorithm 3: round at which they are, q = {q:g}"
            rows.append(Row(label, "", at.text(), str(when), agrees=close))
    implied = [
        sum(p.time for p in _PRINTED if p.algorithm == a) / 2 / (1 + s) for a, s in _SLOWER.items()
    ]
    open_times = times["3/0.8"]
    rows.append(
        Row(
            "rounds Algorithm 3 needs, from the printed times of 1 and of 2",
            " and ".join(f"{t:.0f}" for t in implied),
            f"{np.mean(open_times):.0f}, q = 0.8" if open_times else "never certain",
            agrees=bool(open_times)
            and all(abs(np.mean(open_times) / t - 1) < 0.1 for t in implied),
        )
    )
    checks = [share[f"{key}/0.8"] > 0.25 for key in ("3", "1", "2")]
    checks += [abs(slower.get(a, np.inf) - printed) < 0.1 for a, printed in _SLOWER.items()]
    return outcomes.conclude(
        checks=checks,
        because=(
            f"Where the dominant state is true in 80% of the rounds, Algorithm 3 is certain of it "
            f"within {HORIZON} rounds in {share['3/0.8']:.0%} of the runs, Algorithms 1 and 2 as "
            f"published in {share['1/0.8']:.1%} and {share['2/0.8']:.1%}"
            + ("" if slower else ", so no slowdown can be measured")
            + f". Corrected, at epsilon = 1: {share['corrected 1/0.8']:.0%} and "
            f"{share['corrected 2/0.8']:.0%}."
        ),
        rows=rows,
        figures=[
            Figure(
                "Runs that become certain of the dominant state within 500 rounds",
                "probability of the dominant state",
                "share of runs",
                [
                    Series(label, [0.0, 1.0, 2.0], [share[f"{key}/{q}"] for q in DOMINANCES])
                    for key, label in _LABELS.items()
                ],
                kind="bar",
                ticks=[f"q = {q:g}" for q in DOMINANCES],
                caption="q is the probability that the dominant state is the true one in a round.",
            )
        ],
    )


CONVERGENCE = study(
    Sweep(
        "{policy}/{dominance}",
        {"policy": _POLICIES, "dominance": DOMINANCES},
        track,
        horizon=HORIZON,
        repetitions=Sized(4_000, 400),
    ),
    judge=_judge_convergence,
    name="odeyomi2022-convergence",
)
