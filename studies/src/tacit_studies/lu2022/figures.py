"""Paper 002 (Lu et al.): GAP against its rivals, Figures 1 to 3.

The paper prints curves and words, no numbers. The words are claims about who is below whom and what
helps; each is decided by paired differences of final regrets, and counts as decided beyond three standard
errors. Table 1 and the privacy study have files of their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit_studies.estimates import is_close, summarise
from tacit_studies.lu2022.settings import HORIZON, GraphSetting, graph_settings
from tacit_studies.reproduction import Figure, Findings, Row
from tacit_studies.sweep import Outcomes, Sized, Sweep, study
from tacit_studies.tools import curve_of, mean_curves
from tacit_studies.verdicts import NOT_REPRODUCED, PARTLY, REPRODUCED, UNDECIDED

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
"""Means of 200 runs."""
_DECIDED = 3.0
Finals = Mapping[str, NDArray[np.float64]]


class _Varied(NamedTuple):
    """What a figure varies: in words, in short, and a field of its settings."""

    words: str
    short: str
    field: str

    def name(self, setting: GraphSetting) -> str:
        """Return the value in a setting."""
        return f"{getattr(setting, self.field):g}"


_VARIED = {
    1: _Varied("the smallest gap", "gap", "gap"),
    2: _Varied("the edge probability", "p", "edge_prob"),
    3: _Varied("epsilon", "epsilon", "epsilon"),
}


def _settings(figure: int) -> dict[str, GraphSetting]:
    return {
        f"{each.gap:g}/{each.edge_prob:g}/{each.epsilon:g}": each
        for each in graph_settings()
        if each.figure == figure
    }


def _policy(setting: GraphSetting, name: str) -> dict[str, Any]:
    return {"name": name, **({"epsilon": setting.epsilon} if name in _PRIVATE else {})}


def _judge(figure: int, found: Outcomes) -> Findings:
    settings, varied = _settings(figure), _VARIED[figure]
    finals = [
        {name: np.asarray(found[f"{key}/{name}"]["final"], float) for name in _LABELS}
        for key in settings
    ]
    claims = _claims(finals, varied)
    held = [claim.label for claim in claims if claim.agrees]
    failed = [f"{claim.label} ({claim.measured})" for claim in claims if claim.agrees is False]
    ours = [f"{values['gap'].mean():,.0f}" for values in finals]
    return found.conclude(
        verdict=_decide([claim.agrees for claim in claims]),
        because=(
            f"GAP's regret is {' / '.join(ours)} at {varied.short} = "
            f"{' / '.join(map(varied.name, settings.values()))}. "
            f"Held: {'; '.join(held) or 'nothing'}. Failed: {'; '.join(failed) or 'nothing'}."
        ),
        rows=claims + _regret_rows(list(settings.values()), finals, varied),
        figures=[
            Figure(
                f"Regret over time, {varied.short} = {varied.name(setting)}",
                "round",
                "cumulative regret",
                [curve_of(label, found[f"{key}/{name}"]) for name, label in _LABELS.items()],
                caption=f"Smallest gap {setting.gap:g}, edge probability {setting.edge_prob:g}, epsilon = "
                f"{setting.epsilon:g}; a new graph in every run. AAE and AlphaSample are not private; the "
                "paper does not give their constants.",
            )
            for key, setting in settings.items()
        ],
    )


def _claims(finals: Sequence[Finals], varied: _Varied) -> list[Row]:
    """Return the paper's sentences, and whether each held; None if too close to call."""
    claims = []
    for low, high in (("gap", "dpse"), ("gap", "aae"), ("gap", "gapu"), ("alpha-sample", "gap")):
        found = [_is_below(each[low], each[high]) for each in finals]
        held = False if False in found else None if None in found else True
        shares = ", ".join(
            f"{100 * (each[low].mean() / each[high].mean() - 1):+.0f}%" for each in finals
        )
        words = f"clearly in {found.count(True)} of {len(found)}: {shares}"
        claims.append(Row(f"{_LABELS[low]} below {_LABELS[high]}", "yes", words, agrees=held))
    gap = [each["gap"] for each in finals]
    lead = [each["gap"] - each["alpha-sample"] for each in finals]
    for label, values in (("GAP", gap), ("GAP less AlphaSample", lead)):
        steps = [_is_below(b, a) for a, b in itertools.pairwise(values)]
        falls = False if False in steps else _is_below(values[-1], values[0])
        words = " to ".join(f"{v.mean():,.0f}" for v in values)
        claims.append(Row(f"{label} falls with {varied.words}", "yes", words, agrees=falls))
    return claims


def _is_below(low: NDArray[np.float64], high: NDArray[np.float64]) -> bool | None:
    """Return whether `low` is below `high`, run by run, or None within three standard errors."""
    difference = high - low
    mean = float(difference.mean())
    error = float(difference.std(ddof=1)) / math.sqrt(difference.size)
    return mean > 0 if abs(mean) > _DECIDED * error else None


def _decide(held: Sequence[bool | None]) -> str:
    if False in held:
        return PARTLY if True in held else NOT_REPRODUCED
    return UNDECIDED if None in held else REPRODUCED


def _regret_rows(
    settings: Sequence[GraphSetting], finals: Sequence[Finals], varied: _Varied
) -> list[Row]:
    rows = []
    for setting, values in zip(settings, finals, strict=True):
        expected = _EXPECTED.get((setting.gap, setting.edge_prob, setting.epsilon), (None,) * 5)
        for (name, label), known in zip(_LABELS.items(), expected, strict=True):
            summary = summarise(values[name].tolist())
            words = f"final regret of {label}, {varied.short} = {varied.name(setting)}"
            measured = f"{summary.mean:,.0f} ± {summary.error:,.0f}"
            if known is None:
                rows.append(Row(words, "", measured))
                continue
            # DP-SE nearly always makes the same decisions; few runs may show no spread at all.
            close = is_close(summary, known, 200, least=1e-3 * known)
            rows.append(Row(words, "", measured, f"{known:,}", agrees=close))
    return rows


FIGURES = tuple(
    study(
        Sweep(
            "{setting}/{name}",
            {"setting": _settings(figure), "name": list(_LABELS)},
            mean_curves,
            policy=_policy,
            environment=lambda setting: setting.describe_environment(),
            horizon=HORIZON,
            repetitions=Sized(400, 12),
        ),
        judge=partial(_judge, figure),
        name=f"lu2022-figure-{figure}",
    )
    for figure in _VARIED
)
