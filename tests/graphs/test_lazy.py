"""Networks that nobody holds whole: their partitions fit together, and are what they claim to be."""

from __future__ import annotations

import gzip
import itertools

import numpy as np
import pytest

from tacit.diffusion import ChangingTruth, DiffusionLearning
from tacit.engines import SerialEngine
from tacit.graphs import Blocks, EdgeFile, Graph, MixingMatrix, Rmat, barabasi_albert, write_edges
from tacit.graphs.lazy import slice_rows
from tacit.graphs.mixing_matrix import slice_uniform
from tacit.simulation import simulate

NETWORKS = {
    "rmat": Rmat(scale=11, edges=20_000, seed=1),
    "rmat skewed": Rmat(scale=9, edges=3000, a=1.0, b=0.0, c=0.0),
    "blocks": Blocks(nodes=1999, blocks=13, within=9, across=3),
    "one block": Blocks(nodes=300, blocks=1, within=0, across=7, seed=4),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("partitions", [2, 7])
def test_pieces_make_the_whole(name, partitions):
    network = NETWORKS[name]
    whole = network.rows(0, network.n_nodes)
    cuts = np.arange(partitions + 1) * network.n_nodes // partitions
    parts = [network.rows(a, b) for a, b in itertools.pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate([part.indices for part in parts]), whole.indices)
    degrees = np.concatenate([np.diff(part.indptr) for part in parts])
    np.testing.assert_array_equal(degrees, np.diff(whole.indptr))
    network.graph()  # which complains if a row is not sorted or an edge is in one row only


def test_a_seed_makes_a_network():
    rows = [Rmat(scale=8, edges=500, seed=seed).rows(0, 256).indices.tolist() for seed in (0, 0, 1)]
    assert rows[0] == rows[1] != rows[2]


def test_edges_fall_where_they_should():
    """Counts in quarters of the matrix against their binomials, 5 standard errors: 6e-7 each."""
    network = Rmat(scale=16, edges=40_000, a=0.5, b=0.1, c=0.2)
    assert quarters_fit(network, (0.5, 0.1 + 0.2, 0.2))
    assert not quarters_fit(network, (0.53, 0.1 + 0.2, 0.17))
    uniform = Blocks(nodes=1 << 16, blocks=4, within=0, across=2)
    assert quarters_fit(uniform, (0.25, 0.5, 0.25))


def quarters_fit(network, probs):
    edges = network.graph().edges()
    half = network.n_nodes // 2
    sides = (edges >= half).sum(axis=1)  # an edge has lost which end came first
    shares = np.bincount(sides, minlength=3) / len(edges)
    errors = np.sqrt(np.array(probs) * (1 - np.array(probs)) / len(edges))
    # What was drawn twice, and loops, are missing: a share of 2e-3 at most here.
    return bool(np.all(np.abs(shares - probs) < 5 * errors + 2e-3))


def test_blocks_are_dense_inside():
    network = Blocks(nodes=6000, blocks=30, within=8, across=2, seed=2)
    edges = network.graph().edges()
    inside = (edges // 200)[:, 0] == (edges // 200)[:, 1]
    # 24,000 and 6,000 edges drawn; repeated ones are rare.
    assert abs(inside.sum() - 24_000 - 200) < 24_000 * 0.04
    assert abs((~inside).sum() - 5_800) < 5 * np.sqrt(5_800)


@pytest.mark.parametrize("form", ["txt", "csv", "gz", "parquet"])
def test_a_file_is_read_in_pieces(form, tmp_path):
    graph = barabasi_albert(200, 3, seed=1)
    path = tmp_path / f"edges.{form}"
    if form == "parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        u, v = graph.edges().T
        pq.write_table(pa.table({"from": u, "to": v, "since": u}), path)
    elif form == "gz":
        path.write_bytes(gzip.compress(b"# people\n" + text_of(graph, tmp_path)))
    else:
        write_edges(graph, path)
    network = EdgeFile(path=str(path), nodes=200)
    assert network.graph() == graph
    part = network.rows(50, 120)
    np.testing.assert_array_equal(part.indices, slice_rows(graph, 50, 120).indices)


def text_of(graph, folder):
    write_edges(graph, folder / "plain.txt")
    return (folder / "plain.txt").read_bytes()


def test_a_wrong_file_is_named(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("0 1\n1 7\n")
    with pytest.raises(ValueError, match=r"edges.txt: expected nodes in 0..4, got 7"):
        EdgeFile(path=str(path), nodes=5).rows(0, 5)
    path.write_text("0 1\none two\n")
    with pytest.raises(ValueError, match=r"edges.txt: expected two nodes a line"):
        EdgeFile(path=str(path), nodes=5).rows(0, 5)
    with pytest.raises(ValueError, match="EdgeFile: expected path a file, got 'nowhere'"):
        EdgeFile(path="nowhere", nodes=5)
    with pytest.raises(ValueError, match=r"Rmat: expected a such that a \+ b \+ c <= 1, got 0.9"):
        Rmat(scale=4, edges=3, a=0.9)


def test_weights_are_those_of_the_whole():
    network = NETWORKS["blocks"]
    whole = MixingMatrix.uniform(network.graph()).columns
    for mine, theirs in zip(slice_uniform(network.rows(0, 1999)), whole, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", ["rmat", "blocks"])
def test_a_run_in_pieces_has_the_bits_of_the_whole_network(name):
    network = NETWORKS[name]
    lazy = ChangingTruth(network=network, connectivity="weak")
    stored = ChangingTruth(network=network.graph(), connectivity="weak")
    policy = DiffusionLearning(n_states=5)
    settings = {"horizon": 6, "seed": 3, "checkpoints": 3}
    whole = simulate(policy, stored, **settings).measures
    for place in (
        {},
        {"partitions": 1, "engine": SerialEngine()},
        {"partitions": 5, "engine": SerialEngine()},
    ):
        parts = simulate(policy, lazy, **settings, **place).measures
        assert all(np.array_equal(parts[name], whole[name]) for name in whole)


def test_a_lazy_network_asks_for_what_can_be_checked():
    with pytest.raises(ValueError, match="expected connectivity weak for a lazy network"):
        ChangingTruth(network=NETWORKS["rmat"])
    with pytest.raises(ValueError, match="expected weights uniform for a lazy network"):
        ChangingTruth(network=NETWORKS["rmat"], connectivity="weak", weights="metropolis")


def test_study_files_write_them():
    from tacit.core.registry import build_pair

    written = {"name": "blocks", "nodes": 50, "blocks": 5, "within": 3, "across": 1}
    _, environment = build_pair(
        {"name": "diffusion"},
        {"name": "changing-truth", "network": written, "connectivity": "weak"},
        10,
    )
    assert environment.network == Blocks(nodes=50, blocks=5, within=3, across=1)
    _, environment = build_pair(
        {"name": "diffusion"},
        {"name": "changing-truth", "network": {"name": "ring", "n_nodes": 5}},
        10,
    )
    assert isinstance(environment.network, Graph)
