"""Numbers for Prometheus, released values only."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import GaugeMetricFamily
from starlette.requests import Request
from starlette.responses import Response

from tacit.service.experiments import ExperimentManager
from tacit.service.http import clock_lead
from tacit.service.responses import list_tallies


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


class _State:
    """What the experiments are, read when it is asked for."""

    def __init__(self, manager: ExperimentManager) -> None:
        self._manager = manager

    def collect(self) -> Iterable[GaugeMetricFamily]:
        one = ["experiment"]
        decided = GaugeMetricFamily(
            "tacit_decisions", "Decisions by option", labels=["experiment", "option"]
        )
        waiting = GaugeMetricFamily("tacit_open_decisions", "Decisions that wait", labels=one)
        events = GaugeMetricFamily("tacit_events", "Events in the log", labels=one)
        lead = "How far decisions are dated ahead of this machine's clock"
        ahead = GaugeMetricFamily("tacit_clock_lead_seconds", lead, labels=one)
        silent = GaugeMetricFamily("tacit_missing_reports", "Reports that never came", labels=one)
        for name, experiment in self._manager.experiments.items():
            core = experiment.core
            for option, tally in zip(list_tallies(core), core.tallies, strict=True):
                decided.add_metric([name, option], tally[0])
            waiting.add_metric([name], len(core.open))
            ahead.add_metric([name], clock_lead(experiment))
            if not core.hides_silence:
                events.add_metric([name], experiment.seq)
                silent.add_metric([name], core.silent)
        return decided, waiting, events, ahead, silent


async def show_metrics(request: Request) -> Response:
    """Return what Prometheus reads, at an address of its own or for a token."""
    registry = CollectorRegistry()
    registry.register(_State(request.app.state.manager))
    text = generate_latest(request.app.state.metrics.registry) + generate_latest(registry)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
