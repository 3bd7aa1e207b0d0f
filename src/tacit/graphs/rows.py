"""Rows of a network: those of some nodes, made or cut out without the others.

Contiguous nodes are numbered from 0 here. Nodes elsewhere that stand in their rows are *ghosts*, numbered
after them, in order. Rows keep the order of the whole network, so that a sum over neighbours is rounded as
it is there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.kernels import kernel
from tacit.graphs.graph import Graph


class Rows(NamedTuple):
    """The rows of the nodes from `first` on, of a network of `n_nodes`."""

    n_nodes: int
    first: int
    indptr: NDArray[np.int64]
    """Shape (nodes here + 1,)."""
    indices: NDArray[np.int64]
    """Neighbours by their numbers in the whole network, increasing within a row."""


class Network(ABC):
    """A network that is described, not stored: each part of it is made where it is needed.

    Undirected, without weights. A study file writes ``{name = "blocks", nodes = 10_000_000, ...}``.
    """

    written_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"name": {"enum": ["rmat", "blocks", "edges"]}},
        "required": ["name"],
        "description": "a network that is made in pieces, and its parameters",
    }

    @staticmethod
    def from_written(value: Any) -> Any:
        """Return the described network that is written, or `value` itself if it is none."""
        from tacit.graphs.lazy import Blocks, EdgeFile, Rmat

        kinds: dict[Any, Any] = {"rmat": Rmat, "blocks": Blocks, "edges": EdgeFile}
        if not isinstance(value, Mapping) or value.get("name") not in kinds:
            return value
        parameters = dict(value)
        return kinds[parameters.pop("name")](**parameters)

    @property
    @abstractmethod
    def n_nodes(self) -> int:
        """Number of nodes."""

    @abstractmethod
    def rows(self, first: int, last: int) -> Rows:
        """Return the rows of the nodes `first` to `last` - 1, the same whatever else is made."""

    def graph(self) -> Graph:
        """Return the whole network, for one that fits."""
        _, _, indptr, indices = self.rows(0, self.n_nodes)
        return Graph(indptr=indptr, indices=indices.astype(np.int32))


def rows_of(network: Graph | Network, first: int, last: int) -> Rows:
    """Return some rows of a network, stored or described."""
    if isinstance(network, Network):
        return network.rows(first, last)
    indptr = network.indptr[first : last + 1]
    indices = network.indices[indptr[0] : indptr[-1]].astype(np.int64)
    return Rows(network.n_nodes, first, indptr - indptr[0], indices)


def uniform_columns(rows: Rows) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the columns of ``Combination.uniform`` for some nodes; senders as in the whole network."""
    indptr = rows.indptr + np.arange(rows.indptr.size)
    senders = np.empty(int(indptr[-1]), np.int64)
    _with_oneself(rows.indptr, rows.indices, rows.first, senders)
    degrees = np.diff(rows.indptr)
    return indptr, senders, np.repeat(1.0 / (1.0 + degrees), degrees + 1)


@kernel
def _with_oneself(indptr: Any, indices: Any, first: Any, senders: Any) -> None:
    k = 0
    for a in range(indptr.size - 1):
        heard = False
        for e in range(indptr[a], indptr[a + 1]):
            if not heard and indices[e] > first + a:
                senders[k] = first + a
                heard = True
                k += 1
            senders[k] = indices[e]
            k += 1
        if not heard:
            senders[k] = first + a
            k += 1


def localised(
    numbers: NDArray[Any], first: int, last: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return nodes by their rows in the piece from `first` to `last` - 1, and who the ghosts are."""
    outside = (numbers < first) | (numbers >= last)
    ghosts = np.unique(numbers[outside])
    local = (numbers - first).astype(np.int32)
    local[outside] = (last - first + np.searchsorted(ghosts, numbers[outside])).astype(np.int32)
    return local, ghosts
