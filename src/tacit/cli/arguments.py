"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.core.files import require_writable

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for the files written.")]
Seed = Annotated[
    int, typer.Option(min=0, help="The same seed gives the same tables and the same result.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes; by default one for each core.")
]
EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="Where jobs run: serial, processes, ray; by default processes if there are cores.",
    ),
]
Address = Annotated[
    str | None, typer.Option(help="A running Ray cluster: host:port, ray://host:port or auto.")
]
Partitions = Annotated[
    int | None,
    typer.Option(
        "--partitions",
        "--pieces",
        min=1,
        help="Play each population (diffusion, dynamics) in so many partitions; the same bytes.",
    ),
]
_MOST = 10**15


def parse_count(text: str | int) -> int:
    """Return a whole number from 1 to 10^15, which may be written as 1e5.

    Examples
    --------
    >>> parse_count("100_000"), parse_count("1e5")
    (100000, 100000)
    """
    try:
        number = float(text)
        count = int(number) if "e" in str(text).lower() else int(text)
        good = number == count and 1 <= count <= _MOST
    except (ValueError, OverflowError):
        good = False
    if not good:
        raise typer.BadParameter(f"expected a whole number from 1 to 10^15, got {text!r}")
    return count


Horizon = Annotated[int, typer.Option(parser=parse_count, metavar="N", help="Rounds.")]
Repetitions = Annotated[
    int, typer.Option(parser=parse_count, metavar="N", help="Independent repetitions.")
]


def require_picture(path: Path | None) -> None:
    """Complain about a picture that cannot be written before the work begins."""
    if path is not None:
        if path.suffix not in (".png", ".svg", ".pdf"):
            raise ValueError(f"--picture: expected a .png, .svg or .pdf file, got '{path}'")
        require_writable(path.parent)
