"""Everything in one process and one temporary folder; when it ends, nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from tacit.cli.demo.browsers import Browsers, chromium
from tacit.cli.demo.crowd import HEADLINES, Crowd, Visit
from tacit.service import open_service
from tacit.service.messages import ExperimentRequest, Reward
from tacit.service.responses import make_statistics
from tacit.serving import Experiment

_PAGES = Path(__file__).parent / "pages"
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_NAME = "front-page"
_BROWSERS = 2


def run(
    *, visitors: int, rate: float, epsilon: float, port: int, tell: Callable[[str], None]
) -> None:
    """Run the demonstration until the crowd is through or it is stopped; `tell` it in lines for people."""
    with tempfile.TemporaryDirectory(prefix="tacit-demo-") as folder:
        asyncio.run(_show(Path(folder), visitors, rate, epsilon, port, tell))


async def _show(
    folder: Path,
    visitors: int,
    rate: float,
    epsilon: float,
    port: int,
    tell: Callable[[str], None],
) -> None:
    opened = open_service(folder / "demo.db")
    experiment = opened.manager.create(
        ExperimentRequest(
            name=_NAME,
            policy={"name": "klucb-cf", "epsilon": epsilon},
            options=list(HEADLINES),
            reward=Reward(kind="binary", report_after=4.0),
        )
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", port))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    page_token = opened.tokens.create("page", ["decide", "report"], [url])
    crowd_token = opened.tokens.create("crowd", ["decide", "report"])
    crowd = Crowd(url, crowd_token, _NAME, visitors, rate, max_epsilon=epsilon)
    word = secrets.token_hex(8)
    app = _app(opened.app, experiment, crowd, page_token, word)
    server = _Server(
        uvicorn.Config(app, port=port, log_level="error", access_log=False, lifespan="on")
    )
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.05)
    tell(f"watch      {url}/demo")
    tell(f"visit      {url}/demo/news")
    tell(f"dashboard  {url}  (token {opened.first_token})")
    program = chromium()
    if program is None:
        tell("there is no Chromium here: every visitor has a Python client")
    pages = [f"{url}/demo/news?crowd={word}"] * _BROWSERS
    try:
        async with Browsers(program, folder, pages):
            coming = asyncio.create_task(crowd.run())
            try:
                while not coming.done() and not server.should_exit:
                    either = asyncio.FIRST_COMPLETED
                    await asyncio.wait([coming, serving], timeout=2.0, return_when=either)
                    tell(_line(experiment, crowd))
            finally:
                coming.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await coming
    finally:
        server.should_exit = True
        await serving
    tell(_end(experiment, crowd))


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Uvicorn would raise the signal once more at its end, before the browsers are gone.
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, self.handle_exit)
        yield


def _app(
    service: Starlette, experiment: Experiment, crowd: Crowd, page_token: str, word: str
) -> Starlette:
    async def file(request: Request) -> Response:
        path = _PAGES / request.path_params.get("file", "watch")
        path = path if path.suffix else path.with_suffix(".html")
        if path.parent != _PAGES or not path.is_file():
            return Response(status_code=404)
        return Response(path.read_bytes(), media_type=_KINDS[path.suffix])

    async def data(request: Request) -> Response:
        return JSONResponse(_panel(experiment, crowd, page_token))

    visits: dict[str, Visit] = {}

    async def noted(request: Request) -> Response:
        """Hear from a browser of the crowd what its visitor did, and later what it sent."""
        said = await request.json()
        if said["word"] != word:
            return Response(status_code=403)
        if "value" not in said:
            visit = visits[said["id"]] = Visit(said["option"], said["clicked"], where="browser")
            crowd.count(visit, said["epsilon"])
            crowd.in_browsers += 1
            crowd.late += said["late"]
        elif said["id"] in visits:
            visit = visits.pop(said["id"])
            visit.sent = said["value"]
            crowd.latest_in_browsers.append(visit)
        return Response(status_code=204)

    return Starlette(
        routes=[
            Route("/demo", file),
            Route("/demo/data", data),
            Route("/demo/noted", noted, methods=["POST"]),
            Route("/demo/{file}", file),
            Mount("/", app=service),
        ],
        lifespan=service.router.lifespan_context,
    )


def _panel(experiment: Experiment, crowd: Crowd, page_token: str) -> dict[str, Any]:
    found = make_statistics(experiment)
    total = sum(row.decided for row in found.options) or 1
    return {
        "token": page_token,
        "experiment": _NAME,
        "came": crowd.came,
        "in_browsers": crowd.in_browsers,
        "late": _lateness(crowd),
        "spent": crowd.spent,
        "epsilon": crowd.max_epsilon,
        "sentence": experiment.sentence(),
        "options": [
            {
                "option": row.option,
                "share": row.decided / total,
                "estimate": row.estimate,
                "low": row.low,
                "high": row.high,
                "truth": HEADLINES[row.option],
            }
            for row in found.options
        ],
        "latest": [
            {"option": v.option, "clicked": v.clicked, "sent": v.sent, "where": v.where}
            for v in (*crowd.latest, *crowd.latest_in_browsers)
        ],
    }


def _line(experiment: Experiment, crowd: Crowd) -> str:
    found = make_statistics(experiment)
    total = sum(row.decided for row in found.options) or 1
    best = max(HEADLINES, key=HEADLINES.__getitem__)
    share = next(row.decided for row in found.options if row.option == best) / total
    late = f"  {crowd.late:,} clicks came too late" if crowd.late else ""
    return f"{crowd.came:6,} visitors  {share:4.0%} were shown the best headline{late}"


def _lateness(crowd: Crowd) -> str:
    """Say what clicks that came too late do to the estimates; nothing if there were none."""
    if not crowd.late:
        return ""
    return (
        f"{crowd.late:,} of {crowd.clicks:,} clicks came after their report had gone out, so the estimates "
        "are too low: this machine is too busy for so many visitors a second."
    )


def _end(experiment: Experiment, crowd: Crowd) -> str:
    lines = [
        f"{crowd.came:,} visitors, {crowd.in_browsers:,} of them in a real browser, clicked "
        f"{crowd.clicks:,} times. The service saw none of the clicks: each "
        f"device sent one private bit (epsilon {crowd.max_epsilon:g}).",
        "What it learned, beside the truth that only this demonstration knows:",
    ]
    for row in make_statistics(experiment).options:
        worth = "-" if row.estimate is None else f"{row.estimate:.2f}"
        lines.append(f"  {worth:>5}  {HEADLINES[row.option]:.2f}  {row.decided:6,}  {row.option}")
    return "\n".join([*lines, _lateness(crowd)]).rstrip()
