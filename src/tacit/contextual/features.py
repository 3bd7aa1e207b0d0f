"""From what people did to what policies need: features of items, and who influences whom.

What paper 004 does to LastFM and Delicious, as functions: items are described by the TF-IDF of their
tags, reduced to principal components; people are cut into groups, and friendships between groups become
a relational matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.core.constraints import require
from tacit.graphs import Graph, to_scipy


def relation(graph: Graph, groups: ArrayLike | None = None, *, own: float = 0.0) -> Any:
    """Return the relational matrix W of a graph, sparse, every column summing to one.

    Parameters
    ----------
    graph : Graph
        Who is joined to whom; its weights count, where it has any.
    groups : array of shape (n_nodes,), optional
        The group of each node, numbered from 0; then W is between groups, and friendships within a
        group are on the diagonal. By default everybody is a group.
    own : float, default 0
        Added to the diagonal: how much everybody counts beside one friend. A group without any
        friendship always has itself.

    Examples
    --------
    >>> from tacit.graphs import path
    >>> relation(path(3), own=1.0).toarray().round(2)
    array([[0.5 , 0.33, 0.  ],
           [0.5 , 0.33, 0.5 ],
           [0.  , 0.33, 0.5 ]])
    """
    from scipy.sparse import csr_array, diags_array

    joined = csr_array(to_scipy(graph), dtype=np.float64)
    if groups is not None:
        group = np.asarray(groups, np.int64)
        fits = group.shape == (graph.n_nodes,)
        require("relation", "groups", f"of shape ({graph.n_nodes},)", fits, group.shape)
        n = int(group.max()) + 1
        coo = joined.tocoo()
        ends = group[coo.row], group[coo.col]
        # A friendship within a group stands in both rows of the graph, and counts once.
        share = np.where(ends[0] == ends[1], 0.5, 1.0) * coo.data
        joined = csr_array((share, ends), shape=(n, n))
    joined = joined + own * diags_array(np.ones(joined.shape[0]))
    alone = (joined.sum(axis=0) == 0).astype(np.float64)
    joined = joined + diags_array(alone)
    return csr_array(joined / joined.sum(axis=0))


def tag_features(items: ArrayLike, tags: ArrayLike, dimension: int) -> NDArray[np.float64]:
    """Return the leading principal components of the TF-IDF of tags, rows of length 1.

    Parameters
    ----------
    items : array of shape (M,)
        The items, sorted.
    tags : array of shape (n, 2)
        Pairs (item, tag); one that comes twice counts twice, other items are passed over.
    dimension : int
        How many components.

    Returns
    -------
    array of shape (M, dimension)
    """
    from scipy.sparse import csr_matrix

    known, pairs = np.asarray(items), np.asarray(tags)
    pairs = pairs[np.isin(pairs[:, 0], known)]
    row = np.searchsorted(known, pairs[:, 0])
    names, column = np.unique(pairs[:, 1], return_inverse=True)
    counts = csr_matrix((np.ones(len(row)), (row, column)), shape=(len(known), len(names)))
    counts.sum_duplicates()
    total = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1.0)
    rarity = np.log(len(known) / np.bincount(counts.indices, minlength=len(names)))
    weighted = counts.multiply(1.0 / total[:, None]).multiply(rarity[None, :]).tocsr()
    scores = principal_components(weighted, dimension)
    length = np.linalg.norm(scores, axis=1, keepdims=True)
    features: NDArray[np.float64] = np.ascontiguousarray(scores / np.maximum(length, 1e-12))
    return features


def principal_components(rows: Any, dimension: int) -> NDArray[np.float64]:
    """Return the scores of the leading principal components of a matrix, dense or sparse."""
    from scipy.sparse.linalg import LinearOperator, svds

    most = min(rows.shape) - 1
    rule = f"<= {most} for {rows.shape[0]} items with {rows.shape[1]} features"
    require("principal_components", "dimension", rule, 1 <= dimension <= most, dimension)
    mean = np.asarray(rows.mean(axis=0)).ravel()
    centred = LinearOperator(
        rows.shape,
        matvec=lambda v: rows @ v - mean @ v,
        rmatvec=lambda v: rows.T @ np.ravel(v) - mean * v.sum(),
        dtype=np.float64,
    )
    first = np.ones(min(rows.shape))
    if rows.shape[0] <= rows.shape[1]:
        first[::2] = -0.5  # one number for all items is what centring removes: no start at all
    left, values, _ = svds(centred, k=dimension, v0=first)
    order = np.argsort(-values)
    scores: NDArray[np.float64] = left[:, order] * values[order]
    return scores
