"""Pages for whoever runs an experiment: traffic, worth, silence, budgets, guarantee, mode.

Server-rendered, from files in the wheel; no other host is contacted. An administrator's token opens a session
whose cookie scripts cannot read and every process of the service knows; every form checks where it was
sent from.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import jinja2
import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

import tacit
from tacit.service.http import (
    RequestError,
    find_experiment,
    find_store_problem,
    read_body,
)
from tacit.service.messages import Change
from tacit.service.responses import make_statistics
from tacit.service.tokens import Tokens
from tacit.serving.core import MODES, Core
from tacit.serving.experiment import Experiment

_PAGES = Path(__file__).parent / "pages"
_COOKIE = "tacit_session"
_LASTS = 12 * 3600
_FRESH = 1.0
_BASELINE = ("shadow", "off")
"""Modes in which everybody gets the same option."""
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def routes() -> list[Route]:
    """Return the pages' paths."""
    return [
        Route("/", home, methods=["GET"]),
        Route("/login", login, methods=["POST"]),
        Route("/logout", logout, methods=["POST"]),
        Route("/experiments/{name}", experiment, methods=["GET"]),
        Route("/experiments/{name}/numbers", numbers, methods=["GET"]),
        Route("/experiments/{name}/mode", set_mode, methods=["POST"]),
        Route("/experiments/{name}/options", set_options, methods=["POST"]),
        Route("/static/{file}", static, methods=["GET"]),
    ]


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_PAGES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    text = (
        _templates()
        .get_template(template)
        .render(version=tacit.__version__, prefix=request.app.state.prefix, **values)
    )
    headers = {"content-security-policy": _POLICY, "referrer-policy": "same-origin"}
    return Response(text, status, headers=headers, media_type="text/html; charset=utf-8")


async def home(request: Request) -> Response:
    """List the experiments, or ask for a token."""
    if not _signed_in(request):
        return _page(request, "login.html", problem="")
    manager = request.app.state.manager
    rows = [
        {"name": name, "mode": experiment.core.mode, **_summary(experiment)}
        for name, experiment in manager.experiments.items()
    ]
    others = [name for name in manager.names() if name not in manager.experiments]
    return _page(request, "home.html", rows=rows, others=others)


async def login(request: Request) -> Response:
    """Open a session with an administrator's token."""
    form = await _form(request)
    token = request.app.state.tokens.find(form.get("token", "").strip())
    if token is None or not token.may("admin"):
        if token is None:
            request.app.state.guesses.count(request)
        wrong = "This is not an administrator's token."
        return _page(request, "login.html", 403, problem=wrong)
    text = f"{int(time.time()) + _LASTS}.{token.digest}.{secrets.token_urlsafe(16)}"
    session = f"{text}.{_seal(request, text)}"
    answer = _go(request)
    answer.set_cookie(
        _COOKIE,
        session,
        max_age=_LASTS,
        path=request.app.state.prefix or "/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


async def logout(request: Request) -> Response:
    """Close the session."""
    await _form(request)
    if _signed_in(request):
        session = request.cookies[_COOKIE]
        until, digest, *_ = session.split(".")
        request.app.state.tokens.end_session(digest, session, int(until))
    answer = _go(request)
    answer.delete_cookie(_COOKIE, path=request.app.state.prefix or "/")
    return answer


def _go(request: Request, path: str = "/") -> RedirectResponse:
    return RedirectResponse(f"{request.app.state.prefix}{path}", 303)


async def experiment(request: Request) -> Response:
    """Show one experiment."""
    if not _signed_in(request):
        return _go(request)
    return _shown(request, find_experiment(request))


def _shown(request: Request, experiment: Experiment, problem: str = "") -> Response:
    core = experiment.core
    return _page(
        request,
        "experiment.html",
        name=experiment.name,
        place=quote(experiment.name),
        policy=experiment.policy.name,
        explore=experiment.description.explore,
        mode=core.mode,
        modes=MODES,
        sentence=experiment.sentence(),
        trust=core.decider.trust,
        active=[name for i, name in enumerate(core.options) if i not in core.retired],
        problem=problem,
        **_numbers(request, experiment),
    )


async def numbers(request: Request) -> Response:
    """Return the part of the page that changes, made at most once a second for all who look."""
    if not _signed_in(request):
        return Response(status_code=401)
    experiment, now = find_experiment(request), time.monotonic()
    made: dict[str, tuple[float, Experiment, Response]] = request.app.state.pages
    until, of, page = made.get(experiment.name, (0.0, None, None))
    if page is None or of is not experiment or until < now:
        page = _page(request, "numbers.html", **_numbers(request, experiment))
        made[experiment.name] = (now + _FRESH, experiment, page)
    return page


async def set_mode(request: Request) -> Response:
    """Switch the mode."""
    return await _change(request, lambda form: {"mode": form.get("mode", "")})


async def set_options(request: Request) -> Response:
    """Add or retire an option."""

    def wanted(form: dict[str, str]) -> dict[str, Any]:
        name = form.get("name", "").strip()
        if form.get("do") == "add":
            return {"add_options": [name]}
        if form.get("sure") != "yes":
            raise ValueError(f"retire: expected to be told that {name!r} is to go for good")
        return {"retire_options": [name]}

    return await _change(request, wanted)


async def _change(request: Request, wanted: Any) -> Response:
    if not _signed_in(request):
        return _go(request)
    experiment = find_experiment(request)
    form = await _form(request)
    try:
        change = msgspec.to_builtins(msgspec.convert(wanted(form), Change))
        await experiment.ask(experiment.change, **change)
    except (ValueError, RequestError) as error:
        # In the answer itself: what an address says, anybody could have written.
        return _shown(request, experiment, str(error)[:300])
    return _go(request, f"/experiments/{quote(experiment.name)}")


@cache
def _files() -> dict[str, Path]:
    return {path.name: path for path in _PAGES.iterdir() if path.suffix in _KINDS}


async def static(request: Request) -> Response:
    """Return a file of the pages."""
    path = _files().get(request.path_params["file"])
    if path is None:
        return Response(status_code=404)
    headers = {"cache-control": "public, max-age=300"}
    return Response(path.read_bytes(), headers=headers, media_type=_KINDS[path.suffix])


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form of this site; another site's is refused."""
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    fetched = request.headers.get("sec-fetch-site")
    # A browser says itself whether a form is of the same site, whatever a proxy made of the host.
    if fetched is not None:
        own = fetched in ("same-origin", "none")
    else:
        own = origin is None or origin.split("://", 1)[-1] == host
    if not own:
        raise RequestError(
            403,
            f"expected a form of this site, {host!r}, got one of {origin!r}; a proxy must pass on the host "
            "that it is asked for",
        )
    body = await read_body(request, "application/x-www-form-urlencoded")
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[0] for name, values in fields.items()}


def _seal(request: Request, text: str) -> str:
    """Return what shows that a process of this service made a session: all of them share the key."""
    key = request.app.state.manager.secret
    return hashlib.blake2b(text.encode(), key=key, person=b"session", digest_size=32).hexdigest()


def _signed_in(request: Request) -> bool:
    session = request.cookies.get(_COOKIE, "")
    text, _, seal = session.rpartition(".")
    made_here = hmac.compare_digest(seal.encode(), _seal(request, text).encode())
    if not made_here:
        return False
    until, digest, _ = text.split(".")
    tokens: Tokens = request.app.state.tokens
    return int(until) > time.time() and tokens.session_of(digest, session) is not None


def _summary(experiment: Experiment) -> dict[str, Any]:
    core = experiment.core
    guarantee = experiment.core.guarantee()
    return {
        "policy": experiment.policy.name,
        "trust": core.decider.trust,
        "decisions": core.decided,
        "learned": core.learned,
        "leader": _leader(core),
        "epsilon": f"{guarantee.epsilon:.3g}" if guarantee.private else "none",
    }


def _leader(core: Core) -> str:
    """Return the option that the policy chose more often than any other, if there is one."""
    if core.mode in _BASELINE or len(core.options) < 2:
        return ""
    *_, second, first = sorted((tally[0], i) for i, tally in enumerate(core.tallies))
    return core.options[first[1]] if first[0] > second[0] else ""


def _numbers(request: Request, experiment: Experiment) -> dict[str, Any]:
    core, found = experiment.core, make_statistics(experiment)
    total = sum(row.decided for row in found.options) or 1
    rows = [
        {
            "option": row.option,
            "retired": row.retired,
            "baseline": core.mode in _BASELINE and i == core.config.baseline,
            "share": row.decided / total,
            "decided": row.decided,
            "learned": row.learned,
            "silent": row.silent,
            "estimate": row.estimate,
            "low": None if row.low is None else max(0.0, row.low),
            "high": None if row.high is None else min(1.0, row.high),
        }
        for i, row in enumerate(found.options)
    ]
    return {
        "rows": rows,
        "named": bool(core.options),
        "local": core.decider.trust == "local",
        "private": experiment.core.guarantee().private,
        "rounds": found.rounds,
        "open": found.open,
        "late": found.late,
        "missing": found.missing_share,
        "lies": found.shift_by_lies,
        "budgets": _budgets(experiment),
        "events": None if core.hides_silence else experiment.seq,
        "store_problem": find_store_problem(request),
        "ahead": core.clock_lead(experiment.clock()) / 1000,
        "horizon": core.decider.horizon,
        "past_horizon": core.past_horizon,
    }


def _budgets(experiment: Experiment) -> list[dict[str, Any]]:
    """Return for each window how many people used which share of what they may spend."""
    shown, store = [], experiment.store
    for allowance in experiment.core.budget.allowances:
        window, _ = allowance.of(experiment.clock())
        amounts = [] if store is None else store.amounts(experiment.name, window)
        limit = max(1, allowance.amount)
        bins = [0] * 5
        for amount in amounts:
            bins[min(4, 5 * amount // limit)] += 1
        most = max(bins) or 1
        shown.append(
            {
                "window": window,
                "epsilon": allowance.epsilon,
                "people": len(amounts),
                "bins": [
                    {"label": f"{20 * i} to {20 * (i + 1)}%", "people": n, "share": n / most}
                    for i, n in enumerate(bins)
                ],
            }
        )
    return shown
