"""``tacit ledger``: what was spent on whom, and what may be."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.arguments import Json
from tacit.cli.output import show

app = typer.Typer()
ledger = typer.Typer(help="Show, set, check and export what is spent on people.")
app.add_typer(ledger, name="ledger")

File = Annotated[str, typer.Argument(help="The ledger's file, or postgresql://...")]
Subject = Annotated[str | None, typer.Option(help="One person; by default all.")]


@ledger.command("allow")
def allow(
    file: File,
    epsilon: Annotated[float, typer.Option(help="At most so much epsilon in each window.")],
    delta: Annotated[float, typer.Option(help="At most so much delta in each window.")] = 0.0,
    period: Annotated[
        str, typer.Option(help="day, month or year by the calendar of UTC, or lifetime.")
    ] = "lifetime",
    subject: Annotated[
        str | None, typer.Option(help="Whose; by default everybody's who has none of their own.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Set a cap; creates the file if there is none. Caps of several periods hold at once.

    Example: `tacit ledger allow ledger.sqlite --epsilon 1 --period year`
    """
    from tacit.core.constraints import require
    from tacit.privacy import Ledger, Period

    # A mistake must leave no file behind.
    periods = [each.value for each in Period]
    require("ledger allow", "epsilon", ">= 0", 0 <= epsilon < math.inf, epsilon)
    require("ledger allow", "delta", "in [0, 1]", 0 <= delta <= 1, delta)
    require("ledger allow", "period", f"one of {', '.join(periods)}", period in periods, period)
    require("ledger allow", "subject", "a name", subject != "", subject)
    with Ledger(file) as opened:
        opened.allow(epsilon, delta, period=period, subject=subject)
        rows = [_cap(subject, cap) for cap in opened.caps(subject)]
    show(rows, as_json)


@ledger.command("show")
def show_ledger(file: File, subject: Subject = None, as_json: Json = False) -> None:
    """Show what each person has spent and may still spend now; of one person every entry.

    Example: `tacit ledger show ledger.sqlite`
    """
    with _opened(file) as opened:
        if subject is not None:
            rows = [
                {
                    "entry": entry.id,
                    "time": entry.time,
                    "key": entry.key,
                    "epsilon": entry.amount.epsilon,
                    "delta": entry.amount.delta,
                    "epsilon in all": entry.total.epsilon,
                    "note": entry.note,
                }
                for entry in opened.entries(subject)
            ]
        else:
            rows = [_person(opened, name) for name in opened.subjects()]
        caps = [_cap(None, cap) for cap in opened.caps()]
    if not rows and not as_json:
        print("Nobody was charged yet." if subject is None else f"{subject!r} was never charged.")
        if caps:
            print()
            show(caps, False)
        return
    show(rows, as_json)


@ledger.command("verify")
def verify(file: File, as_json: Json = False) -> None:
    """Check the file, recompute every total, and say how many entries there are.

    Example: `tacit ledger verify ledger.sqlite`
    """
    with _opened(file) as opened:
        opened.verify()
        count, place = len(opened.entries()), opened.path
    show([{"file": str(place), "entries": count, "verdict": "every total is right"}], as_json)


@ledger.command("export")
def export(
    file: File,
    target: Annotated[Path, typer.Argument(help="A .csv or .json file to write.")],
    as_json: Json = False,
) -> None:
    """Write every entry to a file for other programs.

    Example: `tacit ledger export ledger.sqlite ledger.csv`
    """
    if target.suffix not in (".csv", ".json"):
        raise ValueError(f"ledger export: expected a .csv or .json file, got '{target}'")
    with _opened(file) as opened:
        (opened.export_csv if target.suffix == ".csv" else opened.export_json)(target)
        count = len(opened.entries())
    show([{"file": str(target), "entries": count}], as_json)


def _opened(file: str) -> Any:
    """Open a ledger that exists; no file is created by looking at it."""
    from tacit.privacy import Ledger

    if "://" not in file and not Path(file).exists():
        raise ValueError(f"{file}: no such ledger; tacit ledger allow creates one")
    return Ledger(file)


def _cap(subject: str | None, cap: Any) -> dict[str, Any]:
    return {
        "subject": "everybody" if subject is None else subject,
        "period": cap.period.value,
        "epsilon": cap.amount.epsilon,
        "delta": cap.amount.delta,
    }


def _person(opened: Any, name: str) -> dict[str, Any]:
    from tacit.privacy import LedgerError

    spent = opened.spent(name)
    try:
        left = opened.remaining(name)
    except LedgerError:
        left = None
    return {
        "subject": name,
        "epsilon spent": spent.epsilon,
        "delta spent": spent.delta,
        "epsilon left": 0.0 if left is None else left.epsilon,
        "delta left": 0.0 if left is None else left.delta,
    }
