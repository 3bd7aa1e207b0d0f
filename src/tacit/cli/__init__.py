"""The command line: parses, calls, prints.

Every command prints a table on a terminal, aligned text in a pipe and JSON with ``--json``; complains
in one line on standard error and exits with 2; and never leaves a half-written file.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

try:
    import typer
except ImportError:
    raise SystemExit("tacit: the command line needs more parts; pip install 'tacit[cli]'") from None

__all__ = ["app", "main"]

app = typer.Typer(
    name="tacit",
    help="Differentially private bandits on networks: learn together without telling.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for the files written.")]
Seed = Annotated[
    int, typer.Option(min=0, help="The same seed gives the same tables and the same result.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes; by default one for each core.")
]
Horizon = Annotated[int, typer.Option(min=1, max=10**15, help="Rounds.")]


def main() -> None:
    """Run the command line: 2 and one line for a mistake, 130 if it was stopped."""
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:
        complaint = _complaint(error)
        if complaint is None:
            raise
        print(f"tacit: {complaint}", file=sys.stderr)
        code = 2
    if code == 130:
        print("tacit: stopped; what was finished is kept", file=sys.stderr)
    raise SystemExit(code)


def _complaint(error: Exception) -> str | None:
    """Return one line for what a user can mend; nothing for a fault of this program."""
    if hasattr(error, "format_message"):  # typer's own, wherever the version at hand keeps them
        command = getattr(getattr(error, "ctx", None), "command_path", "tacit")
        text = f"{error.format_message()} (see {command} --help)"
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {(error.strerror or 'cannot be used').lower()}"
    elif isinstance(error, MemoryError):
        text = f"not enough memory for this size ({error})"
    elif isinstance(error, ValueError | OSError):
        text = str(error)
    else:
        return None
    return " ".join(text.split())


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
    _show(rows, as_json)


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
    _show(rows, as_json)


@app.command()
def run(
    study: Annotated[Path, typer.Argument(help="A study file (TOML).")],
    out: Out = Path("results"),
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Run a study: any policies, any environment, any grid; resumes where it was stopped.

    Writes NAME.parquet, NAME-summary.csv and a figure (PNG and SVG) to the folder.

    Example: `tacit run studies/first.toml --out results`
    """
    from tacit.simulation import Study

    _run_study(Study.from_toml(study), out, workers, as_json)


@app.command()
def compare(
    policy: Annotated[list[str], typer.Argument(help="NAME or NAME:parameter=value,...")],
    environment: Annotated[
        str | None, typer.Option(help="NAME or NAME:parameter=value,...")
    ] = None,
    horizon: Horizon = 10_000,
    repetitions: Annotated[int, typer.Option(min=1, help="Independent repetitions.")] = 20,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="Privacy of every policy that has it; repeatable.")
    ] = None,
    seed: Seed = 0,
    name: Annotated[str, typer.Option(help="Names the files.")] = "compare",
    out: Out = Path("results"),
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Compare policies in one environment: one line to a picture.

    Example: `tacit compare klucb sw-klucb-cf --environment riser --epsilon 1 --horizon 5000 --repetitions 8`
    """
    from tacit.registry import policy_named
    from tacit.simulation import Study

    specs = tuple(_spec(text) for text in policy)
    if epsilon and any("epsilon" in spec for spec in specs):
        raise ValueError("write epsilon behind a policy or give --epsilon for all, not both")
    study = Study(
        name=name,
        environment=_spec(
            environment
            if environment is not None
            else policy_named(specs[0]["name"]).example_environment
        ),
        policies=specs,
        horizon=horizon,
        repetitions=repetitions,
        seed=seed,
        grid={"policy.epsilon": list(epsilon)} if epsilon else {},
    )
    _run_study(study, out, workers, as_json)


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

    _require_picture(picture)
    chosen, _ = _policy_and_environment(policy, environment, horizon)
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
                    "spans": [_finite(row) for row in rows],
                    "curve": [_finite({"rounds": m, "epsilon": e}) for m, e in curve],
                }
            )
        )
        return
    print(stated.sentence())
    print()
    _show(rows, False)
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

    _require_picture(picture)
    parameters = _spec(target)
    claim: Any = {"epsilon": epsilon, "delta": delta, "alpha": alpha}
    name = parameters.pop("name")
    with _progress(f"audit of {name}"):
        if name in mechanism_kinds():
            if environment is not None:
                raise ValueError(
                    f"{name} is a mechanism and needs no environment; leave out --environment"
                )
            found = audit_mechanism(name, parameters, runs=runs, seed=seed, **claim)
        else:
            policy, place = _policy_and_environment(target, environment, horizon)
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


@app.command()
def reproduce(
    name: Annotated[
        list[str] | None, typer.Argument(help="Names, papers (002) or all; none lists them.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: seconds a study.")] = False,
    table: Annotated[
        Path | None, typer.Option(help="Also write all last findings to this Markdown file.")
    ] = None,
    out: Out = Path("results/reproduce"),
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Measure a paper's tables and figures again, with a verdict, and write the report.

    Without a name, lists what there is with the last verdict. Resumes where it was stopped.

    Example: `tacit reproduce 003-changes --quick`
    """
    from tacit.papers import last_findings, reproductions
    from tacit.papers import reproduce as run_all

    known = reproductions()
    if not name:
        rows = []
        found = {each.name: last_findings(each, out) for each in known.values()}
        _write_table([last for last in found.values() if last is not None], table)
        for each in known.values():
            last = found[each.name]
            verdict = "" if last is None else last.findings.verdict
            size = "" if last is None else "quick" if last.quick else "full"
            rows.append({"name": each.name, "title": each.title, "verdict": verdict, "size": size})
        _show(rows, as_json)
        return
    chosen = [each for each in known.values() if {"all", each.name, each.paper} & set(name)]
    unknown = set(name) - {"all", *known, *(each.paper for each in known.values())}
    if unknown:
        raise ValueError(f"no study is called {min(unknown)!r}; `tacit reproduce` lists them")
    with _progress("reproduce") as progress:
        finished = run_all(chosen, out, quick=quick, workers=workers, progress=progress)
    report = _write_report(out, table)
    if as_json:
        print(
            json.dumps(
                {
                    "report": str(report),
                    "studies": {f.reproduction.name: f.findings.to_dict() for f in finished},
                }
            )
        )
        return
    for done in finished:
        print(f"{done.reproduction.name}: {done.findings.verdict}. {done.findings.because}")
    print(f"\nThe report is in {report}")


def _write_report(folder: Path, table: Path | None) -> Path:
    from tacit.papers import last_findings, reproductions
    from tacit.report.html import write_report

    found = [last_findings(each, folder) for each in reproductions().values()]
    present = [each for each in found if each is not None]
    _write_table(present, table)
    return write_report(present, folder)


def _write_table(finished: Sequence[Any], table: Path | None) -> None:
    from tacit.report.markdown import write_table

    if table is not None:
        if not finished:
            raise ValueError("nothing was measured yet; run `tacit reproduce all --quick` first")
        write_table(finished, table)


def _policy_and_environment(policy: str, environment: str | None, horizon: int) -> tuple[Any, Any]:
    from tacit.registry import build_both, policy_named

    written = _spec(policy)
    place = (
        environment
        if environment is not None
        else policy_named(written["name"]).example_environment
    )
    return build_both(written, _spec(place), horizon)


def _require_picture(path: Path | None) -> None:
    """Complain about a picture that cannot be written before the work begins."""
    from tacit.state import require_writable

    if path is not None:
        if path.suffix not in (".png", ".svg", ".pdf"):
            raise ValueError(f"--picture: expected a .png, .svg or .pdf file, got '{path}'")
        require_writable(path.parent)


def _spec(text: str) -> dict[str, Any]:
    """Parse ``name:parameter=value,parameter=value``; values are TOML, else plain words."""
    name, _, rest = text.partition(":")
    spec: dict[str, Any] = {"name": name}
    for part in _split(rest):
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals or not key:
            raise ValueError(f"{text!r}: expected NAME:parameter=value, got {part!r}")
        if key in spec:
            raise ValueError(f"{text!r}: {key} is written twice")
        try:
            spec[key] = tomllib.loads(f"v = {value}")["v"]
        except tomllib.TOMLDecodeError:
            if value.strip().startswith(("[", "{")):
                raise ValueError(
                    f"{text!r}: cannot read {value}; inside brackets words need quotes, as in "
                    "'graph={name=\"ring\",n_nodes=5}'"
                ) from None
            spec[key] = value.strip()
    return spec


def _split(text: str) -> Iterator[str]:
    """Split at the commas that are not inside brackets."""
    depth, part = 0, ""
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0:
            yield part
            part = ""
        else:
            part += character
    if part:
        yield part


def _run_study(study: Any, out: Path, workers: int | None, as_json: bool) -> None:
    from tacit.report import draw_curves
    from tacit.simulation import run_study
    from tacit.state import write_atomically

    with _progress(study.name) as progress:
        result = run_study(study, out, workers=workers, progress=progress)
    rows = result.summary()
    summary = out / f"{study.name}-summary.csv"
    text = io.StringIO()
    table = csv.DictWriter(text, rows[0])
    table.writeheader()
    table.writerows(rows)
    write_atomically(summary, lambda file: file.write_text(text.getvalue(), encoding="utf-8"))
    figures = draw_curves(result, out)
    files = [str(path) for path in (result.path, summary, *figures)]
    if as_json:
        print(json.dumps({"files": files, "summary": rows}))
        return
    shown = [
        {
            "policy": row["label"],
            row["measure"]: row["mean"],
            "95%": f"{_text(row['low'])} to {_text(row['high'])}",
            "privacy": _privacy(row),
        }
        for row in rows
    ]
    _show(shown, False)
    print()
    for path in files:
        print(path)


def _privacy(row: dict[str, Any]) -> str:
    epsilon = float(row["epsilon"])
    if math.isinf(epsilon):
        return "none"
    delta = f", delta {row['delta']:g}" if row["delta"] else ""
    return f"epsilon {epsilon:.4g}{delta} a {row['unit']}, {row['trust']}"


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    return {k: "inf" if isinstance(v, float) and math.isinf(v) else v for k, v in row.items()}


def _show(rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json.dumps([_finite(row) for row in rows]))
        return
    columns = list(rows[0])
    cells = [[_text(row[column]) for column in columns] for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(box=None, header_style="bold", pad_edge=False)
        for column in columns:
            table.add_column(column, no_wrap=column == columns[0], overflow="fold")
        for line in cells:
            table.add_row(*line)
        Console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for line in [columns, *cells]:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(padded).rstrip())


def _text(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    short = f"{value:.4g}"
    return f"{float(short):,.0f}" if 1e4 <= abs(value) < 1e12 else short


@contextmanager
def _progress(name: str) -> Iterator[Any]:
    """Give a function that moves a bar on a terminal, and nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
