"""The results as one Markdown page: every study with its verdict, the numbers, the version."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tacit_studies.runner import Finished
from tacit_studies.tools import write_text


def write_table(finished: Sequence[Finished], path: Path) -> Path:
    """Write the verdicts and every compared number of the studies to a Markdown file."""
    versions = sorted({each.version for each in finished})
    sizes = sorted({"quick" if each.quick else "full" for each in finished})
    lines = [
        "# Results",
        "",
        "Every table and figure of the papers, measured again. This page is written by "
        f"`tacit reproduce --table FILE` from the findings of version {', '.join(versions)} "
        f"({', '.join(sizes)} size). An own finding answers a question of ours, not one of a paper.",
        "",
        "| study | verdict | why |",
        "| --- | --- | --- |",
    ]
    lines += [
        f"| {each.reproduction.name} | {each.findings.verdict} | {_cell(each.findings.because)} |"
        for each in finished
    ]
    for each in finished:
        lines += ["", f"## {each.reproduction.name}: {each.reproduction.title}", ""]
        lines += [f"*{each.reproduction.question}*", ""]
        who = "We expected" if each.reproduction.own else "The paper"
        lines += [f"{who}: {each.reproduction.claim}", ""]
        if each.findings.privacy:
            lines += [f"Privacy: {each.findings.privacy}", ""]
        if each.findings.agreement:
            lines += [f"Agreement: {each.findings.agreement}", ""]
        if each.findings.rows:
            lines += [
                "| | paper | measured | expected | agrees |",
                "| --- | --- | --- | --- | --- |",
            ]
        for row in each.findings.rows:
            agrees = "" if row.agrees is None else "yes" if row.agrees else "no"
            agrees += f" (within {row.within})" if row.within else ""
            cells = (row.label, row.paper, row.measured, row.expected, agrees)
            lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    text = "\n".join(lines) + "\n"
    write_text(path, text)
    return path


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
