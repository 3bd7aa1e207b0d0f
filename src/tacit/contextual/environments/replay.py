"""Replay of what people really liked: HetRec 2011 LastFM and Delicious.

Prepared as the paper does: items are described by the TF-IDF of their tags, reduced to 25 principal
components and scaled to length 1; people are cut into 100 groups by their friendships, and a group
counts as one user; in each round somebody arrives with one item they liked among 24 they did not.

The copy of Delicious used here says which user has which bookmark and which tags a bookmark has. It
lacks who gave which tag, hence how often each was given: all tags of a bookmark weigh the same.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.environments.base import UsersEnvironment
from tacit.contextual.features import relation, tag_features
from tacit.contextual.table import REPLAY, Rows, Table, joined, new_table, rows_of
from tacit.core.constraints import Count, check
from tacit.core.generator import key_of
from tacit.graphs import Graph, partition

_Columns = tuple[str, tuple[int, int]]
"""A file, and which two columns of it."""
_TABLE_STREAM = 0
_SHA256 = {
    "user_artists.dat": "001400dc3c7d2667fca6e4ea6dc6acc31a9dd28ad5cd0f74cea988c019934d3b",
    "user_taggedartists.dat": "d31fe938fcfeed6f0059f37a36b156f63674d073fc2553e5cc9dc1595e365bc7",
    "user_friends.dat": "9a3a8f7fa5f5ec832335e5b58ed69a4cf27c6f6f6afcde62134810eea46445a7",
    "user_bookmarks.tsv": "2e3f27ff939e35b9475854f60e392a0b0617a63e3be0730392cef378de1c5bad",
    "bookmark_tags_unweighted.tsv": "e607db6b05970f1eca994991bc03c92b1333c670269377a09181c3773235829f",
    "user_contacts.dat": "b369c9d1291285d75d7e56fc6931b1e1a613de92a52599219c6290910a4924d8",
}
_SOURCE = "https://grouplens.org/datasets/hetrec-2011/"


class Prepared(NamedTuple):
    """A data set, ready to be replayed."""

    weights: Rows
    graph: Rows
    features: NDArray[np.float64]
    groups: NDArray[np.int64]
    indptr: NDArray[np.int64]
    liked: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class _Replay(UsersEnvironment):
    """What the data sets have in common."""

    folder: ClassVar[str]
    files: ClassVar[tuple[_Columns, _Columns, _Columns]]
    """Where the pairs (person, item), (item, tag) and (person, friend) are."""

    directory: str = ""
    dimension: Count = 25
    n_shown: Count = 25
    n_groups: Count = 100

    def __post_init__(self) -> None:
        check(self)

    def prepared(self) -> Prepared:
        """Return the data set; it is read and reduced once in a process."""
        data = Path(self.directory or os.environ.get("TACIT_DATA", ""))
        return _prepare(data / self.folder, self.files, self.dimension, self.n_groups)

    def table(self, seed: int, repetition: int, horizon: int) -> Table:
        """Return the table of one repetition: who arrives, and what is shown."""
        key0, key1 = key_of(seed, repetition, stream=_TABLE_STREAM)
        return new_table(
            kind=REPLAY,
            n_users=self.n_groups,
            key0=np.uint64(key0),
            key1=np.uint64(key1),
            n_shown=self.n_shown,
            **self.prepared()._asdict(),
        )

    @property
    def sizes(self) -> Mapping[str, int]:
        """The numbers of groups and of features."""
        return {"n_users": self.n_groups, "dimension": self.dimension}

    @property
    def reward(self) -> str:
        """Binary: liked or not."""
        return "binary"

    def visits(self, horizon: int) -> int:
        """Return three times a group's fair share of the rounds.

        People arrive at random, so how often a group comes is not known beforehand: noise on the
        sums of a group is calibrated for this many rounds, and later rewards are not taken in.
        """
        return -(-3 * horizon // self.n_groups)


@dataclass(frozen=True, kw_only=True)
class LastFM(_Replay):
    """Recommend artists to listeners of Last.fm (HetRec 2011): 1,892 people, 17,632 artists.

    A reward is 1 if the person listened to the artist, else 0.

    Parameters
    ----------
    directory : str, default ""
        The folder that has ``hetrec2011-lastfm-2k``; if empty, what TACIT_DATA names.
    dimension : int, default 25
        Principal components kept.
    n_shown : int, default 25
        Candidates a round, one of them liked.
    n_groups : int, default 100
        Groups the people are cut into.
    """

    name: ClassVar[str] = "lastfm"
    summary: ClassVar[str] = "replay of HetRec 2011 LastFM: artists for groups of friends"
    folder: ClassVar[str] = "hetrec2011-lastfm-2k"
    files: ClassVar[tuple[_Columns, _Columns, _Columns]] = (
        ("user_artists.dat", (0, 1)),
        ("user_taggedartists.dat", (1, 2)),
        ("user_friends.dat", (0, 1)),
    )


@dataclass(frozen=True, kw_only=True)
class Delicious(_Replay):
    """Recommend bookmarks to users of Delicious (HetRec 2011): 1,861 people, 69,226 bookmarks.

    A reward is 1 if the person has the bookmark, else 0. Tags are unweighted; see the module.

    Parameters
    ----------
    directory, dimension, n_shown, n_groups
        As in :class:`LastFM`; the data set's own folder is ``hetrec2011-delicious-2k``.
    """

    name: ClassVar[str] = "delicious"
    summary: ClassVar[str] = "replay of HetRec 2011 Delicious: bookmarks for groups of contacts"
    folder: ClassVar[str] = "hetrec2011-delicious-2k"
    files: ClassVar[tuple[_Columns, _Columns, _Columns]] = (
        ("user_bookmarks.tsv", (0, 1)),
        ("bookmark_tags_unweighted.tsv", (0, 1)),
        ("user_contacts.dat", (0, 1)),
    )


def _pairs(folder: Path, name: str, columns: tuple[int, int]) -> NDArray[np.int64]:
    """Return two columns of a file with a header, plain or gzipped, once its content is checked."""
    file = folder / name
    packed = file.with_name(file.name + ".gz")
    if packed.is_file():
        content = gzip.decompress(packed.read_bytes())
    elif file.is_file():
        content = file.read_bytes()
    else:
        raise FileNotFoundError(
            f"{folder.name}: expected {name} or {packed.name} in {folder}; the data "
            f"set comes from {_SOURCE}, and the variable TACIT_DATA names the folder it is in"
        )
    if hashlib.sha256(content).hexdigest() != _SHA256[name]:
        raise ValueError(f"{name}: expected the content with sha256 {_SHA256[name]}, got another")
    lines = content.decode("latin-1").splitlines()
    return np.loadtxt(lines, np.int64, skiprows=1, usecols=columns, delimiter="\t", ndmin=2)


@lru_cache(maxsize=4)
def _prepare(
    folder: Path, files: tuple[_Columns, _Columns, _Columns], dimension: int, n_groups: int
) -> Prepared:
    likes, tags, friends = (_pairs(folder, *file) for file in files)
    people, person = np.unique(likes[:, 0], return_inverse=True)
    items, item = np.unique(likes[:, 1], return_inverse=True)
    pairs = np.unique(person * np.int64(len(items)) + item)
    person, item = np.divmod(pairs, len(items))
    known = np.isin(friends, people).all(axis=1)
    edges = np.searchsorted(people, friends[known])
    graph = Graph.from_edges(edges, n_nodes=len(people), duplicates="merge", loops="drop")
    groups = partition(graph, n_groups, seed=0)
    weights = relation(graph, groups)
    return Prepared(
        weights=rows_of(weights),
        graph=rows_of(joined(weights)),
        features=tag_features(items, tags, dimension),
        groups=groups,
        indptr=np.searchsorted(person, np.arange(len(people) + 1)).astype(np.int64),
        liked=item.astype(np.int64),
    )
