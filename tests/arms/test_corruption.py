"""Corruption functions: their inverse, the feedback they give, and what they protect."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.arms import Corruption, RandomizedResponse
from tacit.arms.corruption import corrupted, grid_inverse, grid_value
from tacit.tapes import seeded_tape

N = 20_000
FEW = settings(max_examples=100, deadline=None)


@st.composite
def grids(draw):
    steps = draw(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6))
    rising = np.cumsum([0.0, *steps])
    grid = 0.05 + 0.9 * rising / rising[-1]
    return grid[None, ::-1].copy() if draw(st.booleans()) else grid[None].copy()


@FEW
@given(grids(), st.floats(0.0, 1.0))
def test_values_are_linear_in_between_and_the_inverse_undoes_them(grid, x):
    places = np.linspace(0, 1, grid.shape[1])
    assert grid_value(grid, 0, x) == pytest.approx(np.interp(x, places, grid[0]), abs=1e-14)
    assert grid_inverse(grid, 0, grid_value(grid, 0, x)) == pytest.approx(x, abs=1e-12)


@FEW
@given(grids(), st.floats(-1.0, 2.0))
def test_the_inverse_is_clipped_to_rewards(grid, y):
    x = grid_inverse(grid, 0, y)
    assert 0.0 <= x <= 1.0
    if not min(grid[0]) <= y <= max(grid[0]):
        assert x == (1.0 if (y > max(grid[0])) == (grid[0, 0] < grid[0, -1]) else 0.0)


@pytest.mark.parametrize("values", [(0.2, 0.7), (0.9, 0.1), (0.1, 0.15, 0.9)])
@pytest.mark.parametrize("reward", [0.0, 0.3, 1.0])
def test_feedback_is_one_with_probability_g(values, reward):
    # 5 standard errors: a false alarm has probability 6e-7.
    grid = Corruption(values=(values,)).grid(1)
    tape = seeded_tape(1)
    mean = np.mean([corrupted(grid, tape, t, 0, reward) for t in range(N)])
    g = np.interp(reward, np.linspace(0, 1, len(values)), values)
    error = math.sqrt(g * (1 - g) / N)
    assert abs(mean - g) < 5 * error
    assert abs(mean - (g + 0.03)) > 5 * error
    assert tape.reads[1] == N


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_optimal_response_spends_exactly_epsilon(epsilon):
    response = RandomizedResponse.optimal(epsilon)
    assert response.release(2).epsilon == pytest.approx(epsilon, rel=1e-12)
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert np.allclose(response.grid(1), [[1 - keep, keep]], rtol=1e-15)


def test_the_least_private_arm_counts():
    one, two = (RandomizedResponse.of(p00=p, p11=p) for p in (0.6, 0.9))
    both = RandomizedResponse.of(p00=[0.6, 0.9], p11=[0.6, 0.9])
    assert both.release(2).epsilon == two.release(1).epsilon > one.release(1).epsilon


def test_privacy_is_that_of_the_ends_whatever_the_shape():
    # The likelihood ratio of the bit over all pairs of rewards, calculated.
    curve = Corruption.from_function(lambda x: 0.1 + 0.7 * x**3, points=101)
    g = np.array(curve.values[0])
    worst = max(np.log(g[:, None] / g[None]).max(), np.log((1 - g[:, None]) / (1 - g[None])).max())
    assert curve.release(1).epsilon == pytest.approx(worst, rel=1e-12)


def test_a_falling_function_is_as_private_as_its_mirror():
    rising, falling = Corruption(values=((0.2, 0.9),)), Corruption(values=((0.9, 0.2),))
    assert rising.release(1).epsilon == falling.release(1).epsilon


@pytest.mark.parametrize(
    "values",
    [((0.5,),), ((0.5, 0.5),), ((0.1, 0.9, 0.5),), ((-0.1, 0.5),), ((0.5, 1.2),), ((0.1, np.nan),)],
)
def test_what_is_no_corruption_is_refused(values):
    with pytest.raises(ValueError, match=r"Corruption: expected values"):
        Corruption(values=values)


def test_the_number_of_arms_must_fit():
    with pytest.raises(ValueError, match=r"expected values 1 row or 3, got 2"):
        Corruption(values=((0.1, 0.9), (0.2, 0.8))).grid(3)
