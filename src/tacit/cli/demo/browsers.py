"""Real browsers in the crowd, if there is a Chromium: no window, a profile in a temporary folder."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_FLAGS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # A browser that is steered through a pipe ends when the other end does, however that ends.
    "--remote-debugging-pipe",
)


def chromium() -> str | None:
    """Return where Chromium is, or None."""
    return next(filter(None, map(shutil.which, _NAMES)), None) if shutil.which("sh") else None


class Browsers:
    """Browsers that open one page each, with profiles in `folder`, and are gone when the block ends."""

    def __init__(self, program: str | None, folder: Path, pages: list[str]) -> None:
        self._program, self._folder = program or "", folder
        self._pages = pages if program else []
        self._running: list[asyncio.subprocess.Process] = []

    async def __aenter__(self) -> Browsers:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        for i, page in enumerate(self._pages):
            profile = f"--user-data-dir={self._folder / f'browser-{i}'}"
            self._running.append(
                await asyncio.create_subprocess_exec(
                    *("sh", "-c", 'exec "$0" "$@" 3<&0 4>/dev/null'),
                    *(self._program, *_FLAGS, *sandbox, profile, page),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self._running:
            if process.stdin is not None:
                process.stdin.close()
        for process in self._running:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), 3)
            # Also what it started: a helper must not write into a folder that is being deleted.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
