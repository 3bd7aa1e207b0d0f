"""A writer killed with SIGKILL at random moments loses nothing that it had acknowledged.

The child acknowledges a release by writing its number to a pipe, strictly after `spend` returns:
that is the moment when something is released. A twin that releases first must be caught.
"""

from __future__ import annotations

import os
import random
import select
import signal
import time

import pytest

from tacit.privacy.ledger import Ledger
from tiers import tiered

KILLS, MANY = 20, 60
COST = 0.001


def _write(path, channel: int, turn: int, *, release_first: bool) -> None:
    ledger = Ledger(path)
    number = 0
    while True:
        key = f"{turn}-{number}"
        if release_first:
            os.write(channel, f"{key}\n".encode())
            time.sleep(0.005)  # most kills fall between the release and its charge
        ledger.spend("ada", COST, key=key)
        if not release_first:
            os.write(channel, f"{key}\n".encode())
        number += 1


def _released_until_killed(path, turn: int, patience: float, *, release_first: bool) -> list[str]:
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        try:
            _write(path, send, turn, release_first=release_first)
        finally:
            os._exit(1)
    os.close(send)
    select.select([receive], [], [], 30)
    select.select([], [], [], patience)
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status), "the writer must die by the kill, not by an error"
    with os.fdopen(receive, "rb") as pipe:
        return pipe.read().decode().split()


def _lost_and_unused(path, *, release_first: bool, kills: int) -> tuple[int, int, int]:
    with Ledger(path) as ledger:
        ledger.allow(1e6)
    randomness = random.Random(7)
    released: set[str] = set()
    for turn in range(kills):
        patience = randomness.uniform(0.0, 0.03)
        released.update(_released_until_killed(path, turn, patience, release_first=release_first))
    with Ledger(path) as ledger:
        ledger.verify()
        recorded = {entry.key for entry in ledger.entries()}
        assert ledger.spent("ada").epsilon_units == 10**9 * len(recorded)
    return len(released - recorded), len(recorded - released), len(released)


@pytest.mark.parametrize("kills", tiered((KILLS, MANY), lambda kills: kills == KILLS))
def test_nothing_acknowledged_is_lost(tmp_path, kills):
    lost, unused, released = _lost_and_unused(
        tmp_path / "ledger.sqlite", release_first=False, kills=kills
    )
    assert released >= kills
    assert lost == 0
    assert unused <= kills  # at most the one charge in flight at each kill


def test_nothing_acknowledged_is_lost_in_a_database(postgres):
    book = postgres.address(postgres.fresh())
    lost, unused, released = _lost_and_unused(book, release_first=False, kills=KILLS)
    assert released >= KILLS
    assert lost == 0
    assert unused <= KILLS


def test_the_test_catches_a_writer_that_releases_first(tmp_path):
    lost, _, _ = _lost_and_unused(tmp_path / "ledger.sqlite", release_first=True, kills=KILLS)
    assert lost > 0
