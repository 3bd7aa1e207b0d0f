"""No reward can raise, cost other random bytes, or be told from the default if it is unusable."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from device.exactness import CHANNELS, seeded
from tacit.device import Channel, Reporter, instructions


class Hostile:
    """Raises wherever it is touched."""

    def __float__(self):
        raise RuntimeError("touched")

    def __eq__(self, other):
        raise RuntimeError("touched")

    __hash__ = None

    def __repr__(self):
        raise RuntimeError("touched")

    def __bool__(self):
        raise RuntimeError("touched")


UNUSABLE = [
    None,
    math.nan,
    math.inf,
    -math.inf,
    "1",
    "",
    b"1",
    bytearray(b"1"),
    [],
    [1.0],
    {},
    {"reward": 1},
    (1,),
    set(),
    object(),
    int,
    Hostile(),
    10**400,
    -(10**400),
    1j,
    lambda: 1,
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    Decimal("1e400"),
    Fraction(10**400),
    np.nan,
    np.float32("inf"),
    np.array(1.0),
    np.array([1.0]),
    np.ma.masked,
    np.complex128(1j),
    np.datetime64("2026-01-01"),
]
USABLE = [
    (True, 1.0),
    (False, 0.0),
    (-0.0, 0.0),
    (5e-324, 5e-324),
    (10**300, 1e300),
    (Decimal("0.5"), 0.5),
    (Fraction(1, 4), 0.25),
    (np.float64(0.5), 0.5),
    (np.float32(0.5), 0.5),
    (np.float16(0.25), 0.25),
    (np.int8(1), 1.0),
    (np.bool_(True), 1.0),
]
SEEDS = range(20)
ALL = CHANNELS | {"identity": instructions.identity(default=0.5)}


class Counting:
    """Seeded bytes, with a record of what was asked for."""

    def __init__(self, seed):
        self.source, self.asked = seeded(seed), []

    def __call__(self, n):
        self.asked.append(n)
        return self.source(n)


def drawn(asked, reward, seed):
    random = Counting(seed)
    return Channel(asked).draw(reward, random), random.asked


@pytest.mark.parametrize("reward", UNUSABLE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("name", ALL)
def test_an_unusable_reward_is_the_default(name, reward):
    asked = ALL[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in SEEDS:
            assert drawn(asked, reward, seed) == drawn(asked, asked["default"], seed)


@pytest.mark.parametrize(("reward", "number"), USABLE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("name", ALL)
def test_a_number_of_any_type_counts_as_itself(name, reward, number):
    for seed in SEEDS:
        assert drawn(ALL[name], reward, seed) == drawn(ALL[name], number, seed)


REWARDS = st.one_of(
    st.floats(),
    st.integers(),
    st.none(),
    st.booleans(),
    st.text(),
    st.binary(),
    st.decimals(),
    st.fractions(),
    st.complex_numbers(),
    st.lists(st.integers()),
    st.dictionaries(st.text(), st.floats()),
    st.datetimes(),
    st.integers().map(lambda n: 10 ** (abs(n) % 999)),
    st.floats(width=16).map(np.float16),
)


@pytest.mark.parametrize("name", ALL)
@settings(deadline=None)
@given(reward=REWARDS, seed=st.integers(0, 2**32))
def test_no_reward_raises_or_costs_other_bytes(name, reward, seed):
    value, asked = drawn(ALL[name], reward, seed)
    assert asked == drawn(ALL[name], 0, seed)[1]
    report = Reporter(ALL[name], id="d", max_epsilon=None, random=seeded(seed)).report(reward)
    assert report == {"v": 1, "id": "d", "value": value}
    assert Channel(ALL[name]).possible(value)


@pytest.mark.parametrize("name", ["randomized-response", "piecewise", "discrete-laplace"])
def test_rewards_are_clipped(name):
    for seed in SEEDS:
        assert drawn(ALL[name], 1e308, seed) == drawn(ALL[name], 1, seed)
        assert drawn(ALL[name], -1e308, seed) == drawn(ALL[name], 0, seed)


@settings(deadline=None)
@given(
    low=st.floats(-(2.0**52), 2.0**51),
    width=st.floats(0, 2.0**52),
    reward=st.floats(),
    levels=st.integers(2, 65537),
)
def test_every_position_lies_among_the_levels(low, width, reward, levels):
    high = max(low + width, math.nextafter(low, math.inf))
    asked = instructions.discrete_laplace(1.0, low=low, high=high, steps=levels - 1)
    position = Channel(asked).position(reward)
    assert 0 <= position <= levels - 1
    assert Channel(asked).position(low) == 0
    # To within the rounding of a product and a quotient; exact where symbols are whole numbers.
    assert Channel(asked).position(high) >= (levels - 1) * (1 - 2.0**-51)


def test_a_whole_symbol_is_never_rounded():
    for symbols in range(2, 200):
        channel = Channel(instructions.k_ary(1.0, symbols))
        assert [channel.position(i) for i in range(symbols)] == list(range(symbols))


def test_cuts_count_those_below():
    channel = Channel(instructions.cuts(1.0, [-1.0, 0.25, 0.75]))
    below = [
        -5,
        -1,
        math.nextafter(-1, 0),
        0,
        -0.0,
        0.25,
        0.5,
        0.75,
        math.nextafter(0.75, 1),
        1e300,
    ]
    assert [channel.position(reward) for reward in below] == [0, 0, 1, 1, 1, 1, 2, 2, 3, 3]


def test_a_source_that_gives_too_little_is_refused():
    with pytest.raises(ValueError, match="random: expected 7 bytes, got 3"):
        Channel(ALL["k-ary"]).draw(1, lambda n: b"abc")


IMPOSSIBLE = [
    None,
    "1",
    True,
    -1,
    0.5,
    99,
    math.nan,
    10**400,
    [],
    [0],
    [2, 0, 0],
    [0, 0, 0.5],
    [True, False, True],
]


@pytest.mark.parametrize("name", CHANNELS)
def test_what_no_device_reports_is_told(name):
    channel = Channel(CHANNELS[name])
    allowed = [value for value in IMPOSSIBLE if channel.possible(value)]
    assert allowed == {"discrete-laplace": [-1, 99], "unary-one": [[0]]}.get(name, [])
    # A list of bits cannot stand for a number, nor a set of another size for a subset.
    assert channel.possible([1, 0, 1, 0, 0]) == (name == "subset")
    assert not channel.possible([1, 1, 1, 0, 0])


def test_a_reward_outside_the_range_is_not_reported():
    channel = Channel(ALL["identity"])
    assert channel.possible(0.25)
    assert not any(map(channel.possible, (-0.1, 1.1, math.nan, True, "1", [1])))
