"""The log: lines of JSON on the standard error, without a token, a body or a person."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from pathlib import Path
from typing import Any


def write_log(event: str, **facts: Any) -> None:
    """Write one line."""
    line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "event": event, **facts}
    print(json.dumps(line), file=sys.stderr, flush=True)


def describe_fault(error: BaseException) -> str:
    """Return the type of an error and where it was raised: never its words, which may name a person."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        detail = record.getMessage() if error is None else describe_fault(error)
        write_log("server", detail=detail.partition("\n")[0])


def gather_logs() -> None:
    """Let what libraries log be lines of the same kind."""
    for name in ("uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [_Lines(logging.WARNING)], False
