"""Pictures of privacy: how a guarantee weakens as one person takes part more often."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from tacit.simulation.plots.style import COLOURS, figure, save_figure


def draw_curve(
    curve: Sequence[tuple[int, float]], path: Path, *, title: str, delta: float
) -> list[Path]:
    """Draw epsilon against the number of rounds one person takes part in."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"picture: expected a .png, .svg or .pdf file, got {path.name!r}")
    shown = [(m, e) for m, e in curve if math.isfinite(e)]
    with figure(6.4, 4.0) as (drawn, axes):
        if shown:
            rounds, values = zip(*shown, strict=True)
            axes.plot(rounds, values, marker="o", color=COLOURS[0])
            axes.set_xscale("log")
            axes.set_yscale("log")
        else:
            axes.text(0.5, 0.5, "no finite epsilon", transform=axes.transAxes, ha="center")
        axes.set_xlabel("rounds one person takes part in")
        axes.set_ylabel(f"epsilon at delta = {delta:g}")
        axes.set_title(title, fontsize=8, loc="left", wrap=True)
        return save_figure(drawn, path.with_suffix(""), (path.suffix[1:],))
