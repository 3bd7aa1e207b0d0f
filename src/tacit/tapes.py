"""Tapes: random draws by position, so that a run can be repeated, resumed, split and counted.

A kernel never asks for randomness; it reads draw j of round t. In simulation the tape is virtual
and seeded, in service virtual under a secret key of the operating system, in a test whatever the
test records. Every draw that a privacy mechanism consumes is counted, and what it released can be
logged: the ledger and the audit see what really happened.
"""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.compiled import kernel
from tacit.generator import chacha20, key_of, philox, to_open_unit, to_unit

__all__ = [
    "Tape",
    "noise_uniform",
    "noise_word",
    "recorded_tape",
    "released",
    "secure_tape",
    "seeded_tape",
    "uniform",
]

SEEDED, SECURE, RECORDED = 0, 1, 2
_TAPE_STREAM = 1


class Tape(NamedTuple):
    """Random draws by position (round, draw)."""

    kind: int
    """0 seeded, 1 secure, 2 recorded."""
    key: NDArray[np.uint64]
    """Shape (4,): Philox uses the first two words, ChaCha20 all four."""
    recorded: NDArray[np.float64]
    """Shape (rounds, draws): the uniforms of a recorded tape, else (0, 0)."""
    reads: NDArray[np.int64]
    """Shape (2,): how many draws for choosing and how many for privacy were read so far."""
    log: NDArray[np.float64]
    """Shape (m,): the first m released values are written here; (0,) keeps none."""


def seeded_tape(seed: int, repetition: int = 0, *, log: int = 0) -> Tape:
    """Return a virtual tape that repeats exactly for the same seed and repetition."""
    key = np.zeros(4, np.uint64)
    key[:2] = key_of(seed, repetition, stream=_TAPE_STREAM)
    return Tape(SEEDED, key, np.empty((0, 0)), np.zeros(2, np.int64), np.zeros(log))


def secure_tape(*, log: int = 0) -> Tape:
    """Return a virtual tape under a fresh 256-bit key of the operating system.

    Whoever knows the key can subtract the noise, so nothing ever writes it to a file.
    """
    key = np.frombuffer(secrets.token_bytes(32), dtype=np.uint64).copy()
    return Tape(SECURE, key, np.empty((0, 0)), np.zeros(2, np.int64), np.zeros(log))


def recorded_tape(uniforms: ArrayLike, *, log: int = 0) -> Tape:
    """Return a tape that replays an array of uniforms in [0, 1), one row a round."""
    draws = np.ascontiguousarray(uniforms, dtype=np.float64)
    if draws.ndim != 2 or not bool(np.all((draws >= 0) & (draws < 1))):
        raise ValueError(
            f"recorded_tape: expected a 2-d array of numbers in [0, 1), got shape {draws.shape}"
        )
    key = np.zeros(4, np.uint64)
    return Tape(RECORDED, key, draws, np.zeros(2, np.int64), np.zeros(log))


@kernel
def _word(kind: Any, key0: Any, key1: Any, key2: Any, key3: Any, t: Any, j: Any, k: Any) -> Any:
    # (t, j) is the position; k counts the words one sampler asks for there. Takes scalars only:
    # a tape passed through two calls costs 60 ns of reference counting.
    if kind == SEEDED:
        return philox(key0, key1, np.uint64(t), np.uint64(j), np.uint64(0), np.uint64(k))[0]
    c1 = (np.uint64(j) << np.uint64(32)) | np.uint64(k)
    return chacha20(key0, key1, key2, key3, np.uint64(t), c1)


@kernel
def uniform(tape: Any, t: Any, j: Any) -> Any:
    """Return draw j of round t: a uniform in [0, 1) for choosing."""
    tape.reads[0] += 1
    if tape.kind == RECORDED:
        return tape.recorded[t, j]
    key = tape.key
    return to_unit(_word(tape.kind, key[0], key[1], key[2], key[3], t, j, 0))


@kernel
def noise_uniform(tape: Any, t: Any, j: Any) -> Any:
    """Return draw j of round t: a uniform in (0, 1) that a privacy mechanism consumes."""
    tape.reads[1] += 1
    if tape.kind == RECORDED:
        return tape.recorded[t, j]
    key = tape.key
    return to_open_unit(_word(tape.kind, key[0], key[1], key[2], key[3], t, j, 0))


@kernel
def noise_word(tape: Any, t: Any, j: Any, k: Any) -> Any:
    """Return word k at position (t, j) for an exact integer sampler; k = 0 counts as one draw.

    A recorded tape holds uniforms, not words, and is refused.
    """
    if tape.kind == RECORDED:
        raise ValueError("noise_word: expected a seeded or secure tape, got a recorded one")
    if k == 0:
        tape.reads[1] += 1
    key = tape.key
    return _word(tape.kind, key[0], key[1], key[2], key[3], t, j, k)


@kernel
def released(tape: Any, value: Any) -> Any:
    """Log that `value`, made with the latest noise draw, left the trusted side; return it."""
    position = tape.reads[1] - 1
    if position < tape.log.size:
        tape.log[position] = value
    return value
