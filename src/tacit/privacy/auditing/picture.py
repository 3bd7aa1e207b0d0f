"""Draw what an audit saw."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tacit.privacy.auditing.core import AuditResult

_FEW = 40
_LEFT, _RIGHT = "#0072b2", "#d55e00"


def draw(result: AuditResult, path: str | os.PathLike[str]) -> None:
    """Draw the score's distribution under both inputs; outputs of the event are filled."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots()
    sides = (
        ("left", _LEFT, result.left_scores, result.left_marked),
        ("right", _RIGHT, result.right_scores, result.right_marked),
    )
    both = np.concatenate([result.left_scores, result.right_scores])
    values = np.unique(both)
    if both.dtype == np.uint64 or len(values) <= _FEW:
        _bars(axes, sides, values)
    else:
        low, high = np.quantile(both, [0.001, 0.999], method="nearest")
        if both.max() - both.min() < 4 * (high - low):
            low, high = both.min(), both.max()
        bins = np.linspace(low, high if high > low else low + 1.0, 101)
        for name, colour, scores, marked in sides:
            weight = np.full(len(scores), 1 / len(scores))
            inside = np.clip(scores, bins[0], bins[-1])
            axes.hist(inside, bins, weights=weight, histtype="step", color=colour, label=name)
            axes.hist(inside[marked], bins, weights=weight[marked], color=colour, alpha=0.35)
    axes.set_yscale("log")
    axes.set_ylabel("share of runs")
    axes.set_xlabel(textwrap.fill(f"filled: {result.event}", 90))
    axes.set_title(
        f"claimed {result.epsilon:g}, at least {result.lower_bound:.3g}: {result.verdict}"
    )
    axes.legend(title="input")
    figure.savefig(path, dpi=150)


def _bars(axes: Any, sides: Any, values: Any) -> None:
    """Draw discrete outputs, the most frequent first if there are too many."""
    counts = [
        np.bincount(np.searchsorted(values, scores), minlength=len(values))
        for _, _, scores, _ in sides
    ]
    shown = np.sort(np.argsort(-(counts[0] + counts[1]), kind="stable")[:_FEW])
    for i, (name, colour, scores, marked) in enumerate(sides):
        filled = np.isin(values[shown], scores[marked])
        bars = axes.bar(
            np.arange(len(shown)) + 0.4 * i,
            counts[i][shown] / max(1, len(scores)),
            width=0.4,
            color=colour,
            label=name,
        )
        for bar, fill in zip(bars, filled, strict=True):
            bar.set_alpha(1.0 if fill else 0.35)
    numeric = values.dtype == np.float64
    labels = [f"{values[k]:.4g}" if numeric else str(k) for k in shown]
    axes.set_xticks(np.arange(len(shown)) + 0.2, labels, rotation=90 if len(shown) > 10 else 0)
