"""The table of the learning dynamics: who knows whom, who begins with what, and how good options turn out.

The quality signal of an option in a round is one draw that all agents share; it is a pure function
of a key and the position.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.generator import philox, to_unit
from tacit.core.kernels import kernel
from tacit.core.segments import segment_at


class Table(NamedTuple):
    """Quality signals of M options for N agents on a network of E edges.

    A table may be that of a partition of a larger population: of its N agents it has `here`, numbered from
    `first`, and the rows of their neighbours.
    """

    key0: np.uint64
    key1: np.uint64
    qualities: NDArray[np.float64]
    """Shape (S, M): the probability eta that an option is good in a round of each segment of time."""
    starts: NDArray[np.int64]
    """Shape (S,): the first round of each segment."""
    shares: NDArray[np.float64]
    """Shape (M,): the share of agents that adopt each option at first, or (0,) for all equally many."""
    n_agents: int
    first: int
    """The number of the first agent here."""
    here: int
    """How many agents are here."""
    indptr: NDArray[np.int64]
    """Shape (here + 1,): where each agent's neighbours begin; (0,) without a network."""
    indices: NDArray[np.int32]
    """The neighbours; in a partition by their rows, those of the halo after those here."""
    edit_rounds: NDArray[np.int64]
    edit_agents: NDArray[np.int64]
    edit_options: NDArray[np.int64]
    """Shape (X,) each: adoptions that are replaced before a round; in round 0 the first ones."""


def first_adoptions(table: Table, agents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what agents of these numbers adopt at first, -1 for nothing: it depends on nothing else.

    Without shares an agent's number modulo M. With shares agents are dealt out in an order that spreads the
    adopters of an option evenly over all numbers: i = number x stride modulo N, of which the first share
    adopts the first option and so on.
    """
    M, N = table.qualities.shape[1], table.n_agents
    options: NDArray[np.int64] = agents % M
    if table.shares.size > 0:
        place = agents * stride_of(N) % N
        options = np.searchsorted(group_bounds(table), place, side="right")
        options[options == M] = -1
    return options


def first_counts(table: Table) -> NDArray[np.int64]:
    """Return how many of all agents adopt each option at first, and none."""
    M, N = table.qualities.shape[1], table.n_agents
    if table.shares.size == 0:
        return np.array([N // M + (j < N % M) for j in range(M)] + [0], np.int64)
    counts: NDArray[np.int64] = np.diff(np.concatenate(([0], group_bounds(table), [N])))
    return counts


def group_bounds(table: Table) -> NDArray[np.int64]:
    """Return the places in the order of agents where the adopters of each option end."""
    ends: NDArray[np.int64] = np.rint(
        np.minimum(np.cumsum(table.shares), 1.0) * table.n_agents
    ).astype(np.int64)
    return ends


def stride_of(N: int) -> int:
    """Return a number near the golden section of N that has no divisor in common with it."""
    stride = max(1, round(N * (math.sqrt(5) - 1) / 2))
    while math.gcd(stride, N) > 1:
        stride += 1
    return stride


@kernel
def replace_adoptions(table: Any, t: Any, adoption: Any, counts: Any) -> None:
    """Give agents the adoptions that the table wants before round t."""
    for e in range(table.edit_rounds.size):
        if table.edit_rounds[e] == t:
            a, option = table.edit_agents[e] - table.first, table.edit_options[e]
            if 0 <= a < adoption.size:
                counts[adoption[a]] -= 1
                counts[option] += 1
                adoption[a] = option


@kernel
def signal(table: Any, t: Any, j: Any) -> Any:
    """Return whether option j is good in round t: Phi_j^t, the same for all agents."""
    zero = np.uint64(0)
    word = philox(table.key0, table.key1, np.uint64(t), np.uint64(j), zero, zero)[0]
    return to_unit(word) < table.qualities[segment_at(table.starts, t), j]
