"""The same decisions for any OpenFeature SDK, by the OpenFeature Remote Evaluation Protocol.

A flag is an experiment; ``targetingKey`` is the person. A server SDK asks for one flag when it is needed, so
that decision counts as shown. A web SDK asks for all at once before it knows which one it needs, so
those are not shown yet; identity, probability, time and instructions are in ``metadata``.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tacit.service.http import RequestError, allowed, body_of, decode_body, hosted_of
from tacit.service.messages import DecisionRequest
from tacit.service.responses import answer, decided
from tacit.serving.core import RefusedError

_encode = msgspec.json.Encoder().encode


class _Asked(msgspec.Struct):
    context: dict[str, Any] = msgspec.field(default_factory=dict)


_asked = msgspec.json.Decoder(_Asked)


async def evaluate(request: Request) -> Response:
    """Decide for one flag."""
    try:
        context = await _context(request)
        hosted = hosted_of(request)
        wanted = _wanted(context, shown=True)
        decision, names = await decided(hosted, wanted)
    except RequestError as error:
        key = request.path_params["name"]
        if error.status == 404:
            return _error(404, key, "FLAG_NOT_FOUND", error.detail)
        raise
    except (msgspec.ValidationError, msgspec.DecodeError, RefusedError, ValueError) as error:
        return _error(400, request.path_params["name"], _code(context_error=error), str(error))
    return Response(_encode(_flag(hosted, decision, names)), media_type="application/json")


async def evaluate_all(request: Request) -> Response:
    """Decide for every experiment that can be decided for this context; none counts as shown."""
    context = await _context(request)
    flags = []
    for name, hosted in request.app.state.host.experiments.items():
        try:
            # An identity made of person and state: asked again, the answer is the same.
            seed = (
                f"{name}\0{context.get('targetingKey')}\0{hosted.core.learned}\0{hosted.core.mode}"
            )
            id = hashlib.blake2b(seed.encode(), key=_key(request), digest_size=16).hexdigest()
            wanted = _wanted(context, shown=False, id=id)
            decision, names = await decided(hosted, wanted)
            flags.append(_flag(hosted, decision, names))
        except (RefusedError, ValueError) as error:
            flags.append({"key": name, "errorCode": "GENERAL", "errorDetails": str(error)})
    body = _encode({"flags": flags})
    tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"etag": tag})
    return Response(body, media_type="application/json", headers={"etag": tag})


def _key(request: Request) -> bytes:
    key: bytes = request.app.state.host.secret
    return key


async def _context(request: Request) -> dict[str, Any]:
    allowed(request, "decide")
    body = await body_of(request)
    return decode_body(_asked, body).context if body else {}


def _wanted(context: dict[str, Any], *, shown: bool, id: str | None = None) -> DecisionRequest:
    given: dict[str, Any] = {"shown": shown}
    if id is not None:
        given["id"] = id
    person = context.get("targetingKey")
    if person is not None:
        given["person"] = person
    for name in ("eligible", "contexts"):
        if context.get(name) is not None:
            given[name] = context[name]
    return msgspec.convert(given, DecisionRequest)


def _flag(hosted: Any, decision: Any, names: Any) -> dict[str, Any]:
    answered = answer(hosted, decision, names)
    metadata: dict[str, Any] = {"id": answered.id, "probability": answered.probability}
    if answered.instructions is not None:
        metadata["report_at"] = answered.report_at
        # OpenFeature's metadata holds words, numbers and truth values only.
        metadata["instructions"] = msgspec.json.encode(answered.instructions).decode()
    return {
        "key": hosted.name,
        "value": answered.option,
        "variant": answered.option,
        "reason": "SPLIT" if answered.reason == "learn" else answered.reason.upper(),
        "metadata": metadata,
    }


def _code(context_error: Exception) -> str:
    if isinstance(context_error, RefusedError) and context_error.reason == "person":
        return "TARGETING_KEY_MISSING"
    if isinstance(context_error, msgspec.ValidationError):
        return "INVALID_CONTEXT"
    return "PARSE_ERROR" if isinstance(context_error, msgspec.DecodeError) else "GENERAL"


def _error(status: int, key: str, code: str, detail: str) -> Response:
    body = {"key": key, "errorCode": code, "errorDetails": detail}
    return Response(_encode(body), status, media_type="application/json")
