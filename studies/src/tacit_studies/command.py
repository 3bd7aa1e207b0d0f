"""``tacit reproduce``: the papers measured again, with verdicts and a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import Address, EngineName, Json, Out, Workers, progress_bar, show

app = typer.Typer()
_ALIASES = {
    "leaderboard": "today",
    "tao2022-initial-conditions": "tao2022-beginnings",
    "unknown-similarity": "told-nothing",
}
"""Files whose studies have another name."""


@app.command()
def reproduce(
    name: Annotated[
        list[str] | None, typer.Argument(help="Names, papers (lu2022) or all; none lists them.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: seconds a study.")] = False,
    table: Annotated[
        Path | None, typer.Option(help="Also write all last findings to this Markdown file.")
    ] = None,
    out: Out = Path("results/reproduce"),
    workers: Workers = None,
    engine: EngineName = None,
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Measure a paper's tables and figures again, with a verdict, and write the report.

    Without a name, lists what there is with the last verdict. Resumes where it was stopped.

    Example: `tacit reproduce gajane2023-changes --quick`
    """
    from tacit.engines import JSON
    from tacit_studies import last_findings, number_of, reproductions
    from tacit_studies import reproduce as run_all

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
        show(rows, as_json)
        return
    name = [_ALIASES.get(each, each) for each in name]
    # A study of our own has no paper.
    called = [
        {"all", *(f(n) for n in (each.name, each.paper) for f in (str, number_of))} - {""}
        for each in known.values()
    ]
    chosen = [each for each, names in zip(known.values(), called, strict=True) if names & set(name)]
    unknown = set(name).difference(*called)
    if unknown:
        raise ValueError(f"no study is called {min(unknown)!r}; `tacit reproduce` lists them")
    with progress_bar("reproduce") as progress:
        finished = run_all(
            chosen,
            out,
            quick=quick,
            workers=workers,
            engine=engine,
            address=address,
            progress=progress,
        )
    report = _write_report(out, table)
    if as_json:
        print(
            JSON.encode(
                {
                    "report": str(report),
                    "studies": {f.reproduction.name: f.findings.to_dict() for f in finished},
                }
            ).decode()
        )
        return
    for done in finished:
        print(f"{done.reproduction.name}: {done.findings.verdict}. {done.findings.because}")
    print(f"\nThe report is in {report}")


def _write_report(folder: Path, table: Path | None) -> Path:
    from tacit_studies import last_findings, reproductions
    from tacit_studies.report.html import write_report

    found = [last_findings(each, folder) for each in reproductions().values()]
    present = [each for each in found if each is not None]
    _write_table(present, table)
    return write_report(present, folder)


def _write_table(finished: Sequence[Any], table: Path | None) -> None:
    from tacit_studies.report.markdown import write_table

    if table is not None:
        if not finished:
            raise ValueError("nothing was measured yet; run `tacit reproduce all --quick` first")
        write_table(finished, table)
