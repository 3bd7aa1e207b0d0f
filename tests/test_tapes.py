"""Tapes: draws by position, counted, and the three kinds."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.generator import chacha20, philox, to_open_unit, to_unit
from tacit.tapes import (
    noise_uniform,
    noise_word,
    recorded_tape,
    released,
    secure_tape,
    seeded_tape,
    uniform,
)
from tacit.variates import source_of

POSITIONS = [(t, j) for t in (0, 1, 5, 10**9) for j in (0, 1, 7)]


def test_a_seeded_tape_repeats():
    one, two = seeded_tape(3, 1), seeded_tape(3, 1)
    assert [uniform(one, t, j) for t, j in POSITIONS] == [uniform(two, t, j) for t, j in POSITIONS]


@pytest.mark.parametrize("other", [(4, 1), (3, 2)])
def test_seed_and_repetition_each_change_every_draw(other):
    one, two = seeded_tape(3, 1), seeded_tape(*other)
    assert all(uniform(one, t, j) != uniform(two, t, j) for t, j in POSITIONS)


def test_draws_are_by_position_and_not_by_order():
    tape = seeded_tape(0)
    forward = [uniform(tape, t, j) for t, j in POSITIONS]
    backward = [uniform(tape, t, j) for t, j in reversed(POSITIONS)]
    assert forward == backward[::-1]
    assert len(set(forward)) == len(POSITIONS)


def test_a_seeded_tape_is_philox_at_the_position():
    tape = seeded_tape(11)
    word = np.uint64(philox(tape.key[0], tape.key[1], *map(np.uint64, (6, 2, 0, 0)))[0])
    assert uniform(tape, 6, 2) == to_unit(word)
    assert noise_uniform(tape, 6, 2) == to_open_unit(word)
    assert noise_word(tape, 6, 2, 0) == word


def test_a_secure_tape_is_chacha20_under_a_key_of_its_own():
    one, two = secure_tape(), secure_tape()
    assert (one.key != two.key).all()
    word = chacha20(*one.key, np.uint64(6), np.uint64(2 << 32 | 3))
    assert noise_word(one, 6, 2, 3) == word
    assert uniform(one, 6, 2) != uniform(two, 6, 2)


def test_words_of_one_position_differ():
    for tape in (seeded_tape(0), secure_tape()):
        assert len({int(noise_word(tape, 4, 1, k)) for k in range(50)}) == 50


def test_draws_are_counted_by_what_they_are_for():
    for tape in (seeded_tape(0), secure_tape(), recorded_tape(np.full((5, 3), 0.25))):
        uniform(tape, 0, 0)
        noise_uniform(tape, 1, 0)
        noise_uniform(tape, 1, 1)
        assert tape.reads.tolist() == [1, 2]


def test_a_sampler_that_rejects_counts_once():
    tape = seeded_tape(0)
    for k in range(4):
        noise_word(tape, 2, 0, k)
    assert tape.reads.tolist() == [0, 1]


def test_a_recorded_tape_replays():
    draws = np.arange(6).reshape(3, 2) / 8
    tape = recorded_tape(draws)
    assert [[uniform(tape, t, j) for j in range(2)] for t in range(3)] == draws.tolist()


@pytest.mark.parametrize("bad", [[[1.0]], [[-0.1]], [[np.nan]], [0.5]])
def test_a_recorded_tape_refuses_what_is_not_a_uniform(bad):
    with pytest.raises(ValueError, match=r"recorded_tape: expected .* \[0, 1\)"):
        recorded_tape(bad)


def test_releases_are_logged_beside_their_draw():
    tape = seeded_tape(0, log=2)
    for t in range(3):
        noise_uniform(tape, t, 0)
        assert released(tape, 10.0 + t) == 10.0 + t
    assert tape.log.tolist() == [10.0, 11.0]


def test_noise_is_never_at_the_ends():
    # Whatever the word is, its quantiles are finite.
    assert to_open_unit(np.uint64(0)) == 2.0**-53
    assert to_open_unit(np.uint64(2**64 - 1)) == 1.0 - 2.0**-53


def test_a_recorded_tape_has_no_words():
    tape = recorded_tape(np.full((5, 3), 0.25))
    with pytest.raises(ValueError, match="noise_word: expected a seeded or secure tape"):
        noise_word(tape, 0, 0, 0)
    with pytest.raises(ValueError, match="source_of: expected a seeded or secure tape"):
        source_of(tape)
