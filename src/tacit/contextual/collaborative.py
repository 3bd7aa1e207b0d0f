"""One algorithm for LinUCB, CoLin and GOBLin: ridge regression in prediction space.

The three policies of the paper differ in a matrix B that spreads a user's context over all users:
x~ = (B (x) I) phi with phi = e_u (x) x. Predictions only ever need S = B' A^-1 B, which starts at
(1/lambda) K (x) I with the user kernel K = B'B and loses one rank-one term a round, whatever B is.
Users whom K does not join never meet in memory; for the others the rank-one terms are kept aside
and subtracted sixty-four at a time, by a matrix product, below the diagonal only.

Where rewards have a level c that all users share, y = c + x' theta and c is not shrunk. Given c the
predictions are S b - c S a, with a the sum of phi over all answers. The best c makes what predictions
leave of answers, and of ones, go together: both are added up as answers come (`_lift`).

Where sums get noise, predictions are made of what is released and of nothing else. Released users' sums zeta
of phi r give S zeta. The paper's statistic b, released as eta, gives B' A^-1 eta, which by the
push-through identity is (c - S Phi c) / lambda with c = B' eta and Phi the sum of phi phi'. So both are
S `lift` + `shift`, calculated when a user arrives, and what is predicted without noise stays 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.learned_prior import (
    CLUSTERS,
    GIVEN,
    STEPS,
    cluster,
    improve,
    overwrite,
    posterior,
)
from tacit.contextual.learned_prior import due as relearning
from tacit.contextual.loops import rounds
from tacit.contextual.privacy import PARAMETER, USER, Channel
from tacit.core.kernels import kernel
from tacit.core.linalg import SMALL, dot
from tacit.core.tapes import NOISE
from tacit.privacy.mechanisms import privatise
from tacit.privacy.mechanisms.continual_sums import NO_NOISE
from tacit.privacy.mechanisms.k_ary_response import release_option
from tacit.privacy.mechanisms.streams import next_sum

VALUE, BIN, NEAR = 0, 1, 2
"""Kinds of a question."""
CONSTANT, LEMMA_2, EQUATION_5 = 0, 1, 2
"""The width of the confidence bound: a constant, Lemmas 2 and 4, or equations 5 and 7."""
DEFERRED = 64
"""Updates of a large component that are kept aside."""
CHECK_EVERY = 20
"""Every so many questions one is about the spread of rewards, where that is learned."""
WITHIN_ONE = math.erf(math.sqrt(0.5))
"""The probability that a normal is within one standard deviation."""
_NOTHING = 1e-15
"""What is smaller than the largest entry of K by this factor joins nobody."""
_DENSE = 0.05
"""From this share of entries on a matrix is multiplied as a dense one."""
FIRST, SIZE, DEFER, PANEL, MATRIX_AT, DEFERRED_AT = range(6)
"""Columns of ``State.layout``."""


class Params(NamedTuple):
    """The numbers the kernels need."""

    regularisation: float
    """lambda."""
    width: int
    """How the width alpha is found, one of the codes above."""
    exploration: float
    """The constant width."""
    failure_prob: float
    """delta of Lemma 2."""
    reach: float
    """R: reports scatter around their mean no more than a normal of this standard deviation."""
    fade_every: int
    """After so many answers all earlier ones count less; 0 for never."""
    fade_to: float
    """By this factor."""
    learns: int
    """What is learned of the prior, one of the codes of ``prior``."""
    rank: int
    """Of how many factors it is made; 0 for any number."""
    noise: float
    """The variance of a report, where all have the same."""
    channel: Channel
    """How rewards are hidden."""


class Question(NamedTuple):
    """What a device is asked about a reward, fixed when the decision is made."""

    kind: int
    """0 for the reward itself, 1 for its bin around the prediction, 2 for whether it is near."""
    mean: float
    """The prediction, within the range of rewards."""
    scale: float
    """The standard deviation that rewards are predicted to have around it."""
    variance: float
    """The variance of the answer, taken as an observation of the expected reward."""


class Block(NamedTuple):
    """Some columns of B, and all rows in which they have anything."""

    rows: NDArray[np.int64]
    members: NDArray[np.int64]
    """The users whose columns they are."""
    basis: NDArray[np.float64]
    """Shape (rows, members)."""
    shared: float = 0.0
    """What is added to every entry of K = B'B: the weight of what all members have in common."""


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
    """Shape (N, d): predictions, S times the sum of phi r; 0 where sums are released with noise."""
    energy: NDArray[np.float64]
    """Shape (1,): the sum of |x~|^2."""
    log_volume: NDArray[np.float64]
    """Shape (1,): the logarithm of |A| / |lambda I|."""
    norm_bound: NDArray[np.float64]
    """Shape (1,): the bound on all parameters together that the width rests on."""
    basis: NDArray[np.float64]
    """Shape (N, N): B, where noise is added to b, else (0, 0)."""
    kernel: NDArray[np.float64]
    """Flat: K / lambda of each component, (size, size)."""
    within: NDArray[np.float64]
    """Shape (d, d): Sigma, how features go together; the identity unless it is learned."""
    gram: NDArray[np.float64]
    """Shape (N, d, d): what each user's reports say, the sum of xx' / v: the blocks of Phi."""
    response: NDArray[np.float64]
    """Shape (N, d): the sum of x y / v."""
    scales: NDArray[np.float64]
    """Shape (streams, 4): scale of a stream's noise; step, noise and reach on a secure tape."""
    rounds: NDArray[np.int64]
    """Shape (2,): questions asked, and answers taken in."""
    reports: NDArray[np.float64]
    """Shape (4,): where a level is learned, the sums of 1 / v and of y / v; the precision of the
    level that all rewards have in common, and that times the level."""
    ones: NDArray[np.float64]
    """Shape (N, d), or (0, d) where no level is learned: the sum of x / v."""
    lifted: NDArray[np.float64]
    """Shape of `ones`: what predictions would be had every answer been 1, S times `ones`."""
    deviation: NDArray[np.float64]
    """Shape (2,): log sigma, the standard deviation of rewards, and how often it was corrected."""
    steps: NDArray[np.int64]
    """Shape (streams,): how far each stream is."""
    memory: NDArray[np.float64]
    """Shape (streams, dim, depth): what `next_sum` keeps, true sums among it."""
    sums: NDArray[np.float64]
    """Shape (streams, dim): each stream's sum as it was released last."""
    eta: NDArray[np.float64]
    """Shape (N d,): b as it was released, the sum over streams."""
    lift: NDArray[np.float64]
    """Shape (N, d): what S is applied to."""
    shift: NDArray[np.float64]
    """Shape (N, d): what is added to it."""
    work: NDArray[np.float64]
    """Flat scratch; nothing that is learned."""


def new_state(
    params: Params,
    blocks: Sequence[Block],
    n_users: int,
    dimension: int,
    scales: NDArray[np.float64],
    norm_bound: float,
) -> State:
    """Return a state that has seen nothing.

    Parameters
    ----------
    params : Params
    blocks : sequence of Block
        The matrix B; every user is a member of one block.
    n_users, dimension : int
    scales : array of shape (streams, 4)
        What sets the noise of each stream, in the order of users; empty where sums get none.
    norm_bound : float
        What the width of theory rests on.
    """
    d, channel = dimension, params.channel
    order = np.concatenate([block.members for block in blocks])
    place = np.empty(n_users, np.int64)
    place[order] = np.arange(n_users)
    layout = np.zeros((n_users, 6), np.int64)
    diagonal = np.empty(n_users)
    matrices: list[NDArray[np.float64]] = []
    kernels: list[NDArray[np.float64]] = []
    start = n_entries = n_deferred = 0
    for block in blocks:
        n = len(block.members)
        large = n * d > SMALL
        defer, panel = (DEFERRED, max(1, DEFERRED // d)) if large else (1, n)
        layout[start : start + n] = start, n, defer, panel, n_entries, n_deferred
        K = block.basis.T @ block.basis + block.shared
        K[np.abs(K) < _NOTHING * np.abs(K).max()] = 0.0
        diagonal[start : start + n] = np.diag(K)
        inner = K / params.regularisation
        kernels.append(inner.copy())
        if large:
            panels = np.arange(n) // panel
            inner[panels[:, None] < panels[None, :]] = 0.0
        matrices.append(np.kron(inner, np.eye(d)).ravel().astype(np.float64))
        start, n_entries, n_deferred = (
            start + n,
            n_entries + (n * d) ** 2,
            n_deferred + defer * n * d,
        )
    on_b = channel.stream.noise != NO_NOISE and channel.space == PARAMETER
    basis = np.zeros((n_users, n_users) if on_b else (0, 0))
    for block in blocks if on_b else ():
        basis[np.ix_(place[block.rows], place[block.members])] = block.basis
    streams, dim = len(scales), n_users * d if on_b else d
    return State(
        place=place,
        layout=layout,
        pending=np.zeros(n_users, np.int64),
        covariance=np.concatenate(matrices),
        deferred=np.zeros(n_deferred),
        kernel_diagonal=diagonal,
        mean=np.zeros((n_users, d)),
        energy=np.zeros(1),
        log_volume=np.zeros(1),
        norm_bound=np.array([norm_bound], np.float64),
        basis=basis,
        kernel=np.concatenate([inner.ravel() for inner in kernels]),
        within=np.eye(d),
        gram=np.zeros((n_users, d, d)),
        response=np.zeros((n_users, d)),
        scales=scales[order] if streams and channel.own else scales.copy(),
        rounds=np.zeros(2, np.int64),
        reports=np.zeros(4),
        ones=np.zeros((n_users * channel.centred, d)),
        lifted=np.zeros((n_users * channel.centred, d)),
        deviation=np.array([channel.log_sigma, 0.0]),
        steps=np.zeros(streams, np.int64),
        memory=np.zeros((streams, dim, channel.depth)),
        sums=np.zeros((streams, dim)),
        eta=np.zeros(n_users * d),
        lift=np.zeros((n_users, d)),
        shift=np.zeros((n_users, d)),
        work=np.zeros(max(2 * dim, d * (d + 1))),
    )


def groups_of(joined: Any) -> Iterator[NDArray[np.int64]]:
    """Yield groups of columns of a SciPy matrix that no inner product joins to others."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    columns = joined.toarray() if joined.nnz > _DENSE * joined.shape[0] ** 2 else joined
    products = csr_array(columns.T @ columns)
    products.data[np.abs(products.data) < _NOTHING * np.abs(products.data).max()] = 0.0
    products.eliminate_zeros()
    _, labels = connected_components(products, directed=False)
    order = np.argsort(labels, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def together(blocks: Sequence[Block], shared: float) -> list[Block]:
    """Return one block of all users, who have something in common: K becomes K + shared 11'."""
    members = np.concatenate([block.members for block in blocks])
    rows = np.unique(np.concatenate([block.rows for block in blocks]))
    basis, at = np.zeros((len(rows), len(members))), 0
    for block in blocks:
        columns = slice(at, at + len(block.members))
        basis[np.searchsorted(rows, block.rows), columns] = block.basis
        at = columns.stop
    order = np.argsort(members)
    return [Block(rows, members[order], basis[:, order], shared)]


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
        product = np.dot(rows[begin:end], rows[:end].T)
        for i in range(end - begin):
            for j in range(end):
                S[begin + i, j] -= product[i, j]


@kernel
def level(state: Any) -> Any:
    """Return the level that all rewards have in common: c of y = c + x' theta, by least squares.

    Given c, predictions are S b - c S a with a the sum of phi, so that c is found beside two of them.
    """
    return state.reports[3] / state.reports[2] if state.reports[2] > 0.0 else 0.0


@kernel
def _predict(params: Any, state: Any, i: Any, p: Any) -> None:
    """Write the coefficients of the predictions for the user at place i into p."""
    for a in range(p.size):
        p[a] = state.mean[i, a]
    if params.channel.centred == 1:
        common = level(state)
        for a in range(p.size):
            p[a] -= common * state.lifted[i, a]
    if params.channel.stream.noise != NO_NOISE:
        _add_shift(state, i, p)


@kernel(inlined=False)
def _add_shift(state: Any, i: Any, p: Any) -> None:
    """Add to the predictions what the noise of sums makes of them."""
    d = p.size
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
def _width(params: Any, state: Any) -> Any:
    """Return alpha_t: the constant, Lemma 2 (local: 4), or equation 5 (local: 7)."""
    if params.width == CONSTANT:
        return params.exploration
    D, lam = state.mean.size, params.regularisation
    log_delta = math.log(params.failure_prob)
    volume = state.log_volume[0]
    if params.width == LEMMA_2:
        volume = D * math.log1p(state.energy[0] / (lam * D))
    noise = 0.0
    for s in range(state.steps.size):
        rounds = state.steps[s] if params.width == LEMMA_2 else params.channel.stream.capacity
        noise += math.log(max(rounds, 1)) * state.scales[s, 0] * state.scales[s, 0]
    return (
        params.reach * math.sqrt(volume - 2.0 * log_delta)
        + math.sqrt(lam) * state.norm_bound[0]
        - log_delta * math.sqrt(noise)
    )


@kernel(allocates=True)
def _blas_product(X: Any, C: Any, out: Any) -> None:
    np.dot(X, C, out)


@kernel
def select(params: Any, state: Any, user: Any, contexts: Any, XC: Any) -> Any:
    """Return the slot with the largest upper confidence bound (line 5 of Algorithm 1).

    `XC` is scratch of the shape of `contexts`.
    """
    n_shown, d = contexts.shape
    i = state.place[user]
    p, C = state.work[:d], state.work[d : d + d * d].reshape(d, d)
    _predict(params, state, i, p)
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
    alpha = _width(params, state)
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


@kernel
def ask(params: Any, state: Any, user: Any, x: Any) -> Any:
    """Return the question about the reward of context x; it must not change until it is answered."""
    channel = params.channel
    state.rounds[0] += 1
    if channel.gains.size == 0:
        return Question(VALUE, 0.0, 1.0, 1.0)
    i, d = state.place[user], x.size
    p, C = state.work[:d], state.work[d : d + d * d].reshape(d, d)
    first, size, defer, _, at, deferred_at = state.layout[i]
    n = size * d
    S = state.covariance[at : at + n * n].reshape(n, n)
    G = state.deferred[deferred_at : deferred_at + defer * n].reshape(defer, n)
    _block(S, G, state.pending[first], (i - first) * d, C)
    mean, square = 0.0, 0.0
    for a in range(d):
        p[a] = 0.0
        for b in range(d):
            p[a] += C[a, b] * x[b]
    for a in range(d):
        mean += x[a] * state.mean[i, a]
        square += x[a] * p[a]
    total = math.exp(2.0 * state.deviation[0]) + max(square, 0.0)
    near = channel.learns_sigma == 1 and state.rounds[0] % CHECK_EVERY == 0
    return Question(
        NEAR if near else BIN,
        min(channel.high, max(channel.low, mean)),
        math.sqrt(total),
        total / channel.information - square,
    )


def cuts_of(params: Params, question: Question) -> list[float]:
    """Return the cuts that a device compares a reward with, as the kernel below has them."""
    if question.kind == NEAR:
        return [question.mean - question.scale, question.mean + question.scale]
    return [question.mean + question.scale * cut for cut in params.channel.cuts.tolist()]


@kernel
def answer(params: Any, tape: Any, t: Any, question: Any, reward: Any) -> Any:
    """Return what a device tells of a reward: the device's half, which sees no state."""
    channel = params.channel
    if question.kind == VALUE:
        clipped = min(channel.high, max(channel.low, reward))
        return privatise(channel.report, tape, t, 0, NOISE, clipped)
    if question.kind == NEAR:
        low, high = question.mean - question.scale, question.mean + question.scale
        near = 1 if low < reward and not high < reward else 0
        return float(release_option(tape, t, 0, NOISE, near, 2, channel.near_keep))
    symbol = 0
    for cut in channel.cuts:
        symbol += 1 if question.mean + question.scale * cut < reward else 0
    return float(release_option(tape, t, 0, NOISE, symbol, channel.gains.size, channel.keep))


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, user: Any, x: Any, reward: Any) -> Any:
    """Hide the reward of context x and take in what is told of it (lines 7 to 9 of Algorithm 1).

    Return False if it is not taken in, because the stream is calibrated for no more rounds.
    """
    channel = params.channel
    question = ask(params, state, user, x)
    noisy = channel.stream.noise != NO_NOISE
    i = state.place[user]
    s = i if channel.own == 1 else 0
    if noisy and state.steps[s] >= channel.stream.capacity:
        return False
    reported = 0.0 if noisy else answer(params, tape, t, question, reward)
    take(params, state, user, x, question, reported)
    if noisy:
        clipped = min(channel.high, max(channel.low, reward))
        _release(params, state, tape, t, i, s, x, clipped)
    return True


@kernel
def take(params: Any, state: Any, user: Any, x: Any, question: Any, answer: Any) -> None:
    """Take in an answer about context x: the server's half, which never sees a reward."""
    channel = params.channel
    state.rounds[1] += 1
    if params.fade_every > 0 and state.rounds[1] % params.fade_every == 0:
        _fade(params, state)
    if params.learns != GIVEN and relearning(state.rounds[1]):
        relearn(params, state, STEPS)
    if question.kind == NEAR:
        state.deviation[1] += 1.0
        step = 2.0 * (state.deviation[1] + 9.0) ** -0.6
        p = channel.near_keep
        state.deviation[0] += step * ((2.0 * p - 1.0) * WITHIN_ONE - (answer - (1.0 - p)))
        return
    y, v = answer, 1.0
    if question.kind == BIN:
        y = question.mean + channel.gains[int(answer)] * question.scale / channel.information
        v = question.variance
    _observe(state, user, x, y, v)


@kernel(inlined=False)
def _fade(params: Any, state: Any) -> None:
    """Let all earlier answers count less, and begin anew with what is left of them."""
    n_users, d = state.response.shape
    for i in range(n_users):
        for a in range(d):
            state.response[i, a] *= params.fade_to
            for b in range(d):
                state.gram[i, a, b] *= params.fade_to
    for i in range(state.ones.shape[0]):
        for a in range(d):
            state.ones[i, a] *= params.fade_to
    state.reports[0] *= params.fade_to
    state.reports[1] *= params.fade_to
    rebuild(state)


@kernel(inlined=False)
def rebuild(state: Any) -> None:
    """Set S and the predictions to what the users' sums say."""
    n_users, d = state.response.shape
    i = 0
    while i < n_users:
        first, size, _, _, at, _ = state.layout[i]
        n, begin = size * d, at // (d * d)
        K = state.kernel[begin : begin + size * size].reshape(size, size)
        S = state.covariance[at : at + n * n].reshape(n, n)
        mean = state.mean.reshape(-1)[first * d : first * d + n]
        b = state.response.reshape(-1)[first * d : first * d + n]
        posterior(K, state.within, state.gram[first : first + size], b, S, mean)
        state.pending[first] = 0
        i += size
    if state.ones.size > 0:
        _find_level(state)


@kernel(inlined=False)
def _find_level(state: Any) -> None:
    """Set the level to what the users' sums say, S being up to date and whole."""
    n_users, d = state.ones.shape
    state.reports[2], state.reports[3] = state.reports[0], state.reports[1]
    for i in range(n_users):
        first, size, _, _, at, _ = state.layout[i]
        n = size * d
        S = state.covariance[at : at + n * n].reshape(n, n)
        ones = state.ones.reshape(-1)[first * d : first * d + n]
        for a in range(d):
            state.lifted[i, a] = dot(S[(i - first) * d + a], ones)
            state.reports[2] -= state.ones[i, a] * state.lifted[i, a]
            state.reports[3] -= state.ones[i, a] * state.mean[i, a]


@kernel(inlined=False)
def relearn(params: Any, state: Any, steps: Any) -> None:
    """Learn the prior from the sums of all users, and begin anew with it.

    All users are one component. What was reported is private already, so that this costs nothing.
    """
    n_users, d = state.response.shape
    K = state.kernel.reshape(n_users, n_users)
    S, mean = state.covariance.reshape(n_users * d, n_users * d), state.mean
    if params.learns == CLUSTERS:
        overwrite(mean, state.response)
        _take_away_level(state, mean, state.ones)
        cluster(K, state.gram, mean, params.regularisation, params.noise)
    else:
        for _ in range(steps):
            rebuild(state)
            _take_away_level(state, mean, state.lifted)
            improve(K, state.within, S, mean.reshape(-1), params.noise, params.rank)
    rebuild(state)


@kernel
def _take_away_level(state: Any, values: Any, ones: Any) -> None:
    """Subtract from linear values of the answers what they would be if answers were the level."""
    common = level(state)
    for i in range(ones.shape[0]):
        for a in range(ones.shape[1]):
            values[i, a] -= common * ones[i, a]


@kernel
def _observe(state: Any, user: Any, x: Any, y: Any, v: Any) -> None:
    """Take in that the expected reward of context x is y, give or take a variance of v."""
    i, d = state.place[user], x.size
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
    response, gram = state.response[i], state.gram[i]
    for a in range(d):
        weighted = x[a] / v
        response[a] += weighted * y
        row = gram[a]
        for b in range(d):
            row[b] += weighted * x[b]
    mean = state.mean.reshape(-1)[first * d : first * d + n]
    step = (y - guess) / (v + square)
    if state.ones.size > 0:
        _lift(state, i, x, g, y, v, square, step)
    root = math.sqrt(v + square)
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
    state.log_volume[0] += math.log1p(square / v)


@kernel(inlined=False)
def _lift(state: Any, i: Any, x: Any, g: Any, y: Any, v: Any, square: Any, step: Any) -> None:
    """Take in what an answer says of the level: how much of 1, and of y, was not predicted."""
    d, first, size = x.size, state.layout[i, FIRST], state.layout[i, SIZE]
    missing = 1.0
    for a in range(d):
        missing -= x[a] * state.lifted[i, a]
        state.ones[i, a] += x[a] / v
    lifted = state.lifted.reshape(-1)[first * d : (first + size) * d]
    for j in range(lifted.size):
        lifted[j] += missing / (v + square) * g[j]
    state.reports[0] += 1.0 / v
    state.reports[1] += y / v
    state.reports[2] += missing * missing / (v + square)
    state.reports[3] += missing * step


@kernel(inlined=False)
def _release(params: Any, state: Any, tape: Any, t: Any, i: Any, s: Any, x: Any, r: Any) -> None:
    """Add a reward to the sum of stream s, release it and predict with what is released."""
    n_users, d = state.mean.shape
    sums, dim = state.sums[s], state.sums.shape[1]
    item, fresh = state.work[:dim], state.work[dim : 2 * dim]
    if params.channel.space == USER:
        for a in range(d):
            item[a] = x[a] * r
    else:
        for u in range(n_users):
            for a in range(d):
                item[u * d + a] = state.basis[u, i] * x[a] * r
    withdraw(params, state, s)
    state.steps[s] += 1
    k, stream, scale, grid = (
        state.steps[s],
        params.channel.stream,
        state.scales[s, 0],
        state.scales[s, 1:],
    )
    next_sum(tape, t, 0, NOISE, k, stream, scale, grid, item, state.memory[s], fresh, sums)
    settle(params, state, i, s)


@kernel
def withdraw(params: Any, state: Any, s: Any) -> None:
    """Take the sum of stream s, which is to change, out of b."""
    if params.channel.space == PARAMETER:
        for j in range(state.eta.size):
            state.eta[j] -= state.sums[s, j]


@kernel
def settle(params: Any, state: Any, i: Any, s: Any) -> None:
    """Predict with the sum of stream s as it was released, for the user at place i."""
    d = state.mean.shape[1]
    if params.channel.space == USER:
        for a in range(d):
            state.lift[i, a] = state.sums[s, a]
        return
    for j in range(state.eta.size):
        state.eta[j] += state.sums[s, j]
    c = state.work[:d]
    _push_through(
        state.basis, state.eta, state.gram, params.regularisation, state.lift, state.shift, c
    )


@kernel
def _push_through(B: Any, eta: Any, gram: Any, lam: Any, lift: Any, shift: Any, c: Any) -> None:
    """Write B' A^-1 eta as S lift + shift: c = B' eta, shift = c / lambda, lift = -Phi c / lambda."""
    n_users, d = lift.shape
    for u in range(n_users):
        for a in range(d):
            c[a] = 0.0
        for v in range(n_users):
            if B[v, u] != 0.0:
                for a in range(d):
                    c[a] += B[v, u] * eta[v * d + a]
        for a in range(d):
            shift[u, a] = c[a] / lam
            total = 0.0
            for b in range(d):
                total += gram[u, a, b] * c[b]
            lift[u, a] = -total / lam


@kernel(inlined=False)
def parameter_error(params: Any, state: Any, preferences: Any) -> Any:
    """Return the distance of all users' predictions from the truth."""
    p = state.work[: preferences.shape[1]]
    total = 0.0
    for user in range(preferences.shape[0]):
        _predict(params, state, state.place[user], p)
        for a in range(p.size):
            total += (p[a] - preferences[user, a]) * (p[a] - preferences[user, a])
    return math.sqrt(total)


play = rounds(select, learn, parameter_error)
