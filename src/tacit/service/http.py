"""What every path needs: who asks, what was sent, how an answer or a refusal looks."""

from __future__ import annotations

import json
import time
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tacit.service.experiments import ExperimentManager
from tacit.service.logs import write_log
from tacit.service.messages import Problem
from tacit.service.tokens import Token, Tokens
from tacit.serving.experiment import Experiment
from tacit.serving.storage import StoreError

MAX_BODY = 1 << 20
_SLOW = 1.0
_FRESH = 1.0
_GUESSES = 20.0
_ADDRESSES = 4096
_TITLES = {
    400: "Bad request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    410: "Gone",
    413: "Too large",
    415: "Not JSON",
    422: "Not possible",
    429: "Too many",
    500: "Fault",
    503: "Unavailable",
}

_encode = msgspec.json.Encoder().encode
T = TypeVar("T")


class RequestError(Exception):
    """A request that is answered by a problem."""

    def __init__(self, status: int, detail: str, reason: str = "", **headers: str) -> None:
        super().__init__(detail)
        self.status, self.detail, self.reason, self.headers = status, detail, reason, headers


def find_experiment(request: Request) -> Experiment:
    """Return the experiment that a path names."""
    name = request.path_params["name"]
    manager: ExperimentManager = request.app.state.manager
    found = manager.experiments.get(name)
    if found is None:
        raise RequestError(404, f"expected an experiment of this service, got {name!r}", "unknown")
    return found


def find_token(request: Request) -> Token | None:
    """Return the token that a request carries, if it is known."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    tokens: Tokens = request.app.state.tokens
    return tokens.find(secret.strip()) if kind.lower() == "bearer" and secret else None


def require_token(request: Request, scope: str) -> None:
    """Refuse a request whose token does not allow `scope`, or is used too often."""
    token = find_token(request)
    if token is None:
        raise _unknown(request)
    if not token.may(scope):
        raise RequestError(
            403, f"expected a token with the scope {scope!r}, got {list(token.scopes)}"
        )
    origin = request.headers.get("origin")
    if token.origins and origin not in token.origins:
        raise RequestError(403, f"expected a page of {list(token.origins)}, got {origin!r}")
    state, now = request.app.state, time.monotonic()
    rate: float = state.rate
    left, at = state.buckets.get(token.digest, (rate, now))
    left = min(rate, left + (now - at) * rate) - 1.0
    state.buckets[token.digest] = (max(left, 0.0), now)
    if left < 0:
        raise RequestError(429, "too many requests for this token", "rate", **{"retry-after": "1"})


def _unknown(request: Request) -> RequestError:
    bearer = {"www-authenticate": "Bearer"}
    if "authorization" not in request.headers:
        return RequestError(401, "expected a token: Authorization: Bearer ...", **bearer)
    request.app.state.guesses.count(request)
    detail = "expected a token of this service, got one that is unknown or revoked"
    return RequestError(401, detail, **bearer)


class Guesses:
    """Wrong tokens: each address may try a few, then one a second; the log has a line for each second."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}
        self._logged_at, self._unlogged = -_FRESH, 0

    def count(self, request: Request) -> None:
        """Count a wrong token, or refuse it because its address tried too many."""
        address, now = request.client.host if request.client else "", time.monotonic()
        self._unlogged += 1
        if now - self._logged_at >= _FRESH:
            write_log("token", detail="wrong token", address=address, count=self._unlogged)
            self._logged_at, self._unlogged = now, 0
        left, at = self._left.pop(address, (_GUESSES, now))
        left = min(_GUESSES, left + now - at) - 1.0
        self._left[address] = (max(left, 0.0), now)
        if len(self._left) > _ADDRESSES:
            del self._left[next(iter(self._left))]
        if left < 0:
            raise RequestError(429, "too many wrong tokens", "rate", **{"retry-after": "1"})


def clock_lead(experiment: Experiment) -> float:
    """Return how many seconds an experiment's decisions are dated ahead of this machine's clock."""
    return experiment.core.clock_lead(experiment.clock()) / 1000


def find_store_problem(request: Request) -> str:
    """Return why the store cannot be written, as of a second ago at most; empty if it can."""
    state, now = request.app.state, time.monotonic()
    known_until, why = state.readiness
    if now >= known_until:
        try:
            state.manager.store.check()
            why = ""
        except StoreError as error:
            why = str(error)
        state.readiness = (now + _FRESH, why)
    return str(why)


async def read_body(request: Request, kind: str | None = "application/json") -> bytes:
    """Return what was sent; what is of another kind or too large is refused before it is read."""
    called = request.headers.get("content-type", kind or "").partition(";")[0].strip().lower()
    if kind is not None and called != kind:
        raise RequestError(415, f"expected a body of the type {kind}, got {called[:100]!r}")
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > MAX_BODY:
        raise RequestError(413, f"expected a body of at most {MAX_BODY:,} bytes, got {declared}")
    parts, size, begun = [], 0, time.monotonic()
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY:
            raise RequestError(413, f"expected a body of at most {MAX_BODY:,} bytes")
        parts.append(part)
    slow = time.monotonic() - begun > _SLOW
    if slow and "authorization" in request.headers and find_token(request) is None:
        # It was revoked while the body came in.
        raise _unknown(request)
    return b"".join(parts)


def decode_body(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """Return what a body says; one that names a field twice is refused, since readers differ about it."""
    value = decoder.decode(body)
    if body.count(b":") > 1:
        json.loads(body, object_pairs_hook=_named_once)
    return value


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise RequestError(400, "expected each field once, got one twice", "invalid")
    return found


def json_answer(value: Any, status: int = 200) -> Response:
    """Return an answer."""
    return Response(_encode(value), status, media_type="application/json")


def problem(status: int, detail: str, reason: str = "", headers: Any = None) -> Response:
    """Return an error in one sentence."""
    body = Problem(_TITLES.get(status, "Error"), status, " ".join(detail.split()), reason)
    return Response(_encode(body), status, headers=headers, media_type="application/problem+json")
