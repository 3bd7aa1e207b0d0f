"""Processes that fork while a client is in use: its reports stay its own, and no child hangs."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref

import httpx2
import pytest

from forked import child
from tacit.client import AsyncClient, Client, Outbox
from tacit.core import processes
from tacit.device import Reporter, instructions

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
PLACE = "https://decide.test/v1/experiments/news"


def owing(path=None):
    """An outbox with one report whose time has not come."""
    outbox = Outbox(path)
    reporter = Reporter(instructions.randomized_response(1.0), id="a", max_epsilon=1.0)
    assert outbox.add(PLACE, reporter, due=1.0)
    return outbox


def forked_inside(outbox):
    """Fork while another thread is in a transaction; return what the child finds of it."""
    inside, over = threading.Event(), threading.Event()

    def work():
        with outbox._transaction():
            inside.set()
            over.wait(0.3)

    writer = threading.Thread(target=work)
    writer.start()
    inside.wait(10)
    found = child(lambda: outbox._database.connection.in_transaction)
    over.set()
    writer.join()
    return found


def test_a_fork_waits_for_the_end_of_a_transaction(tmp_path, monkeypatch):
    """A copied one would be rolled back in the parent's file, when the child ends."""
    outbox = owing(tmp_path / "outbox.db")
    assert forked_inside(outbox) == "False"
    monkeypatch.setattr(processes, "_locks", weakref.WeakKeyDictionary())  # who waits for nobody
    assert forked_inside(outbox) == "True"
    outbox.close()


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(
    "use",
    [
        lambda outbox: outbox.replace(PLACE, "a", 1.0, lambda: 0.0),
        lambda outbox: outbox.report(PLACE, "a"),
        lambda outbox: outbox.pending(PLACE),
        lambda outbox: outbox.forget(PLACE, "a"),
        lambda outbox: outbox.spent,
    ],
    ids=["replace", "report", "owed", "forget", "spent"],
)
def test_an_outbox_is_its_parents_whatever_threads_did(use, kept, tmp_path):
    """Two copies of a report that a reward may replace would be two reports about one reward."""
    outbox = owing(tmp_path / "outbox.db" if kept else None)
    assert "opened before a fork" in (child(lambda: use(outbox)) or "")
    assert child(outbox.close) == "None"
    assert [each.id for each in outbox.pending(PLACE)] == ["a"]
    outbox.close()


def test_a_child_that_opens_the_file_anew_comes_to_the_same_report(tmp_path):
    outbox = owing(tmp_path / "outbox.db")

    def rewarded():
        own = Outbox(tmp_path / "outbox.db")
        assert own.replace(PLACE, "a", 1.0, lambda: 0.0)
        return own.report(PLACE, "a")

    assert child(rewarded) == str(outbox.report(PLACE, "a"))
    outbox.close()


def test_a_client_is_its_parents_though_its_thread_is_sending():
    """The thread that has the client's lock does not exist in the child, and never lets go."""
    sending, over = threading.Event(), threading.Event()

    def answer(request: httpx2.Request) -> httpx2.Response:
        sending.set()
        over.wait(10)
        return httpx2.Response(200, json={"report_at": 1.0})

    client = Client(
        "https://decide.test",
        "news",
        token="t",
        max_epsilon=1.0,
        outbox=owing(),
        transport=httpx2.MockTransport(answer),
    )
    assert sending.wait(10)
    for use in (client.flush, client.decide):
        assert "opened before a fork" in (child(use, patience=5) or "")
    assert child(client.close, patience=5) == "None"
    over.set()
    client.close()
    assert client.outbox.pending(PLACE) == []


def test_an_async_client_is_its_parents_too():
    client = AsyncClient("https://decide.test", "news", token="t", max_epsilon=1.0, outbox=owing())
    for use in (client.flush, client.decide):
        assert "opened before a fork" in (child(lambda use=use: asyncio.run(use())) or "")
    assert child(lambda: asyncio.run(client.close())) == "None"
    assert [each.id for each in client.outbox.pending(PLACE)] == ["a"]
    asyncio.run(client.close())
