"""One's own data: who chose or rated what, what the items are like, who knows whom.

Each of the three is a data frame, a mapping of columns, or a CSV, TSV or Parquet file with a header. Without
rewards an interaction means that somebody chose an item: in each round one of a person's items is shown
among others, as the paper replays LastFM. With rewards only rated items are shown, and earn what they
earned. Everything is checked when it is read; what cannot be played says so then.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.environments.base import UsersEnvironment
from tacit.contextual.features import principal_components, relation, tag_features
from tacit.contextual.table import RATED, REPLAY, Rows, Table, joined, new_table, rows_of
from tacit.core.constraints import Count, check, require
from tacit.core.generator import key_of
from tacit.graphs import Graph, partition

_TABLE_STREAM = 0
_MISSING = ("NAType", "NaTType")
"""What pandas calls that of which nothing is known."""
Columns = Mapping[str, NDArray[Any]]


class Prepared(NamedTuple):
    """Own data, ready to be played."""

    people: NDArray[Any]
    """Shape (P,): what the people are called, sorted."""
    items: NDArray[Any]
    """Shape (M,): what the items are called, sorted."""
    groups: NDArray[np.int64]
    """Shape (P,): the user that each person counts as."""
    features: NDArray[np.float64]
    """Shape (M, d): none longer than 1."""
    weights: Rows
    graph: Rows
    indptr: NDArray[np.int64]
    liked: NDArray[np.int64]
    ratings: NDArray[np.float64]
    """What each interaction earned, between 0 and 1; (0,) if nothing says so."""
    left_out: int
    """People who cannot be shown enough items."""


@dataclass(frozen=True, kw_only=True)
class Recorded(UsersEnvironment):
    """Own data: interactions of people with items, features or tags, and perhaps friendships.

    Parameters
    ----------
    interactions : data frame, mapping of columns, or file
        Columns ``user`` and ``item``, and perhaps ``reward``. Several rewards of a pair are averaged.
    items : data frame, mapping of columns, or file
        A column ``item`` and either a column ``tag``, one row for each tag of an item, or columns of
        numbers. Tags become TF-IDF, of which `dimension` principal components are kept; numbers
        are kept as they are, reduced only if there are more of them, and scaled to length 1 at most.
    edges : data frame, mapping of columns, or file, optional
        Columns ``user`` and ``friend``, and perhaps ``weight``. People without interactions are
        passed over.
    dimension : int, default 25
        At most so many features.
    n_shown : int, default 10
        Candidates a round.
    n_groups : int, optional
        Cut people into so many groups by their friendships; a group then counts as one user.

    Examples
    --------
    >>> from tacit.contextual import Recorded
    >>> data = Recorded(
    ...     interactions={"user": ["ann", "ann", "bob"], "item": ["a", "b", "c"]},
    ...     items={"item": ["a", "b", "c"], "loud": [1.0, 0.8, 0.0], "slow": [0.0, 0.2, 1.0]},
    ...     edges={"user": ["ann"], "friend": ["bob"]},
    ...     n_shown=2,
    ... )
    >>> data.sizes, data.joined_pairs
    ({'n_users': 2, 'dimension': 2}, 1)
    """

    name: ClassVar[str] = "recorded-users"
    summary: ClassVar[str] = "own data: who chose or rated what, features or tags, friendships"

    interactions: Any
    items: Any
    edges: Any = None
    dimension: Count = 25
    n_shown: Count = 10
    n_groups: Count | None = None

    def __post_init__(self) -> None:
        check(self)

    @cached_property
    def prepared(self) -> Prepared:
        """The data, read and reduced once."""
        return _prepared(self)

    @property
    def sizes(self) -> Mapping[str, int]:
        """The numbers of users and of features."""
        data = self.prepared
        return {"n_users": int(data.groups.max()) + 1, "dimension": data.features.shape[1]}

    @property
    def weights(self) -> Rows:
        """The relational matrix, for CoLin."""
        return self.prepared.weights

    @property
    def graph(self) -> Rows:
        """Who is joined to whom, for GOBLin."""
        return self.prepared.graph

    @property
    def joined_pairs(self) -> int:
        """How many pairs of users are joined by an edge."""
        return len(self.prepared.graph.indices) // 2

    @property
    def reward(self) -> str:
        """The kind of reward, for a policy: chosen or not, or a rating."""
        return "bounded" if len(self.prepared.ratings) else "binary"

    def user_of(self, person: Any) -> int:
        """Return the number of the user that a person counts as."""
        people, name = self.prepared.people, _names([person])[0]
        place = int(np.searchsorted(people, name))
        known = place < len(people) and people[place] == name
        require(self, "person", "one with interactions", known, person)
        return int(self.prepared.groups[place])

    def contexts_of(self, items: Any) -> NDArray[np.float64]:
        """Return the features of items, one row each."""
        known, wanted = self.prepared.items, _names(items)
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        bad = known[place] != wanted
        missing = wanted[bad].tolist()
        require(self, "items", "among those with features", not missing, missing[:3])
        return self.prepared.features[place]

    def table(self, seed: int, repetition: int, horizon: int) -> Table:
        """Return the table of one repetition: who arrives, and what is shown."""
        data = self.prepared
        key0, key1 = key_of(seed, repetition, stream=_TABLE_STREAM)
        return new_table(
            kind=RATED if len(data.ratings) else REPLAY,
            n_users=self.sizes["n_users"],
            key0=np.uint64(key0),
            key1=np.uint64(key1),
            n_shown=self.n_shown,
            weights=data.weights,
            graph=data.graph,
            features=data.features,
            groups=data.groups,
            indptr=data.indptr,
            liked=data.liked,
            ratings=data.ratings,
        )


def _prepared(own: Recorded) -> Prepared:
    chosen = _columns(own, "interactions", own.interactions, ("user", "item"))
    described = _columns(own, "items", own.items, ("item",))
    items = np.unique(described["item"])
    known = np.isin(chosen["item"], items)
    strange = np.unique(chosen["item"][~known]).tolist()
    require(own, "items", "with every item of interactions", not strange, strange[:3])
    features = _features(own, described, items)
    rewards = _numbers(own, "reward", chosen["reward"]) if "reward" in chosen else None
    people, person = np.unique(chosen["user"], return_inverse=True)
    pairs = person * np.int64(len(items)) + np.searchsorted(items, chosen["item"])
    pairs, which, times = np.unique(pairs, return_inverse=True, return_counts=True)
    ratings = np.empty(0)
    if rewards is not None:
        inside = bool(rewards.min() >= 0) and bool(rewards.max() <= 1)
        ends = (float(rewards.min()), float(rewards.max()))
        require(own, "reward", "between 0 and 1", inside, ends)
        ratings = np.bincount(which, rewards) / times
    person, item = np.divmod(pairs, len(items))
    counts = np.bincount(person, minlength=len(people))
    if rewards is None:
        room = counts + own.n_shown - 1 <= len(items)
        rule = f"<= {len(items)}, the number of items"
        require(own, "n_shown", rule, own.n_shown <= len(items), own.n_shown)
    else:
        room = counts >= own.n_shown
    require(own, "n_shown", "small enough for somebody's items", bool(room.any()), own.n_shown)
    kept = room[person]
    person, item = np.cumsum(room)[person[kept]] - 1, item[kept]
    ratings = ratings[kept] if len(ratings) else ratings
    left_out, people = int((~room).sum()), people[room]
    network = _network(own, people)
    groups = np.arange(len(people))
    weights = relation(network, own=1.0)
    if own.n_groups is not None:
        rule = f"<= {len(people)}, the number of people"
        require(own, "n_groups", rule, own.n_groups <= len(people), own.n_groups)
        groups = partition(network, own.n_groups, seed=0)
        weights = relation(network, groups)
    return Prepared(
        people=people,
        items=items,
        groups=groups,
        features=features,
        weights=rows_of(weights),
        graph=rows_of(joined(weights)),
        indptr=np.searchsorted(person, np.arange(len(people) + 1)).astype(np.int64),
        liked=item.astype(np.int64),
        ratings=ratings,
        left_out=left_out,
    )


def _network(own: Recorded, people: NDArray[Any]) -> Graph:
    if own.edges is None:
        return Graph.from_edges(np.empty((0, 2), np.int64), n_nodes=len(people))
    edges = _columns(own, "edges", own.edges, ("user", "friend"))
    known = np.isin(edges["user"], people) & np.isin(edges["friend"], people)
    known &= edges["user"] != edges["friend"]
    ends = [np.searchsorted(people, edges[name][known]) for name in ("user", "friend")]
    low, high = np.minimum(*ends), np.maximum(*ends)
    pairs, which = np.unique(low * np.int64(len(people)) + high, return_inverse=True)
    weights = None
    if "weight" in edges:
        given = _numbers(own, "weight", edges["weight"])[known]
        require(own, "weight", ">= 0", bool((given >= 0).all()), float(given.min(initial=0.0)))
        weights = np.bincount(which, given)
    both = np.column_stack(np.divmod(pairs, len(people)))
    return Graph.from_edges(both, n_nodes=len(people), weights=weights)


def _features(own: Recorded, described: Columns, items: NDArray[Any]) -> NDArray[np.float64]:
    if "tag" in described:
        _, tag = np.unique(described["tag"], return_inverse=True)
        number = np.searchsorted(items, described["item"])
        most = min(own.dimension, len(items) - 1, int(tag.max()))
        require(own, "items", "of two tags and two items at least", most >= 1, most)
        return tag_features(np.arange(len(items)), np.column_stack([number, tag]), most)
    names = [name for name in described if name != "item"]
    require(own, "items", "with a column tag or columns of numbers", bool(names), list(described))
    once = len(items) == len(described["item"])
    require(own, "items", "of one row each", once, len(described["item"]))
    rows = np.column_stack([_numbers(own, name, described[name]) for name in names])
    rows = rows[np.argsort(described["item"])]
    if rows.shape[1] > own.dimension:
        rows = principal_components(rows, min(own.dimension, len(items) - 1))
    longest = float(np.linalg.norm(rows, axis=1).max())
    require(own, "items", "with features that are not all 0", longest > 0, longest)
    scaled: NDArray[np.float64] = np.ascontiguousarray(rows / longest)
    return scaled


def _columns(own: Recorded, what: str, source: Any, needed: tuple[str, ...]) -> Columns:
    """Return the columns of a frame, a mapping or a file by name."""
    if isinstance(source, str | Path):
        found = _read(Path(source))
    elif isinstance(source, Mapping):
        found = {str(name): np.asarray(values) for name, values in source.items()}
    elif hasattr(source, "column_names"):
        found = {name: source.column(name).to_numpy() for name in source.column_names}
    elif hasattr(source, "columns"):
        found = {str(name): np.asarray(source[name]) for name in source.columns}
    else:
        require(own, what, "a data frame, columns or a file", False, type(source).__name__)
    where = f" in {source}" if isinstance(source, str | Path) else ""
    for name in needed:
        require(own, what, f"with a column {name!r}{where}", name in found, list(found))
    lengths = {len(values) for values in found.values()}
    require(own, what, "with columns of one length", len(lengths) == 1, sorted(lengths))
    require(own, what, f"not empty{where}", max(lengths) > 0, 0)
    for name in ("user", "item", "friend", "tag"):
        if name in found:
            found[name] = _names(found[name])
            nameless = np.flatnonzero(found[name] == "")[:1].tolist()
            rule = f"with a name in every row of column {name!r}{where}"
            require(own, what, rule, not nameless, f"none in row {(nameless or [0])[0] + 2}")
    return found


def _read(path: Path) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    if path.suffix == ".parquet":
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import read_table

        try:
            table = read_table(path)
        except ArrowInvalid as error:
            raise ValueError(f"{path}: not a Parquet file ({error})") from None
        return {name: table.column(name).to_numpy() for name in table.column_names}
    packed = path.suffix == ".gz"
    kind = path.with_suffix("").suffix if packed else path.suffix
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8-sig")
            if packed
            else path.open(encoding="utf-8-sig", newline="")
        ) as file:
            text = file.read()
        lines = list(csv.reader(io.StringIO(text), delimiter=_delimiter(kind, text)))
    except (UnicodeDecodeError, OSError, EOFError, csv.Error) as error:
        raise ValueError(f"{path}: not a table with a header ({error})") from None
    lines = [[cell.strip() for cell in line] for line in lines if line]
    if not lines:
        raise ValueError(f"{path}: expected a header and rows, got nothing")
    header = lines[0]
    if len(set(header)) < len(header):
        raise ValueError(f"{path}: expected columns of different names, got {header}")
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(header):
            raise ValueError(
                f"{path}: expected {len(header)} fields in row {number}, got {len(line)}"
            )
    columns = zip(*lines[1:], strict=True) if len(lines) > 1 else [()] * len(header)
    return {name: np.array(values, str) for name, values in zip(header, columns, strict=True)}


def _delimiter(kind: str, text: str) -> str:
    """Return what parts the fields: tabs, or commas, or semicolons where a header has no comma."""
    if kind == ".tsv":
        return "\t"
    header = text.partition("\n")[0]
    return ";" if ";" in header and "," not in header else ","


def _names(values: Any) -> NDArray[Any]:
    """Return names as strings, whatever wrote them: the number 7 is called 7, and what is missing is not."""
    given = np.asarray(values)
    if given.dtype.kind not in "iuU":
        given = np.array([_name(value) for value in given.ravel().tolist()], str)
    return np.char.strip(given.astype(str))


def _name(value: Any) -> str:
    number = isinstance(value, float)
    if value is None or (number and math.isnan(value)) or type(value).__name__ in _MISSING:
        return ""
    return str(int(value) if number and value.is_integer() else value)


def _numbers(own: Recorded, name: str, values: NDArray[Any]) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        numbers = np.array([_number(value) for value in values.tolist()])
    bad = np.flatnonzero(~np.isfinite(numbers))[:1].tolist()
    got = f"{values.tolist()[bad[0]]!r} in row {bad[0] + 2}" if bad else ""
    require(own, name, "finite numbers", not bad, got)
    return numbers


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")
