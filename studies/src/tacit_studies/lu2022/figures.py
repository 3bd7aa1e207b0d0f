"""Paper 002 (Lu et al.): GAP against its rivals, Figures 1 to 3.

The paper prints curves and words, no numbers. The words are claims about who is below whom and what
helps; each is decided by paired differences of final regrets, and counts as decided beyond three standard
errors. Table 1 and the privacy study have files of their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit_studies.lu2022.settings import HORIZON, GraphSetting, described, graph_settings
from tacit_studies.reproduction import (
    NOT_REPRODUCED,
    PARTLY,
    REPRODUCED,
    UNDECIDED,
    Figure,
    Findings,
    Job,
    Reproduction,
    Row,
    Series,
    summarise,
)
from tacit_studies.tools import mean_curves

_LABELS = {
    "gap": "GAP",
    "gapu": "GAPU",
    "aae": "AAE",
    "dpse": "DP-SE",
    "alpha-sample": "AlphaSample",
}
_PRIVATE = ("gap", "gapu", "dpse")
_EXPECTED = {
    (0.05, 0.2, 0.05): (7187, 9408, 7041, 13049, 8165),
    (0.1, 0.2, 0.1): (6812, 8408, 6667, 12076, 8767),
    (0.1, 0.3, 0.1): (5435, 7421, 6671, 12095, 7826),
    (0.2, 0.1, 0.2): (5025, 5669, 3445, 7755, 5614),
}
_EXPECTED_RUNS = 200
_DECIDED = 3.0


class _Varied(NamedTuple):
    """What a figure varies."""

    words: str
    short: str
    value: Callable[[GraphSetting], float]


_VARIED = {
    1: _Varied("the smallest gap", "gap", lambda setting: setting.gap),
    2: _Varied("the edge probability", "p", lambda setting: setting.edge_prob),
    3: _Varied("epsilon", "epsilon", lambda setting: setting.epsilon),
}


class _Claim(NamedTuple):
    """A sentence of the paper, what was measured, and whether it held; None if too close to call."""

    label: str
    measured: str
    held: bool | None


def _settings(figure: int) -> list[GraphSetting]:
    return [setting for setting in graph_settings() if setting.figure == figure]


def _key(setting: GraphSetting, policy: str) -> str:
    return f"{setting.gap:g}/{setting.edge_prob:g}/{setting.epsilon:g}/{policy}"


def _jobs(figure: int, quick: bool) -> list[Job]:
    jobs = []
    for setting in _settings(figure):
        for name in _LABELS:
            private = {"epsilon": setting.epsilon} if name in _PRIVATE else {}
            arguments = {
                "policy": {"name": name, **private},
                "environment": described(setting),
                "horizon": HORIZON,
                "repetitions": 12 if quick else 400,
            }
            jobs.append(Job(_key(setting, name), mean_curves, arguments))
    return jobs


def _judge(figure: int, outcomes: Mapping[str, Any], quick: bool) -> Findings:
    settings, varied = _settings(figure), _VARIED[figure]
    finals = [
        {name: np.asarray(outcomes[_key(s, name)]["final"], float) for name in _LABELS}
        for s in settings
    ]
    claims = _claims(finals, varied)
    held = [claim.label for claim in claims if claim.held]
    failed = [f"{claim.label} ({claim.measured})" for claim in claims if claim.held is False]
    ours = [f"{values['gap'].mean():,.0f}" for values in finals]
    levels = [f"{varied.value(s):g}" for s in settings]
    because = (
        f"GAP's regret is {' / '.join(ours)} at {varied.short} = {' / '.join(levels)}. "
        f"Held: {'; '.join(held) or 'nothing'}. Failed: {'; '.join(failed) or 'nothing'}."
    )
    return Findings(
        verdict=_verdict([claim.held for claim in claims]),
        because=because,
        agreement=(
            "A claim agrees if every comparison is beyond 3 standard errors of the paired "
            "differences; an independent value agrees within 5 standard errors of the "
            "difference."
        ),
        rows=[Row(claim.label, "yes", claim.measured, agrees=claim.held) for claim in claims]
        + _regret_rows(settings, finals, varied),
        figures=[_panel(s, outcomes, varied) for s in settings],
    )


def _claims(finals: Sequence[Mapping[str, NDArray[np.float64]]], varied: _Varied) -> list[_Claim]:
    claims = [
        _always("GAP below DP-SE", [(f["gap"], f["dpse"]) for f in finals]),
        _always("GAP below AAE", [(f["gap"], f["aae"]) for f in finals]),
        _always("GAP below GAPU", [(f["gap"], f["gapu"]) for f in finals]),
        _always("AlphaSample below GAP", [(f["alpha-sample"], f["gap"]) for f in finals]),
    ]
    gap = [f["gap"] for f in finals]
    lead = [f["gap"] - f["alpha-sample"] for f in finals]
    for label, values in (("GAP", gap), ("GAP less AlphaSample", lead)):
        steps = [_below(b, a) for a, b in itertools.pairwise(values)]
        ends = _below(values[-1], values[0])
        words = " to ".join(f"{v.mean():,.0f}" for v in values)
        falls = False if False in steps else ends
        claims.append(_Claim(f"{label} falls with {varied.words}", words, falls))
    return claims


def _always(label: str, pairs: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> _Claim:
    found = [_below(low, high) for low, high in pairs]
    shares = ", ".join(f"{100 * (low.mean() / high.mean() - 1):+.0f}%" for low, high in pairs)
    held = False if False in found else None if None in found else True
    return _Claim(label, f"clearly in {found.count(True)} of {len(found)}: {shares}", held)


def _below(low: NDArray[np.float64], high: NDArray[np.float64]) -> bool | None:
    """Return whether `low` is below `high`, run by run, or None within three standard errors."""
    difference = high - low
    mean = float(difference.mean())
    error = float(difference.std(ddof=1)) / math.sqrt(difference.size)
    return mean > 0 if abs(mean) > _DECIDED * error else None


def _verdict(held: Sequence[bool | None]) -> str:
    if False in held:
        return PARTLY if True in held else NOT_REPRODUCED
    return UNDECIDED if None in held else REPRODUCED


def _regret_rows(
    settings: Sequence[GraphSetting],
    finals: Sequence[Mapping[str, NDArray[np.float64]]],
    varied: _Varied,
) -> list[Row]:
    rows = []
    for setting, values in zip(settings, finals, strict=True):
        expected = _EXPECTED.get((setting.gap, setting.edge_prob, setting.epsilon), ())
        for i, (name, label) in enumerate(_LABELS.items()):
            summary = summarise(values[name].tolist())
            words = f"final regret of {label}, {varied.short} = {varied.value(setting):g}"
            measured = f"{summary.mean:,.0f} ± {summary.error:,.0f}"
            if not expected:
                rows.append(Row(words, "", measured))
                continue
            # DP-SE nearly always makes the same decisions; few runs may show no spread at all.
            error = max(
                summary.error * math.sqrt(1 + summary.n / _EXPECTED_RUNS), 1e-3 * expected[i]
            )
            close = abs(summary.mean - expected[i]) <= 5 * error
            rows.append(Row(words, "", measured, f"{expected[i]:,}", agrees=close))
    return rows


def _panel(setting: GraphSetting, outcomes: Mapping[str, Any], varied: _Varied) -> Figure:
    series = []
    for name, label in _LABELS.items():
        curve = outcomes[_key(setting, name)]
        series.append(Series(label, curve["rounds"], curve["mean"], curve["low"], curve["high"]))
    return Figure(
        f"Regret over time, {varied.short} = {varied.value(setting):g}",
        "round",
        "cumulative regret",
        series,
        caption=f"Smallest gap {setting.gap:g}, edge probability {setting.edge_prob:g}, epsilon = "
        f"{setting.epsilon:g}; a new graph in every run. AAE and AlphaSample are not private; the "
        "paper does not give their constants.",
    )


def _figure(number: int, title: str, question: str, claim: str) -> Reproduction:
    return Reproduction(
        name=f"lu2022-figure-{number}",
        paper="lu2022",
        title=title,
        question=question,
        claim=claim,
        jobs=partial(_jobs, number),
        judge=partial(_judge, number),
    )


_ORDER = "GAP is below DP-SE, AAE and GAPU, and little above AlphaSample; its regret, and its distance to"

FIGURES = (
    _figure(
        1,
        "Figure 1: how far apart the arms are",
        "Choosing among ten options, some of which also show how others would have done: what does "
        "privacy cost, and is it easier if the best options stand out?",
        f"{_ORDER} AlphaSample, falls as the smallest gap grows from 0.05 to 0.2.",
    ),
    _figure(
        2,
        "Figure 2: how much neighbours show",
        "Does a private learner gain if every choice also shows the outcome of more neighbours?",
        f"{_ORDER} AlphaSample, falls as the edge probability grows from 0.1 to 0.3.",
    ),
    _figure(
        3,
        "Figure 3: how strict the privacy is",
        "How much worse are the decisions if each single outcome is better hidden?",
        f"{_ORDER} AlphaSample, falls as epsilon grows from 0.05 to 0.2.",
    ),
)
