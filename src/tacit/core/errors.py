"""What somebody else's error says, in one line."""

from __future__ import annotations


def first_line(error: BaseException) -> str:
    r"""Return the first line of what an error says, or what kind of error it is.

    Examples
    --------
    >>> first_line(OSError("connection refused\nIs the server running?"))
    'connection refused'
    >>> first_line(TimeoutError())
    'TimeoutError'
    """
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
