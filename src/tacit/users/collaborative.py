"""One algorithm for LinUCB, CoLin and GOBLin: ridge regression in prediction space.

The three policies of the paper differ in a matrix B that spreads a user's context over all users:
x~ = (B (x) I) phi with phi = e_u (x) x. Predictions only ever need S = B' A^-1 B, which starts at
(1/lambda) K (x) I with the user kernel K = B'B and loses one rank-one term a round, whatever B is.
Users whom K does not join never meet in memory; for the others the rank-one terms are kept aside
and subtracted sixty-four at a time, by a matrix product, below the diagonal only.

Noise eta on the paper's statistic b enters predictions as B' A^-1 eta, which by the push-through
identity is (c - S Phi c) / lambda with c = B' eta and Phi the sum of phi phi'; noise zeta on the sums
of phi r enters as S zeta. So both are S `lift` + `shift`, added when a user arrives.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import kernel
from tacit.users.noise import NONE, PARAMETER, SMALL, advance, dot, privatise
from tacit.users.tables import arrive, due, observe, write

__all__ = ["Rule", "State", "learn", "new_state", "run", "select"]

BLOCK = 64


class Rule(NamedTuple):
    """The numbers the kernels need."""

    regularisation: float
    """lambda."""
    exploration: float
    """The constant width alpha, or -1 for Lemma 2."""
    failure_prob: float
    """delta of Lemma 2."""
    norm_bound: float
    """The bound on the length of the parameter vector in Lemma 2."""
    reward_spread: float
    """Factor of the first term of Lemma 2: the standard deviation that scalar noise adds to 1."""
    low: float
    high: float
    """Rewards are clipped to [low, high]."""
    scalar: int
    """How a reward is privatised, one of the codes of ``noise``."""
    epsilon: float
    """Of the scalar mechanism."""
    stream: int
    """Which noise the sums get, one of the codes of ``noise``."""
    space: int
    """Where it is added: to the paper's b, or to each user's own sum."""
    local: int
    """1 if every user has an own stream."""
    capacity: int
    """Steps a stream is calibrated for; rewards beyond are not taken in."""
    coefficients: NDArray[np.float64]
    """Shape (capacity,): the Toeplitz factor reversed, else (0,)."""


class State(NamedTuple):
    """What is learned; users are placed so that those whom K joins are neighbours."""

    place: NDArray[np.int64]
    """Shape (N,): where each user is placed; all other arrays go by place."""
    first: NDArray[np.int64]
    """Shape (N,): the first place of the component."""
    size: NDArray[np.int64]
    """Shape (N,): how many users the component has."""
    block: NDArray[np.int64]
    """Shape (N,): how many updates the component keeps aside."""
    panel: NDArray[np.int64]
    """Shape (N,): users a panel; a row of S is stored to the end of its panel."""
    matrix_at: NDArray[np.int64]
    """Shape (N,): where the component's matrix begins in `covariance`."""
    covariance: NDArray[np.float64]
    """Flat: S of each component, (size d, size d), without the updates kept aside."""
    deferred: NDArray[np.float64]
    """Flat: the vectors kept aside, (block, size d) for each component."""
    deferred_at: NDArray[np.int64]
    """Shape (N,): where they begin."""
    pending: NDArray[np.int64]
    """Shape (N,): how many there are, at the component's first place."""
    kernel_diagonal: NDArray[np.float64]
    """Shape (N,): K_uu."""
    mean: NDArray[np.float64]
    """Shape (N, d): predictions without the noise of sums, S times the sum of phi r."""
    energy: NDArray[np.float64]
    """Shape (1,): the sum of |x~|^2."""
    rounds: NDArray[np.int64]
    """Shape (1,): rewards taken in."""
    basis: NDArray[np.float64]
    """Shape (N, N): B, where noise is added to b, else (0, 0)."""
    gram: NDArray[np.float64]
    """Shape (N, d, d): the blocks of Phi, where noise is added to b, else (0, 0, 0)."""
    scales: NDArray[np.float64]
    """Shape (streams,): noise scale of each stream."""
    steps: NDArray[np.int64]
    """Shape (streams,): how far each stream is."""
    nodes: NDArray[np.float64]
    """Shape (streams, dim, depth): noise of the nodes in use, or of all steps (Toeplitz)."""
    current: NDArray[np.float64]
    """Shape (streams, dim): noise of each stream's present sum."""
    response: NDArray[np.float64]
    """Shape (streams, dim): the true sum that each stream releases."""
    eta: NDArray[np.float64]
    """Shape (N, d): noise on b."""
    lift: NDArray[np.float64]
    """Shape (N, d): what S is applied to for the noise term."""
    shift: NDArray[np.float64]
    """Shape (N, d): what is added to it."""


def new_state(
    rule: Rule, basis: NDArray[np.float64], dimension: int, scales: NDArray[np.float64]
) -> State:
    """Return a state that has seen nothing.

    Parameters
    ----------
    rule : Rule
    basis : array of shape (N, N)
        The matrix B.
    dimension : int
    scales : array of shape (streams,)
        The scale of each stream, in the order of users; empty where sums get no noise.
    """
    n_users, d = basis.shape[0], dimension
    gramian = basis.T @ basis
    gramian[np.abs(gramian) < 1e-15 * np.abs(gramian).max()] = 0.0
    labels = _components(gramian != 0.0)
    order = np.argsort(labels, kind="stable")
    place = np.empty(n_users, np.int64)
    place[order] = np.arange(n_users)
    first, size, block, panel, matrix_at, deferred_at = np.zeros((6, n_users), np.int64)
    matrices, start, deferred = [], 0, 0
    matrix = 0
    while start < n_users:
        members = order[labels[order] == labels[order[start]]]
        n = len(members)
        here = slice(start, start + n)
        large = n * d > SMALL
        first[here], size[here], matrix_at[here], deferred_at[here] = start, n, matrix, deferred
        block[here] = BLOCK if large else 1
        panel[here] = max(1, BLOCK // d) if large else n
        inner = gramian[np.ix_(members, members)] / rule.regularisation
        if large:
            panels = np.arange(n) // panel[start]
            inner[panels[:, None] < panels[None, :]] = 0.0
        matrices.append(np.kron(inner, np.eye(d)).ravel())
        matrix += (n * d) ** 2
        deferred += int(block[start]) * n * d
        start += n
    on_b = rule.stream != NONE and rule.space == PARAMETER
    streams = len(scales)
    dim = n_users * d if on_b else d
    depth = 0
    if rule.stream != NONE:
        depth = rule.coefficients.size if rule.coefficients.size else rule.capacity.bit_length()
    return State(
        place=place,
        first=first,
        size=size,
        block=block,
        panel=panel,
        matrix_at=matrix_at,
        covariance=np.concatenate(matrices),
        deferred=np.zeros(deferred),
        deferred_at=deferred_at,
        pending=np.zeros(n_users, np.int64),
        kernel_diagonal=np.diag(gramian)[order].copy(),
        mean=np.zeros((n_users, d)),
        energy=np.zeros(1),
        rounds=np.zeros(1, np.int64),
        basis=basis[np.ix_(order, order)].copy() if on_b else np.zeros((0, 0)),
        gram=np.zeros((n_users, d, d)) if on_b else np.zeros((0, 0, 0)),
        scales=scales[order] if streams == n_users and rule.local else scales.copy(),
        steps=np.zeros(streams, np.int64),
        nodes=np.zeros((streams, dim, depth)),
        current=np.zeros((streams, dim)),
        response=np.zeros((streams, dim)),
        eta=np.zeros((n_users, d)),
        lift=np.zeros((n_users, d)),
        shift=np.zeros((n_users, d)),
    )


def _components(joined: NDArray[np.bool_]) -> NDArray[np.int64]:
    labels = np.full(len(joined), -1, np.int64)
    for root in range(len(joined)):
        if labels[root] < 0:
            frontier = np.zeros(len(joined), bool)
            frontier[root] = True
            while frontier.any():
                labels[frontier] = root
                frontier = joined[frontier].any(axis=0) & (labels < 0)
    return labels


@kernel
def _end_of_panel(state: Any, i: Any) -> Any:
    panel = state.panel[i]
    return min(state.size[i], ((i - state.first[i]) // panel + 1) * panel) * state.mean.shape[1]


@kernel(allocates=True)
def _noise_term(state: Any, i: Any, p: Any) -> None:
    """Add S `lift` + `shift` of the user at place i to p."""
    d = state.mean.shape[1]
    n, at, r = state.size[i] * d, state.matrix_at[i], (i - state.first[i]) * d
    end = _end_of_panel(state, i)
    lift = state.lift.reshape(-1)[state.first[i] * d : state.first[i] * d + n]
    S = state.covariance[at : at + n * n].reshape(n, n)
    for a in range(d):
        p[a] += state.shift[i, a] + dot(S[r + a, :end], lift[:end])
    for row in range(end, n):
        for a in range(d):
            p[a] += S[row, r + a] * lift[row]
    for k in range(state.pending[state.first[i]]):
        at = state.deferred_at[i] + k * n
        g = state.deferred[at : at + n]
        share = dot(g, lift)
        for a in range(d):
            p[a] -= share * g[r + a]


@kernel(allocates=True)
def _predict(rule: Any, state: Any, i: Any, p: Any) -> None:
    """Write the coefficients of the predictions for the user at place i into p."""
    for a in range(p.size):
        p[a] = state.mean[i, a]
    if rule.stream != NONE:
        _noise_term(state, i, p)


@kernel
def _uncertainty(state: Any, i: Any, C: Any) -> None:
    """Write the block of S of the user at place i into C."""
    d = state.mean.shape[1]
    n, at, r = state.size[i] * d, state.matrix_at[i], (i - state.first[i]) * d
    for a in range(d):
        row = at + (r + a) * n + r
        for b in range(d):
            C[a, b] = state.covariance[row + b]
    for k in range(state.pending[state.first[i]]):
        at = state.deferred_at[i] + k * n + r
        g = state.deferred[at : at + d]
        for a in range(d):
            for b in range(d):
                C[a, b] -= g[a] * g[b]


@kernel
def _column(state: Any, i: Any, x: Any, g: Any) -> None:
    """Write S phi, within the component, into g."""
    d = x.size
    n, at, r = g.size, state.matrix_at[i], (i - state.first[i]) * d
    end = _end_of_panel(state, i)
    S = state.covariance[at : at + n * n].reshape(n, n)
    g[:end] = 0.0
    for a in range(d):
        xa = x[a]
        row = S[r + a]
        for j in range(end):
            g[j] += xa * row[j]
    for j in range(end, n):
        total = 0.0
        for a in range(d):
            total += S[j, r + a] * x[a]
        g[j] = total
    for k in range(state.pending[state.first[i]]):
        at = state.deferred_at[i] + k * n
        earlier = state.deferred[at : at + n]
        share = 0.0
        for a in range(d):
            share += earlier[r + a] * x[a]
        for j in range(n):
            g[j] -= share * earlier[j]


@kernel(allocates=True)
def _subtract_deferred(state: Any, i: Any) -> None:
    """Subtract the vectors kept aside from the matrix of the component of place i."""
    d = state.mean.shape[1]
    n, at, m = state.size[i] * d, state.matrix_at[i], state.block[i]
    S = state.covariance[at : at + n * n].reshape(n, n)
    at = state.deferred_at[i]
    if m == 1:
        g = state.deferred[at : at + n]
        for row in range(n):
            for j in range(n):
                S[row, j] -= g[row] * g[j]
    else:
        G = state.deferred[at : at + m * n].reshape(m, n).T.copy()
        step = state.panel[i] * d
        for begin in range(0, n, step):
            end = min(n, begin + step)
            S[begin:end, :end] -= np.dot(G[begin:end], G[:end].T)
    state.pending[state.first[i]] = 0


@kernel
def width(rule: Any, state: Any) -> Any:
    """Return alpha_t: the constant, or Lemmas 2 and 4."""
    if rule.exploration >= 0.0:
        return rule.exploration
    D = state.mean.size
    lam, log_delta = rule.regularisation, math.log(rule.failure_prob)
    learning = math.sqrt(D * math.log1p(state.energy[0] / (lam * D)) - 2.0 * log_delta)
    noise = 0.0
    for s in range(state.steps.size):
        noise += math.log(max(state.steps[s], 1)) * state.scales[s] ** 2
    return (
        rule.reward_spread * learning
        + math.sqrt(lam) * rule.norm_bound
        - log_delta * math.sqrt(noise)
    )


@kernel(allocates=True)
def select(rule: Any, state: Any, user: Any, contexts: Any) -> Any:
    """Return the slot with the largest upper confidence bound (line 5 of Algorithm 1)."""
    d = contexts.shape[1]
    i = state.place[user]
    p, C, Cx = np.empty(d), np.empty((d, d)), np.empty(d)
    _predict(rule, state, i, p)
    _uncertainty(state, i, C)
    alpha = width(rule, state)
    best, largest = 0, -np.inf
    for slot in range(contexts.shape[0]):
        Cx[:] = 0.0
        for a in range(d):
            xa = contexts[slot, a]
            for b in range(d):
                Cx[b] += xa * C[a, b]
        mean, square = 0.0, 0.0
        for a in range(d):
            mean += contexts[slot, a] * p[a]
            square += contexts[slot, a] * Cx[a]
        index = mean + alpha * math.sqrt(max(square, 0.0))
        if index > largest:
            best, largest = slot, index
    return best


@kernel(allocates=True)
def learn(rule: Any, state: Any, tape: Any, t: Any, user: Any, x: Any, reward: Any) -> None:
    """Take in the reward of context x (lines 7 to 9 of Algorithm 1)."""
    i = state.place[user]
    stream = i if rule.local == 1 else 0
    if rule.stream != NONE and state.steps[stream] >= rule.capacity:
        return
    r = privatise(rule, tape, t, min(rule.high, max(rule.low, reward)))
    d = x.size
    n, start = state.size[i] * d, state.first[i] * d
    at = state.deferred_at[i] + state.pending[state.first[i]] * n
    g = state.deferred[at : at + n]
    _column(state, i, x, g)
    mine = (i - state.first[i]) * d
    square, guess, energy = 0.0, 0.0, 0.0
    for a in range(d):
        square += x[a] * g[mine + a]
        guess += x[a] * state.mean[i, a]
        energy += x[a] * x[a]
    mean = state.mean.reshape(-1)[start : start + n]
    step = (r - guess) / (1.0 + square)
    root = math.sqrt(1.0 + square)
    for j in range(n):
        mean[j] += step * g[j]
        g[j] /= root
    state.pending[state.first[i]] += 1
    if state.pending[state.first[i]] == state.block[i]:
        _subtract_deferred(state, i)
    state.energy[0] += state.kernel_diagonal[i] * energy
    state.rounds[0] += 1
    if rule.stream != NONE:
        advance(rule, state, tape, t, i, x, r)


@kernel(allocates=True)
def parameter_error(rule: Any, state: Any, preferences: Any) -> Any:
    """Return the distance of all users' predictions from the truth."""
    p = np.empty(preferences.shape[1])
    total = 0.0
    for user in range(preferences.shape[0]):
        _predict(rule, state, state.place[user], p)
        for a in range(p.size):
            total += (p[a] - preferences[user, a]) ** 2
    return math.sqrt(total)


@kernel(allocates=True)
def run(
    rule: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any
) -> None:
    """Play rounds first to last - 1."""
    n, d = table.n_shown, table.features.shape[1]
    shown = np.empty(n, np.int64)
    contexts = np.empty((n, d))
    for t in range(first, last):
        user = arrive(table, t, shown)
        for j in range(n):
            contexts[j] = table.features[shown[j]]
        slot = select(rule, state, user, contexts)
        reward = observe(table, trace, t, user, shown, slot)
        learn(rule, state, tape, t, user, contexts[slot], reward)
        if due(trace, t):
            write(trace, parameter_error(rule, state, table.preferences))
