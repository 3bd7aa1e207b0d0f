"""How every picture of Tacit looks: colours all readers can tell apart, legible sizes, no clutter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

from tacit.core.files import write_atomically

#: Okabe and Ito's palette, dark first: distinct with any form of colour vision and in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("-", "--", "-.", ":")
#: Nine steps of viridis, evenly spaced to the eye, for maps.
MAP_COLOURS = (
    "#440154",
    "#472d7b",
    "#3b528b",
    "#2c728e",
    "#21918c",
    "#28ae80",
    "#5ec962",
    "#addc30",
    "#fde725",
)

_RC: Any = {
    "figure.dpi": 150,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "svg.hashsalt": "tacit",
    "svg.fonttype": "path",
}


def prepare_drawing() -> None:
    """Import what drawing needs, which takes half a second."""
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_svg
    import matplotlib.figure  # noqa: F401


@contextmanager
def figure(width: float = 7.0, height: float = 4.2, **axes: Any) -> Iterator[tuple[Any, Any]]:
    """Give a figure and its axes in the house style, without a display."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(_RC):
        drawn = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(drawn)
        yield drawn, drawn.subplots(**axes)


def save_figure(drawn: Any, path: Path, formats: tuple[str, ...] = ("png", "svg")) -> list[Path]:
    """Write the figure as `path` with each ending; the same figure gives the same bytes."""
    written = []
    for ending in formats:
        target = path.with_name(f"{path.name}.{ending}")
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending)

        def write(file: Path, ending: str = ending, metadata: Any = metadata) -> None:
            drawn.savefig(file, format=ending, metadata=metadata)

        write_atomically(target, write)
        written.append(target)
    return written


def looks() -> Iterator[dict[str, str]]:
    """Yield colour and dash for one line after another; neither alone tells lines apart."""
    for i, colour in enumerate(cycle(COLOURS)):
        yield {"color": colour, "linestyle": DASHES[i % len(DASHES)]}
