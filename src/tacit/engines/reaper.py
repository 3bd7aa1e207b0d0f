"""Run as a program beside a Ray cluster: waits for the process that started both, then ends what is left.

On Linux the processes that Ray starts end with the one that asked for them, but some of what these started in
turn notices only after a minute. Each of them has a name that Ray gave it and writes to the cluster's folder.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress

_NAMED = "ray::"


def left_in(folder: str) -> list[int]:
    """Return Ray's own processes that have files of this folder open."""
    return [int(each) for each in os.listdir("/proc") if each.isdigit() and _works_in(folder, each)]


def _works_in(folder: str, process: str) -> bool:
    with suppress(OSError):
        with open(f"/proc/{process}/comm") as file:
            if not file.read().startswith(_NAMED):
                return False
        for each in os.listdir(f"/proc/{process}/fd"):
            with suppress(OSError):
                if os.readlink(f"/proc/{process}/fd/{each}").startswith(f"{folder}/"):
                    return True
    return False


def sweep(folder: str) -> None:
    """End them, until none is left."""
    while left := left_in(folder):
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)


if __name__ == "__main__":
    sys.stdin.buffer.read()  # comes to its end when the writer does, whichever way
    sweep(sys.argv[1])
