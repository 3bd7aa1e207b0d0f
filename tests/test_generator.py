"""The generators against published ones, and their independence across positions and keys."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.core.generator import (
    chacha20,
    inverse_normal,
    key_of,
    philox,
    to_open_unit,
    to_unit,
)

WORD = st.integers(0, 2**64 - 1)
FEW = settings(max_examples=60, deadline=None)


def block(key: tuple[int, int], counter: tuple[int, int, int, int]) -> list[int]:
    return [int(w) for w in philox(*map(np.uint64, key), *map(np.uint64, counter))]


def numpy_block(key: tuple[int, int], counter: tuple[int, int, int, int]) -> list[int]:
    # NumPy steps its counter before it makes a block, so it starts one before the position.
    position = sum(word << (64 * i) for i, word in enumerate(counter))
    source = np.random.Philox(counter=(position - 1) % 2**256, key=key[0] | key[1] << 64)
    return [int(w) for w in source.random_raw(4)]


@FEW
@given(st.tuples(WORD, WORD), st.tuples(WORD, WORD, WORD, WORD))
def test_philox_is_numpys(key, counter):
    assert block(key, counter) == numpy_block(key, counter)


def test_philox_known_answer():
    # Random123, kat_vectors: philox4x64, 10 rounds, all words zero.
    expected = [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]
    assert block((0, 0), (0, 0, 0, 0)) == expected


@FEW
@given(st.tuples(WORD, WORD, WORD, WORD), WORD, WORD)
def test_chacha20_is_that_of_a_cryptographic_library(key, c0, c1):
    secret = b"".join(word.to_bytes(8, "little") for word in key)
    nonce = c0.to_bytes(8, "little") + c1.to_bytes(8, "little")
    stream = Cipher(algorithms.ChaCha20(secret, nonce), mode=None).encryptor().update(bytes(8))
    ours = chacha20(*map(np.uint64, key), np.uint64(c0), np.uint64(c1))
    assert int(ours).to_bytes(8, "little") == stream


@FEW
@given(WORD)
def test_to_unit_lies_on_the_grid(word):
    value = float(to_unit(np.uint64(word)))
    assert 0.0 <= value < 1.0
    assert value * 2**53 == word >> 11


@FEW
@given(WORD)
def test_to_open_unit_lies_in_the_middle_of_a_cell(word):
    value = float(to_open_unit(np.uint64(word)))
    assert 0.0 < value < 1.0
    assert value * 2**53 == 2 * (word >> 12) + 1


@FEW
@given(st.floats(1e-300, 1.0 - 1e-16))
def test_inverse_normal_is_that_of_the_standard_library(p):
    if p == 1.0:
        return
    assert float(inverse_normal(p)) == pytest.approx(
        statistics.NormalDist().inv_cdf(p), rel=2e-15, abs=2e-16
    )


def test_inverse_normal_at_the_ends():
    assert inverse_normal(0.5) == 0.0
    assert inverse_normal(0.0) == -np.inf
    assert inverse_normal(1.0) == np.inf


def test_keys_differ_in_seed_repetition_and_stream():
    keys = {
        tuple(key_of(seed, repetition, stream=stream).tolist())
        for seed in range(20)
        for repetition in range(20)
        for stream in range(3)
    }
    assert len(keys) == 20 * 20 * 3


N = 4000


def units(seed: int = 1, repetition: int = 0, stream: int = 0, arm: int = 0) -> np.ndarray:
    key0, key1 = key_of(seed, repetition, stream=stream)
    zero = np.uint64(0)
    words = [philox(key0, key1, np.uint64(t), np.uint64(arm), zero, zero)[0] for t in range(N)]
    return np.array([to_unit(np.uint64(w)) for w in words])


BASE = {"seed": 1, "repetition": 0, "stream": 0, "arm": 0}


@pytest.mark.parametrize("changed", ["seed", "repetition", "stream", "arm"])
def test_streams_are_uncorrelated(changed):
    # Each of the two correlations is normal with sd 1/sqrt(N); 5 sd: false alarm 6e-7 each.
    one, two = units(**BASE), units(**{**BASE, changed: BASE[changed] + 1})
    assert abs(np.corrcoef(one, two)[0, 1]) < 5 / np.sqrt(N)
    assert abs(np.corrcoef((one - 0.5) ** 2, (two - 0.5) ** 2)[0, 1]) < 5 / np.sqrt(N)


def test_a_shared_stream_would_be_noticed():
    one = units()
    mixed = np.where(np.arange(N) % 8 == 0, one, units(seed=2))
    assert abs(np.corrcoef(one, mixed)[0, 1]) > 5 / np.sqrt(N)


def test_rounds_are_uniform_and_independent():
    # Chi-square over 64 cells of consecutive pairs, normal approximation, 5 sd: false alarm 1e-6.
    u = units()
    assert chi_square(u[:-1:2], u[1::2]) < 63 + 5 * np.sqrt(2 * 63)
    assert chi_square(u[:-1:2], u[:-1:2] ** 1.2) > 63 + 5 * np.sqrt(2 * 63)


def chi_square(one: np.ndarray, two: np.ndarray) -> float:
    cells = np.bincount((one * 8).astype(int) * 8 + (two * 8).astype(int), minlength=64)
    expected = len(one) / 64
    return float(((cells - expected) ** 2 / expected).sum())
