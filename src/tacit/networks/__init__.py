"""Who is connected to whom: graphs, and what the rooms compute from them."""

from tacit.networks.classics import classic
from tacit.networks.components import (
    components,
    is_bipartite,
    is_connected,
    largest_component,
    strong_components,
)
from tacit.networks.generators import (
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
from tacit.networks.graph import Csr, Graph
from tacit.networks.independent import (
    IndependenceNumber,
    greedy_independent_set,
    independence_number,
    uniform_independent_set,
)

__all__ = [
    "Csr",
    "Graph",
    "IndependenceNumber",
    "barabasi_albert",
    "classic",
    "complete",
    "components",
    "erdos_renyi",
    "greedy_independent_set",
    "grid",
    "independence_number",
    "is_bipartite",
    "is_connected",
    "largest_component",
    "path",
    "ring",
    "star",
    "stochastic_block",
    "strong_components",
    "uniform_independent_set",
    "watts_strogatz",
]
