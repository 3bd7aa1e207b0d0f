"""Who is connected to whom: graphs, and what the rooms compute from them."""

from tacit.networks.generators import erdos_renyi
from tacit.networks.graph import Csr, Graph
from tacit.networks.independent import greedy_independent_set

__all__ = ["Csr", "Graph", "erdos_renyi", "greedy_independent_set"]
