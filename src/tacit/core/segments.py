"""Time in segments: what holds from one round until the next change."""

from __future__ import annotations

from typing import Any

from tacit.core.kernels import kernel


@kernel
def segment_at(starts: Any, t: Any) -> Any:
    """Return in which segment round t lies, given the first round of each; the first one is 0."""
    low, high = 0, starts.size - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if starts[middle] <= t:
            low = middle
        else:
            high = middle - 1
    return low
