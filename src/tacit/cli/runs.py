"""``tacit run`` and ``tacit compare``: policies in environments, to a table and a picture."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

import typer

from tacit.cli.arguments import (
    Address,
    EngineName,
    Horizon,
    Json,
    Out,
    Partitions,
    Repetitions,
    Seed,
    Workers,
    parse_count,
)
from tacit.cli.output import show
from tacit.core.files import write_atomically
from tacit.core.json_codec import dumps
from tacit.core.progress import progress_bar
from tacit.core.specs import parse_spec
from tacit.core.text import as_text

app = typer.Typer()


@app.command()
def run(
    study: Annotated[Path, typer.Argument(help="A study file (TOML).")],
    out: Out = Path("results"),
    workers: Workers = None,
    engine: EngineName = None,
    address: Address = None,
    partitions: Partitions = None,
    as_json: Json = False,
) -> None:
    """Run a study: any policies, any environment, any grid; resumes where it was stopped.

    Writes NAME.parquet, NAME-summary.csv and a figure (PNG and SVG) to the folder.

    Example: `tacit run studies/first.toml --out results`
    """
    from tacit.simulation import Study

    written = Study.from_toml(study)
    try:
        _run_study(written, out, workers, engine, address, partitions, as_json)
    except ValueError as error:
        raise ValueError(f"{study}: {error}") from None


@app.command()
def compare(
    policy: Annotated[list[str], typer.Argument(help="NAME or NAME:parameter=value,...")],
    environment: Annotated[
        str | None, typer.Option(help="NAME or NAME:parameter=value,...")
    ] = None,
    horizon: Horizon = 10_000,
    repetitions: Repetitions = 20,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="Privacy of every policy that has it; repeatable.")
    ] = None,
    seed: Seed = 0,
    name: Annotated[str, typer.Option(help="Names the files.")] = "compare",
    out: Out = Path("results"),
    workers: Workers = None,
    engine: EngineName = None,
    address: Address = None,
    partitions: Partitions = None,
    as_json: Json = False,
) -> None:
    """Compare policies in one environment: one line to a picture.

    Example: `tacit compare klucb sw-klucb-cf --environment riser --epsilon 1 --horizon 5000 --repetitions 8`
    """
    from tacit.core.registry import example_environment
    from tacit.simulation import Study

    specs = tuple(parse_spec(text) for text in policy)
    if epsilon and any("epsilon" in spec for spec in specs):
        raise ValueError("write epsilon behind a policy or give --epsilon for all, not both")
    study = Study(
        name=name,
        environment=parse_spec(
            example_environment(specs[0]) if environment is None else environment
        ),
        policies=specs,
        horizon=horizon,
        repetitions=repetitions,
        seed=seed,
        grid={"policy.epsilon": list(epsilon)} if epsilon else {},
    )
    _run_study(study, out, workers, engine, address, partitions, as_json)


@app.command()
def identify(
    policy: Annotated[str, typer.Argument(help="One that names arms, NAME:parameter=value,...")],
    environment: Annotated[
        str | None, typer.Option(help="NAME or NAME:parameter=value,...")
    ] = None,
    confidence: Annotated[float, typer.Option(help="How sure it has to be.")] = 0.95,
    limit: Annotated[
        int,
        typer.Option(parser=parse_count, metavar="N", help="Rounds after which to give up."),
    ] = 1_000_000,
    repetitions: Repetitions = 20,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Play until a policy is sure which arm is best: how long it takes, which arm, how sure.

    Example: `tacit identify dp-top-two:epsilon=1 --environment "bernoulli:means=[0.4,0.5,0.7]"`
    """
    import numpy as np

    from tacit.core.registry import build_pair
    from tacit.simulation import identify as play_until_sure
    from tacit.simulation.bands import band_of

    chosen, place = build_pair(policy, environment, limit)
    with progress_bar(f"{chosen.name} in {place.name}") as progress:
        found = play_until_sure(
            chosen,
            place,
            confidence=confidence,
            limit=limit,
            repetitions=repetitions,
            seed=seed,
            progress=progress,
        )
    rows: list[dict[str, Any]] = []
    for arm in np.unique(found.arms[found.sure]):
        rounds = found.rounds[found.sure & (found.arms == arm)].astype(float)
        band = band_of(rounds[:, None])
        interval = f"{as_text(float(band.low[0]))} to {as_text(float(band.high[0]))}"
        rows.append(
            {
                "arm": int(arm),
                "named in": len(rounds),
                "rounds": float(band.mean[0]),
                "95%": interval if len(rounds) > 1 else "",
            }
        )
    undecided = int((~found.sure).sum())
    if undecided:
        none = f"not decided in {limit:,}"
        rows.append({"arm": "none", "named in": undecided, "rounds": none, "95%": ""})
    show(rows, as_json)


@app.command()
def check(
    policy: Annotated[str, typer.Argument(help="NAME or module:Name, with :parameter=value,...")],
    environment: Annotated[
        str | None, typer.Option(help="Where it is checked; by default its own example.")
    ] = None,
    horizon: Horizon = 60,
    runs: Annotated[int, typer.Option(min=100, help="Repetitions of the audit.")] = 4000,
    as_json: Json = False,
) -> None:
    """Check a policy, of one's own or built in, as Tacit's tests check theirs.

    Exits with 1 if a check fails.

    Example: `tacit check klucb-cf:epsilon=1`
    """
    from tacit.core.registry import build_pair
    from tacit.simulation.policy_checks import Subject, check_policy

    chosen, place = build_pair(policy, environment, horizon)
    subject = Subject(policy=chosen, environment=place, horizon=horizon, runs=runs)
    with progress_bar(f"check of {chosen.name}"):
        rows = [finding._asdict() for finding in check_policy(subject)]
    show(rows, as_json)
    if any(row["verdict"] == "failed" for row in rows):
        raise typer.Exit(1)


def _run_study(
    study: Any,
    out: Path,
    workers: int | None,
    engine: str | None,
    address: str | None,
    partitions: int | None,
    as_json: bool,
) -> None:
    from tacit.simulation import run_study
    from tacit.simulation.plots import draw_curves
    from tacit.simulation.plots.style import prepare_drawing

    Thread(target=prepare_drawing, daemon=True).start()  # while the repetitions are played
    with progress_bar(study.name) as progress:
        result = run_study(
            study,
            out,
            workers=workers,
            engine=engine,
            address=address,
            partitions=partitions,
            progress=progress,
        )
    rows = result.summary()
    if not as_json:
        head, *lines = result.lines()
        show([dict(zip(head, line, strict=True)) for line in lines], False)
        print(flush=True)  # the figures can wait
    summary = out / f"{study.name}-summary.csv"
    text = io.StringIO()
    table = csv.DictWriter(text, rows[0])
    table.writeheader()
    table.writerows(rows)
    write_atomically(summary, lambda file: file.write_text(text.getvalue(), encoding="utf-8"))
    figures = draw_curves(result, out)
    files = [str(path) for path in (result.path, summary, *figures)]
    if as_json:
        print(dumps({"files": files, "summary": rows}))
        return
    for path in files:
        print(path)
