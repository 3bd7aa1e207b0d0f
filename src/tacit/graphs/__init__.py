"""Who is connected to whom: graphs, and what the settings compute from them."""

from tacit.graphs.components import (
    components,
    is_bipartite,
    is_connected,
    largest_component,
    require_connected,
    require_strongly_connected,
    require_undirected,
    strong_components,
)
from tacit.graphs.conversion import (
    from_networkx,
    from_rustworkx,
    from_scipy,
    to_networkx,
    to_rustworkx,
    to_scipy,
)
from tacit.graphs.files import read_edges, read_graphml, write_edges, write_graphml
from tacit.graphs.generators import (
    barabasi_albert,
    complete,
    erdos_renyi,
    grid,
    path,
    ring,
    star,
    stochastic_block,
    watts_strogatz,
)
from tacit.graphs.graph import Csr, Graph
from tacit.graphs.independent import (
    IndependenceNumber,
    greedy_independent_set,
    independence_number,
    uniform_independent_set,
    work_size,
)
from tacit.graphs.laplacian import adjacency, column_normalised, laplacian, sparse_laplacian
from tacit.graphs.lazy import Blocks, EdgeFile, LazyGraph, Rmat
from tacit.graphs.mixing_matrix import Columns, MixingMatrix, Subnetworks
from tacit.graphs.named import classic
from tacit.graphs.partition import group_graph, normalised_cut, partition
from tacit.graphs.walks import Transition, Walk, metropolis_step

__all__ = [
    "Blocks",
    "Columns",
    "Csr",
    "EdgeFile",
    "Graph",
    "IndependenceNumber",
    "LazyGraph",
    "MixingMatrix",
    "Rmat",
    "Subnetworks",
    "Transition",
    "Walk",
    "adjacency",
    "barabasi_albert",
    "classic",
    "column_normalised",
    "complete",
    "components",
    "erdos_renyi",
    "from_networkx",
    "from_rustworkx",
    "from_scipy",
    "greedy_independent_set",
    "grid",
    "group_graph",
    "independence_number",
    "is_bipartite",
    "is_connected",
    "laplacian",
    "largest_component",
    "metropolis_step",
    "normalised_cut",
    "partition",
    "path",
    "read_edges",
    "read_graphml",
    "require_connected",
    "require_strongly_connected",
    "require_undirected",
    "ring",
    "sparse_laplacian",
    "star",
    "stochastic_block",
    "strong_components",
    "to_networkx",
    "to_rustworkx",
    "to_scipy",
    "uniform_independent_set",
    "watts_strogatz",
    "work_size",
    "write_edges",
    "write_graphml",
]
