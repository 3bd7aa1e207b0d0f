"""Random and regular graphs, each the same for the same seed and repetition.

Draws come from a counter-based generator of their own stream, so that a new feedback graph in every
repetition leaves tables and tapes alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.generator import key_of
from tacit.networks.graph import Graph
from tacit.policy import require

__all__ = ["erdos_renyi"]

_GRAPH_STREAM = 7


def erdos_renyi(n_nodes: int, edge_prob: float, *, seed: int, repetition: int = 0) -> Graph:
    """Return a graph in which every pair of nodes is joined with probability `edge_prob`.

    Examples
    --------
    >>> from tacit.networks import erdos_renyi
    >>> erdos_renyi(10, 0.2, seed=0) == erdos_renyi(10, 0.2, seed=0)
    True
    """
    require("erdos_renyi", "n_nodes", ">= 0", n_nodes >= 0, n_nodes)
    require("erdos_renyi", "edge_prob", "in [0, 1]", 0 <= edge_prob <= 1, edge_prob)
    random = _random(seed, repetition)
    chosen = _bernoulli_positions(random, n_nodes * (n_nodes - 1) // 2, edge_prob)
    return Graph.from_edges(_pairs_below_diagonal(chosen), n_nodes=n_nodes)


def _random(seed: int, repetition: int) -> np.random.Generator:
    key: Any = key_of(seed, repetition, stream=_GRAPH_STREAM)
    return np.random.Generator(np.random.Philox(key=key))


def _bernoulli_positions(random: np.random.Generator, n: int, prob: float) -> NDArray[np.int64]:
    """Return which of n independent trials succeed, in time proportional to their number."""
    if prob <= 0 or n == 0:
        return np.empty(0, np.int64)
    if prob >= 1:
        return np.arange(n, dtype=np.int64)
    found, last = [np.empty(0, np.int64)], -1
    while last < n:
        expected = (n - last) * prob
        uniforms = random.random(int(expected + 4 * np.sqrt(expected)) + 8)
        gaps = np.floor(np.log1p(-uniforms) / np.log1p(-prob))
        steps = 1 + np.minimum(gaps, n).astype(np.int64)
        found.append(last + np.cumsum(steps))
        last = int(found[-1][-1])
    positions = np.concatenate(found)
    return positions[positions < n]


def _pairs_below_diagonal(position: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return pair number `position` of (1, 0), (2, 0), (2, 1), (3, 0), ..."""
    row = np.floor((1 + np.sqrt(1 + 8 * position.astype(np.float64))) / 2).astype(np.int64)
    row -= row * (row - 1) // 2 > position
    row += row * (row + 1) // 2 <= position
    return np.column_stack((row, position - row * (row - 1) // 2))
