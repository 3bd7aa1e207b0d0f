"""Every endpoint of the interface: one row says its path, its scope, what it reads and what it answers.

Routes, the check of tokens, the reading of messages and the OpenAPI description follow from the table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import tacit
from tacit.service import creation, export, metrics, ofrep
from tacit.service import messages as m
from tacit.service.connections import INSIDE
from tacit.service.http import (
    RequestError,
    clock_lead,
    decode_body,
    find_experiment,
    find_store_problem,
    json_answer,
    read_body,
    require_token,
)
from tacit.service.responses import decide as carry_out
from tacit.service.responses import describe_experiment, make_statistics
from tacit.serving.core import Core, RefusedError
from tacit.serving.core import Receipt as CoreReceipt
from tacit.serving.description import find_option
from tacit.serving.experiment import Experiment

_MAX_REPORTS = 1000
_AHEAD = 60.0
"""Seconds that decisions may be dated ahead without a word."""


class Endpoint(NamedTuple):
    """One row."""

    method: str
    path: str
    scope: str | None
    """What the token of a request must allow; None if everybody may ask."""
    handler: Callable[..., Coroutine[Any, Any, Any]]
    """Takes the request, and what its body says if the row has a `reads`; returns a message or a response."""
    summary: str
    answers: Any
    """A type of message, or a tuple of several; None for what is not JSON."""
    reads: Any = None
    may_be_empty: bool = False
    """Whether a body without anything means a message of defaults."""
    raw: bool = False
    """Whether the handler reads the body itself, because its refusals have a form of their own."""
    status: int = 200
    also: Mapping[int, Any] = MappingProxyType({})
    """Other answers, by status."""
    media: str = "application/json"


async def list_all(request: Request) -> m.Experiments:
    """Return the public facts of all experiments."""
    found = request.app.state.manager.experiments.values()
    return m.Experiments([describe_experiment(each) for each in found])


async def show(request: Request) -> m.Described:
    """Return the public facts of one experiment."""
    return describe_experiment(find_experiment(request))


async def change(request: Request, wanted: m.Change) -> m.Described:
    """Switch the mode, add or retire options, set budgets: all that is asked for, or nothing."""
    experiment = find_experiment(request)
    await experiment.ask(experiment.change, **msgspec.to_builtins(wanted))
    return describe_experiment(experiment)


async def decide(request: Request, wanted: m.DecisionRequest) -> m.Decided:
    """Decide; the same id with the same body gets the stored answer."""
    experiment, id = find_experiment(request), wanted.id
    key = request.headers.get("idempotency-key")
    if key is not None and id is None:
        id = msgspec.convert(key, m.Identity)
    return await carry_out(experiment, wanted, id)


async def show_decision(request: Request) -> m.Shown:
    """Note that a decision was shown: its person is charged, and its device reports."""
    experiment = find_experiment(request)
    decision = await experiment.ask(Core.show, request.path_params["id"])
    at = None if decision.reason else decision.report_at
    return m.Shown(
        id=decision.id,
        report_at=None if at is None else at / 1000,
        reason=decision.reason or experiment.core.mode,
    )


async def report(request: Request, sent: m.Report | list[m.Report]) -> m.Receipt | m.Receipts:
    """Take in one report or many, each on its own."""
    experiment, reports = find_experiment(request), request.app.state.metrics.reports
    # Unless it is protected who answered.
    counts = not experiment.core.hides_silence
    if isinstance(sent, m.Report):
        receipt = await _learn(experiment, sent)
        if counts:
            reports.labels(experiment.name, receipt.status).inc()
        return receipt
    if len(sent) > _MAX_REPORTS:
        raise RequestError(413, f"expected at most {_MAX_REPORTS:,} reports, got {len(sent):,}")
    # All at once, so that they share a commit.
    receipts = await asyncio.gather(*(_learn_one_of_many(experiment, each) for each in sent))
    for receipt in receipts if counts else ():
        reports.labels(experiment.name, receipt.status).inc()
    return m.Receipts(receipts)


async def _learn(experiment: Experiment, sent: m.Report) -> m.Receipt:
    value: Any = sent.value
    core = experiment.core
    if isinstance(value, dict):
        value = {find_option(core.options, name): each for name, each in value.items()}
    elif isinstance(value, float):
        local, binary = core.decider.trust == "local", experiment.description.reward == "binary"
        if local and value.is_integer():
            value = int(value)
        elif not local and binary and value not in (0.0, 1.0):
            raise ValueError(f"report: expected a binary reward of 0 or 1, got {value!r}")
    try:
        done = await experiment.ask(Core.report, sent.id, value)
    except RefusedError as error:
        if error.reason != "answered" or not core.hides_silence:
            raise
        done = CoreReceipt(sent.id, "repeated")
    if core.hides_silence:
        # The same for whoever asks again: neither whether it was answered nor with what.
        return m.Receipt(sent.id, "held" if sent.id in experiment.core.open else "late")
    return m.Receipt(done.id, done.status, done.reason)  # type: ignore[arg-type]


async def _learn_one_of_many(experiment: Experiment, sent: m.Report) -> m.Receipt:
    try:
        return await _learn(experiment, sent)
    except RefusedError as error:
        return m.Receipt(sent.id, "refused", f"{error.reason}: {error}")
    except ValueError as error:
        return m.Receipt(sent.id, "refused", f"invalid: {error}")


async def show_statistics(request: Request) -> m.Statistics:
    """Return released values only."""
    return make_statistics(find_experiment(request))


async def check_process(request: Request) -> m.Health:
    """Say that the process is up."""
    return m.Health("up")


async def check_store(request: Request) -> m.Health:
    """Say whether the store can be written: by a write."""
    if why := find_store_problem(request):
        raise RequestError(503, f"the store cannot be written: {why}")
    found = request.app.state.manager.experiments
    ahead, detail = max(map(clock_lead, found.values()), default=0.0), ""
    if ahead > _AHEAD:
        detail = (
            f"decisions are dated {ahead:.0f} s ahead of this machine's clock; if the clock is right, "
            "tacit service reset-clock mends it"
        )
    return m.Health("ready", len(found), detail)


async def show_interface(request: Request) -> Response:
    """Return the description of the interface."""
    return json_answer(describe_interface())


_ONE = "/v1/experiments/{name}"
ENDPOINTS = (
    Endpoint(
        *("POST", "/v1/experiments", "admin", creation.create, "Make an experiment", m.Described),
        reads=m.ExperimentRequest,
        status=201,
        also={202: m.Creation},
    ),
    Endpoint("GET", "/v1/experiments", "decide", list_all, "List all experiments", m.Experiments),
    Endpoint("GET", _ONE, "decide", show, "Show an experiment", m.Described),
    Endpoint(
        *("PATCH", _ONE, "admin", change, "Change mode, options, budgets or people", m.Described),
        reads=m.Change,
    ),
    Endpoint(
        *("GET", f"{_ONE}/creation", "admin", creation.show, "Show whether it is made", m.Creation)
    ),
    Endpoint(
        *("POST", f"{_ONE}/decisions", "decide", decide, "Decide", m.Decided),
        reads=m.DecisionRequest,
        may_be_empty=True,
    ),
    Endpoint(
        *("POST", f"{_ONE}/decisions/{{id}}/shown", "decide"),
        *(show_decision, "Say that a decision was shown", m.Shown),
    ),
    Endpoint(
        *("POST", f"{_ONE}/reports", "report", report, "Report", (m.Receipt, m.Receipts)),
        reads=m.Report | list[m.Report],
    ),
    Endpoint(
        *("GET", f"{_ONE}/statistics", "decide", show_statistics, "Show released values"),
        m.Statistics,
    ),
    Endpoint(
        *("GET", f"{_ONE}/released", "admin", export.send_released),
        *("Export all that was released, a line of JSON for each thing", None),
        media="application/x-ndjson",
    ),
    Endpoint(
        *("POST", "/ofrep/v1/evaluate/flags/{name}", "decide"),
        *(ofrep.evaluate, "Evaluate one flag (OFREP)", m.Flag),
        reads=m.FlagContext,
        raw=True,
        also={400: m.FlagProblem, 404: m.FlagProblem},
    ),
    Endpoint(
        *("POST", "/ofrep/v1/evaluate/flags", "decide"),
        *(ofrep.evaluate_all, "Evaluate all flags (OFREP)", m.Flags),
        reads=m.FlagContext,
        may_be_empty=True,
    ),
    Endpoint("GET", "/healthz", None, check_process, "Say that the process is up", m.Health),
    Endpoint("GET", "/readyz", None, check_store, "Say that the store can be written", m.Health),
    Endpoint(
        *("GET", "/metrics", "metrics", metrics.show_metrics, "Show metrics for Prometheus", None),
        media="text/plain",
    ),
    Endpoint(
        *("GET", "/openapi.json", None, show_interface, "Describe the interface", dict[str, Any])
    ),
)


def make_routes() -> list[Route]:
    """Return the routes of all endpoints."""
    return [Route(row.path, _make_handler(row), methods=[row.method]) for row in ENDPOINTS]


def _make_handler(row: Endpoint) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    reads = None if row.reads is None or row.raw else msgspec.json.Decoder(row.reads)

    async def handle(request: Request) -> Response:
        # The address for metrics is not for everybody, and needs no token.
        if row.scope is not None and not (row.scope == "metrics" and INSIDE in request.scope):
            require_token(request, row.scope)
        if reads is None:
            answer = await row.handler(request)
        else:
            body = await read_body(request)
            empty = row.may_be_empty and not body
            answer = await row.handler(request, row.reads() if empty else decode_body(reads, body))
        return answer if isinstance(answer, Response) else json_answer(answer, row.status)

    return handle


@cache
def describe_interface() -> dict[str, Any]:
    """Return the OpenAPI 3.1 description of all endpoints."""
    kinds: list[Any] = [m.Problem]
    for row in ENDPOINTS:
        answers = row.answers if isinstance(row.answers, tuple) else (row.answers,)
        kinds += [kind for kind in (row.reads, *answers, *row.also.values()) if kind is not None]
    found, components = msgspec.json.schema_components(
        kinds, ref_template="#/components/schemas/{name}"
    )
    schemas = dict(zip(kinds, found, strict=True))

    def content(text: str, kind: Any, media: str = "application/json") -> dict[str, Any]:
        schema = {"type": "string"} if kind is None else schemas.get(kind)
        if isinstance(kind, tuple):
            schema = {"oneOf": [schemas[each] for each in kind]}
        return {"description": text, "content": {media: {"schema": schema}}}

    problem = content("What went wrong, in one sentence.", m.Problem, "application/problem+json")
    paths: dict[str, Any] = {}
    for row in ENDPOINTS:
        done = content("Done.", row.answers, row.media)
        also = {
            str(code): content("Not done, or not yet.", kind) for code, kind in row.also.items()
        }
        operation: dict[str, Any] = {
            "summary": row.summary,
            "responses": {str(row.status): done, **also, "default": problem},
        }
        if row.scope is not None:
            operation["security"] = [{"token": []}]
            operation["description"] = f"Needs a token with the scope `{row.scope}`."
        if row.reads is not None:
            operation["requestBody"] = {"required": True, **content("What is asked.", row.reads)}
        names = [part[1:-1] for part in row.path.split("/") if part.startswith("{")]
        path = paths.setdefault(row.path, {})
        if names:
            path["parameters"] = [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in names
            ]
        path[row.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tacit",
            "version": tacit.__version__,
            "summary": "Private decisions: learn which option is best without giving anyone away.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
