"""Work in a forked child of the process that runs the tests."""

from __future__ import annotations

import os
import signal


def child(work, patience=30):
    """Run something in a fork; return what it wrote, or None if it did not end in time."""
    read, write = os.pipe()
    number = os.fork()
    if number == 0:
        signal.alarm(patience)
        try:
            said = str(work())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    return said if code == 0 else None
