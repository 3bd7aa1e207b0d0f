"""Graphs from and to files: edge lists (plain, CSV, gzip) and GraphML."""

from __future__ import annotations

import gzip
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.core.files import write_atomically
from tacit.graphs.conversion import from_networkx, to_networkx
from tacit.graphs.graph import Graph, import_optional

_GZIP = b"\x1f\x8b"


def read_edges(
    path: str | os.PathLike[str],
    *,
    directed: bool = False,
    n_nodes: int | None = None,
    delimiter: str | None = None,
    header: bool = False,
    columns: tuple[int, int] = (0, 1),
    weight_column: int | None = None,
    relabel: bool = False,
    loops: Literal["error", "drop"] = "error",
    duplicates: Literal["error", "merge"] = "error",
) -> Graph:
    r"""Read a graph from a text file, one edge a line; gzip is recognised by its first bytes.

    Empty lines and lines that begin with ``#`` or ``%`` are skipped.

    Parameters
    ----------
    path : path
        The file.
    directed : bool
        Whether a line is an arc.
    n_nodes : int, optional
        Number of nodes, if more than the lines mention.
    delimiter : str, optional
        What separates fields: white space if not given, a comma in a file named ``.csv[.gz]``.
    header : bool
        Whether the first line (after comments) names the columns.
    columns : (int, int)
        Which fields hold the two nodes.
    weight_column : int, optional
        Which field holds the weight.
    relabel : bool
        Nodes are names (or sparse numbers): number them in sorted order and keep them as labels.
        If not, nodes must be the numbers 0, 1, 2, ...
    loops, duplicates : str
        As in :meth:`Graph.from_edges`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.graphs import read_edges
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "friends.csv")
    ...     _ = file.write_text("# who knows whom\nann,bob\nbob,cid\n")
    ...     read_edges(file, relabel=True).labels.tolist()
    ['ann', 'bob', 'cid']
    """
    if delimiter is None and ".csv" in Path(path).suffixes[-2:]:
        delimiter = ","
    content = Path(path).read_bytes()
    try:
        if content[:2] == _GZIP:
            content = gzip.decompress(content)
        lines = content.decode("utf-8-sig").splitlines()
    except (EOFError, OSError, zlib.error):
        raise ValueError(f"{path}: a compressed file that is cut short or broken") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file in UTF-8") from None
    numbers = [i for i, line in enumerate(lines) if line.strip() and line.lstrip()[0] not in "#%"]
    numbers = numbers[1:] if header else numbers
    rows = [lines[i] for i in numbers]
    nodes = _fields(path, rows, numbers, columns, delimiter, np.int64, allow_names=relabel)
    weights = None
    if weight_column is not None:
        wanted = (weight_column,)
        weights = _fields(path, rows, numbers, wanted, delimiter, np.float64)[:, 0]
    labels = None
    if relabel:
        labels, flat = np.unique(nodes, return_inverse=True)
        nodes = flat.reshape(nodes.shape)
        n_nodes = labels.size
    try:
        return Graph.from_edges(
            nodes,
            n_nodes=n_nodes,
            weights=weights,
            directed=directed,
            labels=labels,
            loops=loops,
            duplicates=duplicates,
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def write_edges(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write one edge a line, with its weight if there is one; labels stand for nodes.

    The name decides: ``.csv`` separates by commas, ``.gz`` compresses. The file appears whole or
    not at all. Nodes without an edge are not in an edge list.
    """
    target = Path(path)
    separator = "," if ".csv" in target.suffixes[-2:] else " "
    names = np.arange(graph.n_nodes) if graph.labels is None else graph.labels
    columns: list[list[Any]] = [names[graph.edges()[:, end]].tolist() for end in (0, 1)]
    if graph.weights is not None:
        columns.append([repr(float(w)) for w in graph.edge_weights()])
    for name in {str(name) for column in columns[:2] for name in column}:
        if separator in name or name.split() != [name] or name[0] in "#%":
            raise ValueError(f"write_edges: expected labels without {separator!r}, got {name!r}")
    rows = zip(*columns, strict=True)
    text = "".join(separator.join(map(str, row)) + "\n" for row in rows).encode()
    data = gzip.compress(text, mtime=0) if target.suffix == ".gz" else text
    write_atomically(target, lambda file: file.write_bytes(data))


def read_graphml(path: str | os.PathLike[str], *, weight: str | None = None) -> Graph:
    """Read a GraphML file; node ids become labels, the edge attribute `weight` the weights."""
    networkx = import_optional("networkx", needed_by="read_graphml")
    try:
        return from_networkx(networkx.read_graphml(path), weight=weight)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def write_graphml(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write a GraphML file that :func:`read_graphml` and other programs read."""
    networkx = import_optional("networkx", needed_by="write_graphml")
    text = "\n".join(networkx.generate_graphml(to_networkx(graph)))
    write_atomically(Path(path), lambda file: file.write_text(text, "utf-8"))


def _fields(
    path: Any,
    rows: list[str],
    numbers: list[int],
    columns: tuple[int, ...],
    delimiter: str | None,
    dtype: Any,
    *,
    allow_names: bool = False,
) -> NDArray[Any]:
    """Return the fields as numbers, else as names, or raise an error that gives the line."""
    if not rows:
        return np.empty((0, len(columns)), dtype)
    with suppress(ValueError):
        return np.loadtxt(
            rows, dtype=dtype, delimiter=delimiter, usecols=columns, comments=None, ndmin=2
        )
    found = []
    for row, number in zip(rows, numbers, strict=True):
        fields = [field.strip() for field in row.split(delimiter)]
        where = f"{path}, line {number + 1}"
        if len(fields) <= max(columns):
            raise ValueError(
                f"{where}: expected at least {max(columns) + 1} fields, got {row.strip()!r}"
            )
        for column in () if allow_names else columns:
            try:
                dtype(fields[column])
            except ValueError:
                rule = "an integer (or relabel=True)" if dtype is np.int64 else "a number"
                raise ValueError(
                    f"{where}: expected {rule} in field {column}, got {fields[column]!r}"
                ) from None
        found.append([fields[column] for column in columns])
    return np.array(found)
