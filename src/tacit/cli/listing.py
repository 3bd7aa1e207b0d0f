"""``tacit policies`` and ``tacit environments``: what there is, and what one of them takes."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from tacit.cli.arguments import Json
from tacit.cli.output import show

app = typer.Typer()

Name = Annotated[
    str | None, typer.Argument(help="One of them, or module:Name: tells its parameters.")
]


@app.command()
def policies(name: Name = None, as_json: Json = False) -> None:
    """List the policies: setting, privacy, paper; with a name, what that one takes.

    With a name and --json, prints the JSON schema of its parameters.

    Example: `tacit policies klucb-cf`
    """
    from tacit.core.registry import policies as known
    from tacit.core.registry import policy_named

    if name is not None:
        _tell(policy_named(name), as_json)
        return
    rows = [
        {
            "name": each,
            "setting": kind.setting,
            "does": kind.summary,
            "protects": kind.protects,
            "paper": kind.paper,
        }
        for each, kind in known().items()
    ]
    show(rows, as_json)


@app.command()
def environments(name: Name = None, as_json: Json = False) -> None:
    """List the environments that policies can be tried in; with a name, what that one takes.

    With a name and --json, prints the JSON schema of its parameters.

    Example: `tacit environments bernoulli`
    """
    from tacit.core.registry import environment_named
    from tacit.core.registry import environments as known

    if name is not None:
        _tell(environment_named(name), as_json)
        return
    rows = [
        {"name": each, "setting": kind.setting, "is": kind.summary}
        for each, kind in known().items()
    ]
    show(rows, as_json)


def _tell(kind: Any, as_json: bool) -> None:
    from tacit.core.specs import parameters_of, schema_of

    if as_json:
        print(json.dumps(schema_of(kind)))
        return
    print(f"{kind.name}: {kind.summary} (setting {kind.setting})\n")
    parameters = parameters_of(kind)
    if not parameters:
        print("It takes no parameters.")
        return
    rows = [
        {
            "parameter": each.name,
            "takes": each.takes,
            "default": each.default or "",
            "means": each.means,
        }
        for each in parameters
    ]
    show(rows, False)
