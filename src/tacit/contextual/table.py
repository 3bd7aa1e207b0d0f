"""Tables of the users setting: who arrives, which items are shown, and what each would earn.

A synthetic table knows the preferences of its users and draws arrivals, candidates and reward noise
from a counter-based generator; a replay table knows which items a person liked; a recorded table is
a log. All answer the same two questions, so a policy is compiled once for all of them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require
from tacit.core.generator import inverse_normal, philox, to_open_unit, to_unit
from tacit.core.kernels import kernel

SYNTHETIC, REPLAY, RECORDED, RATED = 0, 1, 2, 3
_WHO, _LIKED, _SHOWN, _NOISE = 0, 1, 2, 3


class Rows(NamedTuple):
    """A square matrix by rows, as SciPy's CSR has it; no rows at all if it is not given."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    data: NDArray[np.float64]


class Table(NamedTuple):
    """N users (or groups of people) choose among n of M items with d features."""

    kind: int
    """0 synthetic, 1 replay, 2 recorded, 3 rated."""
    key0: np.uint64
    key1: np.uint64
    n_users: int
    weights: Rows
    """The relational matrix W, every column summing to one. Public; kernels do not read it."""
    graph: Rows
    """Who is joined to whom, and how strongly. Public; kernels do not read it."""
    n_shown: int
    """Candidates a round, n."""
    features: NDArray[np.float64]
    """Shape (M, d): the items; a recorded table has n rows for each of its rounds."""
    preferences: NDArray[np.float64]
    """Shape (N, d): a synthetic user's expected reward is the inner product with these."""
    spread: float
    """Standard deviation of the reward noise of a synthetic table."""
    groups: NDArray[np.int64]
    """Shape (P,): the user that each of P people of a replay table counts as."""
    indptr: NDArray[np.int64]
    """Shape (P + 1,): where each person's liked items begin."""
    liked: NDArray[np.int64]
    """The liked, or rated, items, increasing for each person."""
    ratings: NDArray[np.float64]
    """What each of them earns in a rated table, else (0,)."""
    users: NDArray[np.int64]
    """Shape (T,): who arrives in a recorded table."""
    rewards: NDArray[np.float64]
    """Shape (T, n): the rewards of a recorded table."""
    edit_rounds: NDArray[np.int64]
    edit_slots: NDArray[np.int64]
    edit_values: NDArray[np.float64]
    """Shape (E,) each: rewards that are overridden."""
    edit_users: NDArray[np.int64]
    edit_levels: NDArray[np.float64]
    """Shape (F,) each: users all of whose rewards are overridden."""
    level: float
    """What every other reward is, or NaN to leave them as they are."""
    edit_visits: NDArray[np.int64]
    edit_contexts: NDArray[np.float64]
    """Shapes (V,) and (V, d): rounds in which all candidates have another context."""


def new_table(*, n_users: int, weights: Any = None, graph: Any = None, **fields: Any) -> Table:
    """Return a table in which everything not given is empty."""
    dimension = fields["features"].shape[1]
    blank: dict[str, Any] = {
        "key0": np.uint64(0),
        "key1": np.uint64(0),
        "preferences": np.full((n_users, dimension), np.nan),
        "spread": 0.0,
        "groups": np.arange(n_users),
        "indptr": np.zeros(n_users + 1, np.int64),
        "liked": np.empty(0, np.int64),
        "ratings": np.empty(0),
        "users": np.empty(0, np.int64),
        "rewards": np.empty((0, fields["n_shown"])),
        "edit_rounds": np.empty(0, np.int64),
        "edit_slots": np.empty(0, np.int64),
        "edit_values": np.empty(0),
        "edit_users": np.empty(0, np.int64),
        "edit_levels": np.empty(0),
        "level": np.nan,
        "edit_visits": np.empty(0, np.int64),
        "edit_contexts": np.empty((0, dimension)),
    }
    return Table(
        n_users=n_users, weights=rows_of(weights), graph=rows_of(graph), **(blank | fields)
    )


def recorded_table(
    users: Any,
    contexts: Any,
    rewards: Any,
    *,
    n_users: int | None = None,
    weights: Any = None,
    graph: Any = None,
    preferences: Any = None,
) -> Table:
    """Return the table of a log in which the reward of every candidate is known.

    Everything is checked here: what passes can be played to its end, and not beyond.

    Parameters
    ----------
    users : array of shape (T,)
        Who arrives: whole numbers in 0..N - 1.
    contexts : array of shape (T, n, d)
        Finite, none longer than 1.
    rewards : array of shape (T, n)
        Finite.
    n_users : int, optional
        N; by default the size of `weights` or `graph`, or the largest user plus one.
    weights : matrix of shape (N, N), dense or sparse, optional
        The relational matrix, columns summing to one: for CoLin.
    graph : Graph or matrix of shape (N, N), dense or sparse, optional
        Who is joined to whom: for GOBLin. By default where `weights` is positive.
    preferences : array of shape (N, d), optional
        The truth, if it is known, for the parameter error.

    Examples
    --------
    >>> recorded_table([0, 3], [[[1.0]], [[0.5]]], [[1.0], [0.0]], n_users=2)
    Traceback (most recent call last):
    ValueError: recorded_table: expected users whole numbers in 0..1, got 3
    """
    owner = "recorded_table"
    shown = np.ascontiguousarray(contexts, np.float64)
    require(owner, "contexts", "of shape (T, n, d)", shown.ndim == 3, shown.shape)
    horizon, n_shown, dimension = shown.shape
    require(owner, "contexts", "not empty", shown.size > 0, shown.shape)
    require_finite(owner, "contexts", shown)
    longest = float(np.sqrt(np.max(np.sum(shown**2, axis=2))))
    require(owner, "contexts", "of length <= 1", longest <= 1 + 1e-9, longest)
    who = np.asarray(users)
    require(owner, "users", f"of shape ({horizon},)", who.shape == (horizon,), who.shape)
    values = np.ascontiguousarray(rewards, np.float64)
    shape = (horizon, n_shown)
    require(owner, "rewards", f"of shape {shape}", values.shape == shape, values.shape)
    require_finite(owner, "rewards", values)
    relation = None if weights is None else as_matrix(owner, "weights", weights)
    edges = None if graph is None else as_matrix(owner, "graph", graph)
    if edges is None and relation is not None:
        edges = joined(relation)
    size = next((m.shape[0] for m in (relation, edges) if m is not None), None)
    whole = np.array_equal(who, np.floor(who)) if who.dtype.kind in "iuf" else False
    require(owner, "users", "whole numbers", whole, who.dtype.name if not whole else 0)
    if n_users is None:
        n_users = int(who.max()) + 1 if size is None else size
    require(owner, "n_users", ">= 1", n_users >= 1, n_users)
    for name, matrix in (("weights", relation), ("graph", edges)):
        if matrix is not None:
            shape = (n_users, n_users)
            require(owner, name, f"of shape {shape}", matrix.shape == shape, matrix.shape)
    for end in (int(who.min()), int(who.max())):
        rule = f"whole numbers in 0..{n_users - 1}"
        require(owner, "users", rule, 0 <= end < n_users, end)
    given = {}
    if preferences is not None:
        truth = np.array(preferences, np.float64)
        shape = (n_users, dimension)
        require(owner, "preferences", f"of shape {shape}", truth.shape == shape, truth.shape)
        require_finite(owner, "preferences", truth)
        given["preferences"] = truth
    return new_table(
        kind=RECORDED,
        n_users=n_users,
        weights=relation,
        graph=edges,
        n_shown=n_shown,
        features=shown.reshape(horizon * n_shown, dimension),
        users=np.ascontiguousarray(who, np.int64),
        rewards=values,
        **given,
    )


def require_finite(owner: Any, name: str, values: NDArray[np.float64]) -> None:
    """Raise ``ValueError`` that names the first entry which is no finite number."""
    bad = ~np.isfinite(values)
    if bad.any():
        place = tuple(np.argwhere(bad)[0].tolist())
        require(owner, name, f"finite, also at {place}", False, float(values[place]))


def as_matrix(owner: Any, name: str, value: Any) -> Any:
    """Return a graph, a dense or a sparse matrix as SciPy's CSR, entries finite and at least 0."""
    from scipy.sparse import csr_array, issparse

    from tacit.graphs import Graph, to_scipy

    if isinstance(value, Graph):
        matrix = csr_array(to_scipy(value), dtype=np.float64, copy=True)
    elif isinstance(value, Rows):
        matrix = matrix_of(value).copy()
    else:
        dense = value if issparse(value) else np.array(value, np.float64)
        square = dense.ndim == 2 and dense.shape[0] == dense.shape[1]
        require(owner, name, "a square matrix", square, dense.shape)
        matrix = csr_array(dense, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if matrix.nnz:
        require_finite(owner, name, matrix.data)
        least = float(matrix.data.min())
        require(owner, name, ">= 0", least >= 0, least)
    return matrix


def rows_of(matrix: Any) -> Rows:
    """Return the rows of a SciPy matrix or of a dense one; None has none."""
    if isinstance(matrix, Rows):
        return matrix
    if matrix is None:
        return Rows(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    from scipy.sparse import csr_array

    given = csr_array(matrix, dtype=np.float64)
    return Rows(
        np.ascontiguousarray(given.indptr, np.int64),
        np.ascontiguousarray(given.indices, np.int64),
        np.ascontiguousarray(given.data, np.float64),
    )


def matrix_of(rows: Rows) -> Any:
    """Return the matrix as SciPy's CSR."""
    from scipy.sparse import csr_array

    n = max(len(rows.indptr) - 1, 0)
    return csr_array((rows.data, rows.indices, rows.indptr), shape=(n, n))


def joined(weights: Any) -> Any:
    """Return the unweighted graph of the pairs with a positive weight either way."""
    from scipy.sparse import csr_array

    edges = csr_array(weights, dtype=np.float64)
    edges = csr_array(edges + edges.T)
    edges.setdiag(0.0)
    edges.eliminate_zeros()
    edges.data[:] = 1.0
    return edges


@kernel
def _below(key0: Any, key1: Any, t: Any, j: Any, k: Any, purpose: Any, n: Any) -> Any:
    """Return an integer in 0..n - 1; its bias is n / 2^53."""
    word = philox(key0, key1, np.uint64(t), np.uint64(j), np.uint64(k), np.uint64(purpose))[0]
    return int(to_unit(word) * n)


@kernel
def n_rounds(table: Any) -> Any:
    """Return the number of rounds a recorded table has; any other never ends."""
    return table.users.size if table.kind == RECORDED else np.iinfo(np.int64).max


@kernel
def person_at(table: Any, t: Any) -> Any:
    """Return the person who arrives in round t."""
    if table.kind == RECORDED:
        return table.users[t]
    if table.kind != SYNTHETIC:
        return _below(table.key0, table.key1, t, 0, 0, _WHO, table.groups.size)
    return t % table.groups.size


@kernel
def likes(table: Any, person: Any, item: Any) -> Any:
    """Return whether the item is among those the person liked."""
    return _place(table, person, item) >= 0


@kernel
def _place(table: Any, person: Any, item: Any) -> Any:
    """Return where the item stands among those of the person, or -1."""
    low, high = table.indptr[person], table.indptr[person + 1]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if table.liked[middle] < item:
            low = middle + 1
        else:
            high = middle
    return low if low < end and table.liked[low] == item else -1


@kernel(inlined=False)
def arrive(table: Any, t: Any, shown: Any) -> Any:
    """Write the items shown in round t into `shown`, all different, and return the user."""
    n = shown.size
    if table.kind == RECORDED:
        for j in range(n):
            shown[j] = t * n + j
        return table.users[t]
    key0, key1 = table.key0, table.key1
    person = person_at(table, t)
    for j in range(n):
        shown[j] = -1
    if table.kind == REPLAY:
        first = table.indptr[person]
        count = table.indptr[person + 1] - first
        slot = _below(key0, key1, t, 0, 0, _LIKED, n)
        shown[slot] = table.liked[first + _below(key0, key1, t, 1, 0, _LIKED, count)]
    begin = table.indptr[person]
    pool = table.features.shape[0]
    if table.kind == RATED:
        pool = table.indptr[person + 1] - begin
    for j in range(n):
        attempt = 0
        while shown[j] < 0:
            item = _below(key0, key1, t, j, attempt, _SHOWN, pool)
            if table.kind == RATED:
                item = table.liked[begin + item]
            attempt += 1
            free = True
            for i in range(n):
                if shown[i] == item:
                    free = False
            if free and (table.kind != REPLAY or not likes(table, person, item)):
                shown[j] = item
    return table.groups[person]


@kernel
def contexts_at(table: Any, t: Any, shown: Any, contexts: Any) -> None:
    """Write the contexts of the items that are shown in round t."""
    for j in range(shown.size):
        for a in range(contexts.shape[1]):
            contexts[j, a] = table.features[shown[j], a]
    for e in range(table.edit_visits.size):
        if table.edit_visits[e] == t:
            for j in range(shown.size):
                for a in range(contexts.shape[1]):
                    contexts[j, a] = table.edit_contexts[e, a]
            return


@kernel
def expected(table: Any, t: Any, user: Any, slot: Any, item: Any) -> Any:
    """Return the expected reward of the item in a slot of round t."""
    if table.kind == SYNTHETIC:
        total = 0.0
        for i in range(table.features.shape[1]):
            total += table.features[item, i] * table.preferences[user, i]
        return total
    if table.kind == REPLAY:
        return 1.0 if likes(table, person_at(table, t), item) else 0.0
    if table.kind == RATED:
        return table.ratings[_place(table, person_at(table, t), item)]
    return table.rewards[t, slot]


@kernel
def reward(table: Any, t: Any, user: Any, slot: Any, item: Any) -> Any:
    """Return the reward of the item in a slot of round t."""
    for e in range(table.edit_rounds.size):
        if table.edit_rounds[e] == t and table.edit_slots[e] == slot:
            return table.edit_values[e]
    for e in range(table.edit_users.size):
        if table.edit_users[e] == user:
            return table.edit_levels[e]
    if not math.isnan(table.level):
        return table.level
    value = expected(table, t, user, slot, item)
    if table.kind == SYNTHETIC and table.spread > 0.0:
        word = philox(
            table.key0, table.key1, np.uint64(t), np.uint64(item), np.uint64(0), np.uint64(_NOISE)
        )[0]
        value += table.spread * inverse_normal(to_open_unit(word))
    return value
