"""Whatever is sent, the answer is a decision or one clear refusal, never a fault."""

from __future__ import annotations

import asyncio
import os

import pytest

from service.conftest import CENTRAL, LOCAL
from service.disorder import Disorder
from tacit.service import open_service

SOAK = int(os.environ.get("TACIT_SOAK_BODIES", "100000"))
PEOPLE = {
    "name": "people",
    "policy": {"name": "linucb", "n_users": 2, "dimension": 2, "epsilon": 1.0},
    "people": ["ann", "bob"],
}


def disorder(folder, seed, n):
    """Send n bodies to a service of its own; return how many got which status."""
    opened = open_service(folder / "s.db")
    # The disk is not what is tried here.
    opened.manager.store.database.connection.execute("PRAGMA synchronous = OFF")
    sender = Disorder(opened.app, opened.first_token, seed)

    async def run():
        async with opened.app.router.lifespan_context(opened.app):
            for wanted in (LOCAL, CENTRAL, PEOPLE):
                body = {**wanted, "max_open": 10_000_000}
                status, said = await sender.ask(
                    "POST", "/v1/experiments", _text(body), _token(opened.first_token)
                )
                assert status == 201, said
            await sender.run(n)
            for hosted in opened.manager.experiments.values():
                hosted.verify()

    asyncio.run(run())
    return sender.answered


def _text(value):
    from service.disorder import text

    return text(value)


def _token(secret):
    return [(b"authorization", f"Bearer {secret}".encode())]


@pytest.mark.parametrize("bodies", [1000, pytest.param(3000, marks=pytest.mark.slow)])
def test_random_bodies_never_make_a_fault(tmp_path, capsys, bodies):
    answered = disorder(tmp_path, 0, bodies)
    assert answered[200] > bodies / 10
    assert answered[400] > bodies / 10
    assert "fault" not in capsys.readouterr().err


@pytest.mark.soak
def test_a_hundred_thousand_random_bodies(tmp_path):
    sent = 0
    while sent < SOAK:
        folder = tmp_path / str(sent)
        folder.mkdir()
        sent += sum(disorder(folder, 1 + sent, min(10_000, SOAK)).values())
    assert sent >= SOAK
