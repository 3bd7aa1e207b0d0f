"""What an experiment released, as lines: nothing that its decisions and reports did not show already.

Of a local experiment these are its decisions and what devices reported, which is private by itself. Of a
central one they are its decisions and the values that were released: neither a reward, nor whether or when
one came, nor contexts where they are protected too. A table has one row for each decision.
"""

from __future__ import annotations

import asyncio
import csv
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tacit.core.files import write_atomically
from tacit.core.text import escape_formula
from tacit.service.http import find_experiment
from tacit.serving.core import Event
from tacit.serving.core.events import Change, read_record
from tacit.serving.experiment import Experiment

COLUMNS = ("id", "at", "option", "probability", "shown", "reason", "person", "contexts", "report")
_NAMES = ("id", "option")
"""Columns of text that comes from elsewhere; contexts are JSON, persons are pseudonyms."""
_CHUNK = 1000

_encode = msgspec.json.Encoder().encode


async def send_released(request: Request) -> Response:
    """Send what was released so far, a line of JSON for each thing."""
    lines = _write_lines(find_experiment(request))
    return StreamingResponse(lines, media_type="application/x-ndjson")


async def _write_lines(experiment: Experiment) -> AsyncIterator[bytes]:
    seq, last, store = 0, experiment.seq, experiment.store
    assert store is not None
    lines: list[bytes] = []
    while seq < last:
        until = min(seq + _CHUNK, last)
        found = rows(experiment, store.events(experiment.name, seq, until))
        lines.extend(_encode(row) + b"\n" for row in found)
        # By lines that are shown: by events, where a part ends would tell how many are not.
        while len(lines) >= _CHUNK:
            yield b"".join(lines[:_CHUNK])
            del lines[:_CHUNK]
        seq = until
        # Others decide in between.
        await asyncio.sleep(0)
    if lines:
        yield b"".join(lines)


def rows(experiment: Experiment, events: Iterable[Event]) -> Iterator[dict[str, Any]]:
    """Return what events of the log show to anybody."""
    options = experiment.core.options
    local, hidden = experiment.core.decider.trust == "local", experiment.hides_contexts
    for event in events:
        at, body = event.at / 1000, event.body
        if event.kind == "decide":
            query = body.get("query", {})
            option = body.get("name") or options[body["option"]]
            yield {
                "kind": "decision",
                "id": event.id,
                "at": at,
                "option": option,
                "probability": body["probability"],
                "shown": body["shown"],
                "reason": body.get("reason", ""),
                "person": body.get("person"),
                "contexts": None if hidden else _contexts(query),
            }
        elif event.kind == "show":
            yield {"kind": "shown", "id": event.id, "at": at, "reason": body.get("reason", "")}
        elif event.kind == "learn" and local:
            yield {"kind": "report", "id": event.id, "at": at, "value": body["value"]}
        elif event.kind == "epoch":
            yield {"kind": "epoch", "at": at, **body}
        elif isinstance(change := read_record(event), Change):
            for name in change.options or ():
                yield {"kind": "option", "at": at, "name": name}
            for option in change.retire or ():
                yield {"kind": "retire", "at": at, "name": options[option]}
            if change.mode is not None:
                yield {"kind": "mode", "at": at, "mode": change.mode}
        if "released" in body:
            yield {"kind": "release", "at": at, "values": body["released"]}


def _contexts(query: Mapping[str, Any]) -> dict[str, Any] | None:
    if "contexts" not in query:
        return None
    return dict(zip(query["names"], query["contexts"], strict=True))


def table(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each decision, with what came of it later.

    Examples
    --------
    >>> made = {"kind": "decision", "id": "a", "at": 1.0, "option": "red", "probability": 0.5,
    ...         "shown": True, "reason": "", "person": None, "contexts": None}
    >>> table([made, {"kind": "report", "id": "a", "at": 2.0, "value": 1}])[0]["report"]
    '1'
    """
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        if line["kind"] == "decision":
            row = {name: line.get(name) for name in COLUMNS}
            row["contexts"] = None if row["contexts"] is None else _text(row["contexts"])
            found[line["id"]] = row
        elif line["kind"] == "shown" and line["id"] in found:
            found[line["id"]].update(shown=True, reason=line["reason"])
        elif line["kind"] == "report" and line["id"] in found:
            found[line["id"]]["report"] = _text(line["value"])
    return list(found.values())


def write(file: Path, lines: Iterable[str]) -> None:
    """Write lines of `released` to a file: JSON as they are, CSV and Parquet as a table."""
    whole = [line for line in lines if line]

    def put(place: Path) -> None:
        if file.suffix == ".json":
            place.write_text("".join(line + "\n" for line in whole), encoding="utf-8")
            return
        found = table(msgspec.json.decode(line) for line in whole)
        if file.suffix == ".csv":
            with place.open("w", encoding="utf-8", newline="") as out:
                writer = csv.DictWriter(out, COLUMNS)
                writer.writeheader()
                writer.writerows(
                    {**row, **{name: escape_formula(row[name]) for name in _NAMES}} for row in found
                )
            return
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(found, schema=_schema()), place)

    write_atomically(file, put)


def _schema() -> Any:
    import pyarrow

    kinds = {"at": pyarrow.float64(), "probability": pyarrow.float64(), "shown": pyarrow.bool_()}
    return pyarrow.schema([(name, kinds.get(name, pyarrow.string())) for name in COLUMNS])


def _text(value: Any) -> str:
    return _encode(value).decode()
