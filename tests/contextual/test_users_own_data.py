"""Own data: three files in, a private recommender out; and everything that may be wrong with them."""

from __future__ import annotations

import gzip
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.contextual import CoLin, LinUCB, Recorded, relation, tag_features
from tacit.contextual.features import principal_components
from tacit.contextual.table import Rows, arrive, expected, matrix_of, person_at
from tacit.core.kernels import INTERPRETED
from tacit.core.registry import build_pair
from tacit.core.tapes import seeded_tape

PAGE = Path(__file__).parents[2] / "docs" / "own-data.md"
TASTES = {"jazz": ("blue train", "so what"), "electronic": ("blue monday", "around the world")}


@pytest.fixture
def files(tmp_path):
    """Write three files: two circles of friends, each with a taste of its own."""
    rng = np.random.default_rng(0)
    tags, listens, friends = [], [], []
    items = {taste: list(names) for taste, names in TASTES.items()}
    for taste, names in items.items():
        names += [f"{taste} {i}" for i in range(40)]
        for name in names:
            others = rng.choice(["live", "old", "new", "long"], 2, replace=False)
            tags += [(name, taste), *((name, tag) for tag in others)]
    people = ["ann", "bob", "eve", *(f"p{i}" for i in range(27))]
    for i, person in enumerate(people):
        taste = ("jazz", "electronic")[i % 2]
        listens += [(person, name) for name in rng.choice(items[taste], 12, replace=False)]
        friends += [(person, people[(i + 2) % 30])]
    for name, header, rows in (
        ("listens.csv", "user,item", listens),
        ("tags.csv", "item,tag", tags),
        ("friends.csv", "user,friend", friends),
    ):
        text = "\n".join([header, *(",".join(row) for row in rows)])
        (tmp_path / name).write_text("\ufeff" + text + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.skipif(INTERPRETED, reason="thousands of rounds need compiled kernels")
def test_the_tutorial_runs_and_is_short(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert len(blocks) == 3
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    assert len(lines) < 30
    scope: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), scope)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "30 pairs of 30 people are joined"
    alone, together = (float(line.split()[1]) for line in printed[1:3])
    assert together > alone > 1.3
    with tacit.Learner(
        scope["policy"],
        people=scope["people"],
        weights=scope["data"].weights,
        store="recommender.db",
    ) as again:
        assert again.counts["learned"] == 1
        assert again.decide(person="fay", contexts=scope["offers"]).option in scope["offers"]


SMALL = {
    "interactions": {"user": ["a", "a", "b", "b", "c"], "item": [1, 2, 2, 3, 3]},
    "items": {"item": [1, 2, 3, 4], "x": [3.0, 0.0, 0.0, 1.0], "y": [4.0, 1.0, 2.0, 1.0]},
    "edges": {"user": ["a", "b", "z"], "friend": ["b", "a", "a"]},
    "n_shown": 2,
}


def test_numbers_are_scaled_and_friends_are_joined_once():
    data = Recorded(**SMALL)
    assert data.sizes == {"n_users": 3, "dimension": 2}
    np.testing.assert_allclose(data.contexts_of([1, 3]), [[0.6, 0.8], [0.0, 0.4]])
    assert data.joined_pairs == 1
    np.testing.assert_allclose(
        matrix_of(data.weights).toarray(), [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]]
    )
    assert (data.user_of("b"), data.reward) == (1, "binary")
    with pytest.raises(ValueError, match="person one with interactions"):
        data.user_of("z")
    with pytest.raises(ValueError, match=r"items among those with features, got \['9'\]"):
        data.contexts_of([1, 9])


def test_ratings_are_shown_to_those_who_gave_them():
    rng = np.random.default_rng(0)
    user, item = np.divmod(np.arange(60), 20)
    rated = {"user": user, "item": item, "reward": rng.random(60)}
    once = {"user": [9], "item": [0], "reward": [1.0]}
    rows = {name: [*rated[name], *rated[name], *once[name]] for name in rated}
    features = {"item": np.arange(20), "x": rng.random(20), "y": rng.random(20)}
    data = Recorded(interactions=rows, items=features, n_shown=5)
    assert (data.reward, data.prepared.left_out, data.sizes["n_users"]) == ("bounded", 1, 3)
    table, shown = data.table(0, 0, 50), np.empty(5, np.int64)
    for t in range(50):
        who = arrive(table, t, shown)
        assert who == person_at(table, t)
        assert len(set(shown.tolist())) == 5
        for slot, one in enumerate(shown):
            assert expected(table, t, who, slot, one) == pytest.approx(
                rated["reward"][20 * who + int(data.prepared.items[one])]
            )
    policy = LinUCB(**data.sizes, epsilon=2.0)
    trace = data.trace(50, np.array([50]))
    policy.play(policy.start(table), table, seeded_tape(0), trace, 0, 50)
    assert trace.cursor[0] == 1


def test_frames_files_and_study_files_say_the_same(files, tmp_path):
    pandas = pytest.importorskip("pandas")
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet

    plain = Recorded(interactions=str(files / "listens.csv"), items=str(files / "tags.csv"))
    frame = pandas.read_csv(files / "listens.csv")
    table = csv.read_csv(files / "tags.csv")
    assert isinstance(table, arrow.Table)
    parquet.write_table(table, tmp_path / "tags.parquet")
    packed = tmp_path / "more.csv.gz"
    packed.write_bytes(gzip.compress((files / "listens.csv").read_bytes()))
    others = [
        Recorded(interactions=frame, items=table),
        Recorded(interactions=str(packed), items=str(tmp_path / "tags.parquet")),
        build_pair(
            {"name": "linucb"},
            {
                "name": "recorded-users",
                "interactions": str(files / "listens.csv"),
                "items": str(files / "tags.csv"),
            },
            100,
        )[1],
    ]
    for other in others:
        for one, two in zip(plain.prepared, other.prepared, strict=True):
            both = [
                matrix_of(each).toarray() if isinstance(each, Rows) else each for each in (one, two)
            ]
            np.testing.assert_array_equal(*both)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"interactions": {"user": [1]}}, "interactions with a column 'item'"),
        ({"interactions": {"user": [], "item": []}}, "interactions not empty"),
        ({"interactions": {"user": [1, 2], "item": [1]}}, "columns of one length"),
        ({"interactions": 7}, "interactions a data frame, columns or a file"),
        ({"interactions": {"user": [1], "item": [8]}}, r"every item of interactions, got \['8'\]"),
        (
            {"interactions": {"user": [1], "item": [1], "reward": [3]}},
            r"reward between 0 and 1, got \(3.0, 3.0\)",
        ),
        (
            {"interactions": {"user": [1], "item": [1], "reward": ["much"]}},
            "finite.*'much' in row 2",
        ),
        ({"interactions": {"user": ["a", None], "item": [1, 2]}}, "'user', got 'none in row 3'"),
        ({"interactions": {"user": [1.0, np.nan], "item": [1, 2]}}, "'user', got 'none in row 3'"),
        ({"items": {"item": [1, 2, 3]}}, "items with a column tag or columns of numbers"),
        ({"items": {"item": [1, 2, 3], "x": [1.0, np.nan, 2.0]}}, "x finite numbers"),
        ({"items": {"item": [1, 2, 3], "x": [0, 0, 0]}}, "features that are not all 0"),
        ({"items": {"item": [1, 2, 3, 3], "x": [1, 0, 0, 1]}}, "items of one row each"),
        ({"edges": {"user": ["a"]}}, "edges with a column 'friend'"),
        (
            {"edges": {"user": ["a"], "friend": ["b"], "weight": [-1.0]}},
            "weight >= 0, got -1.0",
        ),
        ({"n_shown": 5}, "n_shown <= 4, the number of items"),
        ({"n_groups": 9}, "n_groups <= 3, the number of people"),
    ],
)
def test_data_that_cannot_be_played_are_refused(changes, message):
    with pytest.raises(ValueError, match=f"Recorded: expected .*{message}"):
        _ = Recorded(**(SMALL | changes)).prepared


def test_a_broken_file_is_named(tmp_path):
    broken = tmp_path / "broken.csv"
    for content, message in (
        (b"user,item\n1,2\n3\n", "expected 2 fields in row 3, got 1"),
        (b"", "expected a header and rows"),
        (b"user,item,item\n1,2,3\n", "columns of different names"),
        (b"\xff\xfe\x00user", "not a table with a header"),
    ):
        broken.write_bytes(content)
        with pytest.raises(ValueError, match=f"{broken}: .*{message}"):
            _ = Recorded(interactions=str(broken), items=SMALL["items"]).prepared
    with pytest.raises(FileNotFoundError, match="no such file"):
        _ = Recorded(interactions=str(tmp_path / "none.csv"), items=SMALL["items"]).prepared
    parquet = tmp_path / "broken.parquet"
    parquet.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="not a Parquet file"):
        _ = Recorded(interactions=str(parquet), items=SMALL["items"]).prepared


# Finding T1: where a row is an item, a start of ones is removed by centring, on some processors to the bit.
@pytest.mark.parametrize("shape", [(30, 12), (12, 30)], ids=["tall", "wide"])
def test_principal_components_of_more_items_than_tags_and_of_fewer(shape):
    rows = np.random.default_rng(0).normal(size=shape)
    centred = rows - rows.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    found = principal_components(rows, 4)
    np.testing.assert_allclose(np.abs(found), np.abs(left[:, :4] * values[:4]), atol=1e-8)


def test_semicolons_spaces_and_a_byte_order_mark_are_read_as_meant(tmp_path):
    plain, odd = tmp_path / "plain.csv", tmp_path / "odd.csv"
    plain.write_text("user,item\nZoë 1,Café\nann,tea\n", "utf-8")
    odd.write_text("user ; item\r\n Zoë 1;  Café \r\n\r\nann;tea\r\n", "utf-8-sig")
    items = {"item": ["Café", "tea"], "hot": [1.0, 0.5]}
    found = [
        Recorded(interactions=file, items=items, n_shown=2).prepared.people.tolist()
        for file in (plain, odd)
    ]
    assert found == [["Zoë 1", "ann"], ["Zoë 1", "ann"]]
    odd.write_text("user;item\nann;tea\n;tea\n")
    with pytest.raises(ValueError, match=r"column 'user' in .*odd.csv, got 'none in row 3'"):
        _ = Recorded(interactions=odd, items=items, n_shown=2).prepared


def test_a_name_is_the_same_as_a_number_and_as_a_word(tmp_path):
    """Numbers of a frame and the words of a file were different people, joined to nobody."""
    edges = tmp_path / "edges.csv"
    edges.write_text("user,friend\n1, 2\n2,30\n")
    features = {"item": ["7", "8 ", "9"], "x": [1.0, 0.5, 0.0]}
    for users in ([1, 2, 30], [1.0, 2.0, 30.0], np.array([1, 2, 30], object), ["1", " 2", "30"]):
        seen = {"user": users, "item": [7, 8, 9]}
        data = Recorded(interactions=seen, items=features, edges=edges, n_shown=2)
        assert data.prepared.people.tolist() == ["1", "2", "30"]
        assert data.joined_pairs == 2
        assert data.user_of(30) == data.user_of("30 ") == 2
        np.testing.assert_array_equal(data.contexts_of([8]), data.contexts_of(["8"]))
    policy = LinUCB(**data.sizes, epsilon=2.0, reward="binary")
    learner = tacit.Learner(policy, people=[1, 2, 30])
    decision = learner.decide(person=30, contexts=data.contexts_of([7, 9]))
    assert learner.learn(decision.device.report(1.0)).status == "learned"
    assert learner.decide(person="30", contexts=[[1.0]]).option == 0


def test_without_edges_nobody_is_joined_and_it_is_said():
    data = Recorded(**(SMALL | {"edges": None}))
    assert data.joined_pairs == 0
    with pytest.warns(UserWarning, match="0 of 3 pairs"):
        CoLin(**data.sizes).start(data.table(0, 0, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinUCB(**data.sizes).start(data.table(0, 0, 5))


def test_groups_of_a_relation_count_friendships_once():
    from tacit.graphs import Graph

    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 2)])
    found = relation(graph, [0, 0, 1, 1]).toarray()
    np.testing.assert_allclose(found, np.array([[1, 2], [2, 1]]) / 3)
    alone = relation(Graph.from_edges([(0, 1)], n_nodes=3)).toarray()
    np.testing.assert_allclose(alone, [[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match=r"groups of shape \(4,\)"):
        relation(graph, [0, 1])


def test_items_with_the_same_tags_have_the_same_features():
    tags = [(0, 5), (0, 6), (1, 6), (1, 5), (2, 7), (3, 5), (9, 5)]
    found = tag_features(np.arange(4), np.array(tags), 2)
    assert found.shape == (4, 2)
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)
    assert not np.allclose(found[0], found[2])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)
