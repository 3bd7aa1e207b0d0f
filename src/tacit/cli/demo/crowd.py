"""Visitors with devices of their own: real clients, real reports, clicks that nobody else sees."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from dataclasses import dataclass, field

import httpx2

from tacit.client import AsyncClient, ServiceError

#: What is shown, and the share of visitors who click on it: known to this demonstration alone.
HEADLINES = {
    "Ferry line reopens after ten years": 0.25,
    "Why the night sky is dark": 0.55,
    "A town that bakes its own bread": 0.4,
    "Seven rules for a good nap": 0.3,
}


@dataclass
class Visit:
    """What one device knew, and what it sent."""

    option: str
    clicked: bool
    sent: int | None = None
    """The report, once it has left the device."""
    where: str = "Python"


@dataclass
class Crowd:
    """People who come, look, click or not, and leave."""

    url: str
    token: str
    experiment: str
    visitors: int
    rate: float
    """How many come in a second."""
    max_epsilon: float
    """What a device is willing to spend on a report."""
    latest: deque[Visit] = field(default_factory=lambda: deque(maxlen=6))
    """Whose report has just left the device; those of browsers, who are fewer, on their own."""
    latest_in_browsers: deque[Visit] = field(default_factory=lambda: deque(maxlen=4))
    came: int = 0
    in_browsers: int = 0
    clicks: int = 0
    late: int = 0
    """Clicks that came after their report had gone out."""
    spent: float = 0.0

    async def run(self) -> None:
        """Let everybody come and wait until the last report is out."""
        transport = httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_connections=64))
        rng = random.SystemRandom()
        visits: set[asyncio.Task[None]] = set()
        try:
            for i in range(self.visitors):
                task = asyncio.create_task(self._visit(f"visitor {i}", rng, transport))
                visits.add(task)
                task.add_done_callback(visits.discard)
                await asyncio.sleep(1 / self.rate)
            while visits:
                await asyncio.sleep(0.1)
        finally:
            for task in visits:
                task.cancel()
            await transport.aclose()

    async def _visit(
        self, person: str, rng: random.Random, transport: httpx2.AsyncBaseTransport
    ) -> None:
        device = AsyncClient(
            self.url,
            self.experiment,
            token=self.token,
            max_epsilon=self.max_epsilon,
            transport=transport,
        )
        try:
            decision = await device.decide(person=person)
        except ServiceError:
            return
        clicked = rng.random() < HEADLINES.get(decision.option, 0.0)
        if not await device.shown(decision) or decision.report_at is None:
            return
        visit = Visit(decision.option, clicked)
        self.count(visit, decision.epsilon)
        if clicked:
            await asyncio.sleep(rng.random() / 2)
            self.late += not device.reward(decision, 1.0)
        report = device.outbox.report(device.place, decision.id)
        again = await device.flush()
        while again is not None:
            await asyncio.sleep(max(0.0, again - device.clock()) + 0.01)
            again = await device.flush()
        if report is not None:
            visit.sent = int(report["value"])
            self.latest.append(visit)
        device.outbox.close()

    def count(self, visit: Visit, epsilon: float) -> None:
        """Count a visitor, who tells this demonstration and nobody else what happened."""
        self.came += 1
        self.clicks += visit.clicked
        self.spent += epsilon
