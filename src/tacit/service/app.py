"""The decision service over HTTP: endpoints, limits, headers; every error is one sentence."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.service import creation, dashboard, metrics
from tacit.service.endpoints import make_routes
from tacit.service.experiments import ExperimentManager
from tacit.service.http import Guesses, RequestError, problem
from tacit.service.logs import describe_fault, write_log
from tacit.service.tokens import Tokens
from tacit.serving.core import RefusedError
from tacit.serving.storage import StoreError

_STATUS = {
    "unknown": 404,
    "closed": 410,
    "answered": 409,
    "conflict": 409,
    "unasked": 409,
    "full": 429,
    "person": 422,
}


def make_app(
    manager: ExperimentManager, tokens: Tokens, *, rate: float = 20_000.0, prefix: str = ""
) -> Starlette:
    """Return the service for the experiments of `manager`.

    Parameters
    ----------
    manager : ExperimentManager
    tokens : Tokens
    rate : float
        Requests a second that one token may make; more get 429.
    prefix : str
        What stands before every path where people see it, behind a proxy.
    """
    creations = creation.Creations()

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        manager.start()
        yield
        creations.stop()
        await manager.stop()

    refused = (RequestError, HTTPException, msgspec.MsgspecError, ValueError, StoreError)
    app = Starlette(
        routes=[*make_routes(), *dashboard.routes()],
        lifespan=life,
        middleware=[Middleware(_Guard, tokens=tokens)],
        exception_handlers=dict.fromkeys((*refused, RecursionError), _refuse),
    )
    # A redirect repeats the host that the request claims.
    app.router.redirect_slashes = False
    app.state.manager, app.state.tokens, app.state.creations = manager, tokens, creations
    app.state.prefix, app.state.guesses = prefix, Guesses()
    app.state.rate, app.state.buckets = rate, {}
    app.state.readiness = (float("-inf"), "")
    app.state.started = time.time()
    app.state.metrics, app.state.pages = metrics.Metrics(), {}
    return app


async def _refuse(request: Request, error: Exception) -> Response:
    """Answer what went wrong, in one sentence."""
    headers: Mapping[str, str] | None = None
    match error:
        case RequestError():
            return problem(error.status, error.detail, error.reason, error.headers)
        case HTTPException():
            detail = f"{request.method} {request.scope['path']}: {error.detail}"
            return problem(error.status_code, detail, headers=error.headers)
        case RefusedError():
            status = _STATUS.get(error.reason, 422)
            headers = {"retry-after": "5"} if status == 429 else None
            return problem(status, str(error), error.reason, headers)
        case StoreError():
            _log("store", request, str(error))
            detail, headers = "the store could not commit; nothing was done", {"retry-after": "5"}
            return problem(503, detail, "store", headers)
        case msgspec.MsgspecError() | UnicodeDecodeError() | RecursionError():
            why = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            why = "too many levels" if isinstance(error, RecursionError) else why
            return problem(400, f"the body is not what is expected: {why}", "invalid")
    return problem(422, str(error), "invalid")


def _log(event: str, request: Request, detail: str) -> None:
    """Write one line: neither a token, nor a body, nor a person."""
    template = getattr(request.scope.get("route"), "path", request.scope["path"])
    write_log(event, method=request.method, path=template, detail=detail)


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
            _log("fault", Request(scope), describe_fault(error))
            if begun:
                # Half an answer must not look like a whole one: the server cuts the connection.
                return
            fault = "a fault of the service; it was logged and nothing was answered for it"
            await problem(500, fault)(scope, receive, with_headers)
