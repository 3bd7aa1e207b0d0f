"""The description of the HTTP interface, generated from the message types."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

import tacit
from tacit.service import messages as m

_TYPES = (
    m.Change,
    m.Decided,
    m.Creation,
    m.DecisionRequest,
    m.Described,
    m.ExperimentRequest,
    m.Problem,
    m.Receipt,
    m.Receipts,
    m.Report,
    m.Shown,
    m.Statistics,
)


def _ref(kind: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _answer(text: str, schema: dict[str, Any] | None = None, kind: str = "json") -> dict[str, Any]:
    if schema is None:
        return {"description": text}
    return {"description": text, "content": {f"application/{kind}": {"schema": schema}}}


def _operation(
    summary: str,
    scope: str | None,
    *,
    body: dict[str, Any] | None = None,
    done: dict[str, Any] | None = None,
    status: str = "200",
    errors: dict[str, Any] | None = None,
    parameters: tuple[dict[str, Any], ...] = (),
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": summary,
        "responses": {
            status: done or _answer("Done."),
            **(errors or {}),
            "default": _answer(
                "What went wrong, in one sentence.", _ref(m.Problem), "problem+json"
            ),
        },
    }
    if scope is not None:
        operation["security"] = [{"token": []}]
        operation["description"] = f"Needs a token with the scope `{scope}`."
    if body is not None:
        operation["requestBody"] = body
    if parameters:
        operation["parameters"] = list(parameters)
    return operation


_NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}


@cache
def described() -> dict[str, Any]:
    """Return the OpenAPI 3.1 description."""
    _, schemas = msgspec.json.schema_components(_TYPES, ref_template="#/components/schemas/{name}")
    context = {"type": "object", "properties": {"context": {"type": "object"}}}
    one_or_many = {"oneOf": [_ref(m.Report), {"type": "array", "items": _ref(m.Report)}]}
    receipts = {"oneOf": [_ref(m.Receipt), _ref(m.Receipts)]}
    thing = {"type": "object"}
    word = {"type": "string"}
    flag = {
        "type": "object",
        "properties": {"key": word, "value": word, "variant": word, "reason": word},
        "required": ["key"],
    }
    flags = {"type": "object", "properties": {"flags": {"type": "array", "items": flag}}}
    no_flag = {
        "type": "object",
        "properties": {"key": word, "errorCode": word, "errorDetails": word},
        "required": ["key", "errorCode"],
    }
    many = {
        "type": "object",
        "properties": {"experiments": {"type": "array", "items": _ref(m.Described)}},
    }
    paths = {
        "/v1/experiments": {
            "get": _operation("All experiments", "decide", done=_answer("Public facts.", many)),
            "post": _operation(
                "A new experiment",
                "admin",
                body=_body(_ref(m.ExperimentRequest)),
                done=_answer("Guarantee and instructions.", _ref(m.Described)),
                status="201",
                errors={"202": _answer("Compiled first; ask at Location.", _ref(m.Creation))},
            ),
        },
        "/v1/experiments/{name}": {
            "parameters": [_NAME],
            "get": _operation(
                "One experiment", "decide", done=_answer("Public facts.", _ref(m.Described))
            ),
            "patch": _operation(
                "Mode, options, budgets",
                "admin",
                body=_body(_ref(m.Change)),
                done=_answer("As it is now.", _ref(m.Described)),
            ),
        },
        "/v1/experiments/{name}/creation": {
            "parameters": [_NAME],
            "get": _operation(
                "Whether it is ready", "admin", done=_answer("Its status.", _ref(m.Creation))
            ),
        },
        "/v1/experiments/{name}/decisions": {
            "parameters": [_NAME],
            "post": _operation(
                "Decide",
                "decide",
                body=_body(_ref(m.DecisionRequest)),
                done=_answer("The decision.", _ref(m.Decided)),
            ),
        },
        "/v1/experiments/{name}/decisions/{id}/shown": {
            "parameters": [_NAME, _ID],
            "post": _operation(
                "It was shown", "decide", done=_answer("Its report is awaited.", _ref(m.Shown))
            ),
        },
        "/v1/experiments/{name}/reports": {
            "parameters": [_NAME],
            "post": _operation(
                "Report", "report", body=_body(one_or_many), done=_answer("Receipts.", receipts)
            ),
        },
        "/v1/experiments/{name}/statistics": {
            "parameters": [_NAME],
            "get": _operation(
                "Released values", "decide", done=_answer("By option.", _ref(m.Statistics))
            ),
        },
        "/v1/experiments/{name}/released": {
            "parameters": [_NAME],
            "get": _operation(
                "Everything released so far",
                "admin",
                done=_answer("A line of JSON for each thing.", {"type": "string"}, "x-ndjson"),
            ),
        },
        "/ofrep/v1/evaluate/flags/{name}": {
            "parameters": [_NAME],
            "post": _operation(
                "One flag (OFREP)",
                "decide",
                body=_body(context),
                done=_answer("The flag.", flag),
                errors={status: _answer("As OFREP says.", no_flag) for status in ("400", "404")},
            ),
        },
        "/ofrep/v1/evaluate/flags": {
            "post": _operation(
                "All flags (OFREP)",
                "decide",
                body=_body(context),
                done=_answer("The flags.", flags),
            ),
        },
        "/healthz": {"get": _operation("The process is up", None, done=_answer("Up.", thing))},
        "/readyz": {
            "get": _operation("The store can be written", None, done=_answer("Ready.", thing))
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tacit",
            "version": tacit.__version__,
            "summary": "Private decisions: learn which option is best without giving anyone away.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


async def description(request: Request) -> Response:
    """Return the description."""
    return Response(msgspec.json.encode(described()), media_type="application/json")
