"""Tables of the users setting: who arrives, which items are shown, and what each would earn.

A synthetic table knows the preferences of its users and draws arrivals, candidates and reward noise
from a counter-based generator; a replay table knows which items a person liked; a recorded table is
a log. All answer the same two questions, so a policy is compiled once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import kernel
from tacit.generator import inverse_normal, philox, to_open_unit, to_unit

__all__ = [
    "MEASURES",
    "Table",
    "Trace",
    "arrive",
    "edit",
    "expected",
    "new_trace",
    "observe",
    "recorded_table",
    "reward",
]

SYNTHETIC, REPLAY, RECORDED = 0, 1, 2
MEASURES = ("regret", "reward", "random_reward", "random_regret", "parameter_error")
_REGRET, _REWARD, _RANDOM_REWARD, _RANDOM_REGRET, _ERROR = range(5)
_WHO, _LIKED, _SHOWN, _NOISE = 0, 1, 2, 3


class Table(NamedTuple):
    """N users (or groups of people) choose among n of M items with d features."""

    kind: int
    """0 synthetic, 1 replay, 2 recorded."""
    key0: np.uint64
    key1: np.uint64
    weights: NDArray[np.float64]
    """Shape (N, N): the relational matrix W, every column summing to one. Public."""
    adjacency: NDArray[np.float64]
    """Shape (N, N): 1 where two users are joined, else 0. Public."""
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
    """The liked items, increasing for each person."""
    users: NDArray[np.int64]
    """Shape (T,): who arrives in a recorded table."""
    rewards: NDArray[np.float64]
    """Shape (T, n): the rewards of a recorded table."""
    edit_rounds: NDArray[np.int64]
    edit_slots: NDArray[np.int64]
    edit_values: NDArray[np.float64]
    """Shape (E,) each: rewards that are overridden."""


class Trace(NamedTuple):
    """What is kept of a run: C checkpoints, and R = T decisions if asked for."""

    checkpoints: NDArray[np.int64]
    """Shape (C,): numbers of rounds played, increasing."""
    measures: NDArray[np.float64]
    """Shape (C, 5): the columns of ``MEASURES``."""
    totals: NDArray[np.float64]
    """Shape (4,): the cumulative ones, now."""
    cursor: NDArray[np.int64]
    """Shape (1,): the next checkpoint."""
    decisions: NDArray[np.int32]
    """Shape (R,): the slot chosen in every round."""
    rewards: NDArray[np.float64]
    """Shape (R,): the true reward of every round."""


def new_trace(horizon: int, checkpoints: NDArray[np.int64], *, record: bool = False) -> Trace:
    """Return an empty trace."""
    kept = horizon if record else 0
    return Trace(
        np.ascontiguousarray(checkpoints, np.int64),
        np.zeros((len(checkpoints), len(MEASURES))),
        np.zeros(len(MEASURES) - 1),
        np.zeros(1, np.int64),
        np.zeros(kept, np.int32),
        np.zeros(kept),
    )


def new_table(**fields: Any) -> Table:
    """Return a table in which everything not given is empty."""
    dimension = fields["features"].shape[1]
    n_users = fields["weights"].shape[0]
    blank: dict[str, Any] = {
        "key0": np.uint64(0),
        "key1": np.uint64(0),
        "preferences": np.full((n_users, dimension), np.nan),
        "spread": 0.0,
        "groups": np.arange(n_users),
        "indptr": np.zeros(n_users + 1, np.int64),
        "liked": np.empty(0, np.int64),
        "users": np.empty(0, np.int64),
        "rewards": np.empty((0, fields["n_shown"])),
        "edit_rounds": np.empty(0, np.int64),
        "edit_slots": np.empty(0, np.int64),
        "edit_values": np.empty(0),
    }
    return Table(**(blank | fields))


def recorded_table(
    users: Any,
    contexts: Any,
    rewards: Any,
    *,
    weights: Any,
    adjacency: Any = None,
    preferences: Any = None,
) -> Table:
    """Return the table of a log in which the reward of every candidate is known.

    Parameters
    ----------
    users : array of shape (T,)
    contexts : array of shape (T, n, d)
    rewards : array of shape (T, n)
    weights : array of shape (N, N)
        The relational matrix; columns sum to one.
    adjacency : array of shape (N, N), optional
        Who is joined to whom; by default where `weights` is positive.
    preferences : array of shape (N, d), optional
        The truth, if it is known, for the parameter error.
    """
    shown = np.ascontiguousarray(contexts, np.float64)
    horizon, n_shown, dimension = shown.shape
    matrix = np.ascontiguousarray(weights, np.float64)
    given = {} if preferences is None else {"preferences": np.array(preferences, np.float64)}
    return new_table(
        kind=RECORDED,
        weights=matrix,
        adjacency=joined(matrix) if adjacency is None else np.array(adjacency, np.float64),
        n_shown=n_shown,
        features=shown.reshape(horizon * n_shown, dimension),
        users=np.ascontiguousarray(users, np.int64),
        rewards=np.ascontiguousarray(rewards, np.float64),
        **given,
    )


def joined(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the unweighted graph of the pairs with a positive weight either way."""
    edges = (weights > 0) | (weights.T > 0)
    np.fill_diagonal(edges, False)
    return edges.astype(np.float64)


def edit(table: Table, entries: Sequence[tuple[int, int, float]]) -> Table:
    """Return the neighbouring table in which entries (round, slot) have the given rewards."""
    for t, slot, value in entries:
        if t < 0 or not 0 <= slot < table.n_shown:
            raise ValueError(
                f"edit: expected round >= 0 and slot in 0..{table.n_shown - 1}, "
                f"got ({t}, {slot}, {value})"
            )
    latest = list(entries)[::-1]
    return table._replace(
        edit_rounds=np.concatenate([np.array([e[0] for e in latest], np.int64), table.edit_rounds]),
        edit_slots=np.concatenate([np.array([e[1] for e in latest], np.int64), table.edit_slots]),
        edit_values=np.concatenate(
            [np.array([e[2] for e in latest], np.float64), table.edit_values]
        ),
    )


@kernel
def _below(key0: Any, key1: Any, t: Any, j: Any, k: Any, purpose: Any, n: Any) -> Any:
    """Return an integer in 0..n - 1; its bias is n / 2^53."""
    word = philox(key0, key1, np.uint64(t), np.uint64(j), np.uint64(k), np.uint64(purpose))[0]
    return int(to_unit(word) * n)


@kernel
def person_at(table: Any, t: Any) -> Any:
    """Return the person who arrives in round t."""
    if table.kind == RECORDED:
        return table.users[t]
    if table.kind == REPLAY:
        return _below(table.key0, table.key1, t, 0, 0, _WHO, table.groups.size)
    return t % table.groups.size


@kernel
def likes(table: Any, person: Any, item: Any) -> Any:
    """Return whether the item is among those the person liked."""
    low, high = table.indptr[person], table.indptr[person + 1]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if table.liked[middle] < item:
            low = middle + 1
        else:
            high = middle
    return low < end and table.liked[low] == item


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
    for j in range(n):
        attempt = 0
        while shown[j] < 0:
            item = _below(key0, key1, t, j, attempt, _SHOWN, table.features.shape[0])
            attempt += 1
            free = True
            for i in range(n):
                if shown[i] == item:
                    free = False
            if free and (table.kind == SYNTHETIC or not likes(table, person, item)):
                shown[j] = item
    return table.groups[person]


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
    return table.rewards[t, slot]


@kernel
def reward(table: Any, t: Any, user: Any, slot: Any, item: Any) -> Any:
    """Return the reward of the item in a slot of round t."""
    for e in range(table.edit_rounds.size):
        if table.edit_rounds[e] == t and table.edit_slots[e] == slot:
            return table.edit_values[e]
    value = expected(table, t, user, slot, item)
    if table.kind == SYNTHETIC and table.spread > 0.0:
        word = philox(
            table.key0, table.key1, np.uint64(t), np.uint64(item), np.uint64(0), np.uint64(_NOISE)
        )[0]
        value += table.spread * inverse_normal(to_open_unit(word))
    return value


@kernel(inlined=False)
def observe(table: Any, trace: Any, t: Any, user: Any, shown: Any, slot: Any) -> Any:
    """Choose a slot in round t: add to the totals and return the reward."""
    value = reward(table, t, user, slot, shown[slot])
    best, total, chosen = -np.inf, 0.0, 0.0
    for j in range(shown.size):
        mean = expected(table, t, user, j, shown[j])
        best = max(best, mean)
        total += mean
        if j == slot:
            chosen = mean
    average = total / shown.size
    trace.totals[_REGRET] += best - chosen
    trace.totals[_REWARD] += value
    trace.totals[_RANDOM_REWARD] += average
    trace.totals[_RANDOM_REGRET] += best - average
    if trace.decisions.size > 0:
        trace.decisions[t] = slot
        trace.rewards[t] = value
    return value


@kernel
def due(trace: Any, t: Any) -> Any:
    """Return whether round t completes a checkpoint."""
    cursor = trace.cursor[0]
    return cursor < trace.checkpoints.size and trace.checkpoints[cursor] == t + 1


@kernel
def write(trace: Any, error: Any) -> None:
    """Write the checkpoint that is due."""
    cursor = trace.cursor[0]
    for i in range(trace.totals.size):
        trace.measures[cursor, i] = trace.totals[i]
    trace.measures[cursor, _ERROR] = error
    trace.cursor[0] = cursor + 1
