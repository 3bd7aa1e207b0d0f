"""Sums on a secure tape: whole numbers, how far apart neighbours are, and what is decoded of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from oracles.privacy import discrete_gaussian_delta
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import secure_tape
from tacit.privacy import BinaryTree, SquareRootToeplitz, audit, compose
from tacit.privacy.mechanisms.streams import run_sums

T, D = 13, 3
GAUSSIAN = {"epsilon": 1.0, "delta": 1e-6, "horizon": T, "dimension": D, "sensitivity": 0.7}
TREE = BinaryTree(noise="gaussian", norm="l2", online=False, reach=1.0, **GAUSSIAN)
ONLINE = BinaryTree(noise="gaussian", norm="l2", online=True, reach=1.0, **GAUSSIAN)
PURE = BinaryTree(epsilon=1.0, horizon=T, dimension=D, sensitivity=0.7, online=False, reach=1.0)
TOEPLITZ = SquareRootToeplitz(reach=1.0, **GAUSSIAN)  # type: ignore[arg-type]
EVERY = {"tree": TREE, "online tree": ONLINE, "Laplace tree": PURE, "Toeplitz": TOEPLITZ}
every_sum = pytest.mark.parametrize("sums", EVERY.values(), ids=EVERY)


def nodes_of(items: np.ndarray) -> np.ndarray:
    """Return the true sum of every node of a tree over whole items, spelled out."""
    sums = []
    for height in range(len(items).bit_length()):
        size = 1 << height
        for end in range(size, len(items) + 1, size):
            if (end // size) % 2 == 1 or end % (2 * size) == 0:
                sums.append(items[end - size : end].sum(axis=0))
    return np.concatenate(sums)


def factored(items: np.ndarray, factor: np.ndarray, parts: float) -> np.ndarray:
    """Return the rounded factored sequence, in Python's integers."""
    whole = [int(c) for c in factor[::-1]]
    rows = []
    for t in range(len(items)):
        row = [sum(whole[k] * int(items[t - k, j]) for k in range(t + 1)) for j in range(D)]
        rows.append([math.floor(value / parts + 0.5) for value in row])
    return np.array(rows, float)


def quantised(sums: Any, items: np.ndarray) -> np.ndarray:
    return np.rint(np.clip(items, -1.0, 1.0) / sums.grid.step)


@pytest.mark.parametrize("sums", [TREE, ONLINE, TOEPLITZ], ids=["tree", "online", "Toeplitz"])
def test_neighbours_are_no_further_apart_than_declared(sums: Any) -> None:
    """Items at half steps, where rounding does most; and half the declared distance is exceeded."""
    rng = np.random.default_rng(0)
    most = 0.0
    for _ in range(60):
        left = sums.grid.step * (rng.integers(-9, 9, (T, D)) + 0.5)
        move = rng.normal(size=D) if rng.random() < 0.5 else np.ones(D)
        right = left.copy()
        right[0] += 0.7 * move / np.linalg.norm(move)
        pair = [quantised(sums, items) for items in (left, right)]
        if sums is TOEPLITZ:
            whole = [factored(q, sums.stream.factor, sums.stream.parts) for q in pair]
        else:
            whole = [nodes_of(q) for q in pair]
        most = max(most, float(np.linalg.norm(whole[0] - whole[1])))
    assert most <= sums.secure_release.steps
    assert most > 0.999 * sums.secure_release.steps


@pytest.mark.parametrize("sums", [TREE, ONLINE, TOEPLITZ], ids=["tree", "online", "Toeplitz"])
def test_the_accounting_is_that_of_convolved_probabilities(sums: Any) -> None:
    """In a thousandth of the steps, which makes the noise coarser and the loss hardly larger."""
    release = sums.secure_release
    assert release.delta(1.0) <= 1e-6
    assert release.delta(1.0) > 0.99e-6
    coarse = release.sigma / release.steps * 40
    if sums is TOEPLITZ:
        column = np.floor(40 * sums.coefficients / np.linalg.norm(sums.coefficients))
    else:
        column = np.full(sums.levels, math.floor(40 / math.sqrt(sums.levels)))
    shift = tuple(int(move) for move in column)
    assert discrete_gaussian_delta(shift, coarse, 1.0) <= 1e-6
    assert discrete_gaussian_delta(shift, coarse / 2, 1.0) > 1e-3


@every_sum
def test_released_sums_are_unbiased_and_as_noisy_as_said(sums: Any) -> None:
    """5 standard errors; sums off by a fifth of the noise, and noise 10% larger, are found."""
    n = 60 if INTERPRETED else 6_000
    items = np.random.default_rng(1).uniform(-0.4, 0.4, (T, D))
    y = sums.run(items, n).reshape(n, T, D)
    truth = np.cumsum(items, axis=0)
    for t in (0, 6, T - 1):
        error = (y[:, t] - truth[t]).ravel()
        standard = error.std() / math.sqrt(error.size)
        assert abs(error.mean()) < 5 * standard
        spread = np.var(error**2) ** 0.5 / math.sqrt(error.size)
        assert abs(error.var() - sums.variance_after(t + 1)) < 5 * spread
        if not INTERPRETED:
            assert abs(error.mean() - 0.2 * sums.scale) > 5 * standard
            assert abs(error.var() - 1.2 * sums.variance_after(t + 1)) > 5 * spread


def test_what_is_decoded_without_noise_are_the_sums() -> None:
    long = SquareRootToeplitz(horizon=3000, epsilon=1.0, delta=1e-6)
    items = np.rint(np.random.default_rng(2).uniform(0, 1, 3000) / long.grid.step)
    encoder = long.stream.factor[::-1] / long.stream.parts
    y = np.rint(np.convolve(encoder, items)[:3000])
    decoded = np.convolve(2 * long.coefficients - encoder, y)[:3000]
    off = np.abs(decoded - np.cumsum(items)).max() * long.grid.step
    assert off < 1e-3 < 1e-3 * long.scale
    # Decoded with the plain coefficients they are further off.
    plain = np.convolve(long.coefficients, y)[:3000]
    assert np.abs(plain - np.cumsum(items)).max() * long.grid.step > off


@every_sum
def test_secure_sums_are_made_of_whole_numbers(sums: Any) -> None:
    items = np.random.default_rng(3).uniform(-2.0, 2.0, (T, D))
    grid, memory, out = np.array(sums.grid, float), sums.memory(), np.empty((1, T * D))
    run_sums(secure_tape(), sums.stream, sums.scale, grid, items, memory, out)
    if sums is ONLINE:
        memory = memory[:, : sums.levels]
    np.testing.assert_array_equal(memory, np.rint(memory))
    if sums is TOEPLITZ:
        np.testing.assert_array_equal(memory[:, T:].T, quantised(sums, items))
    else:
        np.testing.assert_array_equal(memory[:, 0], quantised(sums, items)[T - 1])
    if sums in (TREE, PURE):
        np.testing.assert_array_equal(out, grid[0] * np.rint(out / grid[0]))


def test_the_grid_is_a_millionth_where_integers_reach_so_far() -> None:
    assert BinaryTree(
        horizon=100, epsilon=1.0, delta=1e-6, noise="gaussian", norm="l2"
    ).grid.step == (2.0**-20)
    wide = BinaryTree(horizon=10**6, epsilon=0.01, delta=1e-9, noise="gaussian", norm="l2")
    assert wide.grid.step > 2.0**-20
    assert wide.grid.noise < 2**27
    assert wide.secure_release.delta(0.01) <= 1e-9


def test_what_has_no_whole_numbers_says_why() -> None:
    ball = BinaryTree(horizon=9, epsilon=1.0, noise="ball", norm="l2", dimension=2)
    with pytest.raises(ValueError, match=r"BinaryTree: .*noise that depends on a length"):
        ball.run(np.zeros((9, 2)))
    tiny = BinaryTree(horizon=9, epsilon=1e-9, delta=1e-9, noise="gaussian", norm="l2")
    with pytest.raises(ValueError, match="too wide for a grid of 64 steps"):
        tiny.run(np.zeros(9))
    far = SquareRootToeplitz(horizon=9, epsilon=1.0, delta=1e-6, reach=1e9)
    with pytest.raises(ValueError, match=r"longer than 2\^52 steps"):
        far.run(np.zeros(9))


@pytest.mark.skipif(INTERPRETED, reason="thousands of runs need compiled kernels")
@pytest.mark.parametrize("kind", [BinaryTree, SquareRootToeplitz])
def test_an_audit_refutes_half_the_noise_only(kind: Any) -> None:
    """At an alpha of 1e-6."""
    more = {"noise": "gaussian", "norm": "l2"} if kind is BinaryTree else {}
    sums = kind(horizon=2, epsilon=1.0, delta=0.05, **more)
    left, right, _ = sums.worst_pairs()[0]

    def half(value: Any, n: int, seed: int) -> np.ndarray:
        grid = np.array(sums.grid, float) * [1, 0.5, 1]
        out = np.empty((n, 2))
        run_sums(secure_tape(), sums.stream, sums.scale, grid, value, sums.memory(), out)
        return out

    terms = {"epsilon": 1.0, "delta": 0.05, "runs": 20_000, "alpha": 1e-6}
    assert not audit(lambda v, n, seed: sums.run(v, n), left, right, **terms).refuted
    assert audit(half, left, right, **terms).refuted


def test_what_sums_protect_is_one_item_and_not_from_the_server() -> None:
    scope = TREE.scope
    stated = compose(TREE.releases, delta=TREE.delta, **scope)
    assert (stated.unit, stated.trust, stated.span) == ("reward", "central", "run")
    assert stated.epsilon == pytest.approx(1.0, rel=1e-6)
    assert "the server, which sees true values" in stated.sentence()
    # Many items of one person meet in the nodes; no moment is too large or too small to be counted.
    pure = compose(PURE.releases, **scope)
    for items in (3, 1000, 10_000):
        many = pure.for_user(items, delta=1e-6).epsilon
        assert 0.99 * items < many <= items * (1 + 1e-12)
