"""``tacit guarantee`` and ``tacit audit``: what is protected, and whether it is true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.arguments import Horizon, Json, Seed, parsed, policy_and_environment, require_picture
from tacit.cli.output import finite, progress_bar, show

__all__ = ["app"]

app = typer.Typer()


@app.command()
def guarantee(
    policy: Annotated[str, typer.Argument(help="NAME or NAME:parameter=value,...")],
    environment: Annotated[str | None, typer.Option(help="Fills the policy's parameters.")] = None,
    horizon: Horizon = 10_000,
    delta: Annotated[float, typer.Option(help="The delta of composed guarantees.")] = 1e-6,
    picture: Annotated[
        Path | None, typer.Option(help="Write the curve of epsilon against rounds (PNG or SVG).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what is protected, from whom, for how long, at what epsilon.

    Example: `tacit guarantee sw-klucb-cf:epsilon=1 --horizon 1000`
    """
    from tacit.simulation.guarantees import horizons, spans

    require_picture(picture)
    chosen, _ = policy_and_environment(policy, environment, horizon)
    stated = chosen.guarantee(horizon)
    rows = spans(chosen, horizon, delta)
    curve = horizons(chosen, horizon, delta)
    if picture is not None:
        from tacit.report.privacy import draw_curve

        draw_curve(curve, picture, title=repr(chosen), delta=delta)
    if as_json:
        print(
            json.dumps(
                {
                    "policy": repr(chosen),
                    "guarantee": json.loads(stated.to_json()),
                    "sentence": stated.sentence(),
                    "spans": [finite(row) for row in rows],
                    "curve": [finite({"rounds": m, "epsilon": e}) for m, e in curve],
                }
            )
        )
        return
    print(stated.sentence())
    print()
    show(rows, False)
    if picture is not None:
        print(f"\n{picture}")


@app.command()
def audit(
    target: Annotated[str, typer.Argument(help="A policy or mechanism: NAME:parameter=value,...")],
    environment: Annotated[
        str | None, typer.Option(help="The environment a policy is audited in.")
    ] = None,
    horizon: Horizon = 20,
    runs: Annotated[
        int, typer.Option(min=1, help="Repetitions of all rounds on each of the two inputs.")
    ] = 100_000,
    epsilon: Annotated[
        float | None, typer.Option(help="The claim; by default what is guaranteed.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="The claim's delta.")] = None,
    alpha: Annotated[float, typer.Option(help="Chance of refuting a true claim.")] = 0.01,
    seed: Seed = 0,
    picture: Annotated[
        Path | None, typer.Option(help="Draw both output distributions (PNG or SVG).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Try to break a claim of privacy: refuted, or not refuted; never proved.

    Exits with 1 if the claim is refuted.

    Example: `tacit audit klucb-cf:epsilon=1 --horizon 10 --runs 20000`
    """
    from tacit.privacy.auditing.mechanisms import audit_mechanism, mechanism_kinds
    from tacit.simulation.audits import audit_policy

    require_picture(picture)
    parameters = parsed(target)
    claim: Any = {"epsilon": epsilon, "delta": delta, "alpha": alpha}
    name = parameters.pop("name")
    with progress_bar(f"audit of {name}"):
        if name in mechanism_kinds():
            if environment is not None:
                raise ValueError(
                    f"{name} is a mechanism and needs no environment; leave out --environment"
                )
            found = audit_mechanism(name, parameters, runs=runs, seed=seed, **claim)
        else:
            policy, place = policy_and_environment(target, environment, horizon)
            found = audit_policy(policy, place, horizon=horizon, runs=runs, seed=seed, **claim)
    if picture is not None:
        found.result.picture(picture)
    if as_json:
        print(json.dumps({"pair": found.worst.words, **json.loads(found.result.to_json())}))
    else:
        print(found.sentence())
        if found.result.lower_bound == 0.0:
            print("No event told the inputs apart; with more rounds or runs one might.")
        if picture is not None:
            print(picture)
    if found.result.refuted:
        raise typer.Exit(1)
