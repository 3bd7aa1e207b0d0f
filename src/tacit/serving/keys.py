"""The key of pseudonyms, which lies beside a store and not in it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from tacit.checks import require

__all__ = ["key_beside"]


def key_beside(store: Path) -> bytes:
    """Return the 32 bytes in the file of the key beside a store, which is made if it is missing."""
    place = Path(f"{store}.key")
    try:
        handle = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        key = place.read_bytes()
        require("store", str(place), "of 32 bytes", len(key) == 32, len(key))
        return key
    key = secrets.token_bytes(32)
    with os.fdopen(handle, "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    return key
