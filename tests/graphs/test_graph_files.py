import gzip
import os
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest

from tacit import graphs as net
from tacit.graphs import Graph


@pytest.mark.parametrize("name", ["g.txt", "g.csv", "g.txt.gz", "g.csv.gz"])
@pytest.mark.parametrize("directed", [False, True])
def test_edge_lists_round_trip(tmp_path, name, directed):
    edges = [(3, 1), (0, 2), (1, 0)]
    graph = Graph.from_edges(edges, weights=[0.1, 1 / 3, 2e-300], directed=directed)
    net.write_edges(graph, tmp_path / name)
    assert net.read_edges(tmp_path / name, directed=directed, weight_column=2) == graph
    assert os.listdir(tmp_path) == [name]
    assert ((tmp_path / name).read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")


def test_gzip_is_recognised_whatever_the_name(tmp_path):
    file = tmp_path / "edges"
    file.write_bytes(gzip.compress(b"0 1\n1 2\n"))
    assert net.read_edges(file) == net.path(3)


def test_comments_headers_columns_and_names(tmp_path):
    file = tmp_path / "friends.tsv"
    file.write_bytes(
        b"\xef\xbb\xbf# who knows whom\r\n% really\r\nday\tweight\tfrom\tto\r\n\r\n"
        b"1\t0.5\tcid\tann\r\n2\t2\tann\tbob\r\n"
    )
    graph = net.read_edges(file, header=True, columns=(2, 3), weight_column=1, relabel=True)
    assert graph.labels.tolist() == ["ann", "bob", "cid"]
    assert graph.edges().tolist() == [[0, 1], [0, 2]]
    assert graph.edge_weights().tolist() == [2.0, 0.5]
    net.write_edges(graph, tmp_path / "again.csv")
    again = net.read_edges(tmp_path / "again.csv", weight_column=2, relabel=True)
    assert again == graph


def test_sparse_numbers_are_relabelled_as_numbers(tmp_path):
    file = tmp_path / "edges.txt"
    file.write_text("100 20\n20 3\n")
    graph = net.read_edges(file, relabel=True)
    assert graph.labels.tolist() == [3, 20, 100]
    assert graph.n_nodes == 3


@pytest.mark.parametrize(
    ("text", "arguments", "says"),
    [
        ("# x\n0 1\n1 two\n", {}, r"line 3: expected an integer .* in field 1, got 'two'"),
        ("0 1\n\n2\n", {}, r"line 3: expected at least 2 fields, got '2'"),
        ("0 1 x\n", {"weight_column": 2}, "line 1: expected a number in field 2, got 'x'"),
        ("0 1 nan\n", {"weight_column": 2}, r"got nan on edge \(0, 1\)"),
        ("0 1\n1 0\n", {}, r"got again edge 1: \(1, 0\)"),
        ("0 0\n", {}, "no loops"),
        ("a b\nc\n", {"relabel": True}, "line 2: expected at least 2 fields"),
    ],
)
def test_errors_name_the_file_and_line(tmp_path, text, arguments, says):
    file = tmp_path / "bad.txt"
    file.write_text(text)
    with pytest.raises(ValueError, match=f"bad.txt.*{says}"):
        net.read_edges(file, **arguments)


def test_an_empty_file_is_an_empty_graph(tmp_path):
    file = tmp_path / "none.txt"
    file.write_text("# nothing\n")
    assert net.read_edges(file, n_nodes=4) == Graph.from_edges([], n_nodes=4)


def test_labels_that_an_edge_list_cannot_hold(tmp_path):
    graph = Graph.from_edges([(0, 1)], labels=["a b", "c"])
    with pytest.raises(ValueError, match="got 'a b'"):
        net.write_edges(graph, tmp_path / "g.txt")
    assert not list(tmp_path.iterdir())


def test_graphml(tmp_path):
    file = tmp_path / "g.graphml"
    nx.write_graphml(nx.les_miserables_graph(), file)
    graph = net.read_graphml(file, weight="weight")
    assert graph == net.from_networkx(nx.les_miserables_graph(), weight="weight")
    net.write_graphml(graph, tmp_path / "again.graphml")
    assert net.read_graphml(tmp_path / "again.graphml", weight="weight") == graph
    nx.write_graphml(nx.Graph([(0, 1), (1, 1)]), file)
    with pytest.raises(ValueError, match=r"g.graphml.*no loops"):
        net.read_graphml(file)
    with pytest.raises(ValueError, match=r"expected 'length' on edge"):
        net.read_graphml(tmp_path / "again.graphml", weight="length")


@pytest.mark.parametrize(
    ("name", "arguments", "n_nodes", "n_edges"),
    [
        ("graphs/dblp-2010.edges.txt.gz", {"n_nodes": 326_186}, 326_186, 807_700),
        ("graphs/facebook_combined.txt.gz", {}, 4_039, 88_234),
        ("graphs/soc-Epinions1-lcc.txt.gz", {"directed": True}, 75_877, 508_836),
        (
            "hetrec2011-lastfm-2k/user_friends.dat.gz",
            {"header": True, "relabel": True, "duplicates": "merge"},
            1_892,
            12_717,
        ),
        (
            "hetrec2011-delicious-2k/user_contacts.dat.gz",
            {"header": True, "relabel": True, "duplicates": "merge"},
            1_861,
            7_664,
        ),
    ],
)
def test_real_graphs_have_their_known_sizes(data, name, arguments, n_nodes, n_edges):
    graph = net.read_edges(data(name), **arguments)
    assert (graph.n_nodes, graph.n_edges) == (n_nodes, n_edges)


def test_known_components(data):
    dblp = net.read_edges(data("graphs/dblp-2010.edges.txt.gz"), n_nodes=326_186)
    assert int(np.sum(dblp.degrees > 0)) == 300_647
    assert net.largest_component(dblp).n_nodes == 226_413


WITHOUT = """
import sys
for name in ("scipy.sparse", "networkx", "rustworkx"):
    sys.modules[name] = None
from tacit import graphs as net
graph = net.erdos_renyi(20, 0.5, seed=0)
net.partition(graph, 3, seed=0), net.MixingMatrix.metropolis(graph), net.laplacian(graph)
net.Walk(graph).spectral_gap, net.independence_number(graph)
for call in (net.to_scipy, net.to_networkx, net.to_rustworkx, net.sparse_laplacian):
    try:
        call(graph)
    except ModuleNotFoundError as error:
        print(error)
"""


def test_the_core_needs_neither_scipy_nor_networkx():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "to_scipy needs scipy: pip install 'tacit[networks]'",
        "to_networkx needs networkx: pip install 'tacit[networks]'",
        "to_rustworkx needs rustworkx: pip install rustworkx",
        "sparse_laplacian needs scipy: pip install 'tacit[networks]'",
    ]


def test_importing_loads_no_optional_package():
    code = (
        "import sys; import tacit.graphs; "
        "print([m for m in ('scipy.sparse', 'networkx', 'rustworkx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
