"""``tacit evaluate``: what a policy would have earned, from a log of decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.arguments import Json, Seed
from tacit.cli.output import show
from tacit.core.progress import progress_bar
from tacit.core.specs import parse_spec

app = typer.Typer()


@app.command()
def evaluate(
    log: Annotated[
        str,
        typer.Argument(
            help="A .csv, .csv.gz or .parquet file, or open-bandit:campaign=men,behaviour=random."
        ),
    ],
    policy: Annotated[list[str], typer.Argument(help="NAME or NAME:parameter=value,...")],
    arm: Annotated[str, typer.Option(help="The column with what was shown, from 0.")] = "arm",
    reward: Annotated[
        str, typer.Option(help="The column with what it earned, in [0, 1].")
    ] = "reward",
    propensity: Annotated[
        str, typer.Option(help="The column with its probability; '' if all had the same.")
    ] = "propensity",
    n_arms: Annotated[int, typer.Option(min=0, help="If the log does not show every arm.")] = 0,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Estimate from a log what policies would have earned: replay, IPS, SNIPS, doubly robust.

    Replay lets the policy learn from the logged decisions that it would have made itself. The other
    estimates weigh the second half of the log by what the policy learned from the first.

    Example: `tacit evaluate log.csv ucb1 klucb-cf:epsilon=1`
    """
    from tacit.core.registry import build_policy
    from tacit.simulation.evaluation import evaluate, open_bandit, read_log

    if log.partition(":")[0] == "open-bandit":
        chosen = parse_spec(log)
        chosen.pop("name")
        unknown = sorted(set(chosen) - {"campaign", "behaviour", "directory"})
        if unknown:
            raise ValueError(f"open-bandit has no parameter {unknown[0]!r}")
        found = open_bandit(**chosen)
    else:
        names = {"arm": arm, "reward": reward, "propensity": propensity}
        found = read_log(Path(log), columns=names, n_arms=n_arms)
    public = {"n_arms": found.n_arms, "horizon": len(found)}
    policies: list[Any] = [build_policy(text, public) for text in policy]
    rows = []
    with progress_bar(f"evaluate {found.source}") as progress:
        for done, (text, each) in enumerate(zip(policy, policies, strict=True), 1):
            rows += [{**row, "policy": text} for row in evaluate(found, each, seed=seed).rows()]
            progress(done, len(policies))
    show(rows, as_json)
