"""Ridge regression in prediction space, for all people at once: the one update of LinUCB, CoLin and GOBLin.

The three policies of the paper differ in a matrix B that spreads a person's context over all people:
x~ = (B (x) I) phi with phi = e_u (x) x. Predictions only ever need S = B' A^-1 B, which starts at
(1/lambda) K (x) I with the kernel K = B'B and loses one rank-one term a round, whatever B is.
People whom K does not join never meet in memory. For the others we keep rank-one terms aside, in G,
and subtract sixty-four at a time by a matrix product, below the diagonal only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.learned_prior import posterior
from tacit.contextual.level import add_to_level, observe_level, restart_level
from tacit.core.kernels import kernel
from tacit.core.linalg import SMALL, dot

DEFERRED = 64
"""Updates of a large component that are kept aside."""
_NOTHING = 1e-15
"""What is smaller than the largest entry of K by this factor joins nobody."""
_DENSE = 0.05
"""From this share of entries on a matrix is multiplied as a dense one."""


class Block(NamedTuple):
    """Some columns of B, and all rows in which they have anything."""

    rows: NDArray[np.int64]
    members: NDArray[np.int64]
    """The people whose columns they are."""
    basis: NDArray[np.float64]
    """Shape (rows, members)."""
    shared: float = 0.0
    """What is added to every entry of K = B'B: the weight of what all members have in common."""


class Ridge(NamedTuple):
    """What is learned of N people; those whom K joins stand next to each other."""

    place: NDArray[np.int64]
    """Shape (N,): where each person stands; all other arrays go by place."""
    layout: NDArray[np.int64]
    """Shape (N, 6): of the component of each place: its first place, how many people it has, how
    many updates it keeps aside, people a panel (a row of S is stored to the end of its panel), where
    its matrix begins in `covariance` and its vectors in `deferred`. `component` reads it."""
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
    kernel: NDArray[np.float64]
    """Flat: K / lambda of each component, (size, size)."""
    within: NDArray[np.float64]
    """Shape (d, d): Sigma, how features go together; the identity unless it is learned."""
    gram: NDArray[np.float64]
    """Shape (N, d, d): what each person's reports say, the sum of xx' / v: the blocks of Phi."""
    response: NDArray[np.float64]
    """Shape (N, d): the sum of x y / v."""


class Component(NamedTuple):
    """Views of the component in which a person stands."""

    first: int
    """Its first place."""
    size: int
    """How many people it has."""
    panel: int
    """How many of them share a panel."""
    S: NDArray[np.float64]
    """Shape (size d, size d)."""
    G: NDArray[np.float64]
    """Shape (defer, size d): the vectors kept aside."""
    pending: int
    """How many of them there are."""
    row: int
    """Where the person's rows of S begin."""
    end: int
    """Where the panel of these rows ends."""


def require_size(owner: Any, sizes: Sequence[int], dimension: int, most: int) -> None:
    """Refuse components whose matrices take more than `most` bytes, before any is made."""
    needed = sum(8 * (size * dimension) ** 2 for size in sizes)
    if needed > most:
        largest = math.isqrt(most // 8) // dimension
        raise ValueError(
            f"{type(owner).__name__} cannot join {max(sizes):,} people with {dimension} features, because "
            f"its matrices would take {needed:,} bytes and {most:,} are allowed; join at most {largest:,} "
            "people, reduce the features, or use LinUCB, which joins nobody"
        )


def new_ridge(blocks: Sequence[Block], n_users: int, d: int, regularisation: float) -> Ridge:
    """Return the arrays of people of whom nothing is known.

    Parameters
    ----------
    blocks : sequence of Block
        The matrix B; every person is a member of one block.
    n_users, d : int
    regularisation : float
        lambda.
    """
    place = np.empty(n_users, np.int64)
    place[np.concatenate([block.members for block in blocks])] = np.arange(n_users)
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
        inner = K / regularisation
        kernels.append(inner.ravel().copy())
        if large:
            panels = np.arange(n) // panel
            inner[panels[:, None] < panels[None, :]] = 0.0
        matrices.append(np.kron(inner, np.eye(d)).ravel().astype(np.float64))
        start, n_entries = start + n, n_entries + (n * d) ** 2
        n_deferred += defer * n * d
    return Ridge(
        place=place,
        layout=layout,
        pending=np.zeros(n_users, np.int64),
        covariance=np.concatenate(matrices),
        deferred=np.zeros(n_deferred),
        kernel_diagonal=diagonal,
        mean=np.zeros((n_users, d)),
        energy=np.zeros(1),
        log_volume=np.zeros(1),
        kernel=np.concatenate(kernels),
        within=np.eye(d),
        gram=np.zeros((n_users, d, d)),
        response=np.zeros((n_users, d)),
    )


def find_groups(joined: Any) -> Iterator[NDArray[np.int64]]:
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


def merge_blocks(blocks: Sequence[Block], shared: float) -> list[Block]:
    """Return one block of all people, who have something in common: K becomes K + shared 11'."""
    members = np.concatenate([block.members for block in blocks])
    rows = np.unique(np.concatenate([block.rows for block in blocks]))
    basis, at = np.zeros((len(rows), len(members))), 0
    for block in blocks:
        columns = slice(at, at + len(block.members))
        basis[np.searchsorted(rows, block.rows), columns] = block.basis
        at = columns.stop
    order = np.argsort(members)
    return [Block(rows, members[order], basis[:, order], shared)]


@kernel
def component(ridge: Any, i: Any) -> Any:
    """Return the component in which the person at place i stands."""
    d = ridge.mean.shape[1]
    first, size, defer, panel, at, deferred_at = ridge.layout[i]
    n = size * d
    return Component(
        first,
        size,
        panel,
        ridge.covariance[at : at + n * n].reshape(n, n),
        ridge.deferred[deferred_at : deferred_at + defer * n].reshape(defer, n),
        ridge.pending[first],
        (i - first) * d,
        min(size, ((i - first) // panel + 1) * panel) * d,
    )


@kernel
def carve(work: Any, d: Any) -> Any:
    """Return room for the coefficients of a prediction, shape (d,), and for their covariance, (d, d)."""
    return work[:d], work[d : d + d * d].reshape(d, d)


@kernel(inlined=False)
def apply_rows(part: Any, vector: Any, p: Any) -> None:
    """Add the person's rows of S times a vector to p."""
    S, G, r = part.S, part.G, part.row
    d, n = p.size, vector.size
    for a in range(d):
        p[a] += dot(S[r + a, : part.end], vector[: part.end])
    for row in range(part.end, n):
        for a in range(d):
            p[a] += S[row, r + a] * vector[row]
    for k in range(part.pending):
        share = dot(G[k], vector)
        for a in range(d):
            p[a] -= share * G[k, r + a]


@kernel
def copy_block(part: Any, C: Any) -> None:
    """Write the person's diagonal block of S into C."""
    S, G, r = part.S, part.G, part.row
    d = C.shape[0]
    for a in range(d):
        for b in range(d):
            C[a, b] = S[r + a, r + b]
    for k in range(part.pending):
        for a in range(d):
            g = G[k, r + a]
            for b in range(d):
                C[a, b] -= g * G[k, r + b]


@kernel(inlined=False)
def _write_column(part: Any, x: Any, g: Any) -> None:
    """Write S phi into g, where phi is x at the person's rows."""
    S, G, r, end = part.S, part.G, part.row, part.end
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
    for k in range(part.pending):
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


@kernel(allocates=True)
def _blas_product(X: Any, C: Any, out: Any) -> None:
    np.dot(X, C, out)


@kernel
def choose_slot(contexts: Any, p: Any, C: Any, alpha: Any, XC: Any) -> Any:
    """Return the slot with the largest x'p + alpha sqrt(x'Cx); `XC` is scratch like `contexts`."""
    n_shown, d = contexts.shape
    if contexts.size > SMALL:
        _blas_product(contexts, C, XC)
    else:
        for slot in range(n_shown):
            for b in range(d):
                XC[slot, b] = 0.0
                for a in range(d):
                    XC[slot, b] += contexts[slot, a] * C[a, b]
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
def observe(ridge: Any, level: Any, i: Any, x: Any, y: Any, v: Any) -> None:
    """Take in that the expected reward of context x is y, give or take a variance of v."""
    part, d = component(ridge, i), x.size
    n, pending = part.size * d, part.pending
    g = part.G[pending]
    _write_column(part, x, g)
    square, guess, energy = 0.0, 0.0, 0.0
    for a in range(d):
        square += x[a] * g[part.row + a]
        guess += x[a] * ridge.mean[i, a]
        energy += x[a] * x[a]
    response, gram = ridge.response[i], ridge.gram[i]
    for a in range(d):
        weighted = x[a] / v
        response[a] += weighted * y
        row = gram[a]
        for b in range(d):
            row[b] += weighted * x[b]
    mean = ridge.mean.reshape(-1)[part.first * d : part.first * d + n]
    step = (y - guess) / (v + square)
    observe_level(level, part.first, i, x, g, y, v, square, step)
    root = math.sqrt(v + square)
    for j in range(n):
        mean[j] += step * g[j]
        g[j] /= root
    pending += 1
    if pending == part.G.shape[0]:
        if pending == 1:
            for row in range(n):
                for j in range(n):
                    part.S[row, j] -= g[row] * g[j]
        else:
            _subtract_products(part.S, part.G, part.panel * d)
        pending = 0
    ridge.pending[part.first] = pending
    ridge.energy[0] += ridge.kernel_diagonal[i] * energy
    ridge.log_volume[0] += math.log1p(square / v)


@kernel(inlined=False)
def recompute(ridge: Any, level: Any) -> None:
    """Set S, the predictions and the level to what the sums of all people say."""
    n_users, d = ridge.response.shape
    restart_level(level)
    i = 0
    while i < n_users:
        part = component(ridge, i)
        first, size = part.first, part.size
        begin, end = first * d, (first + size) * d
        at = ridge.layout[i, 4] // (d * d)
        K = ridge.kernel[at : at + size * size].reshape(size, size)
        b, mean = ridge.response.reshape(-1)[begin:end], ridge.mean.reshape(-1)[begin:end]
        posterior(K, ridge.within, ridge.gram[first : first + size], b, part.S, mean)
        ridge.pending[first] = 0
        add_to_level(level, first, part.S, mean)
        i += size
