"""Numbers for Prometheus, released values only; and a log line for what went wrong, without secrets."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import GaugeMetricFamily
from starlette.requests import Request
from starlette.responses import Response

from tacit.service.connections import INSIDE
from tacit.service.experiments import Hosted
from tacit.service.http import allowed, clock_lead
from tacit.service.logs import write_log
from tacit.service.responses import tallied


class Metrics:
    """What this process counted."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reports = Counter(
            "tacit_reports",
            "Reports by what became of them",
            ["experiment", "status"],
            registry=self.registry,
        )

    def count(self, hosted: Hosted, status: str) -> None:
        """Count a report, unless it is protected who answered."""
        if not hosted.core.hides_silence:
            self.reports.labels(hosted.name, status).inc()


class _State:
    """What the experiments are, read when it is asked for."""

    def __init__(self, host: Any) -> None:
        self._host = host

    def collect(self) -> Any:
        families = {
            "decided": GaugeMetricFamily(
                "tacit_decisions", "Decisions by option", labels=["experiment", "option"]
            ),
            "open": GaugeMetricFamily(
                "tacit_open_decisions", "Decisions that wait", labels=["experiment"]
            ),
            "events": GaugeMetricFamily("tacit_events", "Events in the log", labels=["experiment"]),
            "ahead": GaugeMetricFamily(
                "tacit_clock_lead_seconds",
                "How far decisions are dated ahead of this machine's clock",
                labels=["experiment"],
            ),
            "silent": GaugeMetricFamily(
                "tacit_missing_reports", "Reports that never came", labels=["experiment"]
            ),
        }
        for name, hosted in self._host.experiments.items():
            core = hosted.core
            for option, tally in zip(tallied(core), core.tallies, strict=True):
                families["decided"].add_metric([name, option], tally[0])
            families["open"].add_metric([name], len(core.open))
            families["ahead"].add_metric([name], clock_lead(hosted))
            if not core.hides_silence:
                families["events"].add_metric([name], hosted.experiment.seq)
                families["silent"].add_metric([name], core.silent)
        return families.values()


async def exposed(request: Request) -> Response:
    """Return what Prometheus reads, at an address of its own or for a token."""
    if INSIDE not in request.scope:
        allowed(request, "metrics")
    registry = CollectorRegistry()
    registry.register(_State(request.app.state.host))
    text = generate_latest(request.app.state.metrics.registry) + generate_latest(registry)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def log(what: str, request: Request, *, detail: str) -> None:
    """Write one line of JSON: neither a token, nor a body, nor a person."""
    template = getattr(request.scope.get("route"), "path", request.scope["path"])
    write_log(what, method=request.method, path=template, detail=detail)
