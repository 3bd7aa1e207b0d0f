"""Clients of the decision service whose rewards never leave the device.

Every decision that was shown is answered by exactly one report, at the time that was fixed when it was
shown, with the reward if it came by then and the default reward if not. `Client` and
`AsyncClient` behave alike; the TypeScript client does too.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx2

from tacit.client.flows import Answer, Ask, Decision, Flow, Flows, ServiceError
from tacit.client.outbox import Outbox

__all__ = ["AsyncClient", "Client", "Decision", "Outbox", "ServiceError"]

T = TypeVar("T")


class _Base:
    def __init__(
        self,
        url: str,
        experiment: str,
        *,
        token: str,
        max_epsilon: float | None,
        outbox: Outbox | None = None,
        on_late: Callable[[Decision], None] | None = None,
    ) -> None:
        self._base = f"{url.rstrip('/')}/v1/experiments/{quote(experiment, safe='')}"
        self._headers = {"authorization": f"Bearer {token}"}
        self.outbox = Outbox() if outbox is None else outbox
        self._flows = Flows(self._base, self.outbox, max_epsilon, on_late=on_late)

    @property
    def place(self) -> str:
        """What the outbox calls this experiment."""
        return self._base

    def clock(self) -> float:
        """Return the time by which reports are due, in seconds since 1970."""
        return self._flows.clock()

    def reward(self, decision: Decision, value: float) -> bool:
        """Note the reward on the device; nothing is sent now.

        The first reward that this client is told before `report_at` counts. Returns whether it is this one;
        False if it came too late (then `on_late` is called), came second, or no report is owed.
        """
        return self._flows.reward(decision, value)


class Client(_Base):
    """Decide, show and report, from any thread.

    Parameters
    ----------
    url : str
        Where the service is.
    experiment : str
    token : str
        One that may decide and report.
    max_epsilon : float or None
        The most that one report may cost. None for no bound, which central trust needs.
    outbox : Outbox, optional
        Where owed reports wait; in memory, which a crash empties, unless given.
    on_late : callable, optional
        Called with the decision of a reward that came after `report_at`, too late to be reported. Count it on
        the device: to send it somewhere would tell of the reward.
    background : bool, default True
        Send what is due from a thread. Without it, call `flush`.
    transport : httpx2.BaseTransport, optional
        How requests travel; for tests.
    """

    def __init__(
        self,
        url: str,
        experiment: str,
        *,
        token: str,
        max_epsilon: float | None,
        outbox: Outbox | None = None,
        on_late: Callable[[Decision], None] | None = None,
        background: bool = True,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        super().__init__(
            *(url, experiment),
            token=token,
            max_epsilon=max_epsilon,
            outbox=outbox,
            on_late=on_late,
        )
        self._http = httpx2.Client(headers=self._headers, transport=transport, timeout=10)
        self._wake = threading.Event()
        self._closed = False
        self._sending = threading.Lock()
        self._thread = threading.Thread(target=self._send_when_due, daemon=True)
        if background:
            self._thread.start()

    def decide(
        self,
        *,
        person: str | None = None,
        eligible: Sequence[str] | None = None,
        contexts: Mapping[str, Sequence[float]] | None = None,
    ) -> Decision:
        """Ask the service what to show; `ServiceError` if it cannot be asked."""
        return self._play(self._flows.decide(person, eligible, contexts))

    def shown(self, decision: Decision) -> bool:
        """Say that the option was shown: one report is owed from here on. False if none will be."""
        owed = self._play(self._flows.shown(decision))
        self._wake.set()
        return owed

    def flush(self) -> float | None:
        """Send what is due; return when to come again, None if nothing is owed."""
        self.outbox.check_process()
        with self._sending:
            return self._play(self._flows.flush())

    def close(self) -> None:
        """Stop sending; what is owed stays in the outbox, and after a fork all is the parent's."""
        if self.outbox.inherited:
            return
        self._closed = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _play(self, flow: Flow[T]) -> T:
        self.outbox.check_process()
        try:
            ask = next(flow)
            while True:
                ask = flow.send(self._post(ask))
        except StopIteration as done:
            result: T = done.value
            return result

    def _post(self, ask: Ask) -> Answer:
        try:
            response = self._http.post(self._base + ask.path, json=ask.body)
        except httpx2.TransportError:
            return Answer(0, None)
        return _answer(response)

    def _send_when_due(self) -> None:
        while not self._closed:
            again = self.flush()
            wait = None if again is None else max(0.0, again - self._flows.clock())
            self._wake.wait(wait)
            self._wake.clear()


class AsyncClient(_Base):
    """The same for asyncio; call `flush` when due, or run `send_when_due` as a task.

    Parameters
    ----------
    url, experiment, token, max_epsilon, outbox, on_late
        As in `Client`.
    transport : httpx2.AsyncBaseTransport, optional
        How requests travel; for tests.
    """

    def __init__(
        self,
        url: str,
        experiment: str,
        *,
        token: str,
        max_epsilon: float | None,
        outbox: Outbox | None = None,
        on_late: Callable[[Decision], None] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(
            *(url, experiment),
            token=token,
            max_epsilon=max_epsilon,
            outbox=outbox,
            on_late=on_late,
        )
        self._http = httpx2.AsyncClient(headers=self._headers, transport=transport, timeout=10)
        self._sending = asyncio.Lock()
        self._wake = asyncio.Event()

    async def decide(
        self,
        *,
        person: str | None = None,
        eligible: Sequence[str] | None = None,
        contexts: Mapping[str, Sequence[float]] | None = None,
    ) -> Decision:
        """Ask the service what to show; `ServiceError` if it cannot be asked."""
        return await self._play(self._flows.decide(person, eligible, contexts))

    async def shown(self, decision: Decision) -> bool:
        """Say that the option was shown: one report is owed from here on. False if none will be."""
        owed = await self._play(self._flows.shown(decision))
        self._wake.set()
        return owed

    async def flush(self) -> float | None:
        """Send what is due; return when to come again, None if nothing is owed."""
        self.outbox.check_process()
        async with self._sending:
            return await self._play(self._flows.flush())

    async def send_when_due(self) -> None:
        """Send every report at its time, until cancelled."""
        while True:
            again = await self.flush()
            wait = None if again is None else max(0.0, again - self._flows.clock())
            try:
                await asyncio.wait_for(self._wake.wait(), wait)
            except TimeoutError:
                continue
            self._wake.clear()

    async def close(self) -> None:
        """Close the connections; what is owed stays in the outbox, and after a fork all is the parent's."""
        if self.outbox.inherited:
            return
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _play(self, flow: Flow[T]) -> T:
        self.outbox.check_process()
        try:
            ask = next(flow)
            while True:
                ask = flow.send(await self._post(ask))
        except StopIteration as done:
            result: T = done.value
            return result

    async def _post(self, ask: Ask) -> Answer:
        try:
            response = await self._http.post(self._base + ask.path, json=ask.body)
        except httpx2.TransportError:
            return Answer(0, None)
        return _answer(response)


def _answer(response: httpx2.Response) -> Answer:
    try:
        body: Any = response.json()
    except ValueError:
        # Not the service: a gate of a network that wants a login first, for one.
        return Answer(0 if response.is_success else response.status_code, None)
    return Answer(response.status_code, body)
