"""What befalls a ledger's process or file, with real processes: forks, kills, copies, old copies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from datetime import datetime

import pytest

from tacit.privacy import BudgetExceededError, Ledger, LedgerError, Outcome
from tacit.privacy import ledger as module


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


def child(work) -> int:
    """Run something in a fork and return the number of the process."""
    number = os.fork()
    if number == 0:
        signal.alarm(30)
        try:
            code = work()
        except BaseException:
            code = 99
        os._exit(code)
    return number


def ended(number: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def test_a_fork_waits_for_the_end_of_a_transaction(path):
    """A copied transaction is rolled back when the child ends, in the file that its parent writes."""
    with Ledger(path) as ledger:
        ledger.allow(10.0)
        inside, over = threading.Event(), threading.Event()

        def charge():
            with ledger._write():
                inside.set()
                over.wait(0.3)

        writer = threading.Thread(target=charge)
        writer.start()
        inside.wait(10)
        assert ledger._database.connection.in_transaction  # of the other thread, until it is over
        copied = ended(child(lambda: int(ledger._database.connection.in_transaction)))
        over.set()
        writer.join()
        assert copied == 0


def test_forks_in_mid_batch_lose_nothing(path):
    """Children end in every way while threads spend; each may open a ledger of its own."""
    with Ledger(path) as ledger:
        ledger.allow(1000.0)
        done, acknowledged = threading.Event(), []

        def spender(who):
            number = 0
            while not done.is_set():
                key = f"{who} {number}"
                ledger.spend(who, 0.01, key=key)
                acknowledged.append(key)
                number += 1
                time.sleep(0.001)

        def heir(turn):
            if turn % 3 == 0:
                ledger.close()
            elif turn % 3 == 1:
                ledger._database.connection.close()  # as a collected object does
            with Ledger(path, timeout=20) as own:
                own.spend("heir", 0.01, key=str(turn))
            return 0

        spenders = [threading.Thread(target=spender, args=(str(i),)) for i in range(3)]
        for each in spenders:
            each.start()
        codes = [ended(child(lambda turn=turn: heir(turn))) for turn in range(6)]
        done.set()
        for each in spenders:
            each.join()
        assert codes == [0] * 6
        ledger.verify()
        assert {entry.key for entry in ledger.entries() if entry.subject != "heir"} == {
            *acknowledged
        }
        assert len(ledger.entries("heir")) == 6


def test_a_kill_between_charge_and_acknowledgement_is_charged_once(path):
    with Ledger(path) as ledger:
        ledger.allow(1.0)
    program = (
        "import os, signal, sys\n"
        "from tacit.privacy.ledger import Ledger\n"
        "Ledger(sys.argv[1]).spend('ada', 0.6, key='round 1')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, path], check=False)
    assert killed.returncode == -signal.SIGKILL
    with Ledger(path) as ledger:
        assert ledger.spent("ada").epsilon == 0.6
        again = ledger.spend("ada", 0.6, key="round 1")
        assert again.outcome is Outcome.REPEATED
        with pytest.raises(BudgetExceededError):
            ledger.spend("ada", 0.6, key="round 2")


def spend_until_killed(path, channel):
    with Ledger(path) as ledger:
        number = 0
        while True:
            ledger.spend("ada", 0.001, key=str(number))
            os.write(channel, b".")
            number += 1


def test_a_file_deleted_by_another_process_stops_the_spender(path):
    with Ledger(path) as ledger:
        ledger.allow(1000.0)
    receive, send = os.pipe()

    def work():
        try:
            spend_until_killed(path, send)
        except LedgerError as error:
            return 7 if "was deleted; nothing may be released" in str(error) else 8

    number = child(work)
    os.close(send)
    os.read(receive, 1)
    path.unlink()
    assert ended(number) == 7
    assert not path.exists()
    os.close(receive)


def test_copies_made_while_others_write_have_what_was_acknowledged_or_are_refused(path, tmp_path):
    """Nothing lies in a second file, so that a plain copy is whole; one torn in a commit is noticed."""
    with Ledger(path) as ledger:
        ledger.allow(1000.0)
    receive, send = os.pipe()
    writer = child(lambda: spend_until_killed(path, send))
    os.close(send)
    acknowledged = whole = 0
    for turn in range(25):
        acknowledged += len(os.read(receive, 2**16))
        copy = tmp_path / f"copy {turn}.sqlite"
        shutil.copy(path, copy)
        assert not list(tmp_path.glob("*-wal"))
        try:
            with Ledger(copy) as taken:
                taken.verify()
                assert len(taken.entries()) >= acknowledged
                whole += 1
        except LedgerError:
            pass
        time.sleep(0.002)
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    os.close(receive)
    assert whole >= 5


@pytest.mark.parametrize("how", ["renamed", "written over"])
def test_an_old_copy_put_back_under_a_spender_is_refused(path, tmp_path, how):
    old = tmp_path / "old.sqlite"
    with Ledger(path) as ledger:
        ledger.allow(1.0)
        ledger.spend("ada", 0.2, key="a")
        shutil.copy(path, old)
        ledger.spend("ada", 0.8, key="b")
        put = old.replace if how == "renamed" else lambda to: to.write_bytes(old.read_bytes())
        put(path)
        refusal = "was replaced" if how == "renamed" else "has 1 entries and had 2: an old copy"
        for key in ("c", "d"):
            with pytest.raises(LedgerError, match=refusal):
                ledger.spend("ada", 0.1, key=key)


def test_a_clock_put_back_over_new_year_opens_no_window_in_another_process(path):
    """The later process reads the time that the earlier one left in the file, whatever its clock says."""
    with Ledger(path) as ledger:
        ledger.allow(1.0, period="year")

    def spender(moment):
        module._now = lambda: datetime.fromisoformat(moment)
        try:
            with Ledger(path) as ledger:
                ledger.spend("ada", 0.75, key=moment)
        except BudgetExceededError:
            return 3
        return 0

    moments = {
        "2025-12-31T23:59:59+00:00": 0,
        "2026-01-01T00:00:00+00:00": 0,
        "2025-12-31T23:59:58+00:00": 3,
        "2024-06-01T00:00:00+00:00": 3,
        "2027-01-01T00:00:00+00:00": 0,
    }
    for moment, code in moments.items():
        assert ended(child(lambda moment=moment: spender(moment))) == code, moment
