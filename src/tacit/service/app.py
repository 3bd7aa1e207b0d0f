"""The decision service over HTTP: paths, tokens, limits; every error is one sentence."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.service import creation, dashboard, export, metrics, ofrep, openapi
from tacit.service.experiments import Host, Hosted
from tacit.service.http import (
    Guesses,
    RequestError,
    allowed,
    body_of,
    clock_lead,
    decode_body,
    host_of,
    hosted_of,
    json_answer,
    problem,
    store_problem,
)
from tacit.service.logs import place_of
from tacit.service.messages import (
    Change,
    DecisionRequest,
    ExperimentRequest,
    Receipt,
    Receipts,
    Report,
    Shown,
)
from tacit.service.responses import answer, apply, decided, describe, statistics_of
from tacit.service.tokens import Tokens
from tacit.serving.core import Core, OpenDecision, RefusedError
from tacit.serving.core import Receipt as CoreReceipt
from tacit.serving.description import places
from tacit.serving.storage import StoreError

_MAX_REPORTS = 1000
_AHEAD = 60.0
"""Seconds that decisions may be dated ahead without a word."""
_STATUS = {
    "unknown": 404,
    "closed": 410,
    "answered": 409,
    "conflict": 409,
    "unasked": 409,
    "full": 429,
    "person": 422,
}

_decision = msgspec.json.Decoder(DecisionRequest)
_reports = msgspec.json.Decoder(Report | list[Report])
_experiment = msgspec.json.Decoder(ExperimentRequest)
_change = msgspec.json.Decoder(Change)


def make_app(host: Host, tokens: Tokens, *, rate: float = 20_000.0, prefix: str = "") -> Starlette:
    """Return the service for the experiments of `host`.

    Parameters
    ----------
    host : Host
    tokens : Tokens
    rate : float
        Requests a second that one token may make; more get 429.
    prefix : str
        What stands before every path where people see it, behind a proxy.
    """
    creations = creation.Creations()

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        host.start()
        yield
        creations.stop()
        await host.stop()

    routes = [
        Route("/v1/experiments", create, methods=["POST"]),
        Route("/v1/experiments", list_all, methods=["GET"]),
        Route("/v1/experiments/{name}", show, methods=["GET"]),
        Route("/v1/experiments/{name}", change, methods=["PATCH"]),
        Route("/v1/experiments/{name}/creation", creation.tell, methods=["GET"]),
        Route("/v1/experiments/{name}/decisions", decide, methods=["POST"]),
        Route("/v1/experiments/{name}/decisions/{id}/shown", shown, methods=["POST"]),
        Route("/v1/experiments/{name}/reports", report, methods=["POST"]),
        Route("/v1/experiments/{name}/statistics", statistics, methods=["GET"]),
        Route("/v1/experiments/{name}/released", export.released, methods=["GET"]),
        Route("/ofrep/v1/evaluate/flags/{name}", ofrep.evaluate, methods=["POST"]),
        Route("/ofrep/v1/evaluate/flags", ofrep.evaluate_all, methods=["POST"]),
        Route("/healthz", healthy, methods=["GET"]),
        Route("/readyz", ready, methods=["GET"]),
        Route("/metrics", metrics.exposed, methods=["GET"]),
        Route("/openapi.json", openapi.description, methods=["GET"]),
        *dashboard.routes(),
    ]
    app = Starlette(
        routes=routes,
        lifespan=life,
        middleware=[Middleware(_Guard, tokens=tokens)],
        exception_handlers={
            RequestError: _refused,
            HTTPException: _no_such_path,
            msgspec.ValidationError: _invalid,
            msgspec.DecodeError: _invalid,
            RefusedError: _refused_by_core,
            UnicodeDecodeError: _not_text,
            ValueError: _mistaken,
            StoreError: _unavailable,
            RecursionError: _nested,
        },
    )
    # A redirect repeats the host that the request claims.
    app.router.redirect_slashes = False
    app.state.host, app.state.tokens = host, tokens
    app.state.prefix, app.state.guesses = prefix, Guesses()
    app.state.rate, app.state.buckets = rate, {}
    app.state.readiness = (float("-inf"), "")
    app.state.creations = creations
    app.state.started = time.time()
    app.state.metrics, app.state.pages = metrics.Metrics(), {}
    return app


async def create(request: Request) -> Response:
    """Make an experiment; the answer says what it protects and what a device must do."""
    allowed(request, "admin")
    return await creation.make(request, decode_body(_experiment, await body_of(request)))


async def list_all(request: Request) -> Response:
    """Return the public facts of all experiments."""
    allowed(request, "decide")
    hosts = host_of(request).experiments.values()
    return json_answer({"experiments": [describe(hosted) for hosted in hosts]})


async def show(request: Request) -> Response:
    """Return the public facts of one experiment."""
    allowed(request, "decide")
    return json_answer(describe(hosted_of(request)))


async def change(request: Request) -> Response:
    """Switch the mode, add or retire options, set budgets."""
    allowed(request, "admin")
    hosted = hosted_of(request)
    wanted = decode_body(_change, await body_of(request))
    await apply(hosted, wanted)
    return json_answer(describe(hosted))


async def decide(request: Request) -> Response:
    """Decide; the same id with the same body gets the stored answer."""
    allowed(request, "decide")
    hosted = hosted_of(request)
    body = await body_of(request)
    wanted = decode_body(_decision, body) if body else DecisionRequest()
    key = request.headers.get("idempotency-key")
    if key is not None and wanted.id is None:
        wanted = msgspec.convert({**given_of(wanted), "id": key}, DecisionRequest)
    decision, names = await decided(hosted, wanted)
    return json_answer(answer(hosted, decision, names))


async def shown(request: Request) -> Response:
    """Note that a decision was shown: its person is charged, and its device reports."""
    allowed(request, "decide")
    hosted = hosted_of(request)
    decision: OpenDecision = await hosted.ask(Core.show, request.path_params["id"])
    at = decision.report_at
    silent = bool(decision.reason)
    return json_answer(
        Shown(
            id=decision.id,
            report_at=None if at is None or silent else at / 1000,
            reason=decision.reason or hosted.core.mode,
        )
    )


async def report(request: Request) -> Response:
    """Take in one report or many, each on its own."""
    allowed(request, "report")
    hosted = hosted_of(request)
    sent = decode_body(_reports, await body_of(request))
    if isinstance(sent, Report):
        receipt = await _taken(hosted, sent)
        request.app.state.metrics.count(hosted, receipt.status)
        return json_answer(receipt)
    if len(sent) > _MAX_REPORTS:
        raise RequestError(413, f"expected at most {_MAX_REPORTS:,} reports, got {len(sent):,}")
    # All at once, so that they share a commit.
    receipts = await asyncio.gather(*(_one_of_many(hosted, each) for each in sent))
    for receipt in receipts:
        request.app.state.metrics.count(hosted, receipt.status)
    return json_answer(Receipts(receipts))


async def _taken(hosted: Hosted, sent: Report) -> Receipt:
    try:
        done: CoreReceipt = await hosted.ask(Core.report, sent.id, _value(hosted, sent))
    except RefusedError as error:
        if error.reason != "answered" or not hosted.core.hides_silence:
            raise
        done = CoreReceipt(sent.id, "repeated")
    if hosted.core.hides_silence:
        # The same for whoever asks again: neither whether it was answered nor with what.
        return Receipt(sent.id, "held" if sent.id in hosted.core.open else "late")
    return Receipt(done.id, done.status, done.reason)  # type: ignore[arg-type]


async def _one_of_many(hosted: Hosted, sent: Report) -> Receipt:
    try:
        return await _taken(hosted, sent)
    except RefusedError as error:
        return Receipt(sent.id, "refused", f"{error.reason}: {error}")
    except ValueError as error:
        return Receipt(sent.id, "refused", f"invalid: {error}")


def _value(hosted: Hosted, sent: Report) -> Any:
    value: Any = sent.value
    if isinstance(value, dict):
        return dict(zip(places(hosted.core.options, list(value)), value.values(), strict=True))
    if isinstance(value, float):
        local = hosted.core.decider.trust == "local"
        if local and value.is_integer():
            return int(value)
        if not local and hosted.request.reward.kind == "binary" and value not in (0.0, 1.0):
            raise ValueError(f"report: expected a binary reward of 0 or 1, got {value!r}")
    return value


async def statistics(request: Request) -> Response:
    """Return released values only."""
    allowed(request, "decide")
    return json_answer(statistics_of(hosted_of(request)))


async def healthy(request: Request) -> Response:
    """Say that the process is up."""
    return json_answer({"status": "up"})


async def ready(request: Request) -> Response:
    """Say whether the store can be written: by a write."""
    if why := store_problem(request):
        raise RequestError(503, f"the store cannot be written: {why}")
    hosts = host_of(request).experiments
    said: dict[str, Any] = {"status": "ready", "experiments": len(hosts)}
    ahead = max((clock_lead(hosted) for hosted in hosts.values()), default=0.0)
    if ahead > _AHEAD:
        said["detail"] = (
            f"decisions are dated {ahead:.0f} s ahead of this machine's clock; if the clock is right, "
            "tacit service reset-clock mends it"
        )
    return json_answer(said)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return problem(error.status, error.detail, error.reason, error.headers)


async def _no_such_path(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = f"{request.method} {request.scope['path']}: {error.detail}"
    return problem(error.status_code, detail, headers=error.headers)


async def _invalid(request: Request, error: Exception) -> Response:
    return problem(400, f"the body is not what is expected: {error}", "invalid")


async def _refused_by_core(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    status = _STATUS.get(error.reason, 422)
    headers = {"retry-after": "5"} if status == 429 else None
    return problem(status, str(error), error.reason, headers)


async def _not_text(request: Request, error: Exception) -> Response:
    return problem(400, "the body is not what is expected: not UTF-8", "invalid")


async def _mistaken(request: Request, error: Exception) -> Response:
    return problem(422, str(error), "invalid")


async def _unavailable(request: Request, error: Exception) -> Response:
    metrics.log("store", request, detail=str(error))
    return problem(
        503, "the store could not commit; nothing was done", "store", {"retry-after": "5"}
    )


async def _nested(request: Request, error: Exception) -> Response:
    return problem(400, "the body is not what is expected: too many levels", "invalid")


def given_of(message: Any) -> dict[str, Any]:
    """Return the fields of a message that were given."""
    built: dict[str, Any] = msgspec.to_builtins(message)
    return {name: value for name, value in built.items() if value is not None}


class _Guard:
    """Headers for every answer, those that browsers ask for before they send a token, and faults."""

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self._app, self._tokens = app, tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        names = [name for name, _ in scope["headers"]]
        if b"content-length" in names and b"transfer-encoding" in names:
            # A proxy and this service could take different parts of it for the body.
            both = "expected Content-Length or Transfer-Encoding, got both"
            await problem(400, both, headers={"connection": "close"})(scope, receive, send)
            return
        origin = next((value for name, value in scope["headers"] if name == b"origin"), None)
        allowed = origin is not None and origin.decode("latin-1") in {
            each for token in self._tokens.known() for each in token.origins
        }
        extra = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
        if allowed and origin is not None:
            extra += [
                (b"access-control-allow-origin", origin),
                (b"access-control-expose-headers", b"etag, retry-after"),
                (b"vary", b"origin"),
            ]
        if scope["method"] == "OPTIONS" and allowed:
            extra += [
                (b"access-control-allow-methods", b"POST, GET"),
                (
                    b"access-control-allow-headers",
                    b"authorization, content-type, idempotency-key, if-none-match",
                ),
                (b"access-control-max-age", b"600"),
            ]
            await send({"type": "http.response.start", "status": 204, "headers": extra})
            await send({"type": "http.response.body", "body": b""})
            return

        begun = False

        async def with_headers(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in extra if pair[0] not in present),
                ]
            await send(message)

        try:
            await self._app(scope, receive, with_headers)
        except ClientDisconnect:
            return
        except asyncio.CancelledError:
            # The process ends, and whoever still waited here had nothing done.
            if begun:
                raise
            ending = {"retry-after": "5"}
            await problem(503, "the service ends; nothing was done", "ending", ending)(
                scope, receive, with_headers
            )
        except Exception as error:
            # Nothing goes further up, where a server would print what was sent in a traceback.
            metrics.log("fault", Request(scope), detail=place_of(error))
            if begun:
                # Half an answer must not look like a whole one: the server cuts the connection.
                return
            fault = "a fault of the service; it was logged and nothing was answered for it"
            await problem(500, fault)(scope, receive, with_headers)
