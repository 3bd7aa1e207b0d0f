"""Tapes: random draws by name, so that a run can be repeated, resumed, split and counted.

A kernel never asks for randomness; it reads the draw whose name is (round, index, purpose): the
index is an arm, an agent or a coordinate, and what a draw may be for stands in one list below. Two
uses can therefore not meet at one draw by accident. In simulation the tape is virtual and seeded,
in service virtual under a secret key of the operating system, in a test whatever the test records.

Every draw that a privacy mechanism consumes is counted; what it released, and where it was read,
can be logged: the ledger, the audit and the tests see what really happened.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.core.generator import chacha20, key_of, philox, to_open_unit, to_unit
from tacit.core.kernels import kernel
from tacit.core.processes import in_child

# What a draw is for. A number here is never given a second meaning: seeded runs depend on it.
# They are typed, so that a kernel is not compiled anew for each.
CHOICE = np.int64(0)
"""Which arm, option or state is chosen."""
ROUNDING = np.int64(1)
"""Which of two symbols stands for a value between them."""
NOISE = np.int64(2)
"""The noise on a reward, a loss or one coordinate of a sum."""
EXPLORE, PICK, ADOPT, WAKE = (np.int64(purpose) for purpose in (3, 4, 5, 7))
"""Learning dynamics: an agent's two choices, those of a crowd, and who takes part."""
ARRIVE, LOSE, WALK, SPREAD, DEAL = (np.int64(purpose) for purpose in (8, 9, 10, 11, 12))
"""Learning dynamics: what happens to tokens under way."""
RECEIVE, COUNT, FEW = (np.int64(purpose) for purpose in (13, 14, 15))
"""Learning dynamics: what an agent receives of a crowd's tokens."""
RADIUS = np.int64(16)
"""The length of a noise vector whose direction is at NOISE."""
MESSAGE = np.int64(17)
"""The noise on a message to other agents."""
SIGNAL = np.int64(18)
"""The noise on a private signal."""
SUBSET = np.int64(19)
"""Which set of arms is drawn."""
FLOOR = np.int64(20)
"""Whether a learner explores, and what."""

SEEDED, SECURE, RECORDED = 0, 1, 2
_TAPE_STREAM = 1
_INDICES, _WORDS = np.uint64(1 << 32), 1 << 24
_U24, _U56 = np.uint64(24), np.uint64(56)


class Tape(NamedTuple):
    """Random draws by name (round, index, purpose)."""

    kind: int
    """0 seeded, 1 secure, 2 recorded."""
    key: NDArray[np.uint64]
    """Shape (8,): four words for choosing, four for noise; Philox uses two of each, ChaCha20 all."""
    recorded: NDArray[np.float64]
    """Shape (purposes, rounds, indices): the uniforms of a recorded tape, else (0, 0, 0)."""
    reads: NDArray[np.int64]
    """Shape (2,): how many draws for choosing and how many for privacy were read so far."""
    log: NDArray[np.float64]
    """Shape (m,): the first m released values are written here; (0,) keeps none."""
    positions: NDArray[np.int64]
    """Shape (m, 3): where noise was read, (round, index, purpose); -1 is unwritten, (0, 3) keeps none."""

    def __repr__(self) -> str:
        """Return the kind and the counts; never the key, which is the noise."""
        kind = ("seeded", "secure", "recorded")[self.kind]
        chosen, noise = self.reads.tolist()
        return f"<{kind} tape: {chosen} draws for choosing, {noise} for privacy>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Refuse to copy a secure key into a file or another process, which would repeat its noise."""
        if self.kind == SECURE:
            raise TypeError("Tape: expected a seeded or recorded tape to copy, got a secure one")
        return Tape, tuple(self)


def _tape(kind: int, key: NDArray[np.uint64], recorded: Any, log: int, positions: int) -> Tape:
    noted = np.full((positions, 3), -1, np.int64)
    return Tape(kind, key, recorded, np.zeros(2, np.int64), np.zeros(log), noted)


def seeded_tape(seed: int, repetition: int = 0, *, log: int = 0, positions: int = 0) -> Tape:
    """Return a virtual tape that repeats exactly for the same seed and repetition."""
    key = np.zeros(8, np.uint64)
    key[:2] = key[4:6] = key_of(seed, repetition, stream=_TAPE_STREAM)
    return _tape(SEEDED, key, np.empty((0, 0, 0)), log, positions)


def secure_tape(*, choices: bytes | None = None, log: int = 0, positions: int = 0) -> Tape:
    """Return a virtual tape under fresh 256-bit keys of the operating system.

    Whoever knows the key of the noise can subtract it, so nothing ever writes it to a file, and a
    process that is forked gets another one.

    Parameters
    ----------
    choices : bytes, optional
        The 32 bytes that the draws for choosing depend on, for a learner that repeats its choices
        after a restart: they tell nothing of what the noise hides. Fresh unless given.
    log, positions : int
        How many released values, and how many positions of noise, to keep.
    """
    key = np.frombuffer(secrets.token_bytes(64), dtype=np.uint64).copy()
    if choices is not None:
        if len(choices) != 32:
            raise ValueError(f"secure_tape: expected 32 bytes for choosing, got {len(choices)}")
        key[:4] = np.frombuffer(choices, dtype=np.uint64)
    _secure_keys[id(key), 0 if choices is None else 4] = key
    return _tape(SECURE, key, np.empty((0, 0, 0)), log, positions)


# By identity, with the first word that a forked process must change.
_secure_keys: weakref.WeakValueDictionary[tuple[int, int], NDArray[np.uint64]]
_secure_keys = weakref.WeakValueDictionary()


def _change_keys() -> None:
    # Parent and child would draw the same noise for different values.
    for (_, first), key in list(_secure_keys.items()):
        key[first:] = np.frombuffer(secrets.token_bytes(64), dtype=np.uint64)[first:]


in_child(_change_keys)


def recorded_tape(uniforms: Mapping[Any, ArrayLike], *, log: int = 0, positions: int = 0) -> Tape:
    """Return a tape that replays uniforms in [0, 1), an array (rounds, indices) for each purpose.

    Examples
    --------
    >>> from tacit.core.tapes import CHOICE, NOISE, recorded_tape, uniform
    >>> tape = recorded_tape({CHOICE: [[0.25, 0.5]], NOISE: [[0.75]]})
    >>> uniform(tape, 0, 1, CHOICE)
    0.5
    """
    arrays = {int(purpose): np.asarray(draws, np.float64) for purpose, draws in uniforms.items()}
    for draws in arrays.values():
        if draws.ndim != 2 or not bool(np.all((draws >= 0) & (draws < 1))):
            raise ValueError(
                "recorded_tape: expected 2-d arrays of numbers in [0, 1), got one of shape "
                f"{draws.shape}"
            )
    shapes = np.array([draws.shape for draws in arrays.values()], dtype=int).reshape(-1, 2)
    recorded = np.full((max(arrays, default=-1) + 1, *shapes.max(axis=0, initial=0)), np.nan)
    for purpose, draws in arrays.items():
        recorded[purpose, : draws.shape[0], : draws.shape[1]] = draws
    return _tape(RECORDED, np.zeros(8, np.uint64), recorded, log, positions)


@kernel
def secure_place(index: Any, purpose: Any) -> Any:
    """Return the second counter word of a secure position: 8 bits, 32 bits and 24 for the word k."""
    place = np.uint64(index)
    if place >= _INDICES:
        raise ValueError("secure tape: expected an index below 2^32")
    return (np.uint64(purpose) << _U56) | (place << _U24)


@kernel
def _word(
    kind: Any, key0: Any, key1: Any, key2: Any, key3: Any, t: Any, index: Any, purpose: Any, k: Any
) -> Any:
    # k counts the words one sampler asks for at its position. Takes scalars only: a tape passed
    # through two calls costs 60 ns of reference counting.
    if kind == SEEDED:
        c = np.uint64(t), np.uint64(index), np.uint64(purpose), np.uint64(k)
        return philox(key0, key1, c[0], c[1], c[2], c[3])[0]
    if k >= _WORDS:
        raise ValueError("secure tape: expected fewer than 2^24 words at one position")
    c1 = secure_place(index, purpose) | np.uint64(k)
    return chacha20(key0, key1, key2, key3, np.uint64(t), c1)


@kernel
def _replayed(recorded: Any, t: Any, index: Any, purpose: Any) -> Any:
    purposes, rounds, indices = recorded.shape
    value = np.nan
    if 0 <= purpose < purposes and 0 <= t < rounds and 0 <= index < indices:
        value = recorded[purpose, t, index]
    if np.isnan(value):
        raise ValueError("recorded tape: nothing was recorded at the position that is read")
    return value


@kernel
def uniform(tape: Any, t: Any, index: Any, purpose: Any) -> Any:
    """Return the draw of a name: a uniform in [0, 1) for choosing."""
    tape.reads[0] += 1
    if tape.kind == RECORDED:
        return _replayed(tape.recorded, t, index, purpose)
    key = tape.key
    return to_unit(_word(tape.kind, key[0], key[1], key[2], key[3], t, index, purpose, 0))


@kernel
def drawn(tape: Any, t: Any, index: Any, purpose: Any, times: Any) -> None:
    """Count draws of noise at one position, and note where that is if the tape keeps it."""
    row = tape.reads[1]
    if row < tape.positions.shape[0]:
        tape.positions[row, 0] = t
        tape.positions[row, 1] = index
        tape.positions[row, 2] = purpose
    tape.reads[1] = row + times


@kernel
def noise_uniform(tape: Any, t: Any, index: Any, purpose: Any) -> Any:
    """Return the draw of a name: a uniform in (0, 1) that a privacy mechanism consumes."""
    drawn(tape, t, index, purpose, 1)
    if tape.kind == RECORDED:
        return _replayed(tape.recorded, t, index, purpose)
    key = tape.key
    return to_open_unit(_word(tape.kind, key[4], key[5], key[6], key[7], t, index, purpose, 0))


@kernel
def noise_word(tape: Any, t: Any, index: Any, purpose: Any, k: Any) -> Any:
    """Return word k at a position for an exact integer sampler; k = 0 counts as one draw.

    A recorded tape holds uniforms, not words, and is refused.
    """
    if tape.kind == RECORDED:
        raise ValueError("noise_word: expected a seeded or secure tape, got a recorded one")
    if k == 0:
        drawn(tape, t, index, purpose, 1)
    key = tape.key
    return _word(tape.kind, key[4], key[5], key[6], key[7], t, index, purpose, k)


@kernel
def released(tape: Any, value: Any) -> Any:
    """Log that `value`, made with the latest noise draw, left the trusted side; return it."""
    position = tape.reads[1] - 1
    if 0 <= position < tape.log.size:
        tape.log[position] = value
    return value


@kernel
def released_vector(tape: Any, values: Any) -> None:
    """Log that `values`, made with as many noise draws or more, left the trusted side."""
    first = tape.reads[1] - values.size
    for i in range(values.size):
        if 0 <= first + i < tape.log.size:
            tape.log[first + i] = values[i]
