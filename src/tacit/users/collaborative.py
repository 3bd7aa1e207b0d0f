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
from tacit.users.noise import (
    NONE,
    PARAMETER,
    SMALL,
    USER,
    dot,
    next_noise,
    privatise,
    push_through,
)
from tacit.users.tables import arrive, due, observe, write

__all__ = ["Rule", "State", "learn", "new_state", "play", "select"]

BLOCK = 64
FIRST, SIZE, DEFER, PANEL, MATRIX_AT, DEFERRED_AT = range(6)
"""Columns of ``State.layout``."""


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
    own: int
    """1 if every user has an own stream."""
    capacity: int
    """Steps a stream is calibrated for; rewards beyond are not taken in."""
    coefficients: NDArray[np.float64]
    """Shape (capacity,): the Toeplitz factor reversed, else (0,)."""


class State(NamedTuple):
    """What is learned; users are placed so that those whom K joins are neighbours."""

    place: NDArray[np.int64]
    """Shape (N,): where each user is placed; all other arrays go by place."""
    layout: NDArray[np.int64]
    """Shape (N, 6): of the component of each place: its first place, how many users it has, how
    many updates it keeps aside, users a panel (a row of S is stored to the end of its panel), where
    its matrix begins in `covariance` and its vectors in `deferred`."""
    pending: NDArray[np.int64]
    """Shape (N,): updates kept aside now, at the component's first place."""
    covariance: NDArray[np.float64]
    """Flat: S of each component, (size d, size d), without the updates kept aside."""
    deferred: NDArray[np.float64]
    """Flat: the vectors kept aside, (block, size d) for each component."""
    kernel_diagonal: NDArray[np.float64]
    """Shape (N,): K_uu."""
    mean: NDArray[np.float64]
    """Shape (N, d): predictions without the noise of sums, S times the sum of phi r."""
    energy: NDArray[np.float64]
    """Shape (1,): the sum of |x~|^2."""
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
    """Shape (N d,): noise on b."""
    lift: NDArray[np.float64]
    """Shape (N, d): what S is applied to for the noise term."""
    shift: NDArray[np.float64]
    """Shape (N, d): what is added to it."""
    work: NDArray[np.float64]
    """Flat scratch; nothing that is learned."""


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
    layout = np.zeros((n_users, 6), np.int64)
    matrices: list[NDArray[np.float64]] = []
    start = n_entries = n_deferred = 0
    while start < n_users:
        members = order[labels[order] == labels[order[start]]]
        n = len(members)
        large = n * d > SMALL
        defer, panel = (BLOCK, max(1, BLOCK // d)) if large else (1, n)
        layout[start : start + n] = start, n, defer, panel, n_entries, n_deferred
        inner = gramian[np.ix_(members, members)] / rule.regularisation
        if large:
            panels = np.arange(n) // panel
            inner[panels[:, None] < panels[None, :]] = 0.0
        matrices.append(np.kron(inner, np.eye(d)).ravel().astype(np.float64))
        start, n_entries, n_deferred = (
            start + n,
            n_entries + (n * d) ** 2,
            n_deferred + defer * n * d,
        )
    on_b = rule.stream != NONE and rule.space == PARAMETER
    streams, dim, depth = len(scales), n_users * d if on_b else d, 0
    if streams:
        depth = rule.coefficients.size if rule.coefficients.size else rule.capacity.bit_length()
    return State(
        place=place,
        layout=layout,
        pending=np.zeros(n_users, np.int64),
        covariance=np.concatenate(matrices),
        deferred=np.zeros(n_deferred),
        kernel_diagonal=np.diag(gramian)[order].copy(),
        mean=np.zeros((n_users, d)),
        energy=np.zeros(1),
        basis=basis[np.ix_(order, order)].copy() if on_b else np.zeros((0, 0)),
        gram=np.zeros((n_users, d, d)) if on_b else np.zeros((0, 0, 0)),
        scales=scales[order] if streams and rule.own else scales.copy(),
        steps=np.zeros(streams, np.int64),
        nodes=np.zeros((streams, dim, depth)),
        current=np.zeros((streams, dim)),
        response=np.zeros((streams, dim)),
        eta=np.zeros(n_users * d),
        lift=np.zeros((n_users, d)),
        shift=np.zeros((n_users, d)),
        work=np.zeros(max(2 * dim, d * (d + 1))),
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


@kernel(inlined=False)
def _apply(S: Any, G: Any, pending: Any, r: Any, end: Any, vector: Any, p: Any) -> None:
    """Add rows r, r + 1, ... of S times a vector to p; `end` is where their panel ends."""
    d, n = p.size, vector.size
    for a in range(d):
        p[a] += dot(S[r + a, :end], vector[:end])
    for row in range(end, n):
        for a in range(d):
            p[a] += S[row, r + a] * vector[row]
    for k in range(pending):
        share = dot(G[k], vector)
        for a in range(d):
            p[a] -= share * G[k, r + a]


@kernel
def _block(S: Any, G: Any, pending: Any, r: Any, C: Any) -> None:
    """Write the diagonal block of S at r into C."""
    d = C.shape[0]
    for a in range(d):
        for b in range(d):
            C[a, b] = S[r + a, r + b]
    for k in range(pending):
        for a in range(d):
            g = G[k, r + a]
            for b in range(d):
                C[a, b] -= g * G[k, r + b]


@kernel(inlined=False)
def _column(S: Any, G: Any, pending: Any, r: Any, end: Any, x: Any, g: Any) -> None:
    """Write S phi into g, where phi is x at r."""
    d, n = x.size, g.size
    for j in range(end):
        g[j] = 0.0
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
    for k in range(pending):
        share = 0.0
        for a in range(d):
            share += G[k, r + a] * x[a]
        earlier = G[k]
        for j in range(n):
            g[j] -= share * earlier[j]


@kernel(allocates=True)
def _subtract_products(S: Any, G: Any, step: Any) -> None:
    """Subtract G'G from S, in each panel of `step` rows to the panel's end."""
    rows = G.T.copy()
    n = rows.shape[0]
    for begin in range(0, n, step):
        end = min(n, begin + step)
        S[begin:end, :end] -= np.dot(rows[begin:end], rows[:end].T)


@kernel(inlined=False)
def _predict(rule: Any, state: Any, i: Any, p: Any) -> None:
    """Write the coefficients of the predictions for the user at place i into p."""
    d = p.size
    for a in range(d):
        p[a] = state.mean[i, a]
    if rule.stream == NONE:
        return
    first, size, defer, panel, at, deferred_at = state.layout[i]
    n = size * d
    S = state.covariance[at : at + n * n].reshape(n, n)
    G = state.deferred[deferred_at : deferred_at + defer * n].reshape(defer, n)
    end = min(size, ((i - first) // panel + 1) * panel) * d
    lift = state.lift.reshape(-1)[first * d : first * d + n]
    for a in range(d):
        p[a] += state.shift[i, a]
    _apply(S, G, state.pending[first], (i - first) * d, end, lift, p)


@kernel
def _width(rule: Any, state: Any) -> Any:
    """Return alpha_t: the constant, or Lemmas 2 and 4."""
    if rule.exploration >= 0.0:
        return rule.exploration
    D = state.mean.size
    lam, log_delta = rule.regularisation, math.log(rule.failure_prob)
    learning = math.sqrt(D * math.log1p(state.energy[0] / (lam * D)) - 2.0 * log_delta)
    noise = 0.0
    for s in range(state.steps.size):
        noise += math.log(max(state.steps[s], 1)) * state.scales[s] * state.scales[s]
    return (
        rule.reward_spread * learning
        + math.sqrt(lam) * rule.norm_bound
        - log_delta * math.sqrt(noise)
    )


@kernel(allocates=True)
def _blas_product(X: Any, C: Any, out: Any) -> None:
    np.dot(X, C, out)


@kernel(inlined=False)
def select(rule: Any, state: Any, user: Any, contexts: Any, XC: Any) -> Any:
    """Return the slot with the largest upper confidence bound (line 5 of Algorithm 1).

    `XC` is scratch of the shape of `contexts`.
    """
    n_shown, d = contexts.shape
    i = state.place[user]
    p, C = state.work[:d], state.work[d : d + d * d].reshape(d, d)
    _predict(rule, state, i, p)
    first, size, defer, _, at, deferred_at = state.layout[i]
    n = size * d
    S = state.covariance[at : at + n * n].reshape(n, n)
    G = state.deferred[deferred_at : deferred_at + defer * n].reshape(defer, n)
    _block(S, G, state.pending[first], (i - first) * d, C)
    if contexts.size > SMALL:
        _blas_product(contexts, C, XC)
    else:
        for slot in range(n_shown):
            for b in range(d):
                XC[slot, b] = 0.0
                for a in range(d):
                    XC[slot, b] += contexts[slot, a] * C[a, b]
    alpha = _width(rule, state)
    best, largest = 0, -np.inf
    for slot in range(n_shown):
        mean, square = 0.0, 0.0
        for a in range(d):
            mean += contexts[slot, a] * p[a]
            square += contexts[slot, a] * XC[slot, a]
        index = mean + alpha * math.sqrt(max(square, 0.0))
        if index > largest:
            best, largest = slot, index
    return best


@kernel(inlined=False)
def learn(rule: Any, state: Any, tape: Any, t: Any, user: Any, x: Any, reward: Any) -> None:
    """Take in the reward of context x (lines 7 to 9 of Algorithm 1)."""
    i = state.place[user]
    stream = i if rule.own == 1 else 0
    if rule.stream != NONE and state.steps[stream] >= rule.capacity:
        return
    clipped = min(rule.high, max(rule.low, reward))
    r = privatise(tape, t, rule.scalar, rule.epsilon, rule.low, rule.high, clipped)
    d = x.size
    first, size, defer, panel, at, deferred_at = state.layout[i]
    n, mine = size * d, (i - first) * d
    S = state.covariance[at : at + n * n].reshape(n, n)
    G = state.deferred[deferred_at : deferred_at + defer * n].reshape(defer, n)
    pending = state.pending[first]
    end = min(size, ((i - first) // panel + 1) * panel) * d
    g = G[pending]
    _column(S, G, pending, mine, end, x, g)
    square, guess, energy = 0.0, 0.0, 0.0
    for a in range(d):
        square += x[a] * g[mine + a]
        guess += x[a] * state.mean[i, a]
        energy += x[a] * x[a]
    mean = state.mean.reshape(-1)[first * d : first * d + n]
    step = (r - guess) / (1.0 + square)
    root = math.sqrt(1.0 + square)
    for j in range(n):
        mean[j] += step * g[j]
        g[j] /= root
    pending += 1
    if pending == defer:
        if defer == 1:
            for row in range(n):
                for j in range(n):
                    S[row, j] -= g[row] * g[j]
        else:
            _subtract_products(S, G, panel * d)
        pending = 0
    state.pending[first] = pending
    state.energy[0] += state.kernel_diagonal[i] * energy
    if rule.stream != NONE:
        _add_noise(rule, state, tape, t, i, stream, x, r)


@kernel(inlined=False)
def _add_noise(rule: Any, state: Any, tape: Any, t: Any, i: Any, s: Any, x: Any, r: Any) -> None:
    """Add a reward to the sum of stream s, and its next noise to the predictions."""
    n_users, d = state.mean.shape
    response, total = state.response[s], state.current[s]
    if rule.space == USER:
        for a in range(d):
            response[a] += x[a] * r
    else:
        for u in range(n_users):
            for a in range(d):
                response[u * d + a] += state.basis[u, i] * x[a] * r
        for a in range(d):
            for b in range(d):
                state.gram[i, a, b] += x[a] * x[b]
        for j in range(total.size):
            state.eta[j] -= total[j]
    state.steps[s] += 1
    next_noise(
        tape,
        t,
        state.steps[s],
        rule.stream,
        state.scales[s],
        rule.coefficients,
        response,
        state.nodes[s],
        total,
        state.work,
    )
    if rule.space == USER:
        for a in range(d):
            state.lift[i, a] = total[a]
    else:
        for j in range(total.size):
            state.eta[j] += total[j]
        lam, c = rule.regularisation, state.work[:d]
        push_through(state.basis, state.eta, state.gram, lam, state.lift, state.shift, c)


@kernel(inlined=False)
def _parameter_error(rule: Any, state: Any, preferences: Any) -> Any:
    """Return the distance of all users' predictions from the truth."""
    p = state.work[: preferences.shape[1]]
    total = 0.0
    for user in range(preferences.shape[0]):
        _predict(rule, state, state.place[user], p)
        for a in range(p.size):
            total += (p[a] - preferences[user, a]) * (p[a] - preferences[user, a])
    return math.sqrt(total)


@kernel
def play(
    rule: Any,
    state: Any,
    table: Any,
    tape: Any,
    trace: Any,
    shown: Any,
    contexts: Any,
    XC: Any,
    first: Any,
    last: Any,
) -> None:
    """Play rounds first to last - 1; `shown`, `contexts` and `XC` are scratch."""
    for t in range(first, last):
        user = arrive(table, t, shown)
        for j in range(shown.size):
            for a in range(contexts.shape[1]):
                contexts[j, a] = table.features[shown[j], a]
        slot = select(rule, state, user, contexts, XC)
        reward = observe(table, trace, t, user, shown, slot)
        learn(rule, state, tape, t, user, contexts[slot], reward)
        if due(trace, t):
            write(trace, _parameter_error(rule, state, table.preferences))
