"""Tapes: draws by name, counted, and the three kinds."""

from __future__ import annotations

import copy
import itertools
import json
import os
import pickle

import numpy as np
import pytest

from tacit.core import tapes
from tacit.core.generator import chacha20, philox, to_open_unit, to_unit
from tacit.core.kernels import kernel
from tacit.core.samplers import block, source_of
from tacit.core.tapes import (
    CHOICE,
    MESSAGE,
    NOISE,
    ROUNDING,
    SIGNAL,
    noise_uniform,
    noise_word,
    recorded_tape,
    released,
    secure_place,
    secure_tape,
    seeded_tape,
    uniform,
)
from tacit.privacy.exact import below
from tacit.privacy.mechanisms.laplace import release_laplace

POSITIONS = [(t, j, p) for t in (0, 1, 5, 10**9) for j in (0, 1, 7) for p in (CHOICE, ROUNDING)]


@kernel
def word_of_block(tape, purpose, t, j, k):
    return block(source_of(tape), purpose, t, j, k)[0]


def test_a_seeded_tape_repeats():
    one, two = seeded_tape(3, 1), seeded_tape(3, 1)
    assert [uniform(one, *at) for at in POSITIONS] == [uniform(two, *at) for at in POSITIONS]


@pytest.mark.parametrize("other", [(4, 1), (3, 2)])
def test_seed_and_repetition_each_change_every_draw(other):
    one, two = seeded_tape(3, 1), seeded_tape(*other)
    assert all(uniform(one, *at) != uniform(two, *at) for at in POSITIONS)


def test_draws_are_by_name_and_not_by_order():
    tape = seeded_tape(0)
    forward = [uniform(tape, *at) for at in POSITIONS]
    backward = [uniform(tape, *at) for at in reversed(POSITIONS)]
    assert forward == backward[::-1]
    assert len(set(forward)) == len(POSITIONS)


def test_a_seeded_tape_is_philox_at_the_position():
    tape = seeded_tape(11)
    for purpose in (CHOICE, NOISE):
        at = 6, 2, purpose
        word, next_word = (
            np.uint64(philox(tape.key[0], tape.key[1], *map(np.uint64, (*at, k)))[0])
            for k in range(2)
        )
        assert uniform(tape, *at) == to_unit(word)
        assert noise_uniform(tape, *at) == to_open_unit(word)
        assert noise_word(tape, *at, 0) == word
        assert noise_word(tape, *at, 1) == next_word


def test_a_secure_tape_is_chacha20_under_a_key_of_its_own():
    one, two = secure_tape(), secure_tape()
    assert (one.key != two.key).all()
    word = chacha20(*one.key[4:], np.uint64(6), np.uint64(int(NOISE) << 56 | 5 << 24 | 3))
    assert noise_word(one, 6, 5, NOISE, 3) == word
    assert uniform(one, 6, 2, CHOICE) != uniform(two, 6, 2, CHOICE)


def test_choices_of_a_secure_tape_can_be_repeated_and_its_noise_cannot():
    one, two = (secure_tape(choices=bytes(range(32))) for _ in range(2))
    assert uniform(one, 6, 2, CHOICE) == uniform(two, 6, 2, CHOICE)
    assert noise_uniform(one, 6, 2, NOISE) != noise_uniform(two, 6, 2, NOISE)
    assert noise_uniform(one, 6, 2, CHOICE) != noise_uniform(two, 6, 2, CHOICE)
    with pytest.raises(ValueError, match="secure_tape: expected 32 bytes for choosing, got 3"):
        secure_tape(choices=b"key")


def test_secure_positions_never_overlap():
    purposes = [int(value) for name, value in vars(tapes).items() if isinstance(value, np.int64)]
    assert len(purposes) == len(set(purposes)) > 10
    assert max(purposes) < 2**8
    ends = {int(secure_place(j, p)) for p in purposes for j in (0, 1, 2**32 - 1)}
    assert len(ends) == 3 * len(purposes)
    assert all(end % 2**24 == 0 for end in ends)
    tape = secure_tape()
    with pytest.raises(ValueError, match=r"secure tape: expected an index below 2\^32"):
        noise_word(tape, 0, 2**32, NOISE, 0)
    with pytest.raises(ValueError, match=r"secure tape: expected fewer than 2\^24 words"):
        noise_word(tape, 0, 0, NOISE, 2**24)
    with pytest.raises(ValueError, match=r"secure tape: expected fewer than 2\^22 blocks"):
        word_of_block(tape, NOISE, 0, 0, 2**22)
    with pytest.raises(ValueError, match=r"secure tape: expected fewer than 2\^24 words"):
        below(5, tuple(tape.key[4:]), 0, secure_place(0, NOISE), 2**24, np.empty(0, np.uint64))


def test_blocks_and_words_are_the_same_stream():
    for tape in (seeded_tape(0), secure_tape()):
        assert noise_word(tape, 4, 9, NOISE, 0) == word_of_block(tape, NOISE, 4, 9, 0)


def test_words_of_one_position_differ():
    for tape in (seeded_tape(0), secure_tape()):
        assert len({int(noise_word(tape, 4, 1, NOISE, k)) for k in range(50)}) == 50


RECORDED = {CHOICE: np.full((5, 3), 0.25), NOISE: np.full((5, 3), 0.75)}


def test_draws_are_counted_by_what_they_are_for():
    for tape in (seeded_tape(0), secure_tape(), recorded_tape(RECORDED)):
        uniform(tape, 0, 0, CHOICE)
        noise_uniform(tape, 1, 0, NOISE)
        noise_uniform(tape, 1, 1, NOISE)
        assert tape.reads.tolist() == [1, 2]


def test_a_sampler_that_rejects_counts_once():
    tape = seeded_tape(0, positions=3)
    for k in range(4):
        noise_word(tape, 2, 0, NOISE, k)
    assert tape.reads.tolist() == [0, 1]
    assert tape.positions.tolist() == [[2, 0, NOISE], [-1] * 3, [-1] * 3]


def test_positions_of_noise_are_noted_and_those_of_choices_are_not():
    for tape in (seeded_tape(0, positions=2), secure_tape(positions=2)):
        uniform(tape, 0, 0, CHOICE)
        noise_uniform(tape, 1, 0, NOISE)
        release_laplace(tape, 4, 7, MESSAGE, 0.5, 1.0, 1.0)
        noise_uniform(tape, 9, 9, NOISE)
        assert tape.positions.tolist() == [[1, 0, NOISE], [4, 7, MESSAGE]]
    assert seeded_tape(0).positions.shape == (0, 3)


def test_a_recorded_tape_replays():
    draws = np.arange(6).reshape(3, 2) / 8
    tape = recorded_tape({CHOICE: draws, NOISE: [[0.5]]})
    assert [[uniform(tape, t, j, CHOICE) for j in range(2)] for t in range(3)] == draws.tolist()
    assert noise_uniform(tape, 0, 0, NOISE) == 0.5


@pytest.mark.parametrize("bad", [[[1.0]], [[-0.1]], [[np.nan]], [0.5]])
def test_a_recorded_tape_refuses_what_is_not_a_uniform(bad):
    with pytest.raises(ValueError, match=r"recorded_tape: expected .* \[0, 1\)"):
        recorded_tape({CHOICE: bad})


@pytest.mark.parametrize(
    "at", [(3, 0, CHOICE), (0, 2, CHOICE), (1, 0, NOISE), (0, 0, ROUNDING), (0, 0, SIGNAL)]
)
def test_what_was_not_recorded_is_not_made_up(at):
    tape = recorded_tape({CHOICE: np.zeros((3, 2)), NOISE: [[0.5]]})
    with pytest.raises(ValueError, match="recorded tape: nothing was recorded"):
        uniform(tape, *at)


def test_releases_are_logged_beside_their_draw():
    tape = seeded_tape(0, log=2)
    for t in range(3):
        noise_uniform(tape, t, 0, NOISE)
        assert released(tape, 10.0 + t) == 10.0 + t
    assert tape.log.tolist() == [10.0, 11.0]


def test_what_is_released_without_a_draw_is_not_logged_anywhere():
    room = np.zeros(3)
    tape = seeded_tape(0)._replace(log=room[1:])
    assert released(tape, 5.0) == 5.0
    assert not room.any()


def test_noise_is_never_at_the_ends():
    # Whatever the word is, its quantiles are finite.
    assert to_open_unit(np.uint64(0)) == 2.0**-53
    assert to_open_unit(np.uint64(2**64 - 1)) == 1.0 - 2.0**-53


def test_a_recorded_tape_has_no_words():
    tape = recorded_tape(RECORDED)
    with pytest.raises(ValueError, match="noise_word: expected a seeded or secure tape"):
        noise_word(tape, 0, 0, NOISE, 0)
    with pytest.raises(ValueError, match="source_of: expected a seeded or secure tape"):
        source_of(tape)


def test_a_tape_never_shows_its_key():
    for tape in (seeded_tape(5), secure_tape()):
        shown = f"{tape!r} {tape} {[tape]} {(tape,)!r}"
        assert "tape: 0 draws for choosing, 0 for privacy" in shown
        assert not any(str(word) in shown for word in tape.key.tolist() if word > 9)


def test_a_secure_tape_is_not_copied():
    for copied in (pickle.dumps, copy.deepcopy, copy.copy):
        with pytest.raises(TypeError, match="Tape: expected a seeded or recorded tape to copy"):
            copied(secure_tape())
    one = seeded_tape(5)
    two = pickle.loads(pickle.dumps(one))
    assert uniform(one, 1, 2, CHOICE) == uniform(two, 1, 2, CHOICE)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_draws_noise_of_its_own():
    """Two children and their parent tell values under one tape: nobody can subtract their noise."""
    tape, given, seeded = secure_tape(), secure_tape(choices=bytes(32)), seeded_tape(1)
    before = tape.key.copy()

    def told(value):
        drawn = [release_laplace(tape, t, 0, NOISE, value, 1.0, 1.0) for t in range(20)]
        drawn += [noise_uniform(given, 0, 0, NOISE), uniform(tape, 0, 0, CHOICE)]
        return [*drawn, uniform(seeded, 0, 0, CHOICE), uniform(given, 0, 0, CHOICE)]

    rows = [told(0.0)]
    for value in (0.0, 1.0):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, json.dumps(told(value)).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            rows.append(json.loads(pipe.read()))
        assert os.waitpid(child, 0)[1] == 0
    assert (tape.key == before).all()
    noise = np.array(rows)
    assert (noise[:, -2:] == noise[0, -2:]).all(), "what is seeded or given repeats everywhere"
    for one, two in itertools.combinations(noise[:, :-2], 2):
        assert len(np.unique(one[:20] - two[:20])) > 10
        assert (one[20:] != two[20:]).all()
