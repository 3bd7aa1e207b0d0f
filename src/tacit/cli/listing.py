"""``tacit policies`` and ``tacit environments``: what there is."""

from __future__ import annotations

import typer

from tacit.cli.arguments import Json
from tacit.cli.output import show

__all__ = ["app"]

app = typer.Typer()


@app.command()
def policies(as_json: Json = False) -> None:
    """List the policies: setting, privacy, paper.

    Example: `tacit policies`
    """
    from tacit.registry import policies as known

    rows = [
        {
            "name": name,
            "setting": kind.setting,
            "does": kind.summary,
            "protects": kind.protects,
            "paper": kind.paper,
        }
        for name, kind in known().items()
    ]
    show(rows, as_json)


@app.command()
def environments(as_json: Json = False) -> None:
    """List the environments that policies can be tried in.

    Example: `tacit environments`
    """
    from tacit.registry import environments

    rows = [
        {"name": name, "setting": kind.setting, "is": kind.summary}
        for name, kind in environments().items()
    ]
    show(rows, as_json)
